//! The key map: which record of the log side stands for each key, and what it does to a base row.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, BooleanBufferBuilder, StringArray};
use arrow::buffer::BooleanBuffer;
use pyhudi_format::log::OrderingValue;

use crate::key_index::{KeyIndex, Place};
use crate::ordering::{MergeError, MergeRules, OrderingRows, Weighed};
use crate::records::{Encoder, Keys, Records, Standing, is_set};

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

impl BaseOutcome {
    pub(crate) fn without(rows: usize, dropped: &[usize]) -> Self {
        if dropped.is_empty() {
            return Self::KeepAll;
        }
        let mut keep = BooleanBufferBuilder::new(rows);
        keep.append_n(rows, true);
        for row in dropped {
            keep.set_bit(*row, false);
        }
        Self::Keep(BooleanArray::new(keep.finish(), None))
    }
}

/// The records of one key, reduced to the one that stands.
#[derive(Clone, Copy)]
struct Entry {
    place: Place,
    /// The record is a delete.
    deleted: bool,
    /// A base row with the key was met.
    matched: bool,
    /// The base row won: the record is not given out.
    lost: bool,
}

/// Log records by key. Add oldest first, then stream the base rows, then take the winners.
pub struct KeyMap {
    rules: MergeRules,
    encoder: Arc<Encoder>,
    index: KeyIndex,
    entries: Vec<Entry>,
    /// Ordering values of each batch added, and their bytes.
    ordering: Vec<Option<OrderingRows>>,
    bytes: usize,
    counts: MergeCounts,
}

impl KeyMap {
    /// An empty map.
    ///
    /// # Errors
    /// An ordering field of a type without an order.
    pub fn new(rules: MergeRules) -> Result<Self, MergeError> {
        let encoder = Arc::new(Encoder::new(&rules)?);
        Ok(Self::with(rules, encoder))
    }

    fn with(rules: MergeRules, encoder: Arc<Encoder>) -> Self {
        Self {
            rules,
            encoder,
            index: KeyIndex::default(),
            entries: Vec::new(),
            ordering: Vec::new(),
            bytes: 0,
            counts: MergeCounts::default(),
        }
    }

    /// An empty map with this one's rules, which can take what stands in this one. Ordering values
    /// know the encoder that made them: a map of [`Self::new`] could not.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self::with(self.rules.clone(), Arc::clone(&self.encoder))
    }

    /// Number of different keys.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether no record was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the records that [`Self::add`] takes.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Approximate bytes in memory besides the caller's own record batches.
    pub fn memory(&self) -> usize {
        self.bytes + self.entries.capacity() * size_of::<Entry>() + self.index.memory()
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
        let records = self.encoder.rows(keys.into(), ordering, deleted.cloned())?;
        Ok(self.add(records))
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
        let records = self.encoder.deletes(keys.into(), ordering)?;
        self.add(records);
        Ok(())
    }

    /// Adds records, newer than all before. Returns their batch number.
    pub fn add(&mut self, records: Records) -> usize {
        let batch = self.ordering.len();
        let Self {
            index,
            entries,
            ordering,
            ..
        } = self;
        let deleted = records.deleted;
        self.bytes += records.ordering.as_ref().map_or(0, OrderingRows::size);
        ordering.push(records.ordering);
        index.add(records.keys, |row, at, is_new| {
            let new = Entry {
                place: Place::new(batch, row),
                deleted: is_set(deleted.as_ref(), row),
                matched: false,
                lost: false,
            };
            if is_new {
                entries.push(new);
            } else if weighed(ordering, &new).beats_log(&weighed(ordering, &entries[at])) {
                entries[at] = new;
            }
        });
        batch
    }

    /// Streams base rows past the map. Each key is merged with the first base row that has it; a
    /// delete by the rules of a writer with all of them.
    ///
    /// # Errors
    /// A null key in a base row; ordering columns that do not have the types of the rules.
    pub fn merge_base(
        &mut self,
        keys: impl Into<Keys>,
        ordering: &[ArrayRef],
    ) -> Result<BaseOutcome, MergeError> {
        let keys = keys.into();
        let mut hits = self.index.hits(&keys)?;
        let (entries, writes) = (&mut self.entries, self.rules.null_ordering_loses);
        hits.retain(|(_, at)| {
            let entry = &mut entries[*at];
            !std::mem::replace(&mut entry.matched, true) || (writes && entry.deleted)
        });
        if hits.is_empty() {
            return Ok(BaseOutcome::KeepAll);
        }
        let rows = keys.len();
        let base = self.encoder.rows(keys, ordering, None)?.ordering;
        let mut dropped = Vec::new();
        for (row, at) in hits {
            let log = weighed(&self.ordering, &self.entries[at]);
            let wins = log.beats_base(base.as_ref(), row, self.rules.null_ordering_loses);
            let entry = &mut self.entries[at];
            entry.lost = !wins;
            if wins {
                dropped.push(row);
                let count = if entry.deleted {
                    &mut self.counts.deleted
                } else {
                    &mut self.counts.updated
                };
                *count += 1;
            }
        }
        Ok(BaseOutcome::without(rows, &dropped))
    }

    /// Which of these keys the map has a record of.
    ///
    /// # Errors
    /// A null key.
    pub fn contains(&self, keys: &Keys) -> Result<BooleanBuffer, MergeError> {
        self.index.contains(keys)
    }

    /// The records that stand for their keys, batch by batch. The others could be left out without
    /// changing the result. To be called before any base row has passed.
    pub fn standing(&self) -> Vec<Standing> {
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); self.ordering.len()];
        let mut deleted: Vec<Vec<bool>> = vec![Vec::new(); self.ordering.len()];
        for entry in &self.entries {
            let (batch, row) = entry.place.pair();
            rows[batch].push(row);
            deleted[batch].push(entry.deleted);
        }
        let parts = rows.into_iter().zip(deleted).enumerate();
        parts
            .filter(|(_, (rows, _))| !rows.is_empty())
            .map(|(batch, (rows, deleted))| {
                let places: Vec<_> = rows.iter().map(|row| (batch, *row)).collect();
                Standing {
                    records: Records {
                        keys: self.index.batch(batch).take(&rows),
                        ordering: self.encoder.gather(&self.ordering, &places),
                        deleted: Some(deleted.into()),
                    },
                    rows,
                    batch,
                }
            })
            .collect()
    }

    /// For each batch, in the order added, which of its rows are to be given out. To be called
    /// when all base rows have passed. Also completes the counts.
    pub fn winners(&mut self) -> Vec<BooleanBuffer> {
        let wins = |entry: &Entry| !entry.deleted && !entry.lost;
        let new = self.entries.iter().filter(|e| wins(e) && !e.matched);
        self.counts.inserted += new.count() as u64;
        self.masks(wins)
    }

    /// For each batch, in the order added, which of its records stand for their keys, deletes too.
    pub(crate) fn stands(&self) -> Vec<BooleanBuffer> {
        self.masks(|_| true)
    }

    fn masks(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<BooleanBuffer> {
        let mut masks: Vec<BooleanBufferBuilder> = (0..self.ordering.len())
            .map(|batch| {
                let rows = self.index.batch(batch).len();
                let mut mask = BooleanBufferBuilder::new(rows);
                mask.append_n(rows, false);
                mask
            })
            .collect();
        for entry in self.entries.iter().filter(|entry| wanted(entry)) {
            let (batch, row) = entry.place.pair();
            masks[batch].set_bit(row, true);
        }
        masks.iter_mut().map(BooleanBufferBuilder::finish).collect()
    }

    /// What the merge did so far.
    pub fn counts(&self) -> MergeCounts {
        self.counts
    }
}

fn weighed<'a>(ordering: &'a [Option<OrderingRows>], entry: &Entry) -> Weighed<'a> {
    let (batch, row) = entry.place.pair();
    Weighed {
        ordering: ordering[batch].as_ref().map(|rows| (rows, row)),
        deleted: entry.deleted,
    }
}
