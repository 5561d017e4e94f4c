//! Collecting the log side of a slice: decoded batches to records, in memory up to a limit.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::or_kleene;
use arrow::datatypes::{DataType, Field, SchemaRef};
use pyhudi_format::log::OrderingValue;
use pyhudi_merge::{Keys, Written};

use crate::adapt::adapt;
use crate::columns::{Columns, IS_DELETED, OPERATION};
use crate::error::{Result, SliceError};
use crate::log_map::{LogMap, MapKind, Part};
use crate::merge_spec::MergeSpec;
use crate::spill::{MAX_DEPTH, Spill, SpillOptions};
use pyhudi_keys::java_text;

/// Column of the row numbers of a base file, where positions tell records apart.
pub(crate) const ROW_NUMBER: &str = "_pyhudi_row_number";

/// How batches become records.
pub(crate) struct Shape {
    pub(crate) columns: Columns,
    pub(crate) by_position: bool,
    pub(crate) spec: MergeSpec,
}

impl Shape {
    /// Keys of rows of the base file, or of the log side when `positions` has them.
    fn keys(&self, batch: &RecordBatch, positions: Option<&[u64]>) -> Result<Keys> {
        match positions {
            Some(positions) => Ok(Keys::Positions(positions.to_vec())),
            None => Ok(Keys::Text(self.columns.keys.of(batch)?)),
        }
    }

    /// Keys of rows of the base file that were adapted to [`Self::base_schema`].
    pub(crate) fn base_keys(&self, batch: &RecordBatch) -> Result<Keys> {
        if !self.by_position {
            return Ok(Keys::Text(self.columns.keys.of(batch)?));
        }
        let rows = batch
            .column_by_name(ROW_NUMBER)
            .and_then(|column| column.as_any().downcast_ref::<Int64Array>())
            .ok_or_else(|| SliceError::Schema("base rows without numbers".to_owned()))?;
        Ok(Keys::Positions(
            rows.values().iter().map(|row| *row as u64).collect(),
        ))
    }

    /// Columns of base batches that take part in a merge.
    pub(crate) fn base_schema(&self) -> SchemaRef {
        if !self.by_position {
            return Arc::clone(&self.columns.base);
        }
        let mut fields = self.columns.base.fields().to_vec();
        fields.push(Arc::new(Field::new(ROW_NUMBER, DataType::Int64, true)));
        Arc::new(arrow::datatypes::Schema::new(fields))
    }

    pub(crate) fn ordering(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.spec.ordering(batch)
    }

    /// The leading columns, which are merged.
    pub(crate) fn merged(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let count = self.columns.merged.fields().len();
        Ok(batch.project(&(0..count).collect::<Vec<_>>())?)
    }

    /// Which of the merged columns a batch of partial records was written with.
    fn written(&self, batch: &RecordBatch) -> Written {
        let present = |field: &Arc<Field>| batch.schema_ref().index_of(field.name()).is_ok();
        let set: Vec<bool> = self.columns.merged.fields().iter().map(present).collect();
        if set.iter().all(|present| *present) {
            Written::All
        } else {
            Written::Same(set)
        }
    }
}

/// What became of the log side.
pub(crate) enum Collected {
    InMemory(Box<LogMap>),
    OnDisk(Spill),
}

/// Takes records, oldest first.
pub(crate) struct LogSide<'a> {
    shape: &'a Shape,
    options: Option<&'a SpillOptions>,
    /// Into how many parts to split, when it comes to that.
    parts: usize,
    depth: u32,
    batch_rows: usize,
    map: LogMap,
    spill: Option<Spill>,
}

impl<'a> LogSide<'a> {
    pub(crate) fn new(
        shape: &'a Shape,
        kind: &MapKind,
        options: Option<&'a SpillOptions>,
        parts: usize,
        depth: u32,
        batch_rows: usize,
    ) -> Result<Self> {
        Ok(Self {
            shape,
            options: options.filter(|_| depth < MAX_DEPTH),
            parts,
            depth,
            batch_rows,
            map: LogMap::new(kind)?,
            spill: None,
        })
    }

    /// Data records of a log block, in the block's own types. partial: columns that they do not have are
    /// left as they are; else they are null.
    pub(crate) fn add_rows(
        &mut self,
        batch: &RecordBatch,
        positions: Option<&[u64]>,
        partial: bool,
    ) -> Result<()> {
        let shape = self.shape;
        let written = if partial {
            shape.written(batch)
        } else {
            Written::All
        };
        let batch = adapt(batch, &shape.columns.log)?;
        let keys = shape.keys(&batch, positions)?;
        let deleted = if shape.spec.deletes_are_rows {
            None
        } else {
            deleted(&batch, shape.spec.delete_marker.as_ref())?
        };
        let ordering = shape.ordering(&batch)?;
        let records = self.map.encoder().rows(keys, &ordering, deleted)?;
        let rows = Some(shape.merged(&batch)?);
        self.add(Part {
            records,
            rows,
            written,
        })
    }

    /// Records of a delete block.
    pub(crate) fn add_deletes(
        &mut self,
        keys: StringArray,
        positions: Option<&[u64]>,
        ordering: &[OrderingValue<'_>],
    ) -> Result<()> {
        let keys = match positions {
            Some(positions) => Keys::Positions(positions.to_vec()),
            None => Keys::Text(keys),
        };
        let records = self.map.encoder().deletes(keys, ordering)?;
        self.add(Part {
            records,
            rows: None,
            written: Written::All,
        })
    }

    pub(crate) fn add(&mut self, part: Part) -> Result<()> {
        if let Some(spill) = &mut self.spill {
            return spill.add_log(part);
        }
        self.map.add(part)?;
        // Half of the limit: what stands is copied before the rest is let go.
        match self.options {
            Some(options) if self.map.memory() > options.memory_limit / 2 && self.map.len() > 1 => {
                self.shrink(options)
            }
            _ => Ok(()),
        }
    }

    /// Keeps only what stands, in memory if that helps enough.
    fn shrink(&mut self, options: &SpillOptions) -> Result<()> {
        let emptied = self.map.emptied();
        let map = std::mem::replace(&mut self.map, emptied);
        let (parts, bytes) = map.into_standing(self.batch_rows)?;
        if bytes <= options.memory_limit / 4 {
            return parts.into_iter().try_for_each(|part| self.map.add(part));
        }
        let (rows, base) = (&self.shape.columns.merged, self.shape.base_schema());
        let mut spill = Spill::new(options, self.parts, self.depth, rows, &base);
        parts.into_iter().try_for_each(|part| spill.add_log(part))?;
        self.spill = Some(spill);
        Ok(())
    }

    pub(crate) fn encoder(&self) -> &pyhudi_merge::Encoder {
        self.map.encoder()
    }

    pub(crate) fn finish(self) -> Collected {
        match self.spill {
            Some(spill) => Collected::OnDisk(spill),
            None => Collected::InMemory(Box::new(self.map)),
        }
    }
}

/// Rows that say their key is deleted (`DeleteContext`, Hudi 1.2.0); none if no row can say so.
pub(crate) fn deleted(
    batch: &RecordBatch,
    marker: Option<&(String, String)>,
) -> Result<Option<BooleanArray>> {
    let mut deleted: Option<BooleanArray> = None;
    let mut add = |more: BooleanArray| -> Result<()> {
        deleted = Some(match deleted.take() {
            Some(before) => or_kleene(&before, &more)?,
            None => more,
        });
        Ok(())
    };
    if let Some(flag) = batch
        .column_by_name(IS_DELETED)
        .and_then(|c| c.as_boolean_opt())
    {
        add(flag.clone())?;
    }
    if let Some(by_operation) = deleted_by_operation(batch) {
        add(by_operation)?;
    }
    if let Some((field, value)) = marker
        && let Some(column) = batch.column_by_name(field)
    {
        let texts = java_text(column, field)?;
        add(texts
            .iter()
            .map(|text| text.map(|text| text == value))
            .collect())?;
    }
    Ok(deleted)
}

/// Rows that the operation of a change log deletes; none if no row has one.
pub(crate) fn deleted_by_operation(batch: &RecordBatch) -> Option<BooleanArray> {
    let operation = batch.column_by_name(OPERATION)?.as_string_opt::<i32>()?;
    let has_some = operation.null_count() < operation.len();
    let gone = |op: Option<&str>| op.map(|op| op == "D" || op == "-U");
    has_some.then(|| operation.iter().map(gone).collect())
}
