//! The steps: what each one changes, and what stops it.

use crate::protocol::{
    Leftovers, Party, Program, RETAINED, Role, Setup, State, Step, UNARCHIVED, new_instant,
};
use crate::rules::Rules;
use crate::table::{
    Action, Beat, Delta, File, Instant, NONE, Set, Slice, Style, View, bit, members, one,
};

use Step as S;

/// Choices of a trace: a step raises a conflict; it does not see a failed write yet, or there is
/// nothing to write.
pub const FAIL: u8 = 100;
pub const SKIP: u8 = 101;

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
            FAIL if self.party.next_step().can_fail() => Conflict,
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
        self.party = Party::new();
    }

    /// A step raised a conflict, and the critical section ends.
    fn fail(&mut self) {
        self.release();
        match self.party.program {
            Program::Write | Program::Execute if self.own().is_some_and(|i| i.inflight) => {
                self.party.go(Program::Abort);
            }
            Program::Write | Program::Execute => self.party.go(Program::Withdraw),
            Program::Commit => self.party.go(Program::Abort),
            _ => self.retry(),
        }
    }

    fn retry(&mut self) {
        if self.setup.roles[self.p] != Role::Writer {
            return self.end();
        }
        if self.party.attempts < self.setup.retries {
            self.party.attempts += 1;
            self.party.forget();
            self.party.go(Program::Write);
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

    /// Decide which commits with a heartbeat count, within a critical section.
    fn judge_zombies(&mut self, verified: Set) -> bool {
        let table = &self.state.table;
        let with_beat = table
            .select(|i| i.is_completed() && !i.archived && i.is_commit() && i.beat != Beat::Absent);
        let unverified = with_beat & !verified;
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
            .fold(0, |all, (_, i)| all | table.groups_of(i.plan))
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
            S::Load => self.load(choice),
            S::List => self.list_table(),
            S::CheckListing => self.check_listing(),
            S::Acquire => {
                self.state.lock = self.p as u8;
                self.party.lapsed = false;
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
            S::Settle => self.settle(),
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
                if !self.holds_lock() {
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
            S::PlanService => self.plan_service(),
            S::RequestPlan => self.request_plan(),
            S::CheckPlan => self.check_plan(),
            S::TakeOver => self.take_over(),
            S::Revert => self.revert(),
            S::PlanClean => self.plan_clean(),
            S::PlanCleanAgain => self.plan_clean_again(),
            S::CheckClean => {
                if self.own().is_some_and(Instant::is_pending) {
                    return Continue;
                }
                self.release();
                self.end();
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
            S::ChooseArchived => self.choose_archived(),
            S::RemoveLeftovers => {
                self.remove_leftovers();
                Continue
            }
            S::MoveToArchive => {
                if !self.holds_lock() {
                    return Conflict;
                }
                for n in members(self.party.chosen) {
                    self.state.table.instants[n].archived = true;
                }
                Continue
            }
        }
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

    fn begin(&mut self) -> Next {
        let program = match self.setup.roles[self.p] {
            Role::Writer => {
                self.party.task = self.setup.history + self.state.begun;
                self.state.begun += 1;
                Program::Write
            }
            Role::Service => {
                self.state.services += 1;
                self.setup.services[usize::from(self.state.services) - 1]
            }
            Role::Reader => Program::Read,
        };
        self.party.main = program;
        self.party.go(program);
        Moved
    }

    fn load(&mut self, choice: u8) -> Next {
        let is_reader = self.setup.roles[self.p] == Role::Reader;
        if !is_reader && choice != SKIP && self.failed_work().is_some() {
            self.party.main = self.party.program;
            self.party.go(Program::Recover);
            return Moved;
        }
        let table = &self.state.table;
        self.party.view = table.view(self.rules);
        if is_reader {
            self.party.expected = (!table.has_zombies()).then(|| table.committed_writes());
        }
        Continue
    }

    fn list_table(&mut self) -> Next {
        let slices = self.list(self.party.view);
        self.party.has_doubles = slices.len() > 1;
        self.party.slice = slices.first().copied();
        if let Some(slice) = &mut self.party.slice
            && self.setup.roles[self.p] == Role::Reader
        {
            slice.files = slices.iter().fold(0, |all, one| all | one.files);
        }
        let group = self
            .party
            .slice
            .map_or(0, |slice| one(slice.group as usize));
        self.party.groups = group;
        let is_writer = self.setup.roles[self.p] == Role::Writer;
        if is_writer && group & self.groups_of_clusterings(self.party.view.pending) != 0 {
            // The caller hears of the pending clustering at once.
            self.party.attempts = self.setup.retries;
            self.retry();
            return Moved;
        }
        Continue
    }

    fn check_listing(&mut self) -> Next {
        let is_reader = self.setup.roles[self.p] == Role::Reader;
        let files = self.party.slice.map_or(0, |slice| slice.files);
        let is_stale = self.rules.staleness && self.is_stale();
        if !is_reader {
            return if is_stale { Conflict } else { Continue };
        }
        // A missing file is an error, which tells the reader to load the timeline again.
        if !is_stale && self.exist(files) {
            let row = self.party.slice.map_or(0, |slice| slice.row);
            let is_right = self.party.expected.is_none_or(|expected| row == expected);
            self.state.bad_read |=
                !is_right || (self.party.has_doubles && self.party.expected.is_some());
        }
        self.end();
        Moved
    }

    fn reload(&mut self) -> Next {
        if !self.judge_zombies(0) {
            return Conflict;
        }
        match self.party.program {
            Program::Write if !self.planned_commits_exist() => Conflict,
            Program::Write | Program::Clean => Continue,
            _ => {
                self.party.view = self.state.table.view(self.rules);
                Continue
            }
        }
    }

    fn beat(&mut self, choice: u8) -> Next {
        if self.party.program == Program::Write {
            let others = self
                .state
                .table
                .select(|i| i.action == Action::Write && i.is_pending());
            let latest = members(others).max_by_key(|n| self.state.table.instants[*n].time);
            self.party.instant = match latest {
                // A clock that lags behind gives the time of another write.
                Some(other) if choice == 1 => other as u8,
                _ => {
                    let n = self.request(Action::Write);
                    self.state.table.instants[n as usize].requested = false;
                    n
                }
            };
        }
        self.party.expired = false;
        let p = self.p as u8;
        let own = self.own_mut();
        (own.beat, own.beats) = (Beat::Live, p);
        Continue
    }

    fn request_write(&mut self) -> Next {
        let put_if_absent = self.rules.put_if_absent;
        let own = self.own_mut();
        if own.requested && put_if_absent {
            self.party.instant = NONE;
            return Conflict;
        }
        own.requested = true;
        Continue
    }

    fn start(&mut self) -> Next {
        let put_if_absent = self.rules.put_if_absent;
        let is_clean = self.party.program == Program::Delete;
        let own = self.own_mut();
        if own.inflight && put_if_absent && !is_clean {
            return Conflict;
        }
        if own.is_service() && !own.requested {
            return Conflict;
        }
        own.inflight = true;
        if is_clean {
            own.inflight = own.is_pending();
        }
        Continue
    }

    fn write_file(&mut self, choice: u8) -> Next {
        if choice == SKIP {
            self.party.go(Program::Nothing);
            return Moved;
        }
        if self.setup.is_trace {
            return Continue;
        }
        if self.party.program == Program::Execute {
            let plan = self.own().map_or(0, |i| i.plan);
            let slices = self.state.table.slices(self.party.view, plan, self.style());
            let (true, Some(slice)) = (self.exist(plan), slices.first()) else {
                return Conflict;
            };
            let is_compaction = self.setup.planned == Action::Compaction;
            self.put_file(is_compaction.then_some(slice.group), false, slice.row);
            return Continue;
        }
        let write = one(self.party.task as usize);
        let slice = self.party.slice;
        if self.setup.appends {
            self.put_file(Some(0), true, write);
            return Continue;
        }
        if slice.is_some_and(|slice| !self.exist(slice.files)) {
            return Conflict;
        }
        let row = slice.map_or(0, |slice| slice.row);
        let is_log = self.setup.logs && slice.is_some();
        self.put_file(slice.map(|slice| slice.group), is_log, row | write);
        Continue
    }

    fn check(&mut self) -> Next {
        if self.party.expired && self.rules.check_alive
            || !self.judge_zombies(self.party.view.completed)
        {
            return Conflict;
        }
        let (table, view) = (&self.state.table, self.party.view);
        let own = &table.instants[self.party.instant as usize];
        let mine = one(self.party.instant as usize);
        let is_rolled_back = table
            .instants
            .iter()
            .any(|i| i.action == Action::Rollback && i.is_pending() && i.plan & mine != 0);
        let is_inflight = own.requested && own.inflight && !own.is_completed() && !is_rolled_back;
        let is_own = is_inflight || !self.rules.own_instant;
        if !is_own || !self.is_alive() || !self.planned_commits_exist() {
            return Conflict;
        }
        let new = table.view(self.rules).completed & !view.completed;
        let concurrent: Vec<&Instant> = table
            .instants_of(new)
            .map(|(_, i)| i)
            .filter(|i| i.is_commit())
            .collect();
        if own.is_service() {
            let groups = table.groups_of(own.plan);
            let has_changed = concurrent.iter().any(|i| i.groups & groups != 0);
            let is_clustering = own.action == Action::Clustering;
            return if is_clustering && has_changed && self.rules.clustering_check {
                Conflict
            } else {
                Continue
            };
        }
        let group = self.party.groups;
        let file = table.files.get(self.party.file as usize);
        let is_log = file.is_some_and(|file| file.is_log);
        let is_changed = |i: &&Instant| {
            // Log files stay valid on a base file that compacts those before them.
            let stays_valid = is_log && i.action == Action::Compaction;
            let groups = if self.setup.appends {
                i.replaced
            } else {
                i.groups
            };
            groups & group != 0 && !stays_valid
        };
        if self.rules.file_group_check && concurrent.iter().any(is_changed) {
            return Conflict;
        }
        let planned = table.view(self.rules).pending & !view.pending;
        if self.rules.planned_services && group & self.groups_of_clusterings(planned) != 0 {
            return Conflict;
        }
        let adds_key = self.party.slice.is_none() && !self.setup.appends;
        let has_key = |i: &&Instant| i.action == Action::Write && i.files != 0;
        if adds_key && self.rules.key_check && concurrent.iter().any(has_key) {
            return Conflict;
        }
        Continue
    }

    fn begin_delta(&mut self) -> Next {
        self.party.has_delta = true;
        if !self.rules.delta_first {
            return Continue;
        }
        let put_if_absent = self.rules.put_if_absent;
        let own = self.own_mut();
        if own.delta != Delta::Absent && put_if_absent {
            return Conflict;
        }
        own.delta = Delta::Inflight;
        Continue
    }

    fn publish(&mut self) -> Next {
        let time = self.tick();
        self.party.published = time;
        let late = self.party.lapsed || self.party.expired;
        let replaced = match self.own() {
            Some(i) if i.action == Action::Clustering => self.state.table.groups_of(i.plan),
            _ => 0,
        };
        let (file, task, put_if_absent) =
            (self.party.file, self.party.task, self.rules.put_if_absent);
        let groups = self.party.groups | self.state.table.groups_of(bit(file)) | replaced;
        let own = self.own_mut();
        // A second completed file has another name, and its writer takes it away.
        if !own.is_completed() || !put_if_absent {
            own.completed = time;
            own.late = late;
            own.files = bit(file);
            own.groups = groups;
            own.replaced = replaced;
            own.writes = if task == NONE { 0 } else { one(task as usize) };
        }
        Continue
    }

    fn mark_zombie(&mut self) -> Next {
        let (p, published) = (self.p, self.party.published);
        let own = self.own_mut();
        match own.beat {
            // Another writer has accepted or revoked it.
            Beat::Absent => {
                if own.completed == published && own.inflight {
                    (self.party.lapsed, self.party.expired) = (false, false);
                    self.party.go(Program::Commit);
                    self.party.skip_to(S::StopBeat);
                    return Moved;
                }
            }
            _ if usize::from(own.beats) == p => own.beat = Beat::Marked,
            _ => {}
        }
        Continue
    }

    fn settle(&mut self) -> Next {
        if !self.judge_zombies(0) {
            // The lock was lost while this ran: it is acquired again.
            self.party.go(Program::Abort);
            return Moved;
        }
        let Some(own) = self.own().cloned() else {
            return Continue;
        };
        let is_alive = self.is_alive();
        self.party.leftovers = match (own.is_service(), own.is_pending()) {
            (false, true) if self.party.has_delta => {
                self.party.target = self.party.instant;
                self.party.back = Program::Abort;
                self.party.go(Program::Rollback);
                return Moved;
            }
            (false, true) => Leftovers::All,
            (true, true) if is_alive => Leftovers::AllButPlan,
            (_, false) if !own.is_completed() => Leftovers::FileAndDelta,
            _ => Leftovers::File,
        };
        Continue
    }

    fn next_failed(&mut self, choice: u8) -> Next {
        let failed = self.failed_work().filter(|_| choice != SKIP);
        let Some(n) = failed else {
            return Continue;
        };
        let instant = &self.state.table.instants[n];
        self.party.back = Program::Recover;
        if instant.action == Action::Rollback {
            let target = instant.plan.trailing_zeros() as usize;
            if self.state.table.instants[target].is_completed() {
                // Its writer was faster.
                self.state.table.instants[n].requested = false;
                self.state.table.instants[n].inflight = false;
                return Moved;
            }
            self.party.target = target as u8;
            self.party.rollback = n as u8;
            self.party.go(Program::Rollback);
            self.party.skip_to(S::LookBeforeRollback);
        } else if instant.is_completed() {
            // It was published after its rollback.
            self.state.table.instants[n].completed = 0;
            self.state.table.instants[n].late = false;
            return Moved;
        } else {
            self.party.target = n as u8;
            self.party.go(Program::Rollback);
        }
        Moved
    }

    fn look_before_rollback(&mut self) -> Next {
        let is_completed = self.target_mut().is_completed();
        let rollback = self.party.rollback as usize;
        if is_completed && self.rules.rollback_looks_again {
            self.state.table.instants[rollback].requested = false;
            return self.leave_rollback();
        }
        self.state.table.instants[rollback].inflight = true;
        Continue
    }

    /// A rollback fails; another writer completes it.
    fn leave_rollback(&mut self) -> Next {
        self.release();
        (self.party.target, self.party.rollback) = (NONE, NONE);
        match self.party.back {
            Program::Abort => self.party.go(Program::Abort),
            _ => self.party.go(self.party.main),
        }
        Moved
    }

    fn plan_service(&mut self) -> Next {
        let planned = self.setup.planned;
        if self.pending(planned).is_some() {
            self.release();
            self.party.go(Program::Execute);
            return Moved;
        }
        let table = &self.state.table;
        let slices = self.list(self.party.view);
        let has_log = |files: Set| members(files).any(|n| table.files[n].is_log);
        let is_due = |s: &&Slice| planned == Action::Clustering || has_log(s.files);
        let Some(slice) = slices.iter().find(is_due).copied() else {
            self.release();
            self.end();
            return Moved;
        };
        self.party.chosen = slice.files;
        Continue
    }

    fn request_plan(&mut self) -> Next {
        let is_clean = self.party.program == Program::Clean;
        let n = self.request(if is_clean {
            Action::Clean
        } else {
            self.setup.planned
        });
        let (chosen, retains) = (self.party.chosen, self.party.retains);
        let instant = &mut self.state.table.instants[n as usize];
        (instant.plan, instant.retains) = (chosen, retains);
        self.party.instant = n;
        Continue
    }

    fn check_plan(&mut self) -> Next {
        if self.party.lapsed && self.rules.check_alive {
            let known = self.party.view.completed | self.party.view.pending;
            let new = self
                .state
                .table
                .select(|i| (i.is_pending() || i.is_completed()) && !i.archived);
            let others = new & !known & !one(self.party.instant as usize);
            if others != 0 && self.rules.withdraw_late_plans {
                self.own_mut().requested = false;
            }
            if self.rules.withdraw_late_plans {
                return Conflict;
            }
        }
        Continue
    }

    fn take_over(&mut self) -> Next {
        let plan = self.pending(self.setup.planned);
        let is_running = |n: usize| self.state.table.instants[n].beat == Beat::Live;
        match plan {
            Some(n) if !(self.rules.one_executor && is_running(n)) => {
                self.party.instant = n as u8;
                self.party.takes_over = self.state.table.instants[n].inflight;
                Continue
            }
            _ => {
                self.release();
                self.end();
                Moved
            }
        }
    }

    fn revert(&mut self) -> Next {
        if !self.party.takes_over {
            return Continue;
        }
        if !self.judge_zombies(0)
            || !self.holds_lock()
            || !self.own().is_some_and(Instant::is_pending)
        {
            return Conflict;
        }
        let instant = self.party.instant;
        let files = self.state.table.select_files(|f| f.instant == instant);
        self.delete_files(files);
        let own = self.own_mut();
        (own.delta, own.inflight) = (Delta::Absent, false);
        Continue
    }

    /// Choose the files that no retained snapshot needs; false if there are none.
    fn choose_cleaned(&mut self, view: View) -> bool {
        let table = &self.state.table;
        let mut commits: Vec<u8> = table
            .instants_of(view.completed)
            .filter(|(_, i)| i.is_commit())
            .map(|(_, i)| i.time)
            .collect();
        commits.sort_unstable();
        if commits.len() <= RETAINED {
            return false;
        }
        let mut earliest = commits[commits.len() - RETAINED];
        let pending = table
            .instants_of(view.pending)
            .filter(|(_, i)| i.is_commit());
        if let (Some(oldest), true) = (
            pending.map(|(_, i)| i.time).min(),
            self.rules.retains_for_pending,
        ) {
            let Some(before) = commits.iter().copied().filter(|time| *time < oldest).max() else {
                return false;
            };
            earliest = earliest.min(before);
        }
        let files = table.committed_files(view);
        let time = |n: usize| table.instants[table.files[n].instant as usize].time;
        let mut chosen = 0;
        for group in members(table.groups_of(files)) {
            let of_group: Vec<usize> = members(files)
                .filter(|n| usize::from(table.files[*n].group) == group)
                .collect();
            let replacing = table
                .instants_of(view.completed)
                .find(|(_, i)| i.replaced & one(group) != 0);
            if let Some((_, replacing)) = replacing {
                if replacing.time < earliest {
                    chosen |= of_group.into_iter().map(one).sum::<Set>();
                }
                continue;
            }
            let mut bases: Vec<u8> = of_group
                .iter()
                .filter(|n| !table.files[**n].is_log)
                .map(|n| time(*n))
                .collect();
            bases.sort_unstable_by(|a, b| b.cmp(a));
            // The newest slice stays, and the one before the earliest retained commit.
            let retained = match bases.iter().position(|base| *base < earliest) {
                Some(n) if self.rules.retention => bases[n],
                _ => bases.first().copied().unwrap_or(0),
            };
            chosen |= of_group
                .into_iter()
                .filter(|n| time(*n) < retained)
                .map(one)
                .sum::<Set>();
        }
        self.party.chosen = chosen;
        self.party.retains = earliest;
        chosen != 0
    }

    fn plan_clean(&mut self) -> Next {
        if let Some(n) = self.pending(Action::Clean) {
            self.party.instant = n as u8;
            self.party.go(Program::Delete);
            return Moved;
        }
        if self.choose_cleaned(self.party.view) {
            return Continue;
        }
        self.end();
        Moved
    }

    fn plan_clean_again(&mut self) -> Next {
        let (table, view) = (&self.state.table, self.party.view);
        let current = table.view(self.rules);
        let is_gone = |(_, i): (usize, &Instant)| i.is_commit() && !i.is_completed();
        let is_revoked = table.instants_of(view.completed).any(is_gone);
        let new = (current.completed | current.pending) & !(view.completed | view.pending);
        let is_outdated = is_revoked
            || table
                .instants_of(new)
                .any(|(_, i)| i.action != Action::Write);
        if self.pending(Action::Clean).is_none() {
            if !(is_outdated && self.rules.clean_plan_is_current) {
                self.party.view = current;
                return Continue;
            }
            self.party.view = current;
            if self.choose_cleaned(current) {
                return Continue;
            }
        }
        self.release();
        self.end();
        Moved
    }

    fn choose_archived(&mut self) -> Next {
        let (table, view) = (&self.state.table, self.state.table.view(self.rules));
        let mut commits: Vec<(u8, usize)> = table
            .instants_of(view.completed)
            .filter(|(_, i)| i.is_commit())
            .map(|(n, i)| (i.time, n))
            .collect();
        commits.sort_unstable();
        commits.truncate(commits.len().saturating_sub(UNARCHIVED));
        let pending = table
            .instants_of(view.pending)
            .filter(|(_, i)| i.is_commit());
        if let (Some(first), true) = (
            pending.map(|(_, i)| i.time).min(),
            self.rules.archive_stops_at_pending,
        ) {
            // The commit before the oldest pending write stays, and those that it must be checked against.
            let before = commits
                .iter()
                .map(|(time, _)| *time)
                .filter(|time| *time < first)
                .max();
            commits.retain(|(time, n)| {
                *time < before.unwrap_or(0) && table.instants[*n].completed < first
            });
        }
        let is_needed = |n: usize| {
            let replaced = table.instants[n].replaced;
            let left = table.select_files(|f| f.exists && one(f.group as usize) & replaced != 0);
            replaced != 0 && (left != 0 || self.pending(Action::Clean).is_some())
        };
        let needed = commits
            .iter()
            .position(|(_, n)| is_needed(*n) && self.rules.archive_after_clean);
        commits.truncate(needed.unwrap_or(commits.len()));
        self.party.chosen = commits.into_iter().map(|(_, n)| one(n)).sum();
        if self.party.chosen != 0 {
            return Continue;
        }
        self.release();
        self.end();
        Moved
    }

    fn remove_leftovers(&mut self) {
        let table = &self.state.table;
        let active = table.instants_of(table.view(self.rules).completed & !self.party.chosen);
        let start = active
            .filter(|(_, i)| i.is_commit())
            .map(|(_, i)| i.time)
            .min()
            .unwrap_or(0);
        let gone = table
            .select(|i| i.rolled_back && i.time < start && !i.is_pending() && !i.is_completed());
        let files = table.select_files(|f| gone & one(f.instant as usize) != 0);
        if self.rules.archive_removes_leftovers {
            self.delete_files(files);
        }
    }
}

fn table_late(instant: &Instant) -> bool {
    instant.late || instant.beat == Beat::Marked
}
