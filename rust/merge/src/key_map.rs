//! The key map: which record of the log side stands for each key, and what it does to a base row.

use arrow::array::{Array, ArrayRef, BooleanArray, BooleanBufferBuilder, StringArray};
use arrow::buffer::BooleanBuffer;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use pyhudi_format::log::OrderingValue;
use std::hash::BuildHasher;

use crate::ordering::{MergeError, MergeRules, OrderingEncoder, OrderingRows};

/// What a merge did, in rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// Base rows replaced by a newer record.
    pub updated: u64,
    /// Base rows removed by a delete.
    pub deleted: u64,
    /// Winning records whose key no base row had.
    pub inserted: u64,
}

/// What becomes of a batch of base rows.
pub enum BaseOutcome {
    /// Every row stays.
    KeepAll,
    /// Only the rows that are set stay.
    Keep(BooleanArray),
}

/// The records of one key, reduced to the one that stands.
#[derive(Clone, Copy)]
struct Entry {
    batch: u32,
    row: u32,
    /// The record is a delete.
    deleted: bool,
    /// A base row with the key was met.
    matched: bool,
    /// The base row won: the record is not given out.
    lost: bool,
}

/// An entry's number, with hash bits that the table itself does not look at.
#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    at: u32,
}

impl Slot {
    fn tag(hash: u64) -> u32 {
        (hash >> 25) as u32
    }
}

/// The keys and ordering values of one batch of the log side.
struct Batch {
    keys: StringArray,
    ordering: Option<OrderingRows>,
}

/// Log records by key. Add oldest first, then stream the base rows, then take the winners.
pub struct KeyMap {
    rules: MergeRules,
    encoder: OrderingEncoder,
    hasher: FixedState,
    table: HashTable<Slot>,
    entries: Vec<Entry>,
    batches: Vec<Batch>,
    counts: MergeCounts,
}

impl KeyMap {
    /// An empty map.
    ///
    /// # Errors
    /// An ordering field of a type without an order.
    pub fn new(rules: MergeRules) -> Result<Self, MergeError> {
        Ok(Self {
            encoder: OrderingEncoder::new(&rules.ordering)?,
            rules,
            hasher: FixedState::default(),
            table: HashTable::new(),
            entries: Vec::new(),
            batches: Vec::new(),
            counts: MergeCounts::default(),
        })
    }

    /// Number of different keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no record was added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes held beside the caller's own record batches, roughly.
    pub fn memory(&self) -> usize {
        let ordering: usize = self
            .batches
            .iter()
            .filter_map(|b| b.ordering.as_ref())
            .map(OrderingRows::size)
            .sum();
        ordering
            + self.entries.capacity() * size_of::<Entry>()
            + self.table.capacity() * size_of::<Slot>()
    }

    /// Adds data records, newer than all before. Returns the batch number that [`Self::winners`]
    /// takes. `deleted` marks records that say their key is deleted.
    ///
    /// # Errors
    /// A null key; ordering columns that do not have the types of the rules.
    pub fn add_rows(
        &mut self,
        keys: StringArray,
        ordering: &[ArrayRef],
        deleted: Option<&BooleanArray>,
    ) -> Result<usize, MergeError> {
        let rows = self
            .rules
            .compares()
            .then(|| self.encoder.encode(ordering))
            .transpose()?;
        self.add(keys, rows, |row| {
            deleted.is_some_and(|d| d.is_valid(row) && d.value(row))
        })
    }

    /// Adds the keys of a delete block with their ordering values.
    ///
    /// # Errors
    /// As [`Self::add_rows`].
    pub fn add_deletes(
        &mut self,
        keys: StringArray,
        ordering: &[OrderingValue<'_>],
    ) -> Result<(), MergeError> {
        let rows = self
            .rules
            .compares()
            .then(|| self.encoder.encode_deletes(ordering))
            .transpose()?;
        self.add(keys, rows, |_| true).map(|_| ())
    }

    fn add(
        &mut self,
        keys: StringArray,
        ordering: Option<OrderingRows>,
        deleted: impl Fn(usize) -> bool,
    ) -> Result<usize, MergeError> {
        if keys.null_count() > 0 {
            let row = (0..keys.len()).find(|row| keys.is_null(*row)).unwrap_or(0);
            return Err(MergeError::NullKey { row });
        }
        let batch = self.batches.len();
        let rows = keys.len();
        self.batches.push(Batch { keys, ordering });
        for row in 0..rows {
            let entry = Entry {
                batch: batch as u32,
                row: row as u32,
                deleted: deleted(row),
                matched: false,
                lost: false,
            };
            self.put(entry);
        }
        Ok(batch)
    }

    fn put(&mut self, new: Entry) {
        let Self {
            table,
            entries,
            batches,
            hasher,
            rules,
            ..
        } = self;
        let key_of = |entry: &Entry| batches[entry.batch as usize].keys.value(entry.row as usize);
        let key = key_of(&new);
        let hash = hasher.hash_one(key);
        let tag = Slot::tag(hash);
        let slot = table.entry(
            hash,
            |slot| slot.tag == tag && key_of(&entries[slot.at as usize]) == key,
            |slot| hasher.hash_one(key_of(&entries[slot.at as usize])),
        );
        match slot {
            hashbrown::hash_table::Entry::Vacant(slot) => {
                slot.insert(Slot {
                    tag,
                    at: entries.len() as u32,
                });
                entries.push(new);
            }
            hashbrown::hash_table::Entry::Occupied(slot) => {
                let old = &mut entries[slot.get().at as usize];
                if newer_wins(rules, batches, &new, old) {
                    *old = new;
                }
            }
        }
    }

    /// Streams base rows past the map. Each key is merged with the first base row that has it.
    ///
    /// # Errors
    /// A null key in a base row; ordering columns that do not have the types of the rules.
    pub fn merge_base(
        &mut self,
        keys: &StringArray,
        ordering: &[ArrayRef],
    ) -> Result<BaseOutcome, MergeError> {
        let hits = self.hits(keys)?;
        if hits.is_empty() {
            return Ok(BaseOutcome::KeepAll);
        }
        let base = self
            .rules
            .compares()
            .then(|| self.encoder.encode(ordering))
            .transpose()?;
        let mut keep = BooleanBufferBuilder::new(keys.len());
        keep.append_n(keys.len(), true);
        let mut dropped = false;
        for (row, at) in hits {
            let log_wins = self.log_wins(at, base.as_ref(), row);
            let entry = &mut self.entries[at];
            entry.lost = !log_wins;
            if log_wins {
                keep.set_bit(row, false);
                dropped = true;
                let count = if entry.deleted {
                    &mut self.counts.deleted
                } else {
                    &mut self.counts.updated
                };
                *count += 1;
            }
        }
        Ok(if dropped {
            BaseOutcome::Keep(BooleanArray::new(keep.finish(), None))
        } else {
            BaseOutcome::KeepAll
        })
    }

    /// (base row, entry) of each base row whose key is in the map and was not met before.
    ///
    /// In two passes, so that the second one's waits for memory overlap: few rows get there, and
    /// nearly all of them are hits.
    fn hits(&mut self, keys: &StringArray) -> Result<Vec<(usize, usize)>, MergeError> {
        if keys.null_count() > 0 {
            let row = (0..keys.len()).find(|row| keys.is_null(*row)).unwrap_or(0);
            return Err(MergeError::NullKey { row });
        }
        let mut hits = Vec::new();
        for row in 0..keys.len() {
            let hash = self.hasher.hash_one(keys.value(row));
            let tag = Slot::tag(hash);
            if let Some(slot) = self.table.find(hash, |slot| slot.tag == tag) {
                hits.push((row, slot.at as usize));
            }
        }
        let (entries, batches) = (&mut self.entries, &self.batches);
        let (table, hasher) = (&self.table, &self.hasher);
        hits.retain_mut(|(row, at)| {
            let key = keys.value(*row);
            let is_key =
                |entry: &Entry| batches[entry.batch as usize].keys.value(entry.row as usize) == key;
            if !is_key(&entries[*at]) {
                let found = table.find(hasher.hash_one(key), |slot| {
                    is_key(&entries[slot.at as usize])
                });
                match found {
                    Some(slot) => *at = slot.at as usize,
                    None => return false,
                }
            }
            !std::mem::replace(&mut entries[*at].matched, true)
        });
        Ok(hits)
    }

    fn log_wins(&self, at: usize, base: Option<&OrderingRows>, row: usize) -> bool {
        let entry = &self.entries[at];
        let (Some(base), Some(log)) = (base, self.ordering_of(entry)) else {
            return true;
        };
        (entry.deleted && log.is_default(entry.row as usize))
            || (self.rules.null_ordering_loses && base.is_null(row))
            || log.at_least(entry.row as usize, base, row)
    }

    fn ordering_of(&self, entry: &Entry) -> Option<&OrderingRows> {
        self.batches[entry.batch as usize].ordering.as_ref()
    }

    /// For each data batch, in the order added, which of its rows are to be given out. To be called
    /// when all base rows have passed. Also completes the counts.
    pub fn winners(&mut self) -> Vec<BooleanBuffer> {
        let mut masks: Vec<BooleanBufferBuilder> = self
            .batches
            .iter()
            .map(|batch| {
                let mut mask = BooleanBufferBuilder::new(batch.keys.len());
                mask.append_n(batch.keys.len(), false);
                mask
            })
            .collect();
        for entry in self.entries.iter().filter(|e| !e.deleted && !e.lost) {
            masks[entry.batch as usize].set_bit(entry.row as usize, true);
            self.counts.inserted += u64::from(!entry.matched);
        }
        masks.iter_mut().map(BooleanBufferBuilder::finish).collect()
    }

    /// What the merge did so far.
    pub fn counts(&self) -> MergeCounts {
        self.counts
    }
}

fn newer_wins(rules: &MergeRules, batches: &[Batch], new: &Entry, old: &Entry) -> bool {
    if !rules.compares() {
        return true;
    }
    let ordering = |entry: &Entry| batches[entry.batch as usize].ordering.as_ref();
    let (Some(new_rows), Some(old_rows)) = (ordering(new), ordering(old)) else {
        return true;
    };
    let (new_row, old_row) = (new.row as usize, old.row as usize);
    (new.deleted && new_rows.is_default(new_row))
        || (old.deleted && old_rows.is_default(old_row))
        || new_rows.at_least(new_row, old_rows, old_row)
}
