//! The steps that roll back what failed writers left.

use super::{Continue, Moved, Next, S, SKIP, Turn};
use crate::protocol::Program;
use crate::table::{Action, NONE};

impl Turn<'_> {
    pub(super) fn next_failed(&mut self, choice: u8) -> Next {
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

    pub(super) fn look_before_rollback(&mut self) -> Next {
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
    pub(super) fn leave_rollback(&mut self) -> Next {
        self.release();
        (self.party.target, self.party.rollback) = (NONE, NONE);
        match self.party.back {
            Program::Abort => self.party.go(Program::Abort),
            _ => self.party.go(self.party.main),
        }
        Moved
    }
}
