//! What the checker must find if rules are removed.

/// A setup without some rules, and the number of faults that the violation takes.
pub struct Mutation<'a> {
    /// The rules, as `Rules` parses them.
    pub removed: &'a str,
    pub setup: &'a str,
    pub faults: u8,
}

const fn mutation(removed: &'static str, setup: &'static str, faults: u8) -> Mutation<'static> {
    Mutation {
        removed,
        setup,
        faults,
    }
}

pub const MUTATIONS: &[Mutation<'static>] = &[
    // Jack Vanlightly found these three in his TLA+ study of Apache Hudi's protocol.
    mutation("key_check", "writes", 0),
    mutation("lock,file_group_check,key_check", "updates", 0),
    mutation("later_instants,put_if_absent,salted_names", "updates", 0),
    // One rule each.
    mutation("lock", "writes", 0),
    mutation("heartbeats", "writes", 1),
    mutation("file_group_check", "updates", 0),
    mutation("planned_commits_exist", "writes", 1),
    // Either of the two protects an update, if no writer stalls.
    mutation("planned_services,outdated_plans", "clustering", 0),
    mutation("outdated_plans", "clustering", 1),
    mutation("staleness", "writes", 1),
    mutation("revoke_zombies", "updates", 1),
    mutation("look_again", "writes", 1),
    mutation("rolled_back_writes", "first_writes", 1),
    mutation("early_instants", "first_writes", 1),
    mutation("delta_first", "writes", 0),
    mutation("retention", "cleaning", 0),
    mutation("slices_by_completion", "compaction", 0),
];
