//! Records beyond the memory limit: both sides of a slice on local disk, split by key hash.
//!
//! All records of a key are in the same part, so parts are merged one after the other.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, RecordBatch, RecordBatchOptions,
    StructArray, UInt32Array, UInt64Array, new_null_array,
};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, UInt64Type};
use foldhash::fast::FixedState;
use pyhudi_merge::{Encoder, Keys, Records, Written};

use crate::error::{Result, SliceError};
use crate::local_rows::{LocalReader, LocalRows};
use crate::log_map::Part;

/// How often a part that is still too large is split again. Keys that share their hashes that often
/// cannot be split any further.
pub(crate) const MAX_DEPTH: u32 = 3;

/// Where parts are kept, and how large the merge in memory may get.
#[derive(Debug, Clone)]
pub struct SpillOptions {
    /// Bytes for the records of one slice that are in memory.
    pub memory_limit: usize,
    /// A local folder; none for the system's own.
    pub folder: Option<PathBuf>,
}

/// Parts that are being written.
pub(crate) struct Spill {
    hasher: FixedState,
    rows: SchemaRef,
    log: PartFiles,
    base: PartFiles,
}

impl Spill {
    /// `rows`: columns of the log side's rows. `base`: columns of the base side.
    pub(crate) fn new(
        options: &SpillOptions,
        parts: usize,
        depth: u32,
        rows: &SchemaRef,
        base: &SchemaRef,
    ) -> Self {
        Self {
            hasher: FixedState::with_seed(u64::from(depth) + 1),
            log: PartFiles::new(options, parts, record_schema(rows)),
            base: PartFiles::new(options, parts, nullable(base)),
            rows: nullable(rows),
        }
    }

    pub(crate) fn add_log(&mut self, part: Part) -> Result<()> {
        let split = self.split(&part.records.keys);
        let batch = record_batch(part, &self.rows)?;
        self.log.write(&batch, &split)
    }

    pub(crate) fn add_base(&mut self, keys: &Keys, batch: &RecordBatch) -> Result<()> {
        let split = self.split(keys);
        self.base.write(batch, &split)
    }

    /// The rows of each part.
    fn split(&self, keys: &Keys) -> Vec<Vec<u32>> {
        let parts = self.log.files.len();
        let mut split = vec![Vec::new(); parts];
        for row in 0..keys.len() {
            let hash = keys.hash(&self.hasher, row) >> 32;
            if let Some(part) = split.get_mut(hash as usize % parts) {
                part.push(row as u32);
            }
        }
        split
    }

    /// Log and base side of each part that has rows, to be read.
    pub(crate) fn finish(self) -> Result<Vec<(SpilledPart, SpilledPart)>> {
        let log = self.log.files.into_iter();
        let sides = log.zip(self.base.files);
        sides
            .filter(|(log, base)| log.is_some() || base.is_some())
            .map(|(log, base)| Ok((SpilledPart::of(log)?, SpilledPart::of(base)?)))
            .collect()
    }
}

/// One side of all parts. A file is there once a row goes to it.
struct PartFiles {
    options: SpillOptions,
    schema: SchemaRef,
    files: Vec<Option<LocalRows>>,
}

impl PartFiles {
    fn new(options: &SpillOptions, parts: usize, schema: SchemaRef) -> Self {
        Self {
            options: options.clone(),
            schema,
            files: (0..parts).map(|_| None).collect(),
        }
    }

    fn write(&mut self, batch: &RecordBatch, split: &[Vec<u32>]) -> Result<()> {
        for (file, rows) in self.files.iter_mut().zip(split) {
            if rows.is_empty() {
                continue;
            }
            let rows = take_record_batch(batch, &UInt32Array::from(rows.clone()))?;
            let rows = RecordBatch::try_new(Arc::clone(&self.schema), rows.columns().to_vec())?;
            let open = match file.take() {
                Some(open) => open,
                None => LocalRows::create(self.options.folder.as_deref(), &self.schema)?,
            };
            file.insert(open).write(&rows)?;
        }
        Ok(())
    }
}

/// One side of a part, batch by batch.
pub(crate) struct SpilledPart(Option<LocalReader>);

impl SpilledPart {
    fn of(file: Option<LocalRows>) -> Result<Self> {
        Ok(Self(file.map(LocalRows::into_reader).transpose()?))
    }
}

impl Iterator for SpilledPart {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.as_mut()?.next()
    }
}

fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Columns of a log record on disk: key, ordering value and its marks, delete, columns it was
/// written with, row.
fn record_schema(rows: &SchemaRef) -> SchemaRef {
    let rows = DataType::Struct(nullable(rows).fields().clone());
    Arc::new(Schema::new(vec![
        Field::new("text", DataType::Utf8, true),
        Field::new("position", DataType::UInt64, true),
        Field::new("ordering", DataType::Binary, true),
        Field::new("default", DataType::Boolean, true),
        Field::new("null", DataType::Boolean, true),
        Field::new("deleted", DataType::Boolean, true),
        Field::new("written", DataType::Binary, true),
        Field::new("row", rows, true),
    ]))
}

fn record_batch(part: Part, rows: &SchemaRef) -> Result<RecordBatch> {
    let count = part.records.keys.len();
    let nothing = |kind: &DataType| new_null_array(kind, count);
    let (text, position): (ArrayRef, ArrayRef) = match part.records.keys {
        Keys::Text(keys) => (Arc::new(keys), nothing(&DataType::UInt64)),
        Keys::Positions(keys) => (nothing(&DataType::Utf8), Arc::new(UInt64Array::from(keys))),
    };
    let flags = |mask: Option<BooleanArray>| -> ArrayRef {
        mask.map_or_else(|| nothing(&DataType::Boolean), |mask| Arc::new(mask))
    };
    let (ordering, default, null): (ArrayRef, _, _) = match part.records.ordering {
        None => (nothing(&DataType::Binary), None, None),
        Some(ordering) => {
            let (values, default, null) = ordering.into_columns()?;
            (Arc::new(values), Some(default), null)
        }
    };
    let written: ArrayRef = match part.written {
        Written::All => nothing(&DataType::Binary),
        Written::Same(set) => {
            let bytes = bytes_of(&set);
            Arc::new(BinaryArray::from_iter_values(std::iter::repeat_n(
                bytes, count,
            )))
        }
        Written::Each(sets) => Arc::new(BinaryArray::from_iter_values(
            sets.iter().map(|set| bytes_of(set)),
        )),
    };
    let row: ArrayRef = match part.rows {
        None => nothing(&DataType::Struct(rows.fields().clone())),
        Some(batch) => Arc::new(StructArray::try_new_with_length(
            rows.fields().clone(),
            batch.columns().to_vec(),
            None,
            count,
        )?),
    };
    let columns = vec![
        text,
        position,
        ordering,
        flags(default),
        flags(null),
        flags(part.records.deleted),
        written,
        row,
    ];
    Ok(RecordBatch::try_new(record_schema(rows), columns)?)
}

fn bytes_of(set: &[bool]) -> Vec<u8> {
    set.iter().map(|column| u8::from(*column)).collect()
}

/// A log record batch as [`record_batch`] made it.
pub(crate) fn part_of(batch: &RecordBatch, encoder: &Encoder) -> Result<Part> {
    let columns = batch.columns();
    let [
        text,
        position,
        ordering,
        default,
        null,
        deleted,
        written,
        row,
    ] = columns
    else {
        return Err(SliceError::Spill("unexpected columns".to_owned()));
    };
    let keys = if text.null_count() < text.len() {
        Keys::Text(text.as_string::<i32>().clone())
    } else {
        let positions = position.as_primitive::<UInt64Type>();
        Keys::Positions(positions.values().to_vec())
    };
    let flags =
        |mask: &ArrayRef| (mask.null_count() < mask.len()).then(|| mask.as_boolean().clone());
    let ordering = match flags(default) {
        Some(default) => encoder.restore(ordering.as_binary::<i32>(), default, flags(null)),
        None => None,
    };
    let sets = written.as_binary::<i32>();
    let written = if sets.null_count() == sets.len() {
        Written::All
    } else {
        let set = |bytes: Option<&[u8]>| {
            let bytes = bytes.unwrap_or_default();
            bytes.iter().map(|byte| *byte != 0).collect()
        };
        Written::Each(sets.iter().map(set).collect())
    };
    let rows = row.as_struct();
    let rows = (rows.null_count() < rows.len() || rows.is_empty()).then(|| rows_of(rows));
    Ok(Part {
        records: Records {
            keys,
            ordering,
            deleted: flags(deleted),
        },
        rows: rows.transpose()?,
        written,
    })
}

fn rows_of(rows: &StructArray) -> Result<RecordBatch> {
    let fields: &Fields = rows.fields();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(
        Arc::new(Schema::new(fields.clone())),
        rows.columns().to_vec(),
        &options,
    )?)
}
