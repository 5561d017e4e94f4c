//! Record rows: records of the metadata table on their way to its file groups.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BinaryBuilder, RecordBatch, StringArray, StringBuilder,
    UInt32Array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pyhudi_avro::{DatumWriter, Value};
use pyhudi_format::hash::metadata_file_group;
use pyhudi_slice::{Result, SliceError};

use super::packed_keys::PackedKeys;

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

    /// The number of file groups of a partition of the metadata table.
    pub(super) fn groups(&self, partition: &str) -> Result<u32> {
        match self.groups.get(partition) {
            Some(groups) if *groups > 0 => Ok(*groups),
            _ => Err(SliceError::Schema(format!(
                "the metadata table has no file groups in {partition}"
            ))),
        }
    }

    /// The bytes of a record.
    pub(super) fn value(&self, fields: &[(&'static str, Value<'_>)]) -> Result<Vec<u8>> {
        let value = self.writer.write(fields);
        value.map_err(|error| SliceError::Schema(error.to_string()))
    }

    pub(super) fn rows(&self, partition: &str) -> Result<RecordRows<'_>> {
        Ok(RecordRows {
            recorder: self,
            partition: partition.to_owned(),
            groups: self.groups(partition)?,
            of_rows: Vec::new(),
            keys: StringBuilder::new(),
            values: BinaryBuilder::new(),
        })
    }
}

/// Records on their way to one partition: columns route (partition and number of the file group,
/// as `files/0`), key, and value (null deletes the record).
pub(super) struct RecordRows<'w> {
    recorder: &'w Recorder,
    partition: String,
    /// Keys are hashed over this number of file groups.
    groups: u32,
    /// The number of each row's file group.
    of_rows: Vec<u32>,
    keys: StringBuilder,
    values: BinaryBuilder,
}

/// Schema of record rows. A row with `keys` has a record of that value for each of them, and no key of
/// its own.
pub fn record_rows_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("route", DataType::Utf8, false),
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Binary, true),
        Field::new("keys", DataType::Binary, true),
    ]))
}

/// Record rows of keys that share a value each: `None` deletes their records.
pub(super) fn packed_rows(
    partition: &str,
    (first, groups): (u32, u32),
    keys_by_value: &[(Option<&[u8]>, &StringArray)],
) -> Result<RecordBatch> {
    let mut routes = StringBuilder::new();
    let mut values = BinaryBuilder::new();
    let mut packed = BinaryBuilder::new();
    for (value, keys) in keys_by_value {
        let mut by_group: Vec<PackedKeys> = Vec::new();
        by_group.resize_with(groups as usize, PackedKeys::default);
        for key in keys.iter().flatten() {
            let group = metadata_file_group(key, groups) as usize;
            if let Some(packed) = by_group.get_mut(group) {
                packed.add(key);
            }
        }
        for (group, keys) in (first..).zip(by_group) {
            let route = format!("{partition}/{group}");
            for row in keys.finish() {
                routes.append_value(&route);
                values.append_option(*value);
                packed.append_value(row);
            }
        }
    }
    let routes = routes.finish();
    let own_keys = StringArray::from(vec![""; routes.len()]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(routes),
        Arc::new(own_keys),
        Arc::new(values.finish()),
        Arc::new(packed.finish()),
    ];
    Ok(RecordBatch::try_new(record_rows_schema(), columns)?)
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
        let value = self.recorder.value(fields)?;
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
        let group = metadata_file_group(hashed, self.groups);
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
        let no_keys = BinaryArray::new_null(order.len());
        let order = UInt32Array::from(order);
        let (keys, values) = (self.keys.finish(), self.values.finish());
        Ok(RecordBatch::try_new(
            record_rows_schema(),
            vec![
                Arc::new(routes.finish()),
                take(&keys, &order, None)?,
                take(&values, &order, None)?,
                Arc::new(no_keys),
            ],
        )?)
    }
}
