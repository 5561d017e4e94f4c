//! Reads of few record keys: which rows of a base file and which records of log blocks may have them.
//!
//! A [`LookupCache`] belongs to an open table and keeps what such reads need again: footers, the rows
//! of each key in a row group, unpacked pages and dictionaries, the records of each key in a log block. Keys are
//! told apart by their hashes, so a read may give rows of other keys, too: the caller compares the keys of the rows.

mod blocks;
mod cache;
mod pages;
mod rows;

use std::any::Any;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::error::Result;

pub use cache::Cache;

pub(crate) use blocks::Wanted;

/// What an open table keeps. Files of a table never change, so an item stays true as long as the name
/// of its file is used.
pub type LookupCache = Cache<Item>;

/// Names an item of a [`LookupCache`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Item {
    /// The footer of a base file.
    Footer(String),
    /// The rows of each key in a row group.
    Rows(String, usize),
    /// A page of a column of a row group, by the number of the footer.
    Page(u64, (usize, usize), usize),
    /// The dictionary of a column of a row group, by the number of the footer.
    Dictionary(u64, (usize, usize)),
    /// The log blocks of a slice that count in a snapshot.
    Logs(Vec<String>, u64),
    /// The records of each key in the log block at an offset.
    Block(String, u64),
    /// A row that a numbered reader gave for a key.
    Row(u64, String),
}

/// The keys that are read of a slice.
#[derive(Debug, Clone)]
pub struct Lookup {
    cache: Arc<LookupCache>,
    /// Identifies the snapshot of the table: which log blocks count.
    snapshot: u64,
    /// Of the keys, in order.
    hashes: Arc<[u32]>,
}

impl Lookup {
    /// Looks keys up in a snapshot of the table that the cache belongs to.
    pub fn new<'k>(
        cache: &Arc<LookupCache>,
        snapshot: u64,
        keys: impl IntoIterator<Item = &'k str>,
    ) -> Self {
        let mut hashes: Vec<u32> = keys.into_iter().map(key_hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self {
            cache: Arc::clone(cache),
            snapshot,
            hashes: hashes.into(),
        }
    }

    fn kept<T: Any + Send + Sync>(
        &self,
        item: &Item,
        build: impl FnOnce() -> Result<(T, usize)>,
    ) -> Result<Arc<T>> {
        self.cache.get(item, build)
    }
}

/// By which keys are told apart in memory.
pub fn key_hash(key: &str) -> u32 {
    FixedState::default().hash_one(key) as u32
}

/// What was found under a hash, ordered by hash.
#[derive(Debug, Default)]
pub struct ByHash<T>(Vec<(u32, T)>);

impl<T: Copy + Ord> ByHash<T> {
    /// Of hashes with their values.
    pub fn new(mut entries: Vec<(u32, T)>) -> Self {
        entries.sort_unstable();
        entries.shrink_to_fit();
        Self(entries)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.0.len() * size_of::<(u32, T)>()
    }

    /// What is under some hashes, in its own order.
    pub fn of(&self, hashes: &[u32]) -> Vec<T> {
        let mut matches = Vec::new();
        for hash in hashes {
            let start = self.0.partition_point(|(known, _)| known < hash);
            let rest = self.0.get(start..).unwrap_or_default();
            let same = rest.iter().take_while(|(known, _)| known == hash);
            matches.extend(same.map(|(_, value)| *value));
        }
        matches.sort_unstable();
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_their_order_with_all_of_a_hash() {
        let index = ByHash::new(vec![(7, 3), (1, 9), (7, 1), (9, 0), (7, 1)]);
        assert_eq!(index.of(&[1, 7]), [1, 1, 3, 9]);
        assert_eq!(index.of(&[0, 2, 10]), [0_i32; 0]);
        assert_eq!(ByHash::<u32>::default().of(&[1]), [0_u32; 0]);
    }
}
