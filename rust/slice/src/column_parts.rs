//! The columns of a wide Parquet file in parts, of which one is encoded at a time.
//!
//! An encoder has tables for the values of a dictionary and the state of a codec, whatever few rows it
//! is given. Those of thousands of columns would take hundreds of MiB.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::column_encoder::{ColumnEncoder, ColumnEncoders};

/// What an encoder takes for a handful of rows, about.
const ENCODER_BYTES: usize = 64 << 10;

/// What encoders may take where a row group has no greatest size, as in a log block.
const BLOCK_ENCODER_BYTES: usize = 16 << 20;

/// Leaves of a part, about.
const PART_LEAVES: usize = 64;

/// Columns that follow each other.
pub(crate) struct ColumnPart {
    fields: Range<usize>,
    /// Their leaves among those of the file.
    pub(crate) leaves: Range<usize>,
    encoders: ColumnEncoders,
}

impl ColumnPart {
    /// Encoders of the leaves, for a row group of that number.
    pub(crate) fn writers(&self, row_group: usize) -> Result<Vec<ColumnEncoder>> {
        self.encoders.create(row_group)
    }

    /// Of the whole batch.
    pub(crate) fn columns_of(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let fields: Vec<usize> = self.fields.clone().collect();
        Ok(batch.project(&fields)?)
    }
}

/// All columns of a file as one part, or several where their encoders would take more than a row
/// group may.
///
/// encoders: of all columns.
pub(crate) fn column_parts<W: Write + Send>(
    file: &SerializedFileWriter<W>,
    encoders: ColumnEncoders,
    schema: &SchemaRef,
) -> Result<Vec<ColumnPart>> {
    let descriptor = file.schema_descr();
    let leaves = descriptor.num_columns();
    let most = file.properties().max_row_group_bytes();
    if leaves * ENCODER_BYTES <= most.unwrap_or(BLOCK_ENCODER_BYTES) {
        return Ok(vec![ColumnPart {
            fields: 0..schema.fields().len(),
            leaves: 0..leaves,
            encoders,
        }]);
    }
    let mut parts = Vec::new();
    let mut start = 0;
    while start < leaves {
        let first = descriptor.get_column_root_idx(start);
        // A column is in one part with all of its leaves.
        let last = descriptor.get_column_root_idx((start + PART_LEAVES).min(leaves) - 1);
        let end = (start..leaves).find(|leaf| descriptor.get_column_root_idx(*leaf) > last);
        let end = end.unwrap_or(leaves);
        parts.push(part(file, schema, first..last + 1, start..end)?);
        start = end;
    }
    Ok(parts)
}

fn part<W: Write + Send>(
    file: &SerializedFileWriter<W>,
    schema: &SchemaRef,
    fields: Range<usize>,
    leaves: Range<usize>,
) -> Result<ColumnPart> {
    let numbers: Vec<usize> = fields.clone().collect();
    let root = file.schema_descr().root_schema();
    let types = root.get_fields().iter();
    let types = types.skip(fields.start).take(fields.len()).cloned();
    let root = Type::group_type_builder(root.name()).with_fields(types.collect());
    let properties = file.properties().as_ref().clone();
    let schema = Arc::new(schema.project(&numbers)?);
    Ok(ColumnPart {
        fields,
        leaves,
        encoders: ColumnEncoders::of_columns(root.build()?, schema, properties)?,
    })
}
