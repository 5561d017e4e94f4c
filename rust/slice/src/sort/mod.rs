//! Rows of several streams in one order: along columns, or along a curve through them.
//!
//! What does not fit in memory goes to local files as sorted runs, which are merged. A curve needs to
//! know the values of all rows before the first key, so rows that do not fit in memory spill first.
//! Files have no name and vanish with the process.

mod curve;
mod keys;
mod runs;

use std::path::PathBuf;

use arrow::array::{Array, ArrayRef, BinaryArray, RecordBatch};
use arrow::compute::interleave_record_batch;

use crate::error::Result;
use keys::{Keys, Sample};
use runs::{Merge, RunFile, RunReader};

/// Rows of a batch that is given out.
const BATCH_ROWS: usize = 8192;

/// Batches that come in.
pub type Input = Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;

/// How rows stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// By the first column, then by the second.
    Linear,
    /// Bits of the columns in turn.
    ZOrder,
    /// Along the Hilbert curve.
    Hilbert,
}

/// By what rows are sorted.
#[derive(Debug, Clone)]
pub struct SortOptions {
    /// Columns; none leaves the rows as they come.
    pub columns: Vec<String>,
    /// How they count. One column is always linear.
    pub layout: Layout,
    /// Bytes of rows that are in memory.
    pub memory_limit: usize,
    /// A local folder for the rest; none for the system's own.
    pub folder: Option<PathBuf>,
}

/// All rows of the inputs, sorted, equal ones as they came.
pub struct SortedRows {
    inputs: Option<Vec<Input>>,
    options: SortOptions,
    out: Input,
}

impl SortedRows {
    /// Nothing is read before the first batch is asked for.
    #[must_use]
    pub fn new(inputs: Vec<Input>, options: SortOptions) -> Self {
        Self {
            inputs: Some(inputs),
            options,
            out: Box::new(std::iter::empty()),
        }
    }

    fn start(&self, inputs: Vec<Input>) -> Result<Input> {
        let options = &self.options;
        let rows = inputs.into_iter().flatten();
        if options.columns.is_empty() {
            return Ok(Box::new(rows));
        }
        if options.columns.len() == 1 || options.layout == Layout::Linear {
            return sorted(rows, None, options);
        }
        let (mut sample, mut aside) = (Sample::new(options), Aside::new(options));
        for batch in rows {
            let batch = batch?;
            sample.add(&batch)?;
            aside.add(batch)?;
        }
        match sample.keys()? {
            Some(keys) => sorted(aside.read()?, Some(keys), options),
            None => Ok(Box::new(std::iter::empty())),
        }
    }
}

impl Iterator for SortedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(inputs) = self.inputs.take() {
            match self.start(inputs) {
                Ok(out) => self.out = out,
                Err(error) => return Some(Err(error)),
            }
        }
        self.out.next()
    }
}

fn sorted(
    rows: impl Iterator<Item = Result<RecordBatch>>,
    mut keys: Option<Keys>,
    options: &SortOptions,
) -> Result<Input> {
    let (mut held, mut runs) = (Held::default(), Vec::new());
    for batch in rows {
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        let keys = match &mut keys {
            Some(keys) => keys,
            none => none.insert(Keys::linear(&options.columns, &batch)?),
        };
        held.add(keys.of(&batch)?, batch);
        if held.bytes > options.memory_limit {
            runs.push(std::mem::take(&mut held).into_run(options)?);
        }
    }
    if runs.is_empty() {
        return Ok(Box::new(InOrder::of(held)));
    }
    if !held.batches.is_empty() {
        runs.push(held.into_run(options)?);
    }
    Ok(Box::new(Merge::new(runs)?))
}

/// Rows in memory with their keys.
#[derive(Default)]
struct Held {
    batches: Vec<RecordBatch>,
    keys: Vec<BinaryArray>,
    bytes: usize,
}

impl Held {
    fn add(&mut self, keys: BinaryArray, batch: RecordBatch) {
        self.bytes += bytes_of(&batch) + keys.get_array_memory_size();
        self.batches.push(batch);
        self.keys.push(keys);
    }

    fn into_run(self, options: &SortOptions) -> Result<RunReader> {
        let mut run: Option<RunFile> = None;
        let mut rows = InOrder::of(self);
        while let Some((batch, keys)) = rows.next_keyed(runs::RUN_ROWS)? {
            let open = match run.take() {
                Some(open) => open,
                None => RunFile::create(options, &batch)?,
            };
            run.insert(open).write(&batch, keys)?;
        }
        runs::read(run)
    }
}

/// A row of what is held. The first bytes of its key tell most rows apart.
struct Place {
    prefix: u64,
    batch: u32,
    row: u32,
}

/// Gives rows that are held in the order of their keys.
struct InOrder {
    held: Held,
    order: std::vec::IntoIter<Place>,
}

impl InOrder {
    fn of(held: Held) -> Self {
        let mut order = Vec::new();
        for (batch, keys) in held.keys.iter().enumerate() {
            for row in 0..keys.len() {
                order.push(Place {
                    prefix: prefix(keys.value(row)),
                    batch: batch as u32,
                    row: row as u32,
                });
            }
        }
        let key = |place: &Place| {
            let keys = held.keys.get(place.batch as usize);
            keys.map(|keys| keys.value(place.row as usize))
        };
        order.sort_unstable_by(|one, other| {
            one.prefix
                .cmp(&other.prefix)
                .then_with(|| key(one).cmp(&key(other)))
                .then_with(|| (one.batch, one.row).cmp(&(other.batch, other.row)))
        });
        Self {
            order: order.into_iter(),
            held,
        }
    }

    fn places(&mut self, rows: usize) -> Vec<(usize, usize)> {
        let places = self.order.by_ref().take(rows);
        places
            .map(|place| (place.batch as usize, place.row as usize))
            .collect()
    }

    fn next_keyed(&mut self, rows: usize) -> Result<Option<(RecordBatch, BinaryArray)>> {
        let places = self.places(rows);
        if places.is_empty() {
            return Ok(None);
        }
        let keys = places
            .iter()
            .filter_map(|(batch, row)| Some(self.held.keys.get(*batch)?.value(*row)));
        let keys = BinaryArray::from_iter_values(keys);
        Ok(Some((self.batch(&places)?, keys)))
    }

    fn batch(&self, places: &[(usize, usize)]) -> Result<RecordBatch> {
        let batches: Vec<&RecordBatch> = self.held.batches.iter().collect();
        Ok(interleave_record_batch(&batches, places)?)
    }
}

impl Iterator for InOrder {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let places = self.places(BATCH_ROWS);
        (!places.is_empty()).then(|| self.batch(&places))
    }
}

/// Of its rows alone: batches that were cut from one share what they hold.
fn bytes_of(batch: &RecordBatch) -> usize {
    let of = |column: &ArrayRef| {
        let all = column.get_array_memory_size();
        column.to_data().get_slice_memory_size().unwrap_or(all)
    };
    batch.columns().iter().map(of).sum()
}

fn prefix(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(key) {
        *to = *from;
    }
    u64::from_be_bytes(bytes)
}

/// Rows in the order they came, in memory up to the limit and then in a local file.
struct Aside<'a> {
    options: &'a SortOptions,
    held: Vec<RecordBatch>,
    bytes: usize,
    file: Option<RunFile>,
}

impl<'a> Aside<'a> {
    fn new(options: &'a SortOptions) -> Self {
        Self {
            options,
            held: Vec::new(),
            bytes: 0,
            file: None,
        }
    }

    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        self.bytes += bytes_of(&batch);
        self.held.push(batch);
        if self.bytes > self.options.memory_limit {
            self.bytes = 0;
            for batch in self.held.drain(..) {
                let open = match self.file.take() {
                    Some(open) => open,
                    None => RunFile::create(self.options, &batch)?,
                };
                let none = BinaryArray::from_iter_values(std::iter::repeat_n([], batch.num_rows()));
                self.file.insert(open).write(&batch, none)?;
            }
        }
        Ok(())
    }

    fn read(self) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        let rows = runs::read(self.file)?.map(|keyed| Ok(keyed?.0));
        Ok(rows.chain(self.held.into_iter().map(Ok)))
    }
}

#[cfg(test)]
mod tests;
