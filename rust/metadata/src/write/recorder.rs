//! Record rows: records of the metadata table on their way to its file groups.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{BinaryBuilder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pyhudi_avro::{DatumWriter, Value};
use pyhudi_format::hash::metadata_file_group;
use pyhudi_slice::{Result, SliceError};

/// Makes records of one metadata table.
#[derive(Debug, Clone)]
pub struct Recorder {
    writer: DatumWriter,
    groups: HashMap<String, u32>,
}

impl Recorder {
    /// schema: of the records, as JSON, with meta fields. groups: for each partition of the
    /// metadata table the number of its file groups.
    ///
    /// # Errors
    /// The schema is not one.
    pub fn new(schema: &str, groups: HashMap<String, u32>) -> Result<Self> {
        let writer =
            DatumWriter::new(schema).map_err(|error| SliceError::Schema(error.to_string()))?;
        Ok(Self { writer, groups })
    }

    pub(super) fn rows(&self, partition: &str) -> Result<RecordRows<'_>> {
        match self.groups.get(partition) {
            Some(groups) if *groups > 0 => Ok(RecordRows {
                writer: &self.writer,
                partition: partition.to_owned(),
                groups: *groups,
                first: 0,
                routes: StringBuilder::new(),
                keys: StringBuilder::new(),
                values: BinaryBuilder::new(),
            }),
            _ => Err(SliceError::Schema(format!(
                "the metadata table has no file groups in {partition}"
            ))),
        }
    }
}

/// Records on their way to one partition: columns route (partition and number of the file group,
/// as `files/0`), key, and value (null deletes the record).
pub(super) struct RecordRows<'w> {
    writer: &'w DatumWriter,
    partition: String,
    /// Keys are hashed over so many file groups, the number of the first of which is `first`.
    pub(super) groups: u32,
    pub(super) first: u32,
    routes: StringBuilder,
    keys: StringBuilder,
    values: BinaryBuilder,
}

/// Schema of record rows.
pub fn record_rows_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("route", DataType::Utf8, false),
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Binary, true),
    ]))
}

impl RecordRows<'_> {
    pub(super) fn put(&mut self, key: &str, fields: &[(&'static str, Value<'_>)]) -> Result<()> {
        self.put_hashed(key, key, fields)
    }

    /// Where not the whole key says which file group it is in.
    pub(super) fn put_hashed(
        &mut self,
        key: &str,
        hashed: &str,
        fields: &[(&'static str, Value<'_>)],
    ) -> Result<()> {
        let value = self.writer.write(fields);
        let value = value.map_err(|error| SliceError::Schema(error.to_string()))?;
        self.add_key(key, hashed);
        self.values.append_value(value);
        Ok(())
    }

    pub(super) fn delete(&mut self, key: &str) {
        self.delete_hashed(key, key);
    }

    pub(super) fn delete_hashed(&mut self, key: &str, hashed: &str) {
        self.add_key(key, hashed);
        self.values.append_null();
    }

    fn add_key(&mut self, key: &str, hashed: &str) {
        let group = self.first + metadata_file_group(hashed, self.groups);
        self.routes
            .append_value(format!("{}/{group}", self.partition));
        self.keys.append_value(key);
    }

    pub(super) fn finish(mut self) -> Result<RecordBatch> {
        Ok(RecordBatch::try_new(
            record_rows_schema(),
            vec![
                Arc::new(self.routes.finish()),
                Arc::new(self.keys.finish()),
                Arc::new(self.values.finish()),
            ],
        )?)
    }
}
