//! Traces of the real code, replayed against the model.
//!
//! A trace has the changes of timeline, lock, heartbeats and delta commits, in their order. The steps
//! between them do not show, and neither does how long a stall was. So the replay keeps every state
//! in which the model may be, and fails at the first change that no state allows.

use std::collections::HashSet;

use serde::Deserialize;

use crate::protocol::{Party, Program, Role, Setup, State, Step};
use crate::steps::{FAIL, RECOVER, RESUME, SKIP, Turn};
use crate::table::{Action, Beat, Delta, NONE, Set, View, one};

#[derive(Deserialize)]
pub struct Trace {
    /// The number of parties, all of them writers.
    parties: usize,
    /// The file groups of each commit that was there at first.
    history: Vec<Vec<u8>>,
    /// The number of commits that a clean retains.
    retained: usize,
    /// Whether writers are non-blocking.
    appends: bool,
    /// Whether there is a metadata table.
    has_metadata: bool,
    events: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    party: usize,
    change: String,
    /// The number of the instant, in the order in which they appear.
    #[serde(default)]
    instant: usize,
    /// With a change of a timeline file: "write", "compaction", "clustering", "clean", "rollback".
    #[serde(default)]
    action: String,
    /// With a new heartbeat, or the request of a clean.
    #[serde(default)]
    plan: Plan,
    /// With "runs": the service that the party runs next.
    #[serde(default)]
    service: String,
    /// With an inflight file: the file groups of the write. With a request: those of a plan.
    #[serde(default)]
    groups: Vec<u8>,
    /// With an inflight file: the file groups that only get log files.
    #[serde(default)]
    appended: Vec<u8>,
}

/// What a write or a service was planned on.
#[derive(Debug, Default, Deserialize)]
struct Plan {
    completed: Vec<usize>,
    pending: Vec<usize>,
    /// The earliest commit that a clean retains.
    retains: Option<usize>,
}

impl Plan {
    fn view(&self) -> View {
        let set = |numbers: &[usize]| numbers.iter().map(|n| one(*n)).sum();
        View {
            completed: set(&self.completed),
            pending: set(&self.pending),
            ..View::default()
        }
    }
}

type Change = (&'static str, usize);

/// A state of the model, and the changes of the last step that the trace has not shown yet.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Branch {
    state: State,
    owed: Vec<Change>,
}

/// More branches than a trace has.
const MAX_BRANCHES: usize = 200_000;

/// Replay a trace; the error names the event that the model does not allow.
pub fn replay(trace: &Trace, base: &Setup) -> Result<usize, String> {
    let setup = setup_of(trace, base);
    let mut start = State::new(&setup);
    start.begun = 1;
    for (instant, groups) in start.table.instants.iter_mut().zip(&trace.history) {
        instant.groups = set(groups);
    }
    let mut branches = HashSet::from([Branch {
        state: start,
        owed: vec![],
    }]);
    let mut has_stalled = vec![false; trace.parties];
    for (n, entry) in trace.events.iter().enumerate() {
        branches = match entry.change.as_str() {
            "stall" => branches
                .iter()
                .flat_map(|b| stalled(&setup, b, entry.party))
                .collect(),
            "crash" => branches
                .into_iter()
                .map(|b| crashed(b, entry.party))
                .collect(),
            "runs" => branches
                .iter()
                .flat_map(|b| run(&setup, b, entry))
                .collect(),
            _ => branches
                .iter()
                .flat_map(|b| after(&setup, trace, b, entry))
                .collect(),
        };
        if entry.change == "acquires" && has_stalled[entry.party] {
            // The lease began before the stall, and may be over when the lock's file is written.
            branches = branches
                .iter()
                .flat_map(|b| stalled(&setup, b, entry.party))
                .collect();
        }
        has_stalled[entry.party] = entry.change == "stall";
        if branches.is_empty() {
            return Err(format!("event {n} is not allowed: {entry:?}"));
        }
        if branches.len() > MAX_BRANCHES {
            return Err(format!("event {n}: too many states"));
        }
    }
    Ok(branches.len())
}

fn setup_of(trace: &Trace, base: &Setup) -> Setup {
    let mut rules = base.rules;
    // The trace has no keys, and no listings.
    (rules.key_check, rules.staleness) = (false, false);
    rules.delta_first &= trace.has_metadata;
    Setup {
        name: "trace",
        roles: vec![Role::Writer; trace.parties],
        writes: u8::MAX,
        retries: u8::MAX,
        history: trace.history.len() as u8,
        retained: trace.retained,
        appends: trace.appends,
        is_empty: true,
        is_trace: true,
        rules,
        ..base.clone()
    }
}

fn set(numbers: &[u8]) -> Set {
    numbers
        .iter()
        .map(|n| one(usize::from(*n)))
        .fold(0, |all, n| all | n)
}

/// The branches after a change of a party.
fn after(setup: &Setup, trace: &Trace, branch: &Branch, entry: &Entry) -> Vec<Branch> {
    let change = (entry.change.as_str(), entry.instant);
    if let Some(n) = branch.owed.iter().position(|owed| *owed == change) {
        let mut next = branch.clone();
        next.owed.remove(n);
        return vec![next];
    }
    if !branch.owed.is_empty() {
        return vec![];
    }
    let mut found = vec![];
    for state in silently(setup, &branch.state, entry.party) {
        for next in steps(setup, &state, entry.party) {
            let mut owed = changes(setup, trace, &state, &next);
            if let Some(n) = owed.iter().position(|owed| *owed == change) {
                owed.remove(n);
                let informed = inform(setup, next, entry);
                found.extend(informed.map(|state| Branch { state, owed }));
            }
        }
    }
    // The next writer removes the heartbeat of one that failed after its commit or its rollback.
    let state = &branch.state;
    if change.0 == "stops beating" && state.table.instants[entry.instant].beat == Beat::Expired {
        let mut next = branch.clone();
        let instant = &mut next.state.table.instants[entry.instant];
        if !instant.late && !instant.is_pending() {
            instant.beat = Beat::Absent;
            found.push(next);
        }
    }
    found
}

/// Add what an event says about the write of its party. None if the model does not allow it.
fn inform(setup: &Setup, mut state: State, entry: &Entry) -> Option<State> {
    let action = state.table.instants.get(entry.instant).map(|i| i.action);
    if entry.change == "requests" && action != Some(action_of(entry)) {
        return None;
    }
    let party = &mut state.parties[entry.party];
    if entry.change == "beats" {
        let planned_on = entry.plan.view();
        (party.view.completed, party.view.pending) = (planned_on.completed, planned_on.pending);
    }
    if entry.change == "begins" && action == Some(Action::Write) {
        (party.groups, party.appended) = (set(&entry.groups), set(&entry.appended));
        if !Turn::new(setup, &mut state, entry.party).may_write() {
            return None;
        }
    }
    if entry.change == "requests" && matches!(action, Some(Action::Compaction | Action::Clustering))
    {
        state.table.instants[entry.instant].groups = set(&entry.groups);
    }
    if entry.change == "requests" && action == Some(Action::Clean) {
        let turn = Turn::new(setup, &mut state, entry.party);
        if !turn.allows_clean(entry.plan.view(), entry.plan.retains?) {
            return None;
        }
    }
    Some(state)
}

fn action_of(entry: &Entry) -> Action {
    match entry.action.as_str() {
        "clean" => Action::Clean,
        "clustering" => Action::Clustering,
        "compaction" => Action::Compaction,
        "rollback" => Action::Rollback,
        _ => Action::Write,
    }
}

/// The branches in which a party begins a service: it has nothing else to do.
fn run(setup: &Setup, branch: &Branch, entry: &Entry) -> Vec<Branch> {
    let program = match entry.service.as_str() {
        "archive" => Program::Archive,
        "clean" => Program::Clean,
        "cluster" | "compact" => Program::Plan,
        _ => return vec![],
    };
    let p = entry.party;
    let is_free = |state: &State| {
        let party = &state.parties[p];
        let is_first = matches!(party.next_step(), Step::Begin | Step::Load);
        is_first && usize::from(state.lock) != p
    };
    let free = silently(setup, &branch.state, p)
        .into_iter()
        .filter(is_free);
    let begin = |mut state: State| {
        let mut party = Party::new();
        party.main = program;
        if entry.service == "cluster" {
            party.plans = Action::Clustering;
        }
        party.go(program);
        state.parties[p] = party;
        Branch {
            state,
            owed: branch.owed.clone(),
        }
    };
    free.map(begin).collect()
}

/// The states that a party reaches by steps that change nothing that a trace shows.
fn silently(setup: &Setup, state: &State, p: usize) -> HashSet<State> {
    let mut found = HashSet::from([state.clone()]);
    let mut open = vec![state.clone()];
    while let Some(state) = open.pop() {
        for next in steps(setup, &state, p) {
            let is_silent = observed(setup, &state) == observed(setup, &next);
            if is_silent && found.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    found
}

fn steps(setup: &Setup, state: &State, p: usize) -> Vec<State> {
    if !state.is_enabled(setup, p) {
        return vec![];
    }
    let step = |choice| {
        let mut next = state.clone();
        Turn::new(setup, &mut next, p).trace(choice);
        // A trace does not show which write it is, or how often it was tried.
        (next.begun, next.acknowledged, next.failed, next.bad_read) = (1, 0, 0, false);
        next.table.files.iter_mut().for_each(|file| file.row = 0);
        let party = &mut next.parties[p];
        (party.attempts, party.task, party.expected) = (0, 0, None);
        (party.view.start, party.view.rolled_back) = (0, 0);
        next
    };
    let plans = match state.parties[p].next_step() {
        Step::TakeOver => Turn::new(setup, &mut state.clone(), p).pending_plans(),
        _ => 1,
    };
    let plans = 0..plans.count_ones() as u8;
    plans
        .chain([FAIL, SKIP, RESUME, RECOVER])
        .map(step)
        .collect()
}

/// What a trace shows of a state.
fn observed(setup: &Setup, state: &State) -> (u8, Vec<[u8; 6]>) {
    let instants = state.table.instants.iter().map(|i| {
        let beat = match i.beat {
            Beat::Absent => 0,
            Beat::Live | Beat::Expired => 1,
            Beat::Marked => 2,
        };
        let has_delta = setup.rules.delta_first;
        let delta = if has_delta {
            i.delta as u8
        } else {
            Delta::Absent as u8
        };
        [
            i.requested.into(),
            i.inflight.into(),
            i.is_completed().into(),
            beat,
            delta,
            i.archived.into(),
        ]
    });
    (state.lock, instants.collect())
}

/// The changes of a step, as a trace names them.
fn changes(setup: &Setup, trace: &Trace, before: &State, after: &State) -> Vec<Change> {
    const NAMES: [[&str; 3]; 6] = [
        ["withdraws its request", "requests", ""],
        ["withdraws", "begins", ""],
        ["revokes", "completes", ""],
        ["stops beating", "beats", "marks"],
        [
            "withdraws its delta",
            "begins its delta",
            "completes its delta",
        ],
        ["", "archives", ""],
    ];
    let (old, new) = (observed(setup, before), observed(setup, after));
    let mut found = vec![];
    if old.0 != new.0 {
        found.push(if new.0 == NONE {
            ("releases", 0)
        } else {
            ("acquires", 0)
        });
    }
    for (n, instant) in new.1.iter().enumerate() {
        let previous = old.1.get(n).copied().unwrap_or_default();
        let changed = (0..6).filter(|k| previous[*k] != instant[*k]);
        found.extend(changed.map(|k| (NAMES[k][usize::from(instant[k])], n)));
    }
    debug_assert!(trace.parties > 0);
    found
}

fn stalled(setup: &Setup, branch: &Branch, p: usize) -> Vec<Branch> {
    if branch.state.parties[p].is_dead {
        return vec![branch.clone()];
    }
    let mut found = vec![branch.clone()];
    for state in silently(setup, &branch.state, p) {
        for is_long in [false, true] {
            let mut next = Branch {
                state: state.clone(),
                owed: branch.owed.clone(),
            };
            next.state.faults = u8::MAX;
            next.state.stall(p, is_long);
            next.state.faults = 0;
            found.push(next);
        }
    }
    found
}

fn crashed(mut branch: Branch, p: usize) -> Branch {
    branch.state.faults = u8::MAX;
    branch.state.crash(p);
    branch.state.faults = 0;
    branch.state.parties[p].program = Program::Idle;
    branch
}
