//! The state of a table in storage, and how a reader reads it.
//!
//! The table has one key. A row's value is the set of writes that have changed it, so a lost write is
//! a missing bit and a duplicate key is a second file group.

use crate::rules::Rules;

/// A set of small numbers: instants, files or writes.
pub type Set = u64;

/// The members of a set.
pub fn members(set: Set) -> impl Iterator<Item = usize> + Clone {
    (0..64).filter(move |n| set & (1 << n) != 0)
}

/// The set of one number.
pub fn one(n: usize) -> Set {
    1 << n
}

/// No instant, file or file group.
pub const NONE: u8 = u8::MAX;

/// The set of one file or instant, empty without one.
pub fn bit(n: u8) -> Set {
    if n == NONE { 0 } else { one(usize::from(n)) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Write,
    Compaction,
    Clustering,
    Clean,
    Rollback,
}

/// The heartbeat file of an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beat {
    Absent,
    Live,
    /// Its writer has crashed, or has stalled for longer than a heartbeat lasts.
    Expired,
    /// Its writer has marked its commit as a zombie.
    Marked,
}

/// The delta commit of the same time in the metadata table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delta {
    Absent,
    Inflight,
    Completed,
}

/// The timeline files of one instant, with its heartbeat and its delta commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instant {
    pub action: Action,
    /// The requested time, by a clock that counts requests and completions.
    pub time: u8,
    pub requested: bool,
    pub inflight: bool,
    /// The completion time; 0 while there is no completed file.
    pub completed: u8,
    /// The completed file is younger than the last beat by more than the lease.
    pub late: bool,
    pub archived: bool,
    pub beat: Beat,
    /// The party that wrote the heartbeat.
    pub beats: u8,
    pub delta: Delta,
    /// The writes whose rows it adds.
    pub writes: Set,
    /// The files that its completed file names. Of a clean: those that it deletes.
    pub files: Set,
    /// The file groups that it writes, replaces or is planned for, and those that it replaces.
    pub groups: Set,
    pub replaced: Set,
    /// Of a plan: the files that it reads. Of a rollback: its target, as a set.
    pub plan: Set,
    /// Of a clean: the time of the earliest commit that it retains.
    pub retains: u8,
    /// A rollback of it is complete.
    pub rolled_back: bool,
}

impl Instant {
    pub fn is_completed(&self) -> bool {
        self.completed > 0
    }

    pub fn is_pending(&self) -> bool {
        !self.is_completed() && (self.requested || self.inflight)
    }

    pub fn is_commit(&self) -> bool {
        !matches!(self.action, Action::Clean | Action::Rollback)
    }

    pub fn is_service(&self) -> bool {
        matches!(self.action, Action::Compaction | Action::Clustering)
    }
}

/// A base file or a log file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct File {
    pub group: u8,
    pub instant: u8,
    pub is_log: bool,
    /// The row's value in it.
    pub row: Set,
    pub exists: bool,
}

/// What is in storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Table {
    pub instants: Vec<Instant>,
    pub files: Vec<File>,
    /// The latest time that an instant was requested or completed.
    pub now: u8,
    pub groups: u8,
}

/// A timeline as a reader or a writer loaded it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    /// Its completed instants, without archived ones.
    pub completed: Set,
    /// Its requested and inflight instants.
    pub pending: Set,
    /// The time before which all that is neither pending nor rolled back counts as committed, since
    /// it is archived.
    pub start: u8,
    /// The writes that its rollbacks name.
    pub rolled_back: Set,
}

/// A file slice: a base file and the log files after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    pub group: u8,
    pub files: Set,
    pub row: Set,
}

impl Table {
    /// The instants that satisfy a condition.
    pub fn select(&self, condition: impl Fn(&Instant) -> bool) -> Set {
        let all = self.instants.iter().enumerate();
        all.filter(|(_, i)| condition(i)).map(|(n, _)| one(n)).sum()
    }

    /// The instants of a set, with their numbers.
    pub fn instants_of(&self, set: Set) -> impl Iterator<Item = (usize, &Instant)> + Clone {
        members(set).map(|n| (n, &self.instants[n]))
    }

    /// The writes of all commits, also archived ones.
    pub fn committed_writes(&self) -> Set {
        let completed = self.instants.iter().filter(|i| i.is_completed());
        completed.fold(0, |all, i| all | i.writes)
    }

    /// Whether there is a zombie commit: published late, and neither revoked nor accepted.
    pub fn has_zombies(&self) -> bool {
        self.instants.iter().any(|i| i.is_completed() && i.late)
    }

    /// The writes that a completed rollback on the timeline names.
    pub fn rolled_back_writes(&self) -> Set {
        let completed = self.select(|i| i.is_completed() && !i.archived);
        let rollbacks = self
            .instants_of(completed)
            .filter(|(_, i)| i.action == Action::Rollback);
        let targets = rollbacks.fold(0, |all, (_, i)| all | i.plan);
        targets & self.select(|i| i.action == Action::Write)
    }

    /// Load the timeline.
    pub fn view(&self, rules: Rules) -> View {
        let mut view = View {
            completed: self.select(|i| i.is_completed() && !i.archived),
            pending: self.select(Instant::is_pending),
            start: 0,
            rolled_back: 0,
        };
        if rules.rolled_back_writes {
            view.rolled_back = self.rolled_back_writes();
        }
        let active = self
            .instants_of(view.completed | view.pending)
            .filter(|(n, i)| i.is_commit() && (view.completed & one(*n) != 0 || i.is_service()));
        view.start = active.map(|(_, i)| i.time).min().unwrap_or(0);
        view
    }

    /// Whether the files of an instant count as committed.
    fn is_committed(&self, view: View, n: usize) -> bool {
        let is_old =
            self.instants[n].time < view.start && (view.pending | view.rolled_back) & one(n) == 0;
        self.instants[n].is_commit() && (view.completed & one(n) != 0 || is_old)
    }

    /// The existing files of committed instants.
    pub fn committed_files(&self, view: View) -> Set {
        self.select_files(|f| f.exists && self.is_committed(view, f.instant as usize))
    }

    /// The files that satisfy a condition.
    pub fn select_files(&self, condition: impl Fn(&File) -> bool) -> Set {
        let all = self.files.iter().enumerate();
        all.filter(|(_, f)| condition(f)).map(|(n, _)| one(n)).sum()
    }

    /// The file groups of files.
    pub fn groups_of(&self, files: Set) -> Set {
        members(files).fold(0, |all, n| all | one(self.files[n].group as usize))
    }

    /// The file groups that commits of a timeline have replaced.
    pub fn replaced(&self, completed: Set) -> Set {
        self.instants_of(completed)
            .fold(0, |all, (_, i)| all | i.replaced)
    }

    /// The latest file slice of each file group that has one of these files.
    pub fn slices(&self, view: View, files: Set, style: Style) -> Vec<Slice> {
        let replaced = self.replaced(view.completed);
        let groups = members(self.groups_of(files) & !replaced);
        groups
            .map(|group| self.slice(group, files, style))
            .collect()
    }

    fn slice(&self, group: usize, files: Set, style: Style) -> Slice {
        let instant = |n: &usize| &self.instants[self.files[*n].instant as usize];
        let of_group = members(files).filter(|n| usize::from(self.files[*n].group) == group);
        let (mut logs, bases): (Vec<_>, Vec<_>) = of_group.partition(|n| self.files[*n].is_log);
        let base = bases.into_iter().max_by_key(|n| instant(n).time);
        logs.retain(|log| {
            let written = if style.by_completion {
                instant(log).completed
            } else {
                instant(log).time
            };
            base.is_none_or(|base| written > instant(&base).time)
        });
        logs.sort_by_key(|log| instant(log).completed);
        let files: Vec<usize> = base.into_iter().chain(logs).collect();
        let merge = |row, n: &usize| self.files[*n].row | if style.appends { row } else { 0 };
        Slice {
            group: group as u8,
            files: files.iter().copied().map(one).sum(),
            row: files.iter().fold(0, merge),
        }
    }
}

/// How log files are read.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// They add to a row. Otherwise each has the whole row.
    pub appends: bool,
    /// They belong to the base file before their completion; otherwise before their request.
    pub by_completion: bool,
}
