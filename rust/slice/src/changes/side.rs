//! A batch of one side: the compared columns in the wanted types, keys and places.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{cast, filter, filter_record_batch, take};
use arrow::datatypes::{DataType, Field, Schema};
use pyhudi_merge::key_bucket;

use super::ChangeSpec;
use crate::error::{Result, SliceError};
use pyhudi_keys::{RecordKeys, shown_text};

pub(super) struct Side {
    pub(super) rows: RecordBatch,
    pub(super) keys: StringArray,
    pub(super) places: Option<StringArray>,
}

impl Side {
    /// The rows of a batch that count; none if no row does.
    pub(super) fn of(batch: &RecordBatch, spec: &ChangeSpec) -> Result<Option<Self>> {
        let keys = RecordKeys {
            prefixed: spec.key_fields.len() > 1,
            fields: spec.key_fields.clone(),
        };
        let columns = spec.schema.fields().iter().map(|f| column(batch, f, spec));
        let side = Self {
            keys: keys.of(&with_constant_keys(batch, spec)?)?,
            places: places(batch, spec)?,
            rows: RecordBatch::try_new(
                Arc::clone(&spec.schema),
                columns.collect::<Result<Vec<_>>>()?,
            )?,
        };
        let side = match wanted(&side.keys, spec) {
            Some(mask) => side.filtered(&mask)?,
            None => side,
        };
        Ok((!side.keys.is_empty()).then_some(side))
    }

    pub(super) fn place(&self, row: usize) -> Option<&str> {
        self.places.as_ref().map(|places| places.value(row))
    }

    pub(super) fn filtered(&self, mask: &BooleanArray) -> Result<Self> {
        let texts = |array: &StringArray| -> Result<StringArray> {
            Ok(filter(array, mask)?.as_string::<i32>().clone())
        };
        Ok(Self {
            rows: filter_record_batch(&self.rows, mask)?,
            keys: texts(&self.keys)?,
            places: self.places.as_ref().map(texts).transpose()?,
        })
    }
}

fn wanted(keys: &StringArray, spec: &ChangeSpec) -> Option<BooleanArray> {
    if spec.only.is_none() && spec.bucket.is_none() {
        return None;
    }
    let counts = |key: &str| {
        spec.only.as_ref().is_none_or(|only| only.contains(key))
            && spec
                .bucket
                .is_none_or(|(mine, buckets)| key_bucket(key, buckets) == mine)
    };
    let mask: Vec<bool> = (0..keys.len()).map(|row| counts(keys.value(row))).collect();
    Some(BooleanArray::from(mask))
}

fn column(batch: &RecordBatch, field: &Field, spec: &ChangeSpec) -> Result<ArrayRef> {
    let constant = spec.constants.iter().find(|(name, _)| name == field.name());
    let found = match constant {
        Some((_, value)) => take(value, &UInt32Array::from(vec![0; batch.num_rows()]), None)?,
        None => batch
            .column_by_name(field.name())
            .cloned()
            .ok_or_else(|| SliceError::Schema(format!("there is no column {}", field.name())))?,
    };
    if found.data_type() == field.data_type() {
        return Ok(found);
    }
    if *field.data_type() == DataType::Utf8 {
        return Ok(Arc::new(shown_text(&found, field.name())?));
    }
    Ok(cast(&found, field.data_type())?)
}

/// Key fields that have one value in all rows may not have been read.
fn with_constant_keys(batch: &RecordBatch, spec: &ChangeSpec) -> Result<RecordBatch> {
    let mut fields = batch.schema().fields().to_vec();
    let mut columns = batch.columns().to_vec();
    for (name, value) in &spec.constants {
        if spec.key_fields.contains(name) && batch.column_by_name(name).is_none() {
            let rows = UInt32Array::from(vec![0; batch.num_rows()]);
            fields.push(Arc::new(Field::new(name, value.data_type().clone(), true)));
            columns.push(take(value, &rows, None)?);
        }
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

fn places(batch: &RecordBatch, spec: &ChangeSpec) -> Result<Option<StringArray>> {
    let Some(name) = &spec.place else {
        return Ok(None);
    };
    let places = column(batch, &Field::new(name, DataType::Utf8, true), spec)?;
    Ok(Some(places.as_string::<i32>().clone()))
}
