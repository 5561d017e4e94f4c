//! Change rows: op, key, images before and after, names of the changed columns.

use std::sync::Arc;

use arrow::array::make_comparator;
use arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBufferBuilder, ListBuilder, RecordBatch, StringArray,
    StringBuilder, StructArray, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{SortOptions, filter, filter_record_batch, interleave};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use pyhudi_merge::Location;

use super::json::{Style, image_text};
use crate::error::{Result, SliceError};

/// Rows that changed in one way.
pub(super) struct Change {
    op: &'static str,
    keys: ArrayRef,
    before: Option<RecordBatch>,
    after: Option<RecordBatch>,
    /// For every column which rows differ in it; of updates only.
    changed: Vec<BooleanArray>,
}

impl Change {
    pub(super) fn insert(keys: &StringArray, rows: &RecordBatch) -> Self {
        Self {
            op: "i",
            keys: Arc::new(keys.clone()),
            before: None,
            after: Some(rows.clone()),
            changed: Vec::new(),
        }
    }

    pub(super) fn delete(keys: &StringArray, rows: &RecordBatch) -> Self {
        Self::delete_of(Arc::new(keys.clone()), rows.clone())
    }

    pub(super) fn delete_of(keys: ArrayRef, rows: RecordBatch) -> Self {
        Self {
            op: "d",
            keys,
            before: Some(rows),
            after: None,
            changed: Vec::new(),
        }
    }

    /// Of rows that belong together those that differ; none if no row does.
    pub(super) fn update(
        keys: &ArrayRef,
        before: &RecordBatch,
        after: &RecordBatch,
    ) -> Result<Option<Self>> {
        let changed = before
            .columns()
            .iter()
            .zip(after.columns())
            .map(|(old, new)| differing(old, new))
            .collect::<Result<Vec<_>>>()?;
        let any = any_of(&changed, keys.len());
        if any.true_count() == 0 {
            return Ok(None);
        }
        let kept = changed.iter().map(|mask| {
            let kept = filter(mask, &any)?;
            Ok(BooleanArray::from(kept.to_data()))
        });
        Ok(Some(Self {
            op: "u",
            keys: filter(keys, &any)?,
            before: Some(filter_record_batch(before, &any)?),
            after: Some(filter_record_batch(after, &any)?),
            changed: kept.collect::<Result<Vec<_>>>()?,
        }))
    }
}

/// Which rows differ; nulls are equal to nulls.
fn differing(old: &ArrayRef, new: &ArrayRef) -> Result<BooleanArray> {
    if !old.data_type().is_nested() {
        return Ok(distinct(old, new)?);
    }
    let compare = make_comparator(old, new, SortOptions::default())?;
    let differs: Vec<bool> = (0..old.len())
        .map(|row| compare(row, row).is_ne())
        .collect();
    Ok(BooleanArray::from(differs))
}

fn any_of(masks: &[BooleanArray], rows: usize) -> BooleanArray {
    let mut any = BooleanBufferBuilder::new(rows);
    for row in 0..rows {
        any.append(masks.iter().any(|mask| mask.value(row)));
    }
    BooleanArray::new(any.finish(), None)
}

/// Rows of several batches of one schema, as one batch.
pub(super) fn gather(batches: &[&RecordBatch], rows: &[Location]) -> Result<RecordBatch> {
    let Some(first) = batches.first() else {
        return Err(SliceError::Schema("no rows to gather from".to_owned()));
    };
    let columns = (0..first.num_columns()).map(|at| {
        let parts: Vec<&dyn Array> = batches.iter().map(|b| b.column(at).as_ref()).collect();
        Ok(interleave(&parts, rows)?)
    });
    Ok(RecordBatch::try_new(
        first.schema(),
        columns.collect::<Result<Vec<_>>>()?,
    )?)
}

/// Makes batches of change rows.
pub(super) struct Images {
    fields: Fields,
    as_json: bool,
    schema: SchemaRef,
}

impl Images {
    /// `schema`: the compared columns; the first `count` make up an image.
    pub(super) fn new(schema: &SchemaRef, count: usize, as_json: bool) -> Result<Self> {
        let fields = schema.fields();
        let Some(fields) = fields.get(..count).filter(|fields| !fields.is_empty()) else {
            return Err(SliceError::Schema(format!(
                "{count} image columns of {}",
                fields.len()
            )));
        };
        let fields: Fields = fields
            .iter()
            .map(|field| field.as_ref().clone().with_nullable(true))
            .collect();
        let schema = Arc::new(out_schema(&fields, as_json));
        Ok(Self {
            fields,
            as_json,
            schema,
        })
    }

    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    pub(super) fn batch(&self, change: &Change) -> Result<RecordBatch> {
        let rows = change.keys.len();
        let image = |side: &Option<RecordBatch>| match side {
            Some(batch) => self.image(batch.columns(), None, Style::Row),
            None => Ok(new_null_array(self.schema.field(2).data_type(), rows)),
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![change.op; rows])),
            Arc::clone(&change.keys),
            image(&change.before)?,
            image(&change.after)?,
            self.changed(change, rows),
        ];
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }

    /// The images of rows, from their columns in order; more columns than needed may come.
    pub(super) fn image(
        &self,
        columns: &[ArrayRef],
        nulls: Option<NullBuffer>,
        style: Style,
    ) -> Result<ArrayRef> {
        let columns = columns.get(..self.fields.len()).unwrap_or(columns).to_vec();
        let images = StructArray::try_new(self.fields.clone(), columns, nulls)?;
        if self.as_json {
            return Ok(Arc::new(image_text(&images, style)?));
        }
        Ok(Arc::new(images))
    }

    fn changed(&self, change: &Change, rows: usize) -> ArrayRef {
        let mut names = ListBuilder::new(StringBuilder::new());
        for row in 0..rows {
            let masks = self.fields.iter().zip(&change.changed);
            for (field, _) in masks.filter(|(_, mask)| mask.value(row)) {
                names.values().append_value(field.name());
            }
            names.append(!change.changed.is_empty());
        }
        Arc::new(names.finish())
    }
}

fn out_schema(image: &Fields, as_json: bool) -> Schema {
    let kind = if as_json {
        DataType::Utf8
    } else {
        DataType::Struct(image.clone())
    };
    let item = Field::new_list_field(DataType::Utf8, true);
    Schema::new(vec![
        Field::new("op", DataType::Utf8, true),
        Field::new("key", DataType::Utf8, true),
        Field::new("before", kind.clone(), true),
        Field::new("after", kind, true),
        Field::new("changed", DataType::List(Arc::new(item)), true),
    ])
}
