//! Which columns records were written with: the sets that occur, kept once and named by number.

/// For each column of a map's rows whether a record was written with it.
pub type ColumnSet = Vec<bool>;

/// Which columns the records of a batch were written with.
#[derive(Debug, Clone)]
pub enum Written {
    /// With all of them.
    All,
    /// All records with these.
    Same(ColumnSet),
    /// Each record with its own.
    Each(Vec<ColumnSet>),
}

/// [`Written`], with sets of columns by their numbers.
pub(crate) enum Sets {
    Same(u32),
    Each(Vec<u32>),
}

impl Sets {
    pub fn of(&self, row: usize) -> u32 {
        match self {
            Self::Same(set) => *set,
            Self::Each(sets) => sets[row],
        }
    }
}

/// The sets that occur, by number. The first has all columns.
pub(crate) struct ColumnSets(Vec<ColumnSet>);

impl ColumnSets {
    pub const ALL: u32 = 0;

    pub fn new(columns: usize) -> Self {
        Self(vec![vec![true; columns]])
    }

    pub fn get(&self, set: u32) -> &ColumnSet {
        &self.0[set as usize]
    }

    /// Whether every record was written with all columns.
    pub fn only_all(&self) -> bool {
        self.0.len() == 1
    }

    pub fn number(&mut self, columns: ColumnSet) -> u32 {
        let known = self.0.iter().position(|set| *set == columns);
        known.unwrap_or_else(|| {
            self.0.push(columns);
            self.0.len() - 1
        }) as u32
    }

    pub fn numbers(&mut self, written: Written) -> Sets {
        match written {
            Written::All => Sets::Same(Self::ALL),
            Written::Same(set) => Sets::Same(self.number(set)),
            Written::Each(sets) => {
                Sets::Each(sets.into_iter().map(|set| self.number(set)).collect())
            }
        }
    }

    pub fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        if a == Self::ALL || b == Self::ALL {
            return Self::ALL;
        }
        let both = self.get(a).iter().zip(self.get(b));
        self.number(both.map(|(a, b)| *a || *b).collect())
    }
}
