//! The steps of compaction, clustering, cleaning and archiving.

use super::{Conflict, Continue, Moved, Next, RESUME, SKIP, Turn};
use crate::protocol::{Program, UNARCHIVED};
use crate::table::{Action, Beat, Delta, Instant, Set, Slice, View, bit, members, one};

impl Turn<'_> {
    pub(super) fn plan_service(&mut self, choice: u8) -> Next {
        let planned = self.party.plans;
        if self.setup.is_trace && choice != SKIP {
            return Continue;
        }
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

    pub(super) fn request_plan(&mut self) -> Next {
        let is_clean = self.party.program == Program::Clean;
        let n = self.request(if is_clean {
            Action::Clean
        } else {
            self.party.plans
        });
        let (chosen, retains) = (self.party.chosen, self.party.retains);
        let groups = self
            .state
            .table
            .groups_of(if is_clean { 0 } else { chosen });
        let instant = &mut self.state.table.instants[n as usize];
        (instant.plan, instant.retains, instant.groups) = (chosen, retains, groups);
        self.party.instant = n;
        Continue
    }

    pub(super) fn check_plan(&mut self, choice: u8) -> Next {
        if self.party.lapsed && self.rules.check_alive {
            let (known, current) = (self.party.view, self.state.table.view(self.rules));
            let new = current.completed & !known.completed
                | current.pending & !(known.completed | known.pending);
            let others = new & !one(self.party.instant as usize);
            // A write that has got its inflight file counts, too, and is not in a view.
            if (others != 0 || choice == SKIP) && self.rules.withdraw_late_plans {
                self.own_mut().requested = false;
                return Conflict;
            }
        }
        Continue
    }

    pub(super) fn take_over(&mut self, choice: u8) -> Next {
        let plan = members(self.pending_plans()).nth(choice.into());
        let is_running = |n: usize| self.state.table.instants[n].beat == Beat::Live;
        match plan {
            Some(n) if self.rules.outdated_plans && self.is_outdated_plan(n) && !is_running(n) => {
                let instant = &mut self.state.table.instants[n];
                (instant.requested, instant.inflight) = (false, false);
                self.release();
                self.end();
                Moved
            }
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

    /// Whether a clustering was planned on file slices that are not the latest.
    fn is_outdated_plan(&self, n: usize) -> bool {
        let table = &self.state.table;
        let (instant, time) = (&table.instants[n], |file: usize| {
            table.instants[table.files[file].instant as usize].time
        });
        let same_groups =
            table.select_files(|f| instant.groups & one(f.group as usize) != 0 && !f.is_log);
        let newer = table.committed_files(self.party.view) & same_groups & !instant.plan;
        instant.action == Action::Clustering
            && members(newer).any(|file| {
                let of_group = |old: &usize| table.files[*old].group == table.files[file].group;
                members(instant.plan)
                    .filter(of_group)
                    .all(|old| time(old) < time(file))
            })
    }

    pub(super) fn revert(&mut self) -> Next {
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

    /// The time of the earliest commit that a clean retains; None with few commits.
    fn earliest_retained(&self, view: View) -> Option<u8> {
        let table = &self.state.table;
        let mut commits: Vec<u8> = table
            .instants_of(view.completed)
            .filter(|(_, i)| i.is_commit())
            .map(|(_, i)| i.time)
            .collect();
        commits.sort_unstable();
        if commits.len() <= self.setup.retained {
            return None;
        }
        let earliest = commits[commits.len() - self.setup.retained];
        let pending = table
            .instants_of(view.pending)
            .filter(|(_, i)| i.is_commit());
        if let (Some(oldest), true) = (
            pending.map(|(_, i)| i.time).min(),
            self.rules.retains_for_pending,
        ) {
            let before = commits.iter().copied().filter(|time| *time < oldest).max();
            return before.map(|before| earliest.min(before));
        }
        Some(earliest)
    }

    /// Choose the files that no retained snapshot needs; false if there are none.
    fn choose_cleaned(&mut self, view: View) -> bool {
        let Some(earliest) = self.earliest_retained(view) else {
            return false;
        };
        let table = &self.state.table;
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

    pub(super) fn plan_clean(&mut self, choice: u8) -> Next {
        let pending = self.pending(Action::Clean);
        if let (Some(n), true) = (pending, !self.setup.is_trace || choice == RESUME) {
            self.party.instant = n as u8;
            self.party.takes_over = true;
            self.party.go(Program::Delete);
            return Moved;
        }
        if self.setup.is_trace && choice != SKIP || self.choose_cleaned(self.party.view) {
            return Continue;
        }
        self.end();
        Moved
    }

    pub(super) fn plan_clean_again(&mut self) -> Next {
        let is_outdated = self.is_outdated(self.party.view);
        let current = self.state.table.view(self.rules);
        self.party.view = current;
        if self.pending(Action::Clean).is_none() {
            // The plan of a trace is checked once it is requested.
            if self.setup.is_trace || !is_outdated || self.choose_cleaned(current) {
                return Continue;
            }
        }
        self.release();
        self.end();
        Moved
    }

    /// Whether the plan of a clean may be out of date. Commits that only add files do not affect it.
    fn is_outdated(&self, planned_on: View) -> bool {
        let table = &self.state.table;
        let current = table.view(self.rules);
        let is_gone = |(_, i): (usize, &Instant)| i.is_commit() && !i.is_completed();
        let is_revoked = table.instants_of(planned_on.completed).any(is_gone);
        let known = planned_on.completed | planned_on.pending | bit(self.party.instant);
        let new = (current.completed | current.pending) & !known;
        let only_adds = |i: &Instant| {
            i.action == Action::Write || i.action == Action::Compaction && i.is_completed()
        };
        let has_changed = table.instants_of(new).any(|(_, i)| !only_adds(i));
        self.rules.clean_plan_is_current && (is_revoked || has_changed)
    }

    /// Whether a clean may be requested now that was planned on a timeline and retains a commit.
    pub fn allows_clean(&self, planned_on: View, retains: usize) -> bool {
        let earliest = self.earliest_retained(planned_on);
        // The plan of a writer that has lost the lock is withdrawn.
        earliest == Some(self.state.table.instants[retains].time)
            && (self.party.lapsed || !self.is_outdated(planned_on))
    }

    pub(super) fn choose_archived(&mut self, choice: u8) -> Next {
        let (table, view) = (&self.state.table, self.state.table.view(self.rules));
        let mut commits: Vec<(u8, usize)> = table
            .instants_of(view.completed)
            .filter(|(_, i)| i.is_commit())
            .map(|(n, i)| (i.time, n))
            .collect();
        commits.sort_unstable();
        let times: Vec<u8> = commits.iter().map(|(time, _)| *time).collect();
        commits.truncate(commits.len().saturating_sub(UNARCHIVED));
        let pending = table
            .instants_of(view.pending)
            .filter(|(_, i)| i.is_commit());
        if let (Some(first), true) = (
            pending.map(|(_, i)| i.time).min(),
            self.rules.archive_stops_at_pending,
        ) {
            // The commit before the oldest pending write stays, and those that it must be checked against.
            let before = times.into_iter().filter(|time| *time < first).max();
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
        // Cleans and rollbacks before the last of these commits are archived, too.
        let last = commits.last().map_or(0, |(time, _)| *time);
        let services = table
            .instants_of(view.completed)
            .filter(|(_, i)| !i.is_commit() && i.time < last);
        let chosen = commits.iter().map(|(_, n)| *n);
        let chosen = chosen.chain(services.map(|(n, _)| n)).map(one).sum();
        self.party.chosen = chosen;
        if chosen != 0 && choice != SKIP {
            return Continue;
        }
        self.release();
        self.end();
        Moved
    }

    pub(super) fn remove_leftovers(&mut self) {
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
