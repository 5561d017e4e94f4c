//! The steps of a write: its plan, both critical sections, its files, and what follows a commit.

use super::{Conflict, Continue, Moved, Next, RECOVER, S, SKIP, Turn};
use crate::protocol::{Leftovers, Program, Role};
use crate::table::{Action, Beat, Delta, Instant, NONE, bit, members, one};

impl Turn<'_> {
    pub(super) fn begin(&mut self) -> Next {
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
        self.party.plans = self.setup.planned;
        self.party.go(program);
        Moved
    }

    pub(super) fn load(&mut self, choice: u8) -> Next {
        let is_reader = self.setup.roles[self.p] == Role::Reader;
        let recovers = choice == RECOVER && self.party.program != Program::Write;
        if !is_reader && choice != SKIP && self.failed_work().is_some() || recovers {
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

    pub(super) fn list_table(&mut self) -> Next {
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

    pub(super) fn check_listing(&mut self) -> Next {
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

    pub(super) fn reload(&mut self) -> Next {
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

    pub(super) fn beat(&mut self, choice: u8) -> Next {
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

    pub(super) fn request_write(&mut self) -> Next {
        let put_if_absent = self.rules.put_if_absent;
        let own = self.own_mut();
        if own.requested && put_if_absent {
            self.party.instant = NONE;
            return Conflict;
        }
        own.requested = true;
        Continue
    }

    pub(super) fn start(&mut self) -> Next {
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

    pub(super) fn write_file(&mut self, choice: u8) -> Next {
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
            let is_compaction = self.party.plans == Action::Compaction;
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

    pub(super) fn check(&mut self) -> Next {
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
        let concurrent = table.instants_of(new).filter(|(_, i)| i.is_commit());
        if own.is_service() {
            let has_changed = concurrent.clone().any(|(_, i)| i.groups & own.groups != 0);
            let is_clustering = own.action == Action::Clustering;
            return if is_clustering && has_changed && self.rules.clustering_check {
                Conflict
            } else {
                Continue
            };
        }
        let (mut groups, mut appended) = (self.party.groups, self.party.appended);
        if self.setup.appends {
            let replaced = table.replaced(new);
            groups &= !appended | replaced;
            appended &= groups;
        }
        let is_changed = |(n, i): (usize, &Instant)| {
            // Log files stay valid on a base file that compacts those before them.
            let stay_valid = match i.action {
                Action::Compaction if view.pending & one(n) != 0 => groups,
                Action::Compaction => appended,
                _ => 0,
            };
            i.groups & groups & !stay_valid != 0
        };
        if self.rules.file_group_check && concurrent.clone().any(is_changed) {
            return Conflict;
        }
        let planned = table.view(self.rules).pending & !view.pending;
        if self.rules.planned_services && groups & self.groups_of_clusterings(planned) != 0 {
            return Conflict;
        }
        let adds_key = self.party.slice.is_none() && !self.setup.appends;
        let has_key = |(_, i): (usize, &Instant)| i.action == Action::Write && i.files != 0;
        if adds_key && self.rules.key_check && concurrent.clone().any(has_key) {
            return Conflict;
        }
        Continue
    }

    pub(super) fn begin_delta(&mut self) -> Next {
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

    pub(super) fn publish(&mut self) -> Next {
        let time = self.tick();
        self.party.published = time;
        let late = self.party.lapsed || self.party.expired;
        let replaced = match self.own() {
            Some(i) if i.action == Action::Clustering => i.groups,
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
            own.groups |= groups;
            own.replaced = replaced;
            own.writes = if task == NONE { 0 } else { one(task as usize) };
        }
        Continue
    }

    pub(super) fn mark_zombie(&mut self) -> Next {
        let (p, published) = (self.p, self.party.published);
        let own = self.own_mut();
        match own.beat {
            // Another writer has accepted or revoked it.
            Beat::Absent if own.completed == published && own.inflight => {
                (self.party.lapsed, self.party.expired) = (false, false);
                self.party.go(Program::Commit);
                self.party.skip_to(S::StopBeat);
                return Moved;
            }
            Beat::Absent => {}
            _ if usize::from(own.beats) == p => own.beat = Beat::Marked,
            _ => {}
        }
        Continue
    }

    pub(super) fn settle(&mut self, choice: u8) -> Next {
        if !self.holds_lock() && choice != SKIP || !self.judge_zombies(0) {
            // The lock was lost while this ran: it is acquired again.
            self.release();
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
}
