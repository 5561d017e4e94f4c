//! The steps of compaction, clustering, cleaning and archiving.

use super::{Conflict, Continue, Moved, Next, Turn};
use crate::protocol::{Program, RETAINED, UNARCHIVED};
use crate::table::{Action, Beat, Delta, Instant, Set, Slice, View, members, one};

impl Turn<'_> {
    pub(super) fn plan_service(&mut self) -> Next {
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

    pub(super) fn request_plan(&mut self) -> Next {
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

    pub(super) fn check_plan(&mut self) -> Next {
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

    pub(super) fn take_over(&mut self) -> Next {
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

    /// Choose the files that no retained snapshot needs; false if there are none.
    pub(super) fn choose_cleaned(&mut self, view: View) -> bool {
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

    pub(super) fn plan_clean(&mut self) -> Next {
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

    pub(super) fn plan_clean_again(&mut self) -> Next {
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

    pub(super) fn choose_archived(&mut self) -> Next {
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
