//! Ordering values: how two records of one key are compared.
//!
//! Values become rows of `arrow::row`, whose bytes compare as the values do, also over several
//! fields; those of one field of whole numbers, dates or times stay numbers. A null counts as 0, as `OrderingValues.getDefault` (Hudi 1.2.0) has it; where the field's
//! type has no zero (strings, binary) it counts as smaller than everything.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int32Array,
    Int64Array, Scalar, StringArray, new_null_array,
};
use arrow::buffer::ScalarBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, is_not_null, is_null};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};
use pyhudi_format::log::OrderingValue;

/// What stopped a merge.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// An ordering field has a type that has no order.
    #[error("ordering field of type {0} cannot be compared")]
    Ordering(DataType),
    /// A record without a key.
    #[error("a record has no key (row {row})")]
    NullKey {
        /// Row within its batch.
        row: usize,
    },
    /// A merger that is not built in failed.
    #[error("the merger failed: {0}")]
    Merger(Box<dyn std::error::Error + Send + Sync>),
    /// Values that a column's rule cannot combine.
    #[error("column {column:?} of key {key:?}: values cannot be combined: {source}")]
    Rule {
        /// The column.
        column: String,
        /// The key of the two records.
        key: String,
        /// What is wrong with the values.
        source: ArrowError,
    },
    /// Arrow's own error.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// How the newer and the older of two records are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeMode {
    /// The record of the later commit wins.
    CommitTime,
    /// The greater ordering value wins, ties go to the later commit.
    EventTime,
}

/// The rules of one table.
#[derive(Debug, Clone)]
pub struct MergeRules {
    /// The merge mode.
    pub mode: MergeMode,
    /// Types of the ordering fields. None of them makes every mode commit-time ordering.
    pub ordering: Vec<DataType>,
    /// Merging as Hudi's copy-on-write writer does: a base row with a null ordering value loses to
    /// any newer record, where a merge on read counts it as 0, and a delete takes every base row
    /// of its key, where a merge on read takes the first one.
    pub null_ordering_loses: bool,
}

impl MergeRules {
    /// Whether ordering values are compared.
    pub fn compares(&self) -> bool {
        self.mode == MergeMode::EventTime && !self.ordering.is_empty()
    }
}

/// A record's ordering value, and whether the record is a delete.
pub(crate) struct Weighed<'a> {
    pub(crate) ordering: Option<(&'a OrderingRows, usize)>,
    pub(crate) deleted: bool,
}

impl Weighed<'_> {
    /// A delete without an ordering value: it beats what is older, and what is newer beats it.
    fn is_commit_time_delete(&self) -> bool {
        self.deleted
            && self
                .ordering
                .is_some_and(|(rows, row)| rows.is_default(row))
    }

    /// Whether this record stands against an older one of the log side.
    pub(crate) fn beats_log(&self, older: &Weighed<'_>) -> bool {
        let (Some((mine, row)), Some((theirs, other))) = (self.ordering, older.ordering) else {
            return true;
        };
        if older.is_commit_time_delete() {
            // Another delete would weaken it: a base row may be greater than that one's value.
            return !self.deleted || self.is_commit_time_delete();
        }
        self.is_commit_time_delete() || mine.at_least(row, theirs, other)
    }

    /// Whether this record of the log side stands against a base row.
    pub(crate) fn beats_base(
        &self,
        base: Option<&OrderingRows>,
        base_row: usize,
        null_ordering_loses: bool,
    ) -> bool {
        let (Some((mine, row)), Some(base)) = (self.ordering, base) else {
            return true;
        };
        self.is_commit_time_delete()
            || (null_ordering_loses && base.is_null(base_row))
            || mine.at_least(row, base, base_row)
    }
}

/// Values that compare as those of the ordering fields do. One encoder makes one kind.
enum Values {
    Rows(Rows),
    Whole(ScalarBuffer<i64>),
}

/// Ordering values of a batch of records, ready to be compared.
pub struct OrderingRows {
    values: Values,
    /// Records whose ordering value is the default, which makes a delete among them a commit-time
    /// one; none where no record's is.
    default: Option<BooleanArray>,
    /// Records with a null in an ordering field.
    null: Option<BooleanArray>,
}

impl OrderingRows {
    pub(crate) fn at_least(&self, row: usize, other: &Self, other_row: usize) -> bool {
        match (&self.values, &other.values) {
            (Values::Whole(mine), Values::Whole(theirs)) => mine[row] >= theirs[other_row],
            (Values::Rows(mine), Values::Rows(theirs)) => mine.row(row) >= theirs.row(other_row),
            _ => false,
        }
    }

    fn len(&self) -> usize {
        match &self.values {
            Values::Rows(rows) => rows.num_rows(),
            Values::Whole(numbers) => numbers.len(),
        }
    }

    pub(crate) fn is_default(&self, row: usize) -> bool {
        self.default
            .as_ref()
            .is_some_and(|default| default.value(row))
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.null.as_ref().is_some_and(|null| null.value(row))
    }

    pub(crate) fn size(&self) -> usize {
        match &self.values {
            Values::Rows(rows) => rows.size(),
            Values::Whole(numbers) => numbers.inner().capacity(),
        }
    }

    /// As columns that can be written and read back ([`crate::Encoder::restore`]): the values'
    /// bytes, which are defaults, which hold a null.
    ///
    /// # Errors
    /// More than two gigabytes of values.
    pub fn into_columns(
        self,
    ) -> Result<(BinaryArray, BooleanArray, Option<BooleanArray>), MergeError> {
        let default = match self.default {
            Some(ref default) => default.clone(),
            None => vec![false; self.len()].into(),
        };
        let values = match self.values {
            Values::Rows(rows) => rows.try_into_binary()?,
            Values::Whole(numbers) => {
                BinaryArray::from_iter_values(numbers.iter().map(|number| number.to_le_bytes()))
            }
        };
        Ok((values, default, self.null))
    }
}

/// Turns ordering columns into comparable rows.
pub(crate) struct OrderingEncoder {
    types: Vec<DataType>,
    converter: RowConverter,
    /// The values are whole numbers.
    whole: bool,
}

impl OrderingEncoder {
    pub(crate) fn new(types: &[DataType]) -> Result<Self, MergeError> {
        let fields: Vec<_> = types.iter().cloned().map(SortField::new).collect();
        if let Some(bad) = types.iter().find(|t| t.is_nested()) {
            return Err(MergeError::Ordering(bad.clone()));
        }
        Ok(Self {
            types: types.to_vec(),
            converter: RowConverter::new(fields)?,
            whole: matches!(types, [kind] if is_whole(kind)),
        })
    }

    /// Rows out of several batches; none when one of those has no ordering values.
    pub(crate) fn gather(
        &self,
        batches: &[Option<OrderingRows>],
        places: &[(usize, usize)],
    ) -> Option<OrderingRows> {
        let mut default = Vec::with_capacity(places.len());
        let mut null = Vec::with_capacity(places.len());
        for (batch, row) in places {
            let from = batches[*batch].as_ref()?;
            default.push(from.is_default(*row));
            null.push(from.is_null(*row));
        }
        let from = places.iter().map(|(batch, row)| {
            let from = batches[*batch].as_ref();
            from.map(|from| (&from.values, *row))
        });
        let values = if self.whole {
            let number = |from: Option<(&Values, usize)>| match from? {
                (Values::Whole(numbers), row) => Some(numbers[row]),
                (Values::Rows(_), _) => None,
            };
            Values::Whole(from.map(number).collect::<Option<Vec<i64>>>()?.into())
        } else {
            let mut rows = self.converter.empty_rows(places.len(), 16 * places.len());
            for from in from {
                match from? {
                    (Values::Rows(of), row) => rows.push(of.row(row)),
                    (Values::Whole(_), _) => return None,
                }
            }
            Values::Rows(rows)
        };
        Some(OrderingRows {
            values,
            default: Some(default.into()),
            null: Some(null.into()),
        })
    }

    pub(crate) fn restore(
        &self,
        values: &BinaryArray,
        default: BooleanArray,
        null: Option<BooleanArray>,
    ) -> OrderingRows {
        let values = if self.whole {
            let number = |value: &[u8]| value.try_into().map_or(0, i64::from_le_bytes);
            Values::Whole(values.iter().map(|value| value.map_or(0, number)).collect())
        } else {
            let parser = self.converter.parser();
            let mut rows = self
                .converter
                .empty_rows(values.len(), values.value_data().len());
            for value in values.iter().flatten() {
                rows.push(parser.parse(value));
            }
            Values::Rows(rows)
        };
        OrderingRows {
            values,
            default: Some(default),
            null,
        }
    }

    fn values(&self, columns: &[ArrayRef]) -> Result<Values, MergeError> {
        Ok(match columns {
            [column] if self.whole && self.types == [column.data_type().clone()] => {
                Values::Whole(whole_numbers(column)?)
            }
            // Columns of other types are an error here.
            _ => Values::Rows(self.converter.convert_columns(columns)?),
        })
    }

    /// Rows of data columns.
    pub(crate) fn encode(&self, columns: &[ArrayRef]) -> Result<OrderingRows, MergeError> {
        let null = any_null(columns);
        let default = match (columns, self.types.as_slice()) {
            ([column], [kind]) => single_default(column, kind)?,
            _ => None,
        };
        let filled = columns
            .iter()
            .map(null_as_zero)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(OrderingRows {
            values: self.values(&filled)?,
            default,
            null,
        })
    }

    /// Rows of the values in a delete block. A value of another class than the field's makes the
    /// delete win over everything, as one without a value does. Of several fields some may have
    /// none: those are nulls.
    pub(crate) fn encode_deletes(
        &self,
        values: &[OrderingValue<'_>],
    ) -> Result<OrderingRows, MergeError> {
        let mut default = vec![true; values.len()];
        let mut columns = Vec::with_capacity(self.types.len());
        for (field, kind) in self.types.iter().enumerate() {
            let parts: Vec<Option<&OrderingValue<'_>>> = values
                .iter()
                .map(|value| part(value, field, &self.types))
                .collect();
            let column = typed(&parts, kind)?;
            for (row, is_default) in default.iter_mut().enumerate() {
                *is_default &= column.is_null(row);
            }
            columns.push(null_as_zero(&column)?);
        }
        for (value, is_default) in values.iter().zip(default.iter_mut()) {
            *is_default |= matches!(value, OrderingValue::Null | OrderingValue::Int(0));
        }
        Ok(OrderingRows {
            values: self.values(&columns)?,
            default: Some(default.into()),
            null: None,
        })
    }
}

fn part<'v, 'b>(
    value: &'v OrderingValue<'b>,
    field: usize,
    types: &[DataType],
) -> Option<&'v OrderingValue<'b>> {
    match value {
        // Integer 0 is what Hudi has in place of a null, but where it can be the field's own value.
        OrderingValue::Array(parts) => parts
            .get(field)
            .filter(|part| **part != OrderingValue::Int(0) || is_int(&types[field])),
        single if types.len() == 1 => Some(single),
        _ => None,
    }
}

/// Whether Java has the values in an Integer.
fn is_int(kind: &DataType) -> bool {
    use DataType::{Date32, Int8, Int16, Int32, Time32};
    matches!(kind, Int8 | Int16 | Int32 | Date32 | Time32(_))
}

/// A column of `kind` from delete ordering values; null where the class does not fit.
fn typed(values: &[Option<&OrderingValue<'_>>], kind: &DataType) -> Result<ArrayRef, ArrowError> {
    let found: ArrayRef = match kind {
        DataType::Boolean => Arc::new(column::<BooleanArray, _>(values, |v| match v {
            OrderingValue::Boolean(b) => Some(*b),
            _ => None,
        })),
        kind if is_int(kind) => Arc::new(column::<Int32Array, _>(values, |v| {
            integer(v).and_then(|value| i32::try_from(value).ok())
        })),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            Arc::new(column::<Int64Array, _>(values, millis))
        }
        kind if kind.is_integer() || kind.is_temporal() => {
            Arc::new(column::<Int64Array, _>(values, integer))
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            Arc::new(column::<Float64Array, _>(values, float))
        }
        DataType::Decimal128(..) => {
            let unscaled: Decimal128Array = column(values, |v| match v {
                OrderingValue::Decimal(bytes) => big_endian(bytes),
                _ => None,
            });
            Arc::new(unscaled.with_precision_and_scale(38, 15)?)
        }
        DataType::Utf8 => Arc::new(column::<StringArray, _>(values, |v| match v {
            OrderingValue::String(text) => Some(text.as_ref()),
            _ => None,
        })),
        other => new_null_array(other, values.len()),
    };
    cast(&found, kind)
}

fn column<'v, A: FromIterator<Option<T>>, T>(
    values: &'v [Option<&'v OrderingValue<'v>>],
    value: impl Fn(&'v OrderingValue<'v>) -> Option<T>,
) -> A {
    values.iter().map(|v| v.and_then(&value)).collect()
}

fn integer(value: &OrderingValue<'_>) -> Option<i64> {
    match value {
        OrderingValue::Int(v) | OrderingValue::Date(v) | OrderingValue::LocalDate(v) => {
            Some(i64::from(*v))
        }
        OrderingValue::Long(v)
        | OrderingValue::TimeMicros(v)
        | OrderingValue::TimestampMicros(v) => Some(*v),
        _ => None,
    }
}

/// The latest moment that Hudi takes for milliseconds, in the year 2286.
const LATEST_MILLIS: i64 = 9_999_999_999_999;

/// Deletes may count in microseconds where the column has milliseconds: the size of the number
/// tells (`OrderingValueEngineTypeConverter`, Hudi 1.2.0).
fn millis(value: &OrderingValue<'_>) -> Option<i64> {
    let is_micros = matches!(value, OrderingValue::TimestampMicros(_));
    let given = integer(value)?;
    Some(if is_micros || given > LATEST_MILLIS {
        given.div_euclid(1000)
    } else {
        given
    })
}

fn float(value: &OrderingValue<'_>) -> Option<f64> {
    match value {
        OrderingValue::Float(v) => Some(f64::from(*v)),
        OrderingValue::Double(v) => Some(*v),
        other => integer(other).map(|v| v as f64),
    }
}

fn big_endian(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    if bytes.len() > 16 {
        return None;
    }
    let mut padded = [if negative { 0xff } else { 0 }; 16];
    for (to, from) in padded.iter_mut().rev().zip(bytes.iter().rev()) {
        *to = *from;
    }
    Some(i128::from_be_bytes(padded))
}

fn any_null(columns: &[ArrayRef]) -> Option<BooleanArray> {
    let with_nulls: Vec<_> = columns.iter().filter(|c| c.null_count() > 0).collect();
    let len = columns.first().map_or(0, Array::len);
    (!with_nulls.is_empty()).then(|| {
        (0..len)
            .map(|row| Some(with_nulls.iter().any(|c| c.is_null(row))))
            .collect()
    })
}

/// Integer 0, or null, which stands for it. A zero of another type is a value like any other.
fn single_default(column: &ArrayRef, kind: &DataType) -> Result<Option<BooleanArray>, ArrowError> {
    let null = (column.null_count() > 0)
        .then(|| is_null(column))
        .transpose()?;
    if *kind != DataType::Int32 {
        return Ok(null);
    }
    let zero = Scalar::new(Int32Array::from(vec![0]));
    let is_zero = arrow::compute::kernels::cmp::eq(column, &zero)?;
    Ok(Some(match null {
        Some(null) => arrow::compute::or_kleene(&is_zero, &null)?,
        None => is_zero,
    }))
}

/// Whether values of a type compare as whole numbers of 64 bits do.
fn is_whole(kind: &DataType) -> bool {
    use DataType::{Date32, Int32, Int64, Timestamp};
    matches!(kind, Int32 | Int64 | Date32 | Timestamp(..))
}

/// The numbers of a column of such a type without nulls.
fn whole_numbers(column: &ArrayRef) -> Result<ScalarBuffer<i64>, ArrowError> {
    let days = (*column.data_type() == DataType::Date32).then(|| cast(column, &DataType::Int32));
    let numbers = cast(
        &days.transpose()?.unwrap_or_else(|| Arc::clone(column)),
        &DataType::Int64,
    )?;
    Ok(numbers.as_primitive::<Int64Type>().values().clone())
}

fn null_as_zero(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if column.null_count() == 0 {
        return Ok(Arc::clone(column));
    }
    let kind = column.data_type();
    let zero = match kind {
        kind if is_int(kind) => cast(&Int32Array::from(vec![0]), kind)?,
        kind if kind.is_numeric() || kind.is_temporal() => cast(&Int64Array::from(vec![0]), kind)?,
        _ => return Ok(Arc::clone(column)),
    };
    zip(&is_not_null(column)?, column, &Scalar::new(zero))
}
