//! Records of one key merged field by field: partial updates, and mergers that are not built in.
//!
//! As in the key map one record stands for each key, but here it can be made of several: whenever
//! two live records meet, a new row is made of them, a batch of such rows at a time.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{interleave_record_batch, take_record_batch};
use arrow::datatypes::{Schema, SchemaRef};

use crate::column_sets::{ColumnSets, Sets, Written};
use crate::field_merge::{FieldRules, Pair, loose};
use crate::key_index::{KeyIndex, Place};
use crate::key_map::{BaseOutcome, MergeCounts};
use crate::ordering::{MergeError, OrderingRows, Weighed};
use crate::records::{Encoder, Keys, Records, is_set};

/// A record of each key, as [`FieldMap::standing`] gives them.
pub struct StandingRows {
    /// Keys, ordering values and deletes.
    pub records: Records,
    /// The rows, arbitrary for deletes.
    pub rows: RecordBatch,
    /// The columns that each was written with.
    pub written: Written,
}

/// What stands for a key.
struct Entry {
    /// None for a delete.
    data: Option<Place>,
    ordering: Place,
    matched: bool,
    /// A delete came before the record, which replaces a base row as it is.
    starts_over: bool,
}

/// Log records by key, merged field by field. Add oldest first, then stream the base rows, then take
/// the winners.
pub struct FieldMap {
    rules: FieldRules,
    encoder: Arc<Encoder>,
    schema: SchemaRef,
    index: KeyIndex,
    entries: Vec<Entry>,
    ordering: Vec<Option<OrderingRows>>,
    /// Rows as added and as made by merging.
    rows: Vec<RecordBatch>,
    written: Vec<Sets>,
    sets: ColumnSets,
    /// Bytes of rows and ordering values.
    bytes: usize,
    counts: MergeCounts,
}

/// Two live records of one key: the entry, the newer row, and whether the newer one wins.
struct Meeting {
    entry: usize,
    row: usize,
    newer_wins: bool,
}

impl FieldMap {
    /// An empty map of rows with these columns.
    ///
    /// # Errors
    /// An ordering field of a type without an order.
    pub fn new(rules: FieldRules, schema: &SchemaRef) -> Result<Self, MergeError> {
        let encoder = Arc::new(Encoder::new(&rules.order)?);
        Ok(Self::with(rules, encoder, nullable(schema)))
    }

    fn with(rules: FieldRules, encoder: Arc<Encoder>, schema: SchemaRef) -> Self {
        Self {
            sets: ColumnSets::new(schema.fields().len()),
            rules,
            encoder,
            schema,
            index: KeyIndex::default(),
            entries: Vec::new(),
            ordering: Vec::new(),
            rows: Vec::new(),
            written: Vec::new(),
            bytes: 0,
            counts: MergeCounts::default(),
        }
    }

    /// As [`crate::KeyMap::emptied`].
    #[must_use]
    pub fn emptied(&self) -> Self {
        let schema = Arc::clone(&self.schema);
        Self::with(self.rules.clone(), Arc::clone(&self.encoder), schema)
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

    /// Bytes held, roughly.
    pub fn memory(&self) -> usize {
        self.bytes + self.entries.capacity() * size_of::<Entry>() + self.index.memory()
    }

    /// Adds records, newer than all before. `rows` has their values, none for a delete block.
    ///
    /// # Errors
    /// A merger that fails.
    pub fn add(
        &mut self,
        records: Records,
        rows: Option<RecordBatch>,
        written: Written,
    ) -> Result<(), MergeError> {
        let batch = self.ordering.len();
        let Records {
            keys,
            ordering,
            deleted,
        } = records;
        self.bytes += ordering.as_ref().map_or(0, OrderingRows::size);
        self.ordering.push(ordering);
        let data = rows
            .map(|rows| self.push_rows(&rows, written))
            .transpose()?;
        let is_deleted = |row: usize| data.is_none() || is_set(deleted.as_ref(), row);
        let mut seen = Vec::with_capacity(keys.len());
        self.index
            .add(keys, |row, entry, is_new| seen.push((row, entry, is_new)));
        let mut meetings: Vec<Meeting> = Vec::new();
        let mut waiting = vec![false; self.index.len()];
        for (row, entry, is_new) in seen {
            let place = data
                .filter(|_| !is_deleted(row))
                .map(|data| Place::new(data, row));
            let ordering = Place::new(batch, row);
            if is_new {
                self.entries.push(Entry {
                    data: place,
                    ordering,
                    matched: false,
                    starts_over: self.rules.starts_over && place.is_none(),
                });
                continue;
            }
            if waiting[entry] {
                // The same key twice in one batch: one after the other.
                for meeting in &meetings {
                    waiting[meeting.entry] = false;
                }
                self.meet(&std::mem::take(&mut meetings), batch, data)?;
            }
            let newer_wins = self.newer_wins(entry, ordering, place.is_none());
            let old = &mut self.entries[entry];
            if let (Some(_), Some(_)) = (old.data, place) {
                waiting[entry] = true;
                meetings.push(Meeting {
                    entry,
                    row,
                    newer_wins,
                });
            } else if newer_wins {
                old.data = place;
                old.ordering = ordering;
                old.starts_over |= self.rules.starts_over && place.is_none();
            }
        }
        self.meet(&meetings, batch, data)
    }

    fn push_rows(&mut self, rows: &RecordBatch, written: Written) -> Result<usize, MergeError> {
        let sets = self.sets.numbers(written);
        Ok(self.keep(loose(rows, &self.schema)?, sets))
    }

    /// The number of the batch.
    fn keep(&mut self, rows: RecordBatch, sets: Sets) -> usize {
        self.bytes += rows.get_array_memory_size();
        self.rows.push(rows);
        self.written.push(sets);
        self.rows.len() - 1
    }

    fn newer_wins(&self, entry: usize, newer: Place, deleted: bool) -> bool {
        let old = &self.entries[entry];
        if self.rules.deletes_always_win && (deleted || old.data.is_none()) {
            return true;
        }
        let newer = self.weighed(newer, deleted);
        newer.beats_log(&self.weighed(old.ordering, old.data.is_none()))
    }

    fn weighed(&self, place: Place, deleted: bool) -> Weighed<'_> {
        let (batch, row) = place.pair();
        Weighed {
            ordering: self.ordering[batch].as_ref().map(|rows| (rows, row)),
            deleted,
        }
    }

    /// Makes one row of each two that meet.
    fn meet(
        &mut self,
        meetings: &[Meeting],
        batch: usize,
        data: Option<usize>,
    ) -> Result<(), MergeError> {
        let Some(data) = data.filter(|_| !meetings.is_empty()) else {
            return Ok(());
        };
        let older: Vec<Place> = meetings
            .iter()
            .filter_map(|meeting| self.entries[meeting.entry].data)
            .collect();
        let newer: Vec<Place> = meetings
            .iter()
            .map(|meeting| Place::new(data, meeting.row))
            .collect();
        let mut pair = Pair {
            older: self.gather(&older)?,
            newer: self.gather(&newer)?,
            older_sets: self.sets_of(&older),
            newer_sets: self.sets_of(&newer),
            newer_wins: meetings.iter().map(|m| Some(m.newer_wins)).collect(),
            whole: None,
        };
        if let Some(marks) = self.rules.marks_deletes {
            pair.settle_marked(marks)?;
        }
        let key = |row: usize| self.index.describe(meetings[row].entry);
        let (merged, deleted) = pair.merged(&self.rules, &self.sets, &self.schema, key)?;
        let sets: Vec<u32> = pair
            .older_sets
            .iter()
            .zip(&pair.newer_sets)
            .map(|(older, newer)| self.sets.union(*older, *newer))
            .collect();
        let number = self.keep(merged, Sets::Each(sets));
        for (row, meeting) in meetings.iter().enumerate() {
            let gone = is_set(deleted.as_ref(), row);
            let entry = &mut self.entries[meeting.entry];
            entry.data = (!gone).then(|| Place::new(number, row));
            if pair.newer_wins.value(row) {
                entry.ordering = Place::new(batch, meeting.row);
            }
        }
        Ok(())
    }

    fn sets_of(&self, places: &[Place]) -> Vec<u32> {
        let set = |place: &Place| self.written[place.batch as usize].of(place.row as usize);
        places.iter().map(set).collect()
    }

    fn gather(&self, places: &[Place]) -> Result<RecordBatch, MergeError> {
        if places.is_empty() {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let batches: Vec<&RecordBatch> = self.rows.iter().collect();
        let at: Vec<(usize, usize)> = places.iter().map(|place| place.pair()).collect();
        Ok(interleave_record_batch(&batches, &at)?)
    }

    /// The records that stand for their keys, `batch_rows` at a time: before a record that follows a
    /// delete, the delete, too. To be called before any base row has passed.
    ///
    /// # Errors
    /// Rows that do not fit into one batch.
    pub fn standing(&self, batch_rows: usize) -> Result<Vec<StandingRows>, MergeError> {
        let Some(keys) = self.index.keys() else {
            return Ok(Vec::new());
        };
        let all: Vec<usize> = (0..self.entries.len()).collect();
        let after_delete = |entry: &usize| {
            let entry = &self.entries[*entry];
            entry.starts_over && entry.data.is_some()
        };
        let deletes: Vec<usize> = all.iter().copied().filter(after_delete).collect();
        let (all, deletes) = (
            all.chunks(batch_rows.max(1)),
            deletes.chunks(batch_rows.max(1)),
        );
        deletes
            .map(|chunk| (chunk, true))
            .chain(all.map(|chunk| (chunk, false)))
            .map(|(chunk, as_deletes)| self.standing_rows(&keys, chunk, as_deletes))
            .collect()
    }

    fn standing_rows(
        &self,
        keys: &Keys,
        chunk: &[usize],
        as_deletes: bool,
    ) -> Result<StandingRows, MergeError> {
        let ordering: Vec<_> = chunk
            .iter()
            .map(|entry| self.entries[*entry].ordering.pair())
            .collect();
        let data = |entry: &usize| self.entries[*entry].data.filter(|_| !as_deletes);
        let deleted: Vec<bool> = chunk.iter().map(|entry| data(entry).is_none()).collect();
        let live = chunk.iter().filter_map(data);
        let rows = self.gather(&live.collect::<Vec<_>>())?;
        let mut next = 0;
        let at: UInt32Array = deleted
            .iter()
            .map(|deleted| {
                (!deleted).then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        let set = |entry: &usize| {
            let set = data(entry).map_or(ColumnSets::ALL, |place| {
                self.written[place.batch as usize].of(place.row as usize)
            });
            self.sets.get(set).clone()
        };
        Ok(StandingRows {
            records: Records {
                keys: keys.take(chunk),
                ordering: self.encoder.gather(&self.ordering, &ordering),
                deleted: Some(deleted.into()),
            },
            rows: take_record_batch(&rows, &at)?,
            written: Written::Each(chunk.iter().map(set).collect()),
        })
    }

    /// Which of these keys the map has a record of.
    ///
    /// # Errors
    /// A null key.
    pub fn contains(&self, keys: &Keys) -> Result<BooleanBuffer, MergeError> {
        self.index.contains(keys)
    }

    /// Streams base rows past the map: which of them stay as they are, and the rows made of others.
    ///
    /// # Errors
    /// A null key in a base row; ordering columns that do not have the types of the rules; a merger
    /// that fails.
    pub fn merge_base(
        &mut self,
        keys: impl Into<Keys>,
        ordering: &[ArrayRef],
        rows: &RecordBatch,
    ) -> Result<(BaseOutcome, Option<RecordBatch>), MergeError> {
        let keys = keys.into();
        let count = keys.len();
        let mut hits = self.index.hits(&keys)?;
        let (entries, writes) = (&mut self.entries, self.rules.order.null_ordering_loses);
        hits.retain(|(_, at)| {
            let entry = &mut entries[*at];
            !std::mem::replace(&mut entry.matched, true) || (writes && entry.data.is_none())
        });
        if hits.is_empty() {
            return Ok((BaseOutcome::KeepAll, None));
        }
        let base = self.encoder.rows(keys, ordering, None)?.ordering;
        let mut dropped = Vec::new();
        let mut meetings = Vec::new();
        for (row, entry) in hits {
            let newer_wins = self.beats_base(entry, base.as_ref(), row);
            if self.entries[entry].data.is_some() {
                dropped.push(row);
                meetings.push(Meeting {
                    entry,
                    row,
                    newer_wins,
                });
            } else if newer_wins {
                dropped.push(row);
                self.counts.deleted += 1;
            }
        }
        let made = self.meet_base(&meetings, rows)?;
        Ok((BaseOutcome::without(count, &dropped), made))
    }

    fn beats_base(&self, entry: usize, base: Option<&OrderingRows>, row: usize) -> bool {
        let log = &self.entries[entry];
        let deleted = log.data.is_none();
        log.starts_over
            || (deleted && self.rules.deletes_always_win)
            || self.weighed(log.ordering, deleted).beats_base(
                base,
                row,
                self.rules.order.null_ordering_loses,
            )
    }

    fn meet_base(
        &mut self,
        meetings: &[Meeting],
        rows: &RecordBatch,
    ) -> Result<Option<RecordBatch>, MergeError> {
        if meetings.is_empty() {
            return Ok(None);
        }
        let at: UInt32Array = meetings.iter().map(|m| Some(m.row as u32)).collect();
        let newer: Vec<Place> = meetings
            .iter()
            .filter_map(|meeting| self.entries[meeting.entry].data)
            .collect();
        let pair = Pair {
            older: loose(&take_record_batch(rows, &at)?, &self.schema)?,
            newer: self.gather(&newer)?,
            older_sets: vec![ColumnSets::ALL; meetings.len()],
            newer_sets: self.sets_of(&newer),
            newer_wins: meetings.iter().map(|m| Some(m.newer_wins)).collect(),
            whole: self.rules.starts_over.then(|| {
                let over = |m: &Meeting| Some(self.entries[m.entry].starts_over);
                meetings.iter().map(over).collect()
            }),
        };
        let key = |row: usize| self.index.describe(meetings[row].entry);
        let (merged, deleted) = pair.merged(&self.rules, &self.sets, &self.schema, key)?;
        let gone = deleted.as_ref().map_or(0, BooleanArray::true_count) as u64;
        self.counts.deleted += gone;
        self.counts.updated += meetings.len() as u64 - gone;
        Ok(Some(match deleted.filter(|d| d.true_count() > 0) {
            Some(deleted) => {
                let stays: BooleanArray =
                    deleted.iter().map(|d| Some(!d.unwrap_or(false))).collect();
                arrow::compute::filter_record_batch(&merged, &stays)?
            }
            None => merged,
        }))
    }

    /// The rows that no base row met, `batch_rows` at a time. To be called when all base rows have
    /// passed. Also completes the counts.
    ///
    /// # Errors
    /// Rows that do not fit into one batch.
    pub fn winners(&mut self, batch_rows: usize) -> Result<Vec<RecordBatch>, MergeError> {
        let places: Vec<Place> = self
            .entries
            .iter()
            .filter(|entry| !entry.matched)
            .filter_map(|entry| entry.data)
            .collect();
        self.counts.inserted += places.len() as u64;
        places
            .chunks(batch_rows.max(1))
            .map(|places| self.gather(places))
            .collect()
    }

    /// What the merge did so far.
    pub fn counts(&self) -> MergeCounts {
        self.counts
    }
}

fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
