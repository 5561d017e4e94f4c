//! Strings that recur, each stored once.

use hashbrown::HashMap;

/// Strings by number.
#[derive(Debug, Default, Clone)]
pub(crate) struct Strings {
    all: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    last: u32,
}

impl Strings {
    /// The number of a string, which it gets if it is new.
    pub fn add(&mut self, string: &str) -> u32 {
        // Files are listed by name, so one string often follows itself.
        if self
            .all
            .get(self.last as usize)
            .is_some_and(|last| **last == *string)
        {
            return self.last;
        }
        self.last = if let Some(number) = self.numbers.get(string) {
            *number
        } else {
            let number = self.all.len() as u32;
            self.all.push(string.into());
            self.numbers.insert(string.into(), number);
            number
        };
        self.last
    }

    pub fn get(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or("", AsRef::as_ref)
    }

    pub fn find(&self, string: &str) -> Option<u32> {
        self.numbers.get(string).copied()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(AsRef::as_ref)
    }

    /// The position of each string among all in byte order, which is the order of code points too.
    pub fn ranks(&self) -> Vec<u32> {
        let mut sorted: Vec<u32> = (0..self.all.len() as u32).collect();
        sorted.sort_unstable_by_key(|number| self.get(*number));
        let mut ranks = vec![0; sorted.len()];
        for (rank, number) in sorted.into_iter().enumerate() {
            if let Some(place) = ranks.get_mut(number as usize) {
                *place = rank as u32;
            }
        }
        ranks
    }
}
