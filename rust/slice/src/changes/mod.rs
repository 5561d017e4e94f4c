//! What changed between two states of the same records: inserts, updates, deletes with their images.
//!
//! The before side goes into a hash table by key, the after side streams past it. Rows are paired by
//! key and place first, then by key alone, so that a record that moved to another partition is an
//! update. Which files make up a side is the caller's decision. Change logs are read in [`cdc`], JSON
//! text of images is made in [`json`].

mod cdc;
mod compare;
mod image;
mod json;
mod log_keys;
mod logged;
mod lookup;
mod side;

use std::collections::{HashSet, VecDeque};

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, take_record_batch};
use arrow::datatypes::SchemaRef;
use pyhudi_merge::{Found, Location, RowMatcher};

pub use cdc::{CdcRead, CdcReader};
pub use log_keys::LogKeys;

use crate::error::Result;
use compare::Comparisons;
use image::{Change, Images, gather};
use side::Side;

/// Batches, each of which may fail.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// How two states are compared.
pub struct ChangeSpec {
    /// The columns to compare, those of the images first.
    pub schema: SchemaRef,
    /// How many columns make up an image.
    pub images: usize,
    /// The stored key column, or the record key fields where meta fields are off.
    pub key_fields: Vec<String>,
    /// The column with the place of a row, within which its key is unique; none if there is one.
    pub place: Option<String>,
    /// Columns that have one value in all rows, as arrays of one row.
    pub constants: Vec<(String, ArrayRef)>,
    /// Only rows with these keys count.
    pub only: Option<RowMatcher>,
    /// Only rows of this bucket, of this number of buckets, count.
    pub bucket: Option<(u32, u32)>,
    /// Images as JSON text in place of structs.
    pub as_json: bool,
}

enum Stage {
    Before,
    After,
    Unclear,
    Left,
    Done,
}

/// The changes between two states. Reads nothing before the first batch is asked for.
pub struct Changes {
    spec: ChangeSpec,
    images: Images,
    before: Option<Batches>,
    after: Option<Batches>,
    stage: Stage,
    matcher: RowMatcher,
    /// The before side, by batch number of the matcher.
    older: Vec<Side>,
    /// Rows of the after side whose older row must be looked for among several.
    unclear: Vec<Side>,
    ready: VecDeque<RecordBatch>,
}

impl Changes {
    /// The changes from `before` to `after`; without one of them every row is a delete or an insert.
    ///
    /// # Errors
    /// More image columns than columns.
    pub fn new(before: Option<Batches>, after: Option<Batches>, spec: ChangeSpec) -> Result<Self> {
        Ok(Self {
            images: Images::new(&spec.schema, spec.images, spec.as_json)?,
            spec,
            before,
            after,
            stage: Stage::Before,
            matcher: RowMatcher::default(),
            older: Vec::new(),
            unclear: Vec::new(),
            ready: VecDeque::new(),
        })
    }

    /// Schema of the batches: op, key, before, after, changed.
    pub fn schema(&self) -> SchemaRef {
        self.images.schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            match self.stage {
                Stage::Before => self.read_before()?,
                Stage::After => self.read_after()?,
                Stage::Unclear => self.clear_up()?,
                Stage::Left => self.delete_left()?,
                Stage::Done => return Ok(None),
            }
        }
    }

    fn read_before(&mut self) -> Result<()> {
        let Some(batch) = self.before.as_mut().and_then(Iterator::next) else {
            self.before = None;
            self.stage = Stage::After;
            return Ok(());
        };
        let Some(side) = Side::of(&batch?, &self.spec)? else {
            return Ok(());
        };
        if self.after.is_none() {
            return self.push(&Change::delete(&side.keys, &side.rows));
        }
        self.matcher.add(side.keys.clone(), side.places.clone())?;
        self.older.push(side);
        Ok(())
    }

    fn read_after(&mut self) -> Result<()> {
        let Some(batch) = self.after.as_mut().and_then(Iterator::next) else {
            self.after = None;
            self.stage = Stage::Unclear;
            return Ok(());
        };
        let Some(side) = Side::of(&batch?, &self.spec)? else {
            return Ok(());
        };
        let mut pairs = Vec::new();
        let mut fresh = Vec::with_capacity(side.keys.len());
        let mut unclear = Vec::with_capacity(side.keys.len());
        for row in 0..side.keys.len() {
            let found = self.matcher.find(side.keys.value(row), side.place(row));
            if let Found::One(at) = found {
                pairs.push((self.matcher.take(at), row));
            }
            fresh.push(found == Found::Nothing);
            unclear.push(found == Found::Unclear);
        }
        self.updates(&side, &pairs)?;
        self.inserts(&side, fresh)?;
        if unclear.contains(&true) {
            self.unclear
                .push(side.filtered(&BooleanArray::from(unclear))?);
        }
        Ok(())
    }

    /// Rows that repeat a key, or whose key is elsewhere: equal rows pair first, then rows of one
    /// place, then any.
    fn clear_up(&mut self) -> Result<()> {
        self.stage = Stage::Left;
        let sides = std::mem::take(&mut self.unclear);
        let mut pairs: Vec<Vec<(Location, usize)>> = vec![Vec::new(); sides.len()];
        let mut open: Vec<(usize, &Side, usize)> = sides
            .iter()
            .enumerate()
            .flat_map(|(number, side)| (0..side.keys.len()).map(move |row| (number, side, row)))
            .collect();
        for round in [Round::Equal, Round::Here, Round::Anywhere] {
            let mut comparisons = Comparisons::default();
            let mut left = Vec::new();
            for (number, side, row) in open {
                let found = self.pick((number, side), row, round, &mut comparisons)?;
                match found.zip(pairs.get_mut(number)) {
                    Some((at, mine)) => mine.push((self.matcher.take(at), row)),
                    None => left.push((number, side, row)),
                }
            }
            open = left;
        }
        for (number, (side, pairs)) in sides.iter().zip(&pairs).enumerate() {
            self.updates(side, pairs)?;
            let open = open.iter().filter(|(of, ..)| *of == number);
            let fresh: HashSet<usize> = open.map(|(.., row)| *row).collect();
            let fresh = (0..side.keys.len()).map(|row| fresh.contains(&row));
            self.inserts(side, fresh.collect())?;
        }
        Ok(())
    }

    fn pick(
        &self,
        side: (usize, &Side),
        row: usize,
        round: Round,
        comparisons: &mut Comparisons,
    ) -> Result<Option<u32>> {
        let (key, place) = (side.1.keys.value(row), side.1.place(row));
        let place = (round != Round::Anywhere).then_some(place);
        for at in self.matcher.free(key, place) {
            let (batch, old_row) = self.matcher.location(at);
            let Some(older) = self.older.get(batch) else {
                continue;
            };
            if round != Round::Equal || comparisons.equal(side, (batch, older), row, old_row)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn updates(&mut self, side: &Side, pairs: &[(Location, usize)]) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        let rows = UInt32Array::from_iter_values(pairs.iter().map(|(_, row)| *row as u32));
        let after = take_record_batch(&side.rows, &rows)?;
        let locations: Vec<Location> = pairs.iter().map(|(location, _)| *location).collect();
        let older: Vec<&RecordBatch> = self.older.iter().map(|side| &side.rows).collect();
        let before = gather(&older, &locations)?;
        let keys = arrow::compute::take(&side.keys, &rows, None)?;
        if let Some(change) = Change::update(&keys, &before, &after)? {
            self.push(&change)?;
        }
        Ok(())
    }

    fn inserts(&mut self, side: &Side, fresh: Vec<bool>) -> Result<()> {
        if !fresh.contains(&true) {
            return Ok(());
        }
        let side = side.filtered(&BooleanArray::from(fresh))?;
        self.push(&Change::insert(&side.keys, &side.rows))
    }

    fn delete_left(&mut self) -> Result<()> {
        self.stage = Stage::Done;
        let older = std::mem::take(&mut self.older);
        for (side, mask) in older.iter().zip(self.matcher.left()) {
            if mask.true_count() > 0 {
                let rows = filter_record_batch(&side.rows, &mask)?;
                let keys = arrow::compute::filter(&side.keys, &mask)?;
                self.push(&Change::delete_of(keys, rows))?;
            }
        }
        Ok(())
    }

    fn push(&mut self, change: &Change) -> Result<()> {
        self.ready.push_back(self.images.batch(change)?);
        Ok(())
    }
}

impl Iterator for Changes {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Equal,
    Here,
    Anywhere,
}

#[cfg(test)]
mod tests;
