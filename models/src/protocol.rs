//! What each party does, as a program of steps. A step is one change of storage or one look at it.
//!
//! Between two steps of a party any other one may go on, and the party may crash or stall.

use crate::rules::Rules;
use crate::steps::Turn;
use crate::table::{Action, Beat, Delta, File, Instant, NONE, Set, Slice, Table, View, one};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    Idle,
    /// A write from its plan to its data file; `Commit` follows.
    Write,
    Commit,
    /// A writer that lost lock or heartbeat while it published decides what its commit counts.
    Doubt,
    /// A write that failed after its request: its files and its instant are removed.
    Abort,
    /// A write or an execution that failed in its first critical section.
    Withdraw,
    /// A write that has nothing to commit removes its instant.
    Nothing,
    /// The failed writes of others are rolled back.
    Recover,
    /// One rollback, within `Recover` or `Abort`.
    Rollback,
    /// A compaction or clustering is planned; `Execute` follows.
    Plan,
    /// A plan is executed; `Commit` follows.
    Execute,
    Clean,
    /// The files of a clean are deleted, and it is completed.
    Delete,
    Archive,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Begin,
    Load,
    List,
    CheckListing,
    Acquire,
    Reload,
    Beat,
    CheckHeld,
    Request,
    Release,
    Start,
    PutFile,
    Check,
    BeginDelta,
    CheckDelta,
    CompleteDelta,
    LastCheck,
    Publish,
    LookAgain,
    StopBeat,
    Answer,
    MarkZombie,
    Unpublish,
    Settle,
    DropDelta,
    DropFile,
    DropInflight,
    DropRequest,
    DropBeat,
    Retry,
    NextFailed,
    RequestRollback,
    LookBeforeRollback,
    DeleteFiles,
    CompleteRollback,
    Return,
    PlanService,
    RequestPlan,
    CheckPlan,
    TakeOver,
    Revert,
    PlanClean,
    PlanCleanAgain,
    CheckClean,
    DeltaOfClean,
    CompleteClean,
    ChooseArchived,
    RemoveLeftovers,
    MoveToArchive,
}

use Step as S;

impl Step {
    /// Whether it happens together with the step before it. What another party does in between is
    /// then seen later, if at all: a stall after the look is the worse case, and stays possible.
    pub fn is_look(self) -> bool {
        matches!(
            self,
            S::CheckHeld
                | S::Reload
                | S::Check
                | S::CheckDelta
                | S::LastCheck
                | S::Answer
                | S::Retry
                | S::Return
                | S::NextFailed
                | S::PlanService
                | S::TakeOver
                | S::PlanCleanAgain
                | S::CheckClean
                | S::ChooseArchived
                | S::Settle
        )
    }
}

impl Step {
    /// Whether it may raise a conflict for a reason that a trace does not show.
    pub fn can_fail(self) -> bool {
        let is_check = matches!(
            self,
            S::CheckListing | S::CheckHeld | S::Check | S::CheckDelta
        );
        is_check
            || matches!(
                self,
                S::Acquire
                    | S::Reload
                    | S::TakeOver
                    | S::Start
                    | S::BeginDelta
                    | S::LastCheck
                    | S::PutFile
                    | S::DropFile
                    | S::DropInflight
            )
    }
}

impl Program {
    pub fn steps(self) -> &'static [Step] {
        match self {
            Self::Idle => &[S::Begin],
            Self::Write => &[
                S::Load,
                S::List,
                S::CheckListing,
                // The first critical section: the instant.
                S::Acquire,
                S::Reload,
                S::Beat,
                S::CheckHeld,
                S::Request,
                S::Release,
                S::Start,
                S::PutFile,
            ],
            Self::Commit => &[
                // The second critical section.
                S::Acquire,
                S::Check,
                S::BeginDelta,
                S::CheckDelta,
                S::CompleteDelta,
                S::LastCheck,
                S::Publish,
                S::LookAgain,
                S::StopBeat,
                S::Release,
                S::Answer,
            ],
            Self::Doubt => &[
                S::Release,
                S::Acquire,
                S::MarkZombie,
                S::Unpublish,
                S::Release,
            ],
            Self::Abort => &[
                S::Acquire,
                S::Settle,
                S::DropDelta,
                S::DropFile,
                S::DropInflight,
                S::DropRequest,
                S::DropBeat,
                S::Release,
                S::Retry,
            ],
            Self::Withdraw => &[S::DropRequest, S::DropBeat, S::Retry],
            Self::Nothing => &[S::DropInflight, S::DropRequest, S::DropBeat, S::Answer],
            Self::Recover => &[S::Acquire, S::Reload, S::NextFailed, S::Release, S::Return],
            Self::Rollback => &[
                S::RequestRollback,
                S::LookBeforeRollback,
                S::DeleteFiles,
                S::DropDelta,
                S::CheckHeld,
                S::CompleteRollback,
                S::DropInflight,
                S::DropRequest,
                S::DropBeat,
                S::Return,
            ],
            Self::Plan => &[
                S::Load,
                S::Acquire,
                S::Reload,
                S::PlanService,
                S::CheckHeld,
                S::RequestPlan,
                S::CheckPlan,
                S::Release,
            ],
            Self::Execute => &[
                S::Acquire,
                S::Reload,
                S::TakeOver,
                S::Beat,
                S::CheckHeld,
                S::Revert,
                S::Start,
                S::Release,
                S::PutFile,
            ],
            Self::Clean => &[
                S::Load,
                S::PlanClean,
                S::Acquire,
                S::Reload,
                S::PlanCleanAgain,
                S::CheckHeld,
                S::RequestPlan,
                S::CheckPlan,
                S::Release,
            ],
            Self::Delete => &[
                S::Start,
                S::DeleteFiles,
                S::Acquire,
                S::CheckClean,
                S::DeltaOfClean,
                S::CheckHeld,
                S::CompleteClean,
                S::Release,
                S::Retry,
            ],
            Self::Archive => &[
                S::Load,
                S::Acquire,
                S::Reload,
                S::ChooseArchived,
                S::CheckHeld,
                S::RemoveLeftovers,
                S::CheckHeld,
                S::MoveToArchive,
                S::Release,
                S::Retry,
            ],
            Self::Read => &[S::Load, S::List, S::CheckListing],
        }
    }
}

/// A writer, a service or a reader: one process with one task at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Party {
    pub program: Program,
    pub step: u8,
    /// Where `Rollback` returns to.
    pub back: Program,
    /// Where `Recover` returns to, and what an attempt begins with.
    pub main: Program,
    pub is_dead: bool,
    /// It stalled for longer than its lease since it acquired the lock.
    pub lapsed: bool,
    /// It stalled for longer than its heartbeat lasts.
    pub expired: bool,
    /// The action that it plans and executes, if it runs a service with plans.
    pub plans: Action,
    /// The number of the write or service; NONE without one.
    pub task: u8,
    pub attempts: u8,
    /// The timeline on which it plans.
    pub view: View,
    /// What it found there: the file group of the key, its files and its row.
    pub slice: Option<Slice>,
    /// The file groups that it is going to change, and those that only get log files.
    pub groups: Set,
    pub appended: Set,
    pub has_doubles: bool,
    /// Its own instant, and the file that it wrote.
    pub instant: u8,
    pub file: u8,
    pub has_delta: bool,
    /// It has begun to publish at this time.
    pub published: u8,
    /// Which leftovers `Abort` removes.
    pub leftovers: Leftovers,
    /// It executes a plan that another process has started to execute.
    pub takes_over: bool,
    /// The write that it rolls back, and the rollback.
    pub target: u8,
    pub rollback: u8,
    /// The files of its plan, or the instants that it archives.
    pub chosen: Set,
    pub retains: u8,
    /// Of a reader: the writes that it must see. None while a zombie commit is on the timeline.
    pub expected: Option<Set>,
}

impl Party {
    pub fn new() -> Self {
        Self {
            program: Program::Idle,
            step: 0,
            back: Program::Idle,
            main: Program::Idle,
            leftovers: Leftovers::All,
            takes_over: false,
            is_dead: false,
            lapsed: false,
            expired: false,
            plans: Action::Compaction,
            task: NONE,
            attempts: 0,
            view: View::default(),
            slice: None,
            groups: 0,
            appended: 0,
            has_doubles: false,
            instant: NONE,
            file: NONE,
            has_delta: false,
            published: 0,
            target: NONE,
            rollback: NONE,
            chosen: 0,
            retains: 0,
            expected: None,
        }
    }

    pub fn next_step(&self) -> Step {
        self.program.steps()[self.step as usize]
    }

    pub fn go(&mut self, program: Program) {
        (self.program, self.step) = (program, 0);
    }

    pub fn skip_to(&mut self, step: Step) {
        let steps = self.program.steps();
        self.step = steps.iter().position(|s| *s == step).unwrap_or(0) as u8;
    }

    /// Forget the attempt, but not the task.
    pub fn forget(&mut self) {
        *self = Self {
            main: self.main,
            plans: self.plans,
            task: self.task,
            attempts: self.attempts,
            lapsed: self.lapsed,
            ..Self::new()
        };
    }
}

/// What a party is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    Writer,
    Service,
    Reader,
}

/// How the table and its parties are set up.
#[derive(Clone, Debug)]
pub struct Setup {
    pub name: &'static str,
    pub roles: Vec<Role>,
    /// The number of writes, of both writers together.
    pub writes: u8,
    /// How often a write is tried again after a conflict.
    pub retries: u8,
    /// What the service does, one after the other.
    pub services: Vec<Program>,
    /// The action that `Program::Plan` plans.
    pub planned: Action,
    /// Writes append log files instead of rewriting base files.
    pub logs: bool,
    /// Non-blocking concurrency control: log files add to a row, and writers do not conflict.
    pub appends: bool,
    /// The commits in the table at first, each a new base file of one file group.
    pub history: u8,
    /// Those commits wrote no row: the key is not in the table.
    pub is_empty: bool,
    /// The number of commits that a clean retains.
    pub retained: usize,
    /// How many crashes and stalls there are at most.
    pub faults: u8,
    pub rules: Rules,
    /// Traces of the real code are replayed: they have no data files.
    pub is_trace: bool,
}

/// The number of commits that stay on the timeline.
pub const UNARCHIVED: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub table: Table,
    /// The holder of the lock.
    pub lock: u8,
    pub parties: Vec<Party>,
    pub begun: u8,
    pub services: u8,
    pub faults: u8,
    /// The writes whose callers were told that they are committed, or that they failed.
    pub acknowledged: Set,
    pub failed: Set,
    /// A reader has returned something else than a state of the table.
    pub bad_read: bool,
}

impl State {
    pub fn new(setup: &Setup) -> Self {
        let mut table = Table::default();
        for n in 0..setup.history {
            table.now += 2;
            table.instants.push(Instant {
                requested: true,
                inflight: true,
                completed: table.now,
                delta: Delta::Completed,
                writes: one(n as usize),
                files: one(n as usize),
                groups: one(0),
                ..new_instant(Action::Write, table.now - 1)
            });
            let row = (1 << (n + 1)) - 1;
            table.files.push(File {
                group: 0,
                instant: n,
                is_log: false,
                row,
                exists: true,
            });
            table.groups = 1;
        }
        let mut acknowledged = (1 << setup.history) - 1;
        if setup.is_empty {
            table.files.clear();
            table.groups = 0;
            acknowledged = 0;
            for instant in &mut table.instants {
                (instant.files, instant.groups, instant.writes) = (0, 0, 0);
            }
        }
        Self {
            table,
            lock: NONE,
            parties: setup.roles.iter().map(|_| Party::new()).collect(),
            begun: 0,
            services: 0,
            faults: setup.faults,
            acknowledged,
            failed: 0,
            bad_read: false,
        }
    }

    /// Whether a party can take its next step.
    pub fn is_enabled(&self, setup: &Setup, p: usize) -> bool {
        let party = &self.parties[p];
        if party.is_dead {
            return false;
        }
        match party.next_step() {
            S::Begin => match setup.roles[p] {
                // The first writer begins: the other one does the same.
                Role::Writer => self.begun < setup.writes && (p == 0 || self.begun > 0),
                Role::Service => (self.services as usize) < setup.services.len(),
                Role::Reader => true,
            },
            S::Acquire => {
                let holder = self.lock;
                !setup.rules.lock
                    || holder == NONE
                    || holder as usize == p
                    || self.parties[holder as usize].lapsed
            }
            _ => true,
        }
    }

    /// The number of ways in which a party can take its next step.
    pub fn choices(&self, setup: &Setup, p: usize) -> u8 {
        let is_write = self.parties[p].program == Program::Write;
        let clock_lags = !setup.rules.later_instants;
        if is_write && clock_lags && self.parties[p].next_step() == S::Beat {
            2
        } else {
            1
        }
    }

    /// A party stalls for longer than its lease; `is_long`: than its heartbeat, too.
    pub fn stall(&mut self, p: usize, is_long: bool) {
        self.faults -= 1;
        self.expire(p, is_long);
    }

    pub fn crash(&mut self, p: usize) {
        self.faults -= 1;
        self.expire(p, true);
        let party = Party {
            is_dead: true,
            lapsed: true,
            ..Party::new()
        };
        self.parties[p] = party;
    }

    fn expire(&mut self, p: usize, is_long: bool) {
        let party = &mut self.parties[p];
        party.lapsed |= self.lock as usize == p;
        if is_long && party.instant != NONE {
            party.expired = true;
            let own = &mut self.table.instants[party.instant as usize];
            if own.beat == Beat::Live && own.beats as usize == p {
                own.beat = Beat::Expired;
            }
        }
    }

    /// A party takes its next step.
    pub fn step(&mut self, setup: &Setup, p: usize, choice: u8) {
        Turn::new(setup, self, p).take(choice);
    }
}

/// Which leftovers of a failed attempt its writer removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leftovers {
    All,
    /// The plan stays.
    AllButPlan,
    /// Another writer has rolled it back.
    FileAndDelta,
    /// Another process executes its plan.
    File,
}

pub fn new_instant(action: Action, time: u8) -> Instant {
    Instant {
        action,
        time,
        requested: false,
        inflight: false,
        completed: 0,
        late: false,
        archived: false,
        beat: Beat::Absent,
        beats: NONE,
        delta: Delta::Absent,
        writes: 0,
        files: 0,
        groups: 0,
        replaced: 0,
        plan: 0,
        retains: 0,
        rolled_back: false,
    }
}
