//! Sorted runs in local files, and their merge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryArray, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::{BATCH_ROWS, SortOptions};
use crate::error::{Result, SliceError};
use crate::local_rows::{LocalReader, LocalRows};

/// Rows of a batch in a file: while runs are merged, one batch of each is in memory.
pub(super) const RUN_ROWS: usize = 4096;
const KEY: &str = "__key";

/// A file of rows with keys that is being written.
pub(super) struct RunFile {
    schema: SchemaRef,
    rows: LocalRows,
}

impl RunFile {
    /// For rows such as those of a batch.
    pub(super) fn create(options: &SortOptions, like: &RecordBatch) -> Result<Self> {
        let fields = like.schema_ref().fields().iter();
        let mut fields: Vec<_> = fields.map(Arc::clone).collect();
        fields.push(Arc::new(Field::new(KEY, DataType::Binary, false)));
        let schema = Arc::new(Schema::new(fields));
        Ok(Self {
            rows: LocalRows::create(options.folder.as_deref(), &schema)?,
            schema,
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch, keys: BinaryArray) -> Result<()> {
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(keys));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        self.rows.write(&batch)
    }
}

/// The rows of a file, batch by batch, each with its keys.
pub(super) struct RunReader(Option<LocalReader>);

/// The rows of a file that was written; empty if there is no file.
pub(super) fn read(file: Option<RunFile>) -> Result<RunReader> {
    let reader = file.map(|file| file.rows.into_reader()).transpose()?;
    Ok(RunReader(reader))
}

impl Iterator for RunReader {
    type Item = Result<(RecordBatch, BinaryArray)>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.0.as_mut()?.next()?;
        Some(batch.and_then(|batch| without_key(&batch)))
    }
}

fn without_key(batch: &RecordBatch) -> Result<(RecordBatch, BinaryArray)> {
    let last = batch.num_columns().saturating_sub(1);
    let rows = batch.project(&(0..last).collect::<Vec<_>>())?;
    let keys = batch
        .columns()
        .last()
        .and_then(|column| column.as_binary_opt::<i32>())
        .ok_or_else(|| SliceError::Spill("a run without keys".to_owned()))?;
    Ok((rows, keys.clone()))
}

/// One run that is being merged, at a row of a batch.
struct Cursor {
    run: RunReader,
    keys: BinaryArray,
    row: usize,
    /// Number of the batch among those that rows are taken from.
    part: usize,
}

impl Cursor {
    fn key(&self) -> &[u8] {
        self.keys.value(self.row)
    }
}

/// Gives the rows of all runs in the order of their keys, those of equal keys run by run.
pub(super) struct Merge {
    cursors: Vec<Option<Cursor>>,
    /// The next key of each run, the least first.
    next: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    /// Batches that rows of the next one come from.
    parts: Vec<RecordBatch>,
}

impl Merge {
    pub(super) fn new(runs: Vec<RunReader>) -> Result<Self> {
        let mut merge = Self {
            cursors: Vec::new(),
            next: BinaryHeap::new(),
            parts: Vec::new(),
        };
        for (number, run) in runs.into_iter().enumerate() {
            let cursor = merge.opened(run)?;
            if let Some(cursor) = &cursor {
                let key = cursor.key().to_vec();
                merge.next.push(Reverse((key, number)));
            }
            merge.cursors.push(cursor);
        }
        Ok(merge)
    }

    /// A cursor at the first row of a run's next batch; None at its end.
    fn opened(&mut self, mut run: RunReader) -> Result<Option<Cursor>> {
        loop {
            let Some(batch) = run.next() else {
                return Ok(None);
            };
            let (rows, keys) = batch?;
            if rows.num_rows() > 0 {
                let part = self.parts.len();
                self.parts.push(rows);
                return Ok(Some(Cursor {
                    run,
                    keys,
                    row: 0,
                    part,
                }));
            }
        }
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut places = Vec::new();
        while places.len() < BATCH_ROWS {
            let Some(Reverse((_, number))) = self.next.pop() else {
                break;
            };
            self.take_from(number, &mut places)?;
        }
        if places.is_empty() {
            return Ok(None);
        }
        let parts: Vec<&RecordBatch> = self.parts.iter().collect();
        let batch = interleave_record_batch(&parts, &places)?;
        self.forget();
        Ok(Some(batch))
    }

    /// Rows of a run as long as no other run has a smaller key.
    fn take_from(&mut self, number: usize, places: &mut Vec<(usize, usize)>) -> Result<()> {
        let Some(mut cursor) = self.cursors.get_mut(number).and_then(Option::take) else {
            return Ok(());
        };
        loop {
            places.push((cursor.part, cursor.row));
            cursor.row += 1;
            if cursor.row == cursor.keys.len() {
                match self.opened(cursor.run)? {
                    Some(opened) => cursor = opened,
                    None => return Ok(()),
                }
            }
            let other = self.next.peek();
            let passed = other
                .is_some_and(|Reverse((key, run))| (cursor.key(), number) > (key.as_slice(), *run));
            if passed || places.len() >= BATCH_ROWS {
                break;
            }
        }
        self.next.push(Reverse((cursor.key().to_vec(), number)));
        if let Some(place) = self.cursors.get_mut(number) {
            *place = Some(cursor);
        }
        Ok(())
    }

    /// Lets go of batches that were read to their end.
    fn forget(&mut self) {
        let mut kept = Vec::new();
        for cursor in self.cursors.iter_mut().flatten() {
            if let Some(part) = self.parts.get(cursor.part) {
                cursor.part = kept.len();
                kept.push(part.clone());
            }
        }
        self.parts = kept;
    }
}

impl Iterator for Merge {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}
