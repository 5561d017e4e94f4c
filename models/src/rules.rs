//! The rules of the protocol. Each can be switched off, and the checker then finds what it prevents.

use std::str::FromStr;

macro_rules! rules {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// The rules that hold. The protocol of pyhudi has all of them.
        #[derive(Clone, Copy, Debug)]
        pub struct Rules {
            $($(#[doc = $doc])* pub $name: bool,)*
        }

        impl Default for Rules {
            fn default() -> Self {
                Self { $($name: true,)* }
            }
        }

        impl Rules {
            /// Switch one rule off.
            pub fn remove(&mut self, name: &str) -> Result<(), String> {
                match name {
                    $(stringify!($name) => self.$name = false,)*
                    _ => return Err(format!("there is no rule {name}")),
                }
                Ok(())
            }
        }
    };
}

rules! {
    /// One writer at a time is in a critical section.
    lock,
    /// A writer that may have lost its lock or its heartbeat does not change the timeline.
    check_alive,
    /// An instant is later than all times of the timeline.
    later_instants,
    /// A timeline file is created only if it is absent.
    put_if_absent,
    /// The name of a data file contains a random token.
    salted_names,
    /// A pending write with a live heartbeat is not rolled back.
    heartbeats,
    /// A commit aborts unless its own instant is still inflight.
    own_instant,
    /// A commit aborts if another one has changed its file groups since the plan.
    file_group_check,
    /// A commit aborts if another one has added a key that it did not find.
    key_check,
    /// A write aborts if a commit that it was planned on is gone.
    planned_commits_exist,
    /// A commit aborts if a clustering of its file groups was planned since its own plan.
    planned_services,
    /// A listing counts only if no clean has removed files of the snapshot since it was loaded.
    staleness,
    /// Nor if a write of an instant older than the snapshot's start has appeared since.
    early_instants,
    /// A zombie commit is revoked before anybody plans on it.
    revoke_zombies,
    /// A commit whose files another executor of its plan has removed is a zombie commit.
    missing_files,
    /// A writer checks its lock and heartbeat again after it has published.
    look_again,
    /// Files of a write that a rollback names do not count, though older than the timeline's start.
    rolled_back_writes,
    /// A rollback looks for the completed file once more after it was requested.
    rollback_looks_again,
    /// A rollback includes the delta commit of the metadata table.
    rollback_delta,
    /// The delta commit is complete before the commit.
    delta_first,
    /// A clean retains the latest commits.
    retention,
    /// A clean retains what pending writes were planned on.
    retains_for_pending,
    /// A clean is planned again if a commit was revoked since its plan.
    clean_plan_is_current,
    /// A plan is withdrawn if its planner lost the lock while others went on.
    withdraw_late_plans,
    /// One process at a time executes a plan.
    one_executor,
    /// A clustering is cancelled if its plan does not have the latest file slices.
    outdated_plans,
    /// A clustering aborts if its file groups have changed since its plan.
    clustering_check,
    /// Log files belong to the base file before their completion, not to the one they were written for.
    slices_by_completion,
    /// Archiving stops at the oldest pending write.
    archive_stops_at_pending,
    /// Archiving first removes the files of writes that were rolled back.
    archive_removes_leftovers,
    /// A replace commit is archived only after the files that it replaced are deleted.
    archive_after_clean,
}

impl FromStr for Rules {
    type Err = String;

    /// All rules without those of a list: "lock,key_check".
    fn from_str(removed: &str) -> Result<Self, String> {
        let mut rules = Self::default();
        for name in removed.split(',').filter(|name| !name.is_empty()) {
            rules.remove(name)?;
        }
        Ok(rules)
    }
}
