//! Record batches to unframed Avro records, such as the rows of a log block.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use arrow_avro::schema::SCHEMA_METADATA_KEY;
use arrow_avro::writer::WriterBuilder;
use arrow_avro::writer::format::AvroBinaryFormat;

use crate::canonical::{canonical_record, field_name};
use crate::conform::{conform, missing};
use crate::error::{AvroError, Result};
use crate::model::Record;
use crate::parse::parse_record;

/// Encoded records in one buffer.
#[derive(Debug, Clone)]
pub struct EncodedRows(arrow_avro::writer::EncodedRows);

impl EncodedRows {
    /// How many records.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All records, one after the other without framing.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The record at an index.
    pub fn row(&self, index: usize) -> Option<&[u8]> {
        let offsets = self.0.offsets();
        let range = *offsets.get(index)?..*offsets.get(index + 1)?;
        self.0.bytes().get(range)
    }

    /// The records in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.row(index).unwrap_or_default())
    }
}

/// Encodes the rows of a batch with an Avro record schema.
///
/// Columns are matched by name, at every level. A nullable field without a column is null, a
/// column without a field is left out at the top and an error in a nested record. Types may
/// differ from [`arrow_schema`](crate::arrow_schema) where every value keeps its meaning
/// (dictionaries, large and view types, other widths, units and scales); a value that does
/// not fit exactly is an error that names its field, as is a null in a required field.
/// Timestamps without zone count as UTC.
pub fn encode(batch: &RecordBatch, avro_json: &str) -> Result<EncodedRows> {
    let record = parse_record(avro_json)?;
    let conformed = conformed(batch, &record)?;
    let per_row = 16 + 12 * record.fields.len();
    let mut encoder = WriterBuilder::new(conformed.schema().as_ref().clone())
        .with_row_capacity(per_row)
        .build_encoder::<AvroBinaryFormat>()
        .map_err(refused)?;
    encoder.encode(&conformed).map_err(refused)?;
    Ok(EncodedRows(encoder.flush()))
}

fn conformed(batch: &RecordBatch, record: &Record) -> Result<RecordBatch> {
    let mut fields = Vec::with_capacity(record.fields.len());
    let mut columns = Vec::with_capacity(record.fields.len());
    for (index, field) in record.fields.iter().enumerate() {
        let column = match batch.column_by_name(&field.name) {
            Some(column) => conform(column, &field.ty, None, &field.name)?,
            None => missing(&field.ty, batch.num_rows(), &field.name)?,
        };
        let ty = column.data_type().clone();
        fields.push(Field::new(field_name(index), ty, true));
        columns.push(column);
    }
    let text = (SCHEMA_METADATA_KEY.to_owned(), canonical_record(record));
    let schema = Schema::new_with_metadata(fields, HashMap::from([text]));
    // A record without fields still has rows.
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = Arc::new(schema);
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn refused(error: arrow_avro::errors::AvroError) -> AvroError {
    AvroError::Schema(error.to_string())
}
