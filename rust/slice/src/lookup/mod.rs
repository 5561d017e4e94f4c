//! Reads of few record keys: which rows of a base file and which records of log blocks may have them.
//!
//! A [`LookupCache`] belongs to an open table and keeps what such reads need again: footers, the rows
//! of each key in a row group, unpacked pages and dictionaries, the records of each key in a log block. Keys are
//! told apart by their hashes, so a read may give rows of other keys, too: the caller compares the keys of the rows.

mod blocks;
mod cache;
mod in_memory;
mod keyed_slice;
mod pages;
mod rows;

use std::any::Any;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::error::Result;

pub use cache::Cache;
pub use keyed_slice::KeyedSlice;

pub(crate) use blocks::Wanted;

/// What an open table keeps. Files of a table never change, so an item stays true as long as the name
/// of its file is used.
pub type LookupCache = Cache<Item>;

/// Names an item of a [`LookupCache`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Item {
    /// The footer of a base file.
    Footer(Arc<str>),
    /// The rows of each key in a row group.
    Rows(Arc<str>, usize),
    /// A page of a column of a row group, by the number of the footer.
    Page(u64, (usize, usize), usize),
    /// The dictionary of a column of a row group, by the number of the footer.
    Dictionary(u64, (usize, usize)),
    /// The log blocks of a slice that count in a snapshot.
    Logs(Arc<[String]>, u64),
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

/// What was found under a hash, in buckets: a table is read once before its first look-up, so that
/// it is not sorted.
#[derive(Debug, Default)]
pub struct ByHash<T> {
    entries: Vec<(u32, T)>,
    /// Where each bucket begins, and the end.
    begins: Vec<u32>,
}

/// Entries of a bucket, on average.
const BUCKET_ENTRIES: usize = 4;

impl<T: Copy + Ord> ByHash<T> {
    /// Of hashes with their values.
    pub fn new(entries: &[(u32, T)]) -> Self {
        let buckets = entries.len().div_ceil(BUCKET_ENTRIES);
        let mut begins = vec![0; buckets + 1];
        for (hash, _) in entries {
            if let Some(count) = begins.get_mut(bucket(*hash, buckets)) {
                *count += 1;
            }
        }
        let mut end = 0;
        for begin in &mut begins {
            end += *begin;
            *begin = end;
        }
        // Each bucket is filled from its end, where its begin is then.
        let mut placed = entries.to_vec();
        for entry in entries {
            if let Some(begin) = begins.get_mut(bucket(entry.0, buckets)) {
                *begin -= 1;
                if let Some(place) = placed.get_mut(*begin as usize) {
                    *place = *entry;
                }
            }
        }
        Self {
            entries: placed,
            begins,
        }
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        size_of_val(self.entries.as_slice()) + size_of_val(self.begins.as_slice())
    }

    /// What is under some hashes, in its own order.
    pub fn of(&self, hashes: &[u32]) -> Vec<T> {
        let mut matches = Vec::new();
        for hash in hashes {
            let bucket = self.bucket(*hash).iter();
            let same = bucket.filter(|(known, _)| known == hash);
            matches.extend(same.map(|(_, value)| *value));
        }
        matches.sort_unstable();
        matches
    }

    fn bucket(&self, hash: u32) -> &[(u32, T)] {
        let at = bucket(hash, self.begins.len().saturating_sub(1));
        let place = |at: usize| self.begins.get(at).map(|place| *place as usize);
        let range = place(at).zip(place(at + 1));
        let entries = range.and_then(|(begin, end)| self.entries.get(begin..end));
        entries.unwrap_or_default()
    }
}

/// The bucket of a hash.
fn bucket(hash: u32, buckets: usize) -> usize {
    ((u64::from(hash) * buckets as u64) >> u32::BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_their_order_with_all_of_a_hash() {
        let index = ByHash::new(&[(7, 3), (1, 9), (7, 1), (9, 0), (7, 1)]);
        assert_eq!(index.of(&[1, 7]), [1, 1, 3, 9]);
        assert_eq!(index.of(&[0, 2, 10]), [0_i32; 0]);
        assert_eq!(ByHash::<u32>::new(&[]).of(&[1]), [0_u32; 0]);
        assert_eq!(ByHash::<u32>::default().of(&[1]), [0_u32; 0]);
    }

    #[test]
    fn each_hash_is_found_in_its_bucket() {
        let hashes = (1..1000_u32).map(|number| number.wrapping_mul(0x9E37_79B9));
        let hashes: Vec<u32> = hashes.chain([0, u32::MAX]).collect();
        for count in 1..hashes.len() {
            let entries: Vec<(u32, usize)> = hashes[..count].iter().copied().zip(0..).collect();
            let index = ByHash::new(&entries);
            let last = entries[count - 1];
            assert_eq!(index.of(&[last.0]).last(), Some(&last.1));
            assert_eq!(index.of(&hashes[..count]).len(), count);
        }
    }
}
