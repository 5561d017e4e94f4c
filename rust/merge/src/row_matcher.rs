//! Rows of two states paired by key: which row of the older state became which of the newer one.
//!
//! A key is unique within a partition only, and bulk inserts may repeat it even there, so a key can
//! have several older rows. They form a chain in the order added, and a place (the partition path)
//! tells them apart. What the rows hold is not known here.

use std::hash::BuildHasher;

use arrow::array::{Array, BooleanArray, StringArray};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::ordering::MergeError;

const NO_ROW: u32 = u32::MAX;

/// Where an older row is: batch number and row.
pub type Location = (usize, usize);

/// What a newer row finds among the older ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No older row has the key.
    Nothing,
    /// One older row has key and place, and nothing else has taken it.
    One(u32),
    /// Older rows have the key, but it takes more than key and place to tell which one it is.
    Unclear,
}

struct Row {
    batch: u32,
    at: u32,
    /// The next row with the same key.
    next: u32,
    taken: bool,
}

struct Batch {
    keys: StringArray,
    places: Option<StringArray>,
}

/// The older rows, by key. Keys stay in their Arrow buffers.
#[derive(Default)]
pub struct RowMatcher {
    hasher: FixedState,
    /// First row of every key.
    table: HashTable<u32>,
    /// Last row of the chain that starts at a row.
    last: Vec<u32>,
    rows: Vec<Row>,
    batches: Vec<Batch>,
}

impl RowMatcher {
    /// Adds a batch of older rows; returns its number.
    ///
    /// # Errors
    /// A null key.
    pub fn add(
        &mut self,
        keys: StringArray,
        places: Option<StringArray>,
    ) -> Result<usize, MergeError> {
        check_keys(&keys)?;
        let batch = self.batches.len();
        let count = keys.len();
        self.batches.push(Batch { keys, places });
        for row in 0..count {
            self.put(batch as u32, row as u32);
        }
        Ok(batch)
    }

    fn put(&mut self, batch: u32, row: u32) {
        let Self {
            hasher,
            table,
            last,
            rows,
            batches,
        } = self;
        let new = rows.len() as u32;
        rows.push(Row {
            batch,
            at: row,
            next: NO_ROW,
            taken: false,
        });
        last.push(new);
        let key_of = |at: u32| key_of(batches, &rows[at as usize]);
        let key = key_of(new);
        let slot = table.entry(
            hasher.hash_one(key),
            |at| key_of(*at) == key,
            |at| hasher.hash_one(key_of(*at)),
        );
        match slot {
            Entry::Vacant(slot) => {
                slot.insert(new);
            }
            Entry::Occupied(slot) => {
                let first = *slot.get() as usize;
                let before = std::mem::replace(&mut last[first], new);
                rows[before as usize].next = new;
            }
        }
    }

    /// Whether some older row has the key.
    pub fn contains(&self, key: &str) -> bool {
        self.first(key).is_some()
    }

    fn first(&self, key: &str) -> Option<u32> {
        self.table
            .find(self.hasher.hash_one(key), |at| {
                key_of(&self.batches, &self.rows[*at as usize]) == key
            })
            .copied()
    }

    fn chain(&self, key: &str) -> impl Iterator<Item = u32> + '_ {
        let next = |at: &u32| Some(self.rows[*at as usize].next).filter(|next| *next != NO_ROW);
        std::iter::successors(self.first(key), next)
    }

    fn is_at(&self, at: u32, place: Option<&str>) -> bool {
        let row = &self.rows[at as usize];
        let places = self.batches[row.batch as usize].places.as_ref();
        places.map(|places| places.value(row.at as usize)) == place
    }

    /// What a newer row of that key and place finds.
    pub fn find(&self, key: &str, place: Option<&str>) -> Found {
        let mut any = false;
        let mut here = None;
        for at in self.chain(key) {
            any = true;
            if self.is_at(at, place) && here.replace(at).is_some() {
                return Found::Unclear;
            }
        }
        match here {
            Some(at) if !self.rows[at as usize].taken => Found::One(at),
            _ if any => Found::Unclear,
            _ => Found::Nothing,
        }
    }

    /// The older rows of a key that are not taken, of one place or of all (`None`).
    pub fn free(&self, key: &str, place: Option<Option<&str>>) -> Vec<u32> {
        self.chain(key)
            .filter(|at| !self.rows[*at as usize].taken)
            .filter(|at| place.is_none_or(|place| self.is_at(*at, place)))
            .collect()
    }

    /// Takes an older row, so that no other newer row gets it. Gives back where it is.
    pub fn take(&mut self, at: u32) -> Location {
        self.rows[at as usize].taken = true;
        self.location(at)
    }

    /// Where an older row is.
    pub fn location(&self, at: u32) -> Location {
        let row = &self.rows[at as usize];
        (row.batch as usize, row.at as usize)
    }

    /// For each batch of older rows, which of them nothing has taken.
    pub fn left(&self) -> Vec<BooleanArray> {
        let mut rows = self.rows.iter();
        let batch = |batch: &Batch| {
            let free = rows.by_ref().take(batch.keys.len()).map(|row| !row.taken);
            BooleanArray::from(free.collect::<Vec<_>>())
        };
        self.batches.iter().map(batch).collect()
    }
}

fn key_of<'a>(batches: &'a [Batch], row: &Row) -> &'a str {
    batches[row.batch as usize].keys.value(row.at as usize)
}

fn check_keys(keys: &StringArray) -> Result<(), MergeError> {
    match (0..keys.len()).find(|row| keys.is_null(*row)) {
        Some(row) => Err(MergeError::NullKey { row }),
        None => Ok(()),
    }
}

/// Which of `buckets` a key belongs to: the same one for equal keys, in every process.
pub fn key_bucket(key: &str, buckets: u32) -> u32 {
    let hash = FixedState::default().hash_one(key);
    ((hash >> 32) % u64::from(buckets.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::{Found, RowMatcher, key_bucket};

    fn text(values: &[&str]) -> StringArray {
        StringArray::from(values.to_vec())
    }

    fn matcher() -> RowMatcher {
        let mut matcher = RowMatcher::default();
        for (keys, places) in [(["a", "b"], ["p", "p"]), (["a", "b"], ["q", "p"])] {
            matcher.add(text(&keys), Some(text(&places))).unwrap();
        }
        matcher
    }

    #[test]
    fn a_key_and_its_place_find_their_row_once() {
        let mut matcher = matcher();
        let Found::One(at) = matcher.find("a", Some("q")) else {
            panic!("not found")
        };
        assert_eq!(matcher.take(at), (1, 0));
        assert_eq!(matcher.find("a", Some("q")), Found::Unclear);
        assert_eq!(matcher.find("z", Some("q")), Found::Nothing);
    }

    #[test]
    fn repeated_keys_and_other_places_are_unclear() {
        let matcher = matcher();
        assert_eq!(matcher.find("b", Some("p")), Found::Unclear);
        assert_eq!(matcher.find("b", Some("q")), Found::Unclear);
        assert_eq!(matcher.free("b", Some(Some("p"))).len(), 2);
        assert_eq!(matcher.free("a", None).len(), 2);
        assert!(matcher.contains("a") && !matcher.contains("c"));
    }

    #[test]
    fn rows_that_nothing_took_are_left() {
        let mut matcher = matcher();
        let Found::One(at) = matcher.find("a", Some("p")) else {
            panic!("not found")
        };
        matcher.take(at);
        let left: Vec<Vec<bool>> = matcher
            .left()
            .iter()
            .map(|mask| mask.values().iter().collect())
            .collect();
        assert_eq!(left, [[false, true], [true, true]]);
    }

    #[test]
    fn a_null_key_is_an_error() {
        let keys = StringArray::from(vec![Some("a"), None]);
        assert!(RowMatcher::default().add(keys, None).is_err());
    }

    #[test]
    fn buckets_share_the_keys_out() {
        let counts = (0..1000).fold([0; 4], |mut counts, n| {
            counts[key_bucket(&format!("key-{n}"), 4) as usize] += 1;
            counts
        });
        assert!(counts.iter().all(|count| *count > 150), "{counts:?}");
    }
}
