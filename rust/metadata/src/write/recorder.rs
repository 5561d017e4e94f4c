//! Record rows: records of the metadata table on their way to its file groups.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{BinaryBuilder, RecordBatch, StringBuilder, UInt32Array};
use arrow::compute::take;
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
                of_rows: Vec::new(),
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
    /// Keys are hashed over this number of file groups, of which the first has the number `first`.
    pub(super) groups: u32,
    pub(super) first: u32,
    /// The number of each row's file group.
    of_rows: Vec<u32>,
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
        let value = self.value(fields)?;
        self.put_value(key, hashed, &value);
        Ok(())
    }

    /// The bytes of a record, for [`put_value`](Self::put_value).
    pub(super) fn value(&self, fields: &[(&'static str, Value<'_>)]) -> Result<Vec<u8>> {
        let value = self.writer.write(fields);
        value.map_err(|error| SliceError::Schema(error.to_string()))
    }

    pub(super) fn put_value(&mut self, key: &str, hashed: &str, value: &[u8]) {
        self.add_key(key, hashed);
        self.values.append_value(value);
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
        self.of_rows.push(group);
        self.keys.append_value(key);
    }

    /// The rows, those of one file group together, so that they are cut and not sorted on their way.
    pub(super) fn finish(mut self) -> Result<RecordBatch> {
        let mut order: Vec<u32> = (0..self.of_rows.len() as u32).collect();
        let group_of = |row: u32| self.of_rows.get(row as usize).copied().unwrap_or(u32::MAX);
        order.sort_by_key(|row| group_of(*row));
        let mut routes = StringBuilder::new();
        let mut route = (None, String::new());
        for row in &order {
            let group = group_of(*row);
            if route.0 != Some(group) {
                route = (Some(group), format!("{}/{group}", self.partition));
            }
            routes.append_value(&route.1);
        }
        let order = UInt32Array::from(order);
        let (keys, values) = (self.keys.finish(), self.values.finish());
        Ok(RecordBatch::try_new(
            record_rows_schema(),
            vec![
                Arc::new(routes.finish()),
                take(&keys, &order, None)?,
                take(&values, &order, None)?,
            ],
        )?)
    }
}
