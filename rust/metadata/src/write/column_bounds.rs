//! What is known of a column's values, and the record that says it.

use std::collections::BTreeSet;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field};
use pyhudi_avro::Value;
use pyhudi_keys::column;
use pyhudi_slice::{Result, adapt_column, nested};

use super::bounds::{Bound, ONLY_NULLS, Wrapper, wrapper};
use super::recorder::RecordRows;
use crate::stats::{LONG_VALUE, is_text};

/// Kinds of records (`MetadataPartitionType`).
pub(super) const KIND_COLUMN_STATS: i64 = 3;
pub(super) const KIND_PARTITION_STATS: i64 = 6;
pub(super) const BATCH_ROWS: usize = 8192;

/// What a record of statistics is of.
#[derive(Clone, Copy)]
pub(super) struct Shape<'t> {
    pub(super) kind: i64,
    pub(super) ty: &'t DataType,
    pub(super) value_types: bool,
    /// Readers forget what they knew.
    pub(super) tight: bool,
}

impl<'t> Shape<'t> {
    pub(super) fn of(kind: i64, ty: &'t DataType, value_types: bool) -> Self {
        Self {
            kind,
            ty,
            value_types,
            tight: false,
        }
    }
}

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What is known of a column's values in one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stats {
    pub(super) min: Option<Bound>,
    pub(super) max: Option<Bound>,
    pub(super) nulls: i64,
    pub(super) values: i64,
    pub(super) size: i64,
    pub(super) uncompressed: i64,
    /// Bounds are Hudi's, and may be those of other values only than long text.
    pub(super) may_lack: bool,
}

impl Stats {
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            min: Bound::least(self.min, other.min),
            max: Bound::greatest(self.max, other.max),
            nulls: self.nulls + other.nulls,
            values: self.values + other.values,
            size: self.size + other.size,
            uncompressed: self.uncompressed + other.uncompressed,
            may_lack: self.may_lack || other.may_lack,
        }
    }

    /// With a size that makes readers trust the bounds, of strings and nulls.
    ///
    /// Of such text a size below that of a long value is the only sign that no value was lost, and
    /// nothing else uses it (Hudi 0.15.0 to 1.2.0).
    pub(super) fn marked(mut self, ty: &DataType) -> Self {
        let is_sure = is_text(ty) && self.nulls > 0 && !self.may_lack;
        if is_sure && self.uncompressed >= LONG_VALUE {
            self.uncompressed = 0;
        }
        self
    }

    /// A column that is not in the batch is null in all of its rows. So is a field where its struct is.
    pub(super) fn add_batch(&mut self, batch: &RecordBatch, field: &Field) -> Result<()> {
        if nested(&batch.schema(), field.name()).is_ok() {
            self.add_values(&adapt_column(&column(batch, field.name())?, field)?);
        } else {
            self.nulls += batch.num_rows() as i64;
            self.values += batch.num_rows() as i64;
        }
        Ok(())
    }

    fn add_values(&mut self, column: &ArrayRef) {
        if let Some((least, greatest)) = Bound::least_and_greatest(column) {
            self.min = Bound::least(self.min.take(), Some(least));
            self.max = Bound::greatest(self.max.take(), Some(greatest));
        }
        self.nulls += column.logical_null_count() as i64;
        self.values += column.len() as i64;
    }

    /// Puts the record, unless the column's type has no statistics.
    pub(super) fn put(
        &self,
        rows: &mut RecordRows<'_>,
        key: &str,
        name: &str,
        column: &str,
        shape: Shape<'_>,
    ) -> Result<()> {
        let Some(wrapper) = wrapper(shape.ty, shape.value_types) else {
            return Ok(());
        };
        let bytes = |bound: &Option<Bound>| bound.as_ref().map(|bound| bound.bytes(wrapper));
        let (min_bytes, max_bytes) = (bytes(&self.min), bytes(&self.max));
        let value = |bound: &Option<Bound>, bytes| match (bound, bytes) {
            (Some(bound), Some(bytes)) => bound.wrapped(wrapper, bytes),
            _ => Value::Null,
        };
        let decimal = decimal_info(shape.ty);
        let mut fields = vec![
            ("fileName", Value::Text(name)),
            ("columnName", Value::Text(column)),
            ("minValue", value(&self.min, min_bytes.as_ref())),
            ("maxValue", value(&self.max, max_bytes.as_ref())),
            ("nullCount", Value::Whole(self.nulls)),
            ("valueCount", Value::Whole(self.values)),
            ("totalSize", Value::Whole(self.size)),
            ("totalUncompressedSize", Value::Whole(self.uncompressed)),
        ];
        if shape.value_types {
            let named = self.value_type(wrapper, decimal.as_deref(), shape.kind);
            fields.push(("valueType", named));
        }
        if shape.tight {
            fields.push(("isTightBound", Value::Boolean(true)));
        }
        let fields = [
            ("type", Value::Whole(shape.kind)),
            ("ColumnStatsMetadata", Value::Record(fields)),
        ];
        rows.put(key, &fields)
    }

    /// The column's type, but for a log file without records: Hudi names none for that.
    fn value_type<'v>(&self, wrapper: Wrapper, decimal: Option<&'v str>, kind: i64) -> Value<'v> {
        let only_nulls = self.values == 0 && kind == KIND_COLUMN_STATS;
        let ordinal = if only_nulls { ONLY_NULLS } else { wrapper.kind };
        let mut fields = vec![("typeOrdinal", Value::Whole(ordinal))];
        if let (false, Some(info)) = (only_nulls, decimal) {
            fields.push(("additionalInfo", Value::Text(info)));
        }
        Value::Record(fields)
    }
}

pub(super) fn decimal_info(ty: &DataType) -> Option<String> {
    match ty {
        DataType::Decimal128(precision, scale) => Some(format!("{precision},{scale}")),
        _ => None,
    }
}

/// The columns that hold columns and fields of structs. A column's own name may have a dot in it.
pub(super) fn roots<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let roots: BTreeSet<&str> = names
        .flat_map(|name| [name, name.split('.').next().unwrap_or(name)])
        .collect();
    roots.into_iter().map(str::to_owned).collect()
}
