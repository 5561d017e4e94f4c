//! Keys to entry numbers. Keys stay in their Arrow buffers, the hash table holds numbers.

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as TableEntry;

use crate::ordering::MergeError;
use crate::position_index::PositionIndex;
use crate::records::Keys;

/// A row of one of the batches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) batch: u32,
    pub(crate) row: u32,
}

impl Place {
    pub(crate) fn new(batch: usize, row: usize) -> Self {
        Self {
            batch: batch as u32,
            row: row as u32,
        }
    }

    pub(crate) fn pair(self) -> (usize, usize) {
        (self.batch as usize, self.row as usize)
    }
}

/// An entry's number, with hash bits that the table itself does not use.
#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    at: u32,
}

fn tag(hash: u64) -> u32 {
    (hash >> 25) as u32
}

/// Numbers keys in the order in which they first appear.
#[derive(Default)]
pub(crate) struct KeyIndex {
    hasher: FixedState,
    /// Of texts.
    table: HashTable<Slot>,
    positions: PositionIndex,
    batches: Vec<Keys>,
    /// Where the key of each entry is.
    at: Vec<Place>,
    /// Bytes of the batches.
    bytes: usize,
}

impl KeyIndex {
    pub(crate) fn len(&self) -> usize {
        self.at.len()
    }

    pub(crate) fn memory(&self) -> usize {
        self.bytes
            + self.at.capacity() * size_of::<Place>()
            + self.table.capacity() * size_of::<Slot>()
            + self.positions.memory()
    }

    /// Adds a batch and calls `each` with every row's entry, true for one that is new.
    pub(crate) fn add(&mut self, keys: Keys, mut each: impl FnMut(usize, usize, bool)) {
        let batch = self.batches.len();
        self.bytes += keys.memory();
        self.batches.push(keys);
        let Self {
            hasher,
            table,
            positions,
            batches,
            at,
            ..
        } = self;
        let keys = &batches[batch];
        if let Keys::Positions(rows) = keys {
            for (row, position) in rows.iter().enumerate() {
                let number = at.len();
                let known = positions.put(*position, number as u32);
                if known.is_none() {
                    at.push(Place::new(batch, row));
                }
                each(row, known.map_or(number, |at| at as usize), known.is_none());
            }
            return;
        }
        for row in 0..keys.len() {
            let hash = keys.hash(hasher, row);
            let tag = tag(hash);
            let same = |slot: &Slot| {
                slot.tag == tag && {
                    let (other, other_row) = at[slot.at as usize].pair();
                    keys.same(row, &batches[other], other_row)
                }
            };
            let rehash = |slot: &Slot| {
                let (other, other_row) = at[slot.at as usize].pair();
                batches[other].hash(hasher, other_row)
            };
            match table.entry(hash, same, rehash) {
                TableEntry::Vacant(slot) => {
                    let number = at.len();
                    slot.insert(Slot {
                        tag,
                        at: number as u32,
                    });
                    at.push(Place::new(batch, row));
                    each(row, number, true);
                }
                TableEntry::Occupied(slot) => each(row, slot.get().at as usize, false),
            }
        }
    }

    /// (row, entry) of each of the keys that has an entry.
    ///
    /// In two passes, so that the second one's waits for memory overlap: few rows get there, and
    /// nearly all of them are hits.
    pub(crate) fn hits(&self, keys: &Keys) -> Result<Vec<(usize, usize)>, MergeError> {
        keys.check()?;
        if let Keys::Positions(rows) = keys {
            let entry = |(row, position): (usize, &u64)| {
                let at = self.positions.get(*position)?;
                Some((row, at as usize))
            };
            return Ok(rows.iter().enumerate().filter_map(entry).collect());
        }
        let mut hits = Vec::new();
        for row in 0..keys.len() {
            let hash = keys.hash(&self.hasher, row);
            let tag = tag(hash);
            if let Some(slot) = self.table.find(hash, |slot| slot.tag == tag) {
                hits.push((row, slot.at as usize));
            }
        }
        hits.retain_mut(|(row, at)| {
            let is_key = |entry: usize| {
                let (batch, key) = self.at[entry].pair();
                self.batches[batch].same(key, keys, *row)
            };
            if is_key(*at) {
                return true;
            }
            let hash = keys.hash(&self.hasher, *row);
            match self.table.find(hash, |slot| is_key(slot.at as usize)) {
                Some(slot) => {
                    *at = slot.at as usize;
                    true
                }
                None => false,
            }
        });
        Ok(hits)
    }

    /// Which of the keys have an entry.
    pub(crate) fn contains(&self, keys: &Keys) -> Result<BooleanBuffer, MergeError> {
        let mut found = BooleanBufferBuilder::new(keys.len());
        found.append_n(keys.len(), false);
        for (row, _) in self.hits(keys)? {
            found.set_bit(row, true);
        }
        Ok(found.finish())
    }

    /// The keys of all entries, in their order.
    pub(crate) fn keys(&self) -> Option<Keys> {
        let (first, _) = self.at.first()?.pair();
        let places = || self.at.iter().map(|place| place.pair());
        Some(match &self.batches[first] {
            Keys::Text(_) => Keys::Text(
                places()
                    .map(|(batch, row)| self.batches[batch].text(row))
                    .collect(),
            ),
            Keys::Positions(_) => Keys::Positions(
                places()
                    .filter_map(|(batch, row)| self.batches[batch].position(row))
                    .collect(),
            ),
        })
    }

    /// An entry's key, for a message.
    pub(crate) fn describe(&self, entry: usize) -> String {
        let (batch, row) = self.at[entry].pair();
        match &self.batches[batch] {
            Keys::Text(keys) => keys.value(row).to_owned(),
            Keys::Positions(rows) => format!("row {} of the base file", rows[row]),
        }
    }

    pub(crate) fn batch(&self, number: usize) -> &Keys {
        &self.batches[number]
    }
}
