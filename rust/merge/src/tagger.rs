//! Tagging: which of a batch's keys exist already, and where.

use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};

use arrow::array::{Array, Int32Array, Int64Array, StringArray, StringBuilder};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// The keys of a file that its next version lacks. As a rule the rows of both are in one order, so that
/// few keys have to be looked for.
///
/// # Errors
/// Those of `before`.
pub fn lost_keys<E>(
    before: impl Iterator<Item = Result<StringArray, E>>,
    after: &[StringArray],
) -> Result<StringArray, E> {
    let mut stayed = after
        .iter()
        .flat_map(|keys| keys.iter().flatten())
        .peekable();
    let mut unmatched = StringBuilder::new();
    for keys in before {
        for key in keys?.iter().flatten() {
            if stayed.next_if_eq(&key).is_none() {
                unmatched.append_value(key);
            }
        }
    }
    let tagger = KeyTagger::new(unmatched.finish());
    for keys in after {
        tagger.probe(keys, 0);
    }
    let locations = tagger.locations();
    let pairs = tagger.keys.iter().zip(&locations);
    Ok(pairs
        .filter_map(|(key, found)| key.filter(|_| found.is_none()).map(Some))
        .collect())
}

/// Ends a chain of rows with one key.
const NO_ROW: u32 = u32::MAX;

/// Finds incoming keys among existing ones. May be probed from several threads.
pub struct KeyTagger {
    keys: StringArray,
    hasher: FixedState,
    /// The last row of each different key.
    table: HashTable<u32>,
    /// For each row the one before it with the same key.
    before: Vec<u32>,
    locations: Mutex<Vec<Option<i32>>>,
    /// Rows of the one file that was probed row by row.
    positions: Mutex<Vec<Position>>,
}

#[derive(Clone, Copy)]
enum Position {
    Unknown,
    Row(u64),
    /// The file has the key more than once.
    Several,
}

impl KeyTagger {
    /// A tagger of these incoming keys. A null is never found.
    pub fn new(keys: StringArray) -> Self {
        let hasher = FixedState::default();
        let mut table: HashTable<u32> = HashTable::with_capacity(keys.len());
        let mut before = vec![NO_ROW; keys.len()];
        for (row, before) in before.iter_mut().enumerate() {
            if keys.is_null(row) {
                continue;
            }
            let key = keys.value(row);
            let same = |at: &u32| keys.value(*at as usize) == key;
            let rehash = |at: &u32| hasher.hash_one(keys.value(*at as usize));
            match table.entry(hasher.hash_one(key), same, rehash) {
                Entry::Occupied(mut slot) => {
                    *before = std::mem::replace(slot.get_mut(), row as u32);
                }
                Entry::Vacant(slot) => {
                    slot.insert(row as u32);
                }
            }
        }
        let locations = Mutex::new(vec![None; keys.len()]);
        let positions = Mutex::new(vec![Position::Unknown; keys.len()]);
        Self {
            keys,
            hasher,
            table,
            before,
            locations,
            positions,
        }
    }

    /// Marks the keys among `existing` with `location`; a key marked before keeps the smaller
    /// number. Returns how many rows were newly marked.
    pub fn probe(&self, existing: &StringArray, location: i32) -> usize {
        let mut locations = self
            .locations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut found = 0;
        for key in existing.iter().flatten() {
            self.each_row(key, |at| {
                let tag = &mut locations[at];
                found += usize::from(tag.is_none());
                *tag = Some(tag.map_or(location, |old| old.min(location)));
            });
        }
        found
    }

    fn each_row(&self, key: &str, mut mark: impl FnMut(usize)) {
        let same = |at: &u32| self.keys.value(*at as usize) == key;
        let mut row = self.table.find(self.hasher.hash_one(key), same).copied();
        while let Some(at) = row.filter(|at| *at != NO_ROW) {
            mark(at as usize);
            row = self.before.get(at as usize).copied();
        }
    }

    /// Marks the keys among `existing` with location 0, and notes at which rows of the one file they
    /// are. `first`: the row of the first of `existing`.
    pub fn probe_rows(&self, existing: &StringArray, first: u64) {
        self.probe(existing, 0);
        let mut positions = self
            .positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (row, key) in (first..).zip(existing.iter()) {
            let Some(key) = key else { continue };
            self.each_row(key, |at| {
                positions[at] = match positions[at] {
                    Position::Unknown => Position::Row(row),
                    _ => Position::Several,
                };
            });
        }
    }

    /// For each incoming key the row noted by [`Self::probe_rows`], null where there is not one.
    pub fn positions(&self) -> Int64Array {
        let positions = self
            .positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let row = |position: &Position| match position {
            Position::Row(row) => i64::try_from(*row).ok(),
            _ => None,
        };
        positions.iter().map(row).collect()
    }

    /// For each incoming key its location, null where it was not found.
    pub fn locations(&self) -> Int32Array {
        let locations = self
            .locations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        locations.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(before: &[&[&str]], after: &[&[&str]]) -> Vec<String> {
        let arrays = |parts: &[&[&str]]| -> Vec<StringArray> {
            parts.iter().map(|keys| keys.to_vec().into()).collect()
        };
        let before = arrays(before).into_iter().map(Ok::<_, ()>);
        let lost = lost_keys(before, &arrays(after)).unwrap();
        lost.iter().flatten().map(str::to_owned).collect()
    }

    #[test]
    fn keys_that_the_next_version_lacks_are_lost() {
        let before: &[&[&str]] = &[&["a", "b", "c"], &[], &["d", "e"]];
        assert_eq!(lost(before, before), [""; 0]);
        assert_eq!(lost(before, &[&["a", "c"], &["d"]]), ["b", "e"]);
        assert_eq!(lost(before, &[]), ["a", "b", "c", "d", "e"]);
        // Rows that moved, new ones among them.
        assert_eq!(lost(before, &[&["d", "x", "a", "y", "b"]]), ["c", "e"]);
        // Of a key's rows one stays.
        assert_eq!(lost(&[&["a", "b", "a"]], &[&["b", "a"]]), [""; 0]);
    }

    #[test]
    fn errors_of_the_old_keys_are_passed_on() {
        let before = [Ok(vec!["a"].into()), Err("damage")];
        assert_eq!(lost_keys(before.into_iter(), &[]), Err("damage"));
    }
}
