//! The setups that are checked, and what must hold in every state.

use std::time::Instant as Clock;

use stateright::{Checker, HasDiscoveries, Model, Path, Property};

use crate::protocol::{Program, Role, Setup, State};
use crate::rules::Rules;
use crate::table::{Action, Delta, Instant, NONE, Set, Style, View, members, one};

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A party takes its next step, in one of several ways.
    Step(u8, u8),
    /// A party stalls for longer than its lease.
    Stall(u8),
    /// A party stalls for longer than its heartbeat lasts.
    LongStall(u8),
    Crash(u8),
}

impl Model for Setup {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        for (p, party) in state.parties.iter().enumerate() {
            let n = p as u8;
            if state.is_enabled(self, p) {
                events.extend((0..state.choices(self, p)).map(|choice| Event::Step(n, choice)));
            }
            let is_busy = !party.is_dead && party.program != Program::Idle;
            if state.faults == 0 || !is_busy || self.roles[p] == Role::Reader {
                continue;
            }
            events.push(Event::Crash(n));
            if usize::from(state.lock) == p && !party.lapsed {
                events.push(Event::Stall(n));
            }
            if party.instant != NONE && !party.expired {
                events.push(Event::LongStall(n));
            }
        }
    }

    fn next_state(&self, last: &State, event: Event) -> Option<State> {
        let mut state = last.clone();
        match event {
            Event::Step(p, choice) => state.step(self, p.into(), choice),
            Event::Stall(p) => state.stall(p.into(), false),
            Event::LongStall(p) => state.stall(p.into(), true),
            Event::Crash(p) => state.crash(p.into()),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no acknowledged write is lost", |setup, state: &State| {
                let (row, _) = read(setup, state);
                state.table.has_zombies() || state.acknowledged & !row == 0
            }),
            Property::always("no failed write is visible", |setup, state: &State| {
                let (row, _) = read(setup, state);
                state.table.has_zombies() || state.failed & row == 0
            }),
            Property::always("no key is doubled", |setup, state: &State| {
                state.table.has_zombies() || read(setup, state).1 <= 1
            }),
            Property::always("readers see prefixes", |_, state: &State| !state.bad_read),
            Property::always(
                "the metadata table agrees with the files",
                |setup, state: &State| has_right_metadata(setup, state),
            ),
            Property::always(
                "a retained snapshot has its files",
                |setup, state: &State| has_retained_files(setup, state),
            ),
        ]
    }
}

fn style(setup: &Setup) -> Style {
    Style {
        appends: setup.appends,
        by_completion: setup.rules.slices_by_completion,
    }
}

/// The row of the key, and the number of file groups that have it.
fn read(setup: &Setup, state: &State) -> (Set, usize) {
    let (table, view) = (&state.table, state.table.view(setup.rules));
    let slices = table.slices(view, table.committed_files(view), style(setup));
    (
        slices.iter().fold(0, |row, slice| row | slice.row),
        slices.len(),
    )
}

/// Files that requested cleans delete.
fn cleaned(state: &State) -> Set {
    let cleans = state
        .table
        .instants
        .iter()
        .filter(|i| i.action == Action::Clean);
    cleans
        .filter(|i| i.requested)
        .fold(0, |all, i| all | i.plan)
}

/// Each commit has its delta commit, and the files that it names.
fn has_right_metadata(setup: &Setup, state: &State) -> bool {
    let (table, cleaned) = (&state.table, cleaned(state));
    let is_right = |i: &Instant| {
        let files = members(i.files & !cleaned).all(|n| table.files[n].exists);
        i.delta == Delta::Completed && files
    };
    let committed = table
        .instants
        .iter()
        .filter(|i| i.is_completed() && !i.late);
    let mut checked = committed.filter(|i| i.action != Action::Rollback);
    let listed = table.committed_files(table.view(setup.rules));
    checked.all(is_right)
        && (table.has_zombies()
            || members(listed)
                .all(|n| table.instants[table.files[n].instant as usize].delta == Delta::Completed))
}

/// The latest snapshot and those that cleans retain have all their files.
fn has_retained_files(setup: &Setup, state: &State) -> bool {
    let table = &state.table;
    if table.has_zombies() {
        return true;
    }
    let view = table.view(setup.rules);
    let earliest = table
        .instants
        .iter()
        .filter(|i| i.action == Action::Clean && i.requested);
    let earliest = earliest.map(|i| i.retains).max().unwrap_or(table.now);
    let commits = table
        .instants_of(view.completed)
        .filter(|(_, i)| i.is_commit());
    let times: Vec<u8> = commits.map(|(_, i)| i.time).collect();
    let latest = times.iter().copied().max();
    times
        .into_iter()
        .filter(|time| *time >= earliest || Some(*time) == latest)
        .all(|time| {
            let is_before = |n: &usize| table.instants[*n].time <= time || Some(time) == latest;
            let completed = members(view.completed).filter(is_before).map(one).sum();
            let view = View { completed, ..view };
            let named = table
                .instants
                .iter()
                .enumerate()
                .filter(|(n, i)| i.archived || completed & one(*n) != 0)
                .fold(0, |all, (_, i)| all | i.files);
            let slices = table.slices(view, named, style(setup));
            slices
                .iter()
                .all(|slice| members(slice.files).all(|n| table.files[n].exists))
        })
}

/// All setups: two writers, a service and a reader, and three operations.
pub fn setups() -> Vec<Setup> {
    let base = Setup {
        name: "writes",
        roles: vec![Role::Writer, Role::Writer, Role::Service, Role::Reader],
        writes: 3,
        retries: 0,
        services: vec![],
        planned: Action::Compaction,
        logs: false,
        appends: false,
        history: 1,
        is_empty: true,
        retained: 2,
        faults: 0,
        rules: Rules::default(),
        is_trace: false,
    };
    let some = |name, services: &[Program]| Setup {
        name,
        writes: 2,
        services: services.to_vec(),
        is_empty: false,
        ..base.clone()
    };
    vec![
        base.clone(),
        Setup {
            name: "first_writes",
            history: 0,
            ..base.clone()
        },
        Setup {
            name: "updates",
            is_empty: false,
            ..base.clone()
        },
        Setup {
            logs: true,
            history: 1,
            ..some("compaction", &[Program::Plan])
        },
        Setup {
            logs: true,
            appends: true,
            history: 1,
            ..some("appends", &[Program::Plan])
        },
        Setup {
            planned: Action::Clustering,
            history: 1,
            ..some("clustering", &[Program::Plan])
        },
        Setup {
            history: 3,
            ..some("cleaning", &[Program::Clean])
        },
        Setup {
            history: 3,
            ..some("archiving", &[Program::Archive])
        },
    ]
}

/// What came of a check.
pub struct Outcome {
    pub states: usize,
    pub seconds: f32,
    /// The properties that do not hold, each with the events that lead there.
    pub violations: Vec<(&'static str, Vec<String>)>,
    /// Every state was visited.
    pub is_complete: bool,
}

/// Visit the states of a setup, at most `limit` of them, up to the first violation.
#[expect(clippy::disallowed_methods, reason = "it reports how long it took")]
pub fn check(setup: &Setup, limit: usize) -> Outcome {
    let began = Clock::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let builder = setup
        .clone()
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::Any);
    let checker = builder.target_state_count(limit).spawn_bfs().join();
    let describe_all = |path: Path<State, Event>| {
        let events = path.into_vec().into_iter();
        events
            .filter_map(|(state, event)| event.map(|event| describe(&state, event)))
            .collect()
    };
    let discoveries = checker.discoveries().into_iter();
    let violations: Vec<_> = discoveries
        .map(|(name, path)| (name, describe_all(path)))
        .collect();
    Outcome {
        states: checker.unique_state_count(),
        seconds: began.elapsed().as_secs_f32(),
        is_complete: violations.is_empty() && checker.state_count() < limit,
        violations,
    }
}

fn describe(state: &State, event: Event) -> String {
    match event {
        Event::Step(p, _) => {
            let party = &state.parties[usize::from(p)];
            format!("{p} {:?}: {:?}", party.program, party.next_step())
        }
        Event::Stall(p) => format!("{p} stalls for longer than its lease"),
        Event::LongStall(p) => format!("{p} stalls for longer than its heartbeat lasts"),
        Event::Crash(p) => format!("{p} crashes"),
    }
}
