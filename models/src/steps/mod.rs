//! The steps: what each one changes, and what stops it.

mod rollback;
mod service;
mod write;

use crate::protocol::{Leftovers, Party, Program, Role, Setup, State, Step, new_instant};
use crate::rules::Rules;
use crate::table::{
    Action, Beat, Delta, File, Instant, NONE, Set, Slice, Style, View, members, one,
};

use Step as S;

/// Choices of a trace: a step raises a conflict; it does not see a failed write yet, or there is
/// nothing to write; it goes on with a pending plan; it saw a failed write that is removed already.
pub const FAIL: u8 = 100;
pub const SKIP: u8 = 101;
pub const RESUME: u8 = 102;
pub const RECOVER: u8 = 103;

/// One step of one party.
pub struct Turn<'a> {
    setup: &'a Setup,
    rules: Rules,
    state: &'a mut State,
    p: usize,
    party: Party,
}

/// What comes after a step.
enum Next {
    /// The next step of the program.
    Continue,
    /// The party is where `party.program` and `party.step` say.
    Moved,
    /// The step raised a conflict.
    Conflict,
}

use Next::{Conflict, Continue, Moved};

impl<'a> Turn<'a> {
    pub fn new(setup: &'a Setup, state: &'a mut State, p: usize) -> Self {
        let party = state.parties[p].clone();
        Self {
            setup,
            rules: setup.rules,
            state,
            p,
            party,
        }
    }

    /// Take the step, and those after it that need no turn of their own. Write the party back.
    pub fn take(mut self, choice: u8) {
        self.take_one(choice);
        while self.party.next_step().is_look() {
            self.take_one(0);
        }
        self.state.parties[self.p] = self.party;
    }

    /// Take one step only, as a trace shows it.
    pub fn trace(mut self, choice: u8) {
        self.take_one(choice);
        self.state.parties[self.p] = self.party;
    }

    fn take_one(&mut self, choice: u8) {
        let next = match choice {
            // What the step depends on may not be in the trace.
            FAIL if self.can_fail() => Conflict,
            _ => self.step(choice),
        };
        match next {
            Continue if usize::from(self.party.step) + 1 < self.party.program.steps().len() => {
                self.party.step += 1;
            }
            Continue => self.follow(),
            Moved => {}
            Conflict => self.fail(),
        }
    }

    fn can_fail(&self) -> bool {
        let ends = self.party.program == Program::Abort;
        self.party.next_step().can_fail() && (!ends || self.party.lapsed)
    }

    /// Go to the program after one that is through.
    fn follow(&mut self) {
        match self.party.program {
            Program::Write | Program::Execute => self.party.go(Program::Commit),
            Program::Plan => self.party.go(Program::Execute),
            Program::Clean => self.party.go(Program::Delete),
            Program::Doubt => self.party.go(Program::Abort),
            _ => self.end(),
        }
    }

    /// The task is over.
    fn end(&mut self) {
        self.stop_beating();
        self.party = Party::new();
    }

    /// A heartbeat that the party leaves behind expires.
    fn stop_beating(&mut self) {
        let p = self.p;
        if self
            .own()
            .is_some_and(|i| i.beat == Beat::Live && usize::from(i.beats) == p)
        {
            self.own_mut().beat = Beat::Expired;
        }
    }

    /// Begin a program again, or another attempt.
    fn restart(&mut self, program: Program) {
        self.stop_beating();
        self.party.forget();
        self.party.go(program);
    }

    /// A step raised a conflict, and the critical section ends.
    fn fail(&mut self) {
        self.release();
        match self.party.program {
            Program::Write | Program::Execute if self.own().is_some_and(|i| i.inflight) => {
                self.party.go(Program::Abort);
            }
            Program::Write | Program::Execute => self.party.go(Program::Withdraw),
            // `Abort` has lost the lock, and acquires it again.
            Program::Commit | Program::Abort => self.party.go(Program::Abort),
            _ => self.retry(),
        }
    }

    fn retry(&mut self) {
        if self.setup.roles[self.p] != Role::Writer || self.party.main != Program::Write {
            return self.end();
        }
        if self.party.attempts < self.setup.retries {
            self.party.attempts += 1;
            self.restart(Program::Write);
        } else {
            self.state.failed |= one(self.party.task as usize);
            self.end();
        }
    }

    fn own(&self) -> Option<&Instant> {
        self.state.table.instants.get(self.party.instant as usize)
    }

    fn own_mut(&mut self) -> &mut Instant {
        &mut self.state.table.instants[self.party.instant as usize]
    }

    /// The write that is rolled back, else the party's own instant.
    fn target_mut(&mut self) -> &mut Instant {
        let rolls_back = self.party.program == Program::Rollback;
        let n = if rolls_back {
            self.party.target
        } else {
            self.party.instant
        };
        &mut self.state.table.instants[n as usize]
    }

    fn is_alive(&self) -> bool {
        !self.rules.check_alive || !(self.party.lapsed || self.party.expired)
    }

    fn holds_lock(&self) -> bool {
        !self.rules.check_alive || !self.party.lapsed
    }

    fn release(&mut self) {
        if usize::from(self.state.lock) == self.p {
            self.state.lock = NONE;
        }
        self.party.lapsed = false;
    }

    fn tick(&mut self) -> u8 {
        self.state.table.now += 1;
        self.state.table.now
    }

    fn request(&mut self, action: Action) -> u8 {
        let time = self.tick();
        let instant = Instant {
            requested: true,
            ..new_instant(action, time)
        };
        self.state.table.instants.push(instant);
        (self.state.table.instants.len() - 1) as u8
    }

    fn style(&self) -> Style {
        Style {
            appends: self.setup.appends,
            by_completion: self.rules.slices_by_completion,
        }
    }

    fn list(&self, view: View) -> Vec<Slice> {
        let table = &self.state.table;
        table.slices(view, table.committed_files(view), self.style())
    }

    /// Put a data file; without a token in its name it replaces one of the same instant.
    fn put_file(&mut self, group: Option<u8>, is_log: bool, row: Set) {
        let table = &mut self.state.table;
        let group = group.unwrap_or(table.groups);
        table.groups = table.groups.max(group + 1);
        let file = File {
            group,
            instant: self.party.instant,
            is_log,
            row,
            exists: true,
        };
        let is_same = |f: &File| (f.instant, f.group, f.is_log) == (file.instant, group, is_log);
        self.party.appended |= if is_log { one(group as usize) } else { 0 };
        let existing = table.files.iter().position(is_same);
        self.party.file = match existing {
            Some(n) if !self.rules.salted_names => {
                table.files[n] = file;
                n as u8
            }
            _ => {
                table.files.push(file);
                (table.files.len() - 1) as u8
            }
        };
    }

    fn delete_files(&mut self, files: Set) {
        for n in members(files) {
            self.state.table.files[n].exists = false;
        }
    }

    fn exist(&self, files: Set) -> bool {
        members(files).all(|n| self.state.table.files[n].exists)
    }

    /// Decide which commits with a heartbeat count, and which were published after their rollback,
    /// within a critical section.
    fn judge_zombies(&mut self, verified: Set) -> bool {
        let table = &self.state.table;
        let commits = table.select(|i| i.is_completed() && !i.archived && i.is_commit());
        let with_beat = table.select(|i| i.beat != Beat::Absent);
        let unverified = commits & (with_beat | table.rolled_back_writes()) & !verified;
        if unverified != 0 && !self.holds_lock() {
            return false;
        }
        for n in members(unverified) {
            let is_late = table_late(&self.state.table.instants[n]) && self.rules.revoke_zombies;
            let is_lost =
                self.rules.missing_files && !self.exist(self.state.table.instants[n].files);
            let instant = &mut self.state.table.instants[n];
            if is_late || is_lost {
                (instant.completed, instant.late) = (0, false);
            } else {
                (instant.beat, instant.late) = (Beat::Absent, false);
            }
        }
        true
    }

    /// Whether the commits that the party planned on are still there.
    fn planned_commits_exist(&self) -> bool {
        let planned = self.state.table.instants_of(self.party.view.completed);
        !self.rules.planned_commits_exist
            || planned
                .filter(|(_, i)| i.is_commit())
                .all(|(_, i)| i.is_completed())
    }

    /// Whether a listing may miss files of the snapshot that the party loaded.
    fn is_stale(&self) -> bool {
        let (table, view) = (&self.state.table, self.party.view);
        let planned = table
            .instants_of(view.completed)
            .filter(|(_, i)| i.is_commit());
        let newly = table
            .instants_of(view.pending)
            .filter(|(_, i)| i.is_commit() && i.is_completed());
        let newest = planned.map(|(_, i)| i.time).max();
        let Some(counted) = newest.into_iter().chain(newly.map(|(_, i)| i.time)).min() else {
            return false;
        };
        let lost = table
            .instants_of(view.completed)
            .any(|(_, i)| i.is_commit() && !i.is_completed());
        let known = view.completed | view.pending | view.rolled_back;
        let current = table.view(self.rules);
        let appeared = (current.completed | current.pending | current.rolled_back) & !known;
        let is_old = |i: &Instant| i.action == Action::Write && i.time < view.start;
        let early =
            self.rules.early_instants && table.instants_of(appeared).any(|(_, i)| is_old(i));
        lost || early
            || table.instants.iter().enumerate().any(|(n, i)| {
                let runs = i.action == Action::Clean && (i.inflight || i.is_completed());
                runs && known & one(n) == 0 && i.retains > counted
            })
    }

    /// The pending services of an action on the timeline.
    fn pending(&self, action: Action) -> Option<usize> {
        self.state
            .table
            .instants
            .iter()
            .position(|i| i.action == action && i.is_pending())
    }

    /// The file groups that pending clusterings of a set replace.
    fn groups_of_clusterings(&self, instants: Set) -> Set {
        let table = &self.state.table;
        let clusterings = table
            .instants_of(instants)
            .filter(|(_, i)| i.action == Action::Clustering);
        clusterings
            .filter(|(_, i)| i.is_pending())
            .fold(0, |all, (_, i)| all | i.groups)
    }

    /// Whether the write changes no file group that a clustering was going to replace at its plan.
    pub fn may_write(&self) -> bool {
        self.party.groups & self.groups_of_clusterings(self.party.view.pending) == 0
    }

    /// A failed write, the rollback of one, or a commit that was published after its rollback.
    fn failed_work(&self) -> Option<usize> {
        let instants = self.state.table.instants.iter();
        let is_failed = |i: &Instant| match i.action {
            Action::Rollback => i.is_pending(),
            Action::Write if i.is_pending() => i.beat != Beat::Live || !self.rules.heartbeats,
            Action::Write => i.is_completed() && !i.archived && !i.requested && !i.inflight,
            _ => false,
        };
        let numbered: Vec<_> = instants.enumerate().filter(|(_, i)| is_failed(i)).collect();
        let rollbacks = numbered.iter().find(|(_, i)| i.action == Action::Rollback);
        rollbacks.or(numbered.last()).map(|(n, _)| *n)
    }

    fn step(&mut self, choice: u8) -> Next {
        match self.party.next_step() {
            S::Begin => self.begin(),
            S::Load if choice == RESUME && self.party.program == Program::Archive => {
                // Nothing is due, which a look without the lock shows.
                self.end();
                Moved
            }
            S::Load if choice == RESUME && self.party.program == Program::Plan => {
                self.party.go(Program::Execute);
                Moved
            }
            S::Load => self.load(choice),
            S::List => self.list_table(),
            S::CheckListing => self.check_listing(),
            S::Acquire => {
                self.state.lock = self.p as u8;
                self.party.lapsed = false;
                Continue
            }
            S::Reload if choice == SKIP && self.party.program == Program::Write => {
                // It runs concurrently with the first heartbeat, and may be later.
                self.party.chosen = 1;
                Continue
            }
            S::Reload => self.reload(),
            S::Beat => self.beat(choice),
            S::CheckHeld if choice == SKIP && self.party.program == Program::Write => {
                // Another writer has a later time: the instant is given back, and a later one taken.
                self.own_mut().beat = Beat::Absent;
                self.party.skip_to(S::Beat);
                Moved
            }
            S::CheckHeld if self.party.chosen != 0 && self.party.program == Program::Write => {
                self.party.chosen = 0;
                match self.reload() {
                    Continue => Moved,
                    next => next,
                }
            }
            S::CheckHeld if !self.holds_lock() && self.party.program == Program::Rollback => {
                self.leave_rollback()
            }
            S::CheckHeld if !self.holds_lock() => Conflict,
            S::CheckHeld => Continue,
            S::Request => self.request_write(),
            S::Release => {
                self.release();
                Continue
            }
            S::Start => self.start(),
            S::PutFile => self.write_file(choice),
            S::Check => self.check(),
            S::BeginDelta => self.begin_delta(),
            S::CheckDelta if !self.rules.delta_first => Continue,
            S::CheckDelta => {
                let is_inflight = self.own().is_some_and(|i| i.delta == Delta::Inflight);
                if is_inflight && self.holds_lock() {
                    Continue
                } else {
                    Conflict
                }
            }
            S::CompleteDelta => {
                if self.rules.delta_first {
                    self.own_mut().delta = Delta::Completed;
                }
                Continue
            }
            S::LastCheck => {
                let own = self.own_mut();
                let is_open = own.inflight && !own.is_completed();
                let is_own = is_open || !self.rules.own_instant;
                if is_own && self.is_alive() {
                    Continue
                } else {
                    Conflict
                }
            }
            S::Publish => self.publish(),
            S::LookAgain => {
                if self.rules.look_again && (self.party.lapsed || self.party.expired) {
                    self.party.go(Program::Doubt);
                    return Moved;
                }
                Continue
            }
            S::StopBeat => {
                let (p, delta_first) = (self.p, self.rules.delta_first);
                let own = self.own_mut();
                if usize::from(own.beats) == p {
                    own.beat = Beat::Absent;
                }
                if !delta_first {
                    own.delta = Delta::Completed;
                }
                Continue
            }
            S::Answer if choice == RESUME && self.party.main == Program::Plan => {
                // A new plan follows a pending one.
                self.restart(Program::Plan);
                Moved
            }
            S::Answer => {
                if self.party.task != NONE {
                    self.state.acknowledged |= one(self.party.task as usize);
                }
                Continue
            }
            S::MarkZombie => self.mark_zombie(),
            S::Unpublish => {
                let published = self.party.published;
                let own = self.own_mut();
                if own.completed == published {
                    (own.completed, own.late) = (0, false);
                }
                Continue
            }
            S::Settle => self.settle(choice),
            S::DropDelta => {
                if self.rules.rollback_delta && self.removes(S::DropDelta) {
                    self.target_mut().delta = Delta::Absent;
                }
                Continue
            }
            S::DropFile => {
                if self.party.file != NONE {
                    self.delete_files(one(self.party.file as usize));
                }
                Continue
            }
            S::DropInflight => {
                if self.removes(S::DropInflight) {
                    self.target_mut().inflight = false;
                }
                Continue
            }
            S::DropRequest => {
                if self.removes(S::DropRequest) {
                    self.target_mut().requested = false;
                }
                Continue
            }
            S::DropBeat => {
                if self.removes(S::DropBeat) {
                    self.target_mut().beat = Beat::Absent;
                }
                Continue
            }
            S::Retry if self.party.program == Program::Delete && self.party.takes_over => {
                // A new clean follows a pending one.
                self.restart(Program::Clean);
                Moved
            }
            S::Retry => {
                self.retry();
                Moved
            }
            S::NextFailed => self.next_failed(choice),
            S::RequestRollback => {
                let rollback = self.request(Action::Rollback);
                self.state.table.instants[rollback as usize].plan = one(self.party.target as usize);
                self.party.rollback = rollback;
                Continue
            }
            S::LookBeforeRollback => self.look_before_rollback(),
            S::DeleteFiles => {
                let target = self.party.target;
                let files = if self.party.program == Program::Rollback {
                    self.state.table.select_files(|f| f.instant == target)
                } else {
                    self.own().map_or(0, |clean| clean.plan)
                };
                self.delete_files(files);
                Continue
            }
            S::CompleteRollback => {
                let rollback = &self.state.table.instants[self.party.rollback as usize];
                if rollback.is_completed() || !rollback.inflight {
                    // Another writer has completed it, and this one removes its second file.
                    return self.leave_rollback();
                }
                let time = self.tick();
                self.state.table.instants[self.party.rollback as usize].completed = time;
                self.target_mut().rolled_back = true;
                Continue
            }
            S::Return => {
                if self.party.program == Program::Rollback {
                    (self.party.target, self.party.rollback) = (NONE, NONE);
                    if self.party.back == Program::Abort {
                        self.party.go(Program::Abort);
                        self.party.skip_to(S::Release);
                    } else {
                        self.party.go(Program::Recover);
                        self.party.skip_to(S::Reload);
                    }
                } else {
                    self.party.go(self.party.main);
                }
                Moved
            }
            S::PlanService => self.plan_service(choice),
            S::RequestPlan => self.request_plan(),
            S::CheckPlan => self.check_plan(choice),
            S::TakeOver => self.take_over(choice),
            S::Revert => self.revert(),
            S::PlanClean => self.plan_clean(choice),
            S::PlanCleanAgain => self.plan_clean_again(),
            S::CheckClean => {
                if self.own().is_some_and(Instant::is_pending) {
                    return Continue;
                }
                self.party.skip_to(S::Release);
                Moved
            }
            S::DeltaOfClean => {
                self.own_mut().delta = Delta::Completed;
                Continue
            }
            S::CompleteClean => {
                let time = self.tick();
                self.own_mut().completed = time;
                Continue
            }
            S::ChooseArchived => self.choose_archived(choice),
            S::RemoveLeftovers => {
                self.remove_leftovers();
                Continue
            }
            S::MoveToArchive => {
                // The oldest one first: only an instant before the timeline's start counts.
                let time = |n: &usize| self.state.table.instants[*n].time;
                let Some(n) = members(self.party.chosen).min_by_key(time) else {
                    return Continue;
                };
                if choice == SKIP {
                    return Continue;
                }
                self.state.table.instants[n].archived = true;
                self.party.chosen &= !one(n);
                if self.party.chosen == 0 {
                    Continue
                } else {
                    Moved
                }
            }
        }
    }

    /// The plans of the party's action that are pending, as a set.
    pub fn pending_plans(&self) -> Set {
        let plans = self.party.plans;
        self.state
            .table
            .select(|i| i.action == plans && i.is_pending())
    }

    /// Whether the party removes what a step of `Abort` is for.
    fn removes(&self, step: Step) -> bool {
        if self.party.program == Program::Withdraw {
            return self.party.instant != NONE
                && !(self.party.takes_over
                    || step == S::DropRequest && self.own().is_some_and(Instant::is_service));
        }
        if self.party.program != Program::Abort {
            return true;
        }
        match self.party.leftovers {
            Leftovers::All => step != S::DropDelta,
            Leftovers::AllButPlan => {
                step != S::DropRequest && !(step == S::DropBeat && self.party.takes_over)
            }
            Leftovers::FileAndDelta => matches!(step, S::DropDelta | S::DropBeat),
            Leftovers::File => false,
        }
    }
}

fn table_late(instant: &Instant) -> bool {
    instant.late || instant.beat == Beat::Marked
}
