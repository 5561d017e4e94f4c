//! A batch as a file has it, to a batch as the table has it.
//!
//! Columns are matched by name, missing ones become null, types are widened the way Hudi reads older
//! files. This is the one place of schema evolution on read: Parquet and log blocks both pass here.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
    new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, SchemaRef, TimeUnit};

use crate::convert::{
    floats_to_doubles, longs_to_local_timestamps, micros_meant_as_millis, texts_to_dates,
    to_decimals,
};
use crate::error::{Result, SliceError};
use crate::unshred::{is_shredded, unshred};
use pyhudi_avro::{AvroError, vector_bytes, vector_list};
use pyhudi_keys::java_text;

/// The zone that says where microseconds come from: those of INT96 are never mis-stamped.
pub(crate) const INT96_ZONE: &str = "+00:00";

/// The batch with exactly the columns of `target`.
pub(crate) fn adapt(batch: &RecordBatch, target: &SchemaRef) -> Result<RecordBatch> {
    let columns = target
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            Some(column) => adapt_column(column, field),
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        })
        .collect::<Result<Vec<_>>>()?;
    with_schema(columns, target, batch.num_rows())
}

/// The batch of adapted columns.
pub(crate) fn with_schema(
    columns: Vec<ArrayRef>,
    target: &SchemaRef,
    rows: usize,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    // The stored nullability of old files is looser than the table's: it is not enforced here.
    let schema = if columns
        .iter()
        .zip(target.fields())
        .any(|(c, f)| !f.is_nullable() && c.null_count() > 0)
    {
        nullable(target)
    } else {
        Arc::clone(target)
    };
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

/// An error for a batch that was adapted to a file's schema, but has nulls where there must be none.
pub(crate) fn check_required(batch: &RecordBatch, target: &SchemaRef) -> Result<()> {
    if &batch.schema() == target {
        return Ok(());
    }
    let columns = target.fields().iter().zip(batch.columns());
    let name = columns
        .filter(|(field, column)| !field.is_nullable() && column.null_count() > 0)
        .map(|(field, _)| field.name().as_str())
        .collect::<Vec<_>>()
        .join(", ");
    Err(SliceError::Schema(format!(
        "column {name} must not be null"
    )))
}

fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_nullable(true))
        .collect();
    Arc::new(arrow::datatypes::Schema::new(fields))
}

/// One column in the type of `field`.
pub fn adapt_column(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    match (column.data_type(), field.data_type()) {
        (DataType::Struct(stored), DataType::Struct(fields)) if is_shredded(stored, fields) => {
            unshred(column.as_struct(), fields)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => adapt_struct(column, fields),
        (
            DataType::List(_) | DataType::LargeList(_) | DataType::ListView(_),
            DataType::List(item),
        ) => adapt_list(column, item),
        (DataType::Map(..), DataType::Map(entries, _)) => adapt_map(column, entries),
        // A VECTOR, as files have it and as the table does.
        (DataType::FixedSizeBinary(_), to @ DataType::FixedSizeList(..)) => {
            vector_list(column.as_fixed_size_binary(), to, field.name()).map_err(schema_error)
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeBinary(size)) => {
            let bytes = vector_bytes(column.as_fixed_size_list(), field.name());
            match bytes.map_err(schema_error)? {
                bytes if bytes.value_length() == *size => Ok(Arc::new(bytes)),
                _ => Err(unlike(column, field)),
            }
        }
        (from, to) if widens(from, to) => widen(column, field),
        (DataType::Int64, DataType::Int32) | (DataType::Float64, DataType::Float32) => {
            narrow(column, field)
        }
        _ => Err(unlike(column, field)),
    }
}

/// Values of a wider type. Time travel meets them in files of a service that was planned before a
/// column was widened, and that Hudi carried out after that.
fn narrow(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let narrowed = cast(column, field.data_type())?;
    let back = cast(&narrowed, column.data_type())?;
    if back.to_data() == column.to_data() {
        return Ok(narrowed);
    }
    Err(SliceError::Schema(format!(
        "column {} is stored as {} and has values that {} cannot hold",
        field.name(),
        column.data_type(),
        field.data_type()
    )))
}

fn unlike(column: &ArrayRef, field: &Field) -> SliceError {
    SliceError::Schema(format!(
        "column {} is stored as {}, which cannot be read as {}",
        field.name(),
        column.data_type(),
        field.data_type()
    ))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn schema_error(error: AvroError) -> SliceError {
    SliceError::Schema(error.to_string())
}

fn adapt_struct(column: &ArrayRef, fields: &Fields) -> Result<ArrayRef> {
    let from = column.as_struct();
    let children = fields
        .iter()
        .map(|field| match from.column_by_name(field.name()) {
            Some(child) => adapt_column(child, field),
            None => Ok(new_null_array(field.data_type(), from.len())),
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(
        fields.clone(),
        children,
        from.nulls().cloned(),
        from.len(),
    )?))
}

fn adapt_list(column: &ArrayRef, item: &Arc<Field>) -> Result<ArrayRef> {
    let column = match column.data_type() {
        DataType::List(_) => Arc::clone(column),
        DataType::LargeList(inner) | DataType::ListView(inner) => {
            cast(column, &DataType::List(Arc::clone(inner)))?
        }
        other => return Err(SliceError::Schema(format!("{other} is no list"))),
    };
    let from: &ListArray = column.as_list();
    let values = adapt_column(from.values(), item)?;
    if !item.is_nullable() && values.null_count() > 0 {
        return Err(SliceError::Schema(format!(
            "a list has null elements where its elements ({}) cannot be null",
            item.data_type()
        )));
    }
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(item),
        from.offsets().clone(),
        values,
        from.nulls().cloned(),
    )?))
}

fn adapt_map(column: &ArrayRef, entries: &Arc<Field>) -> Result<ArrayRef> {
    let from: &MapArray = column.as_map();
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(SliceError::Schema(
            "a map's entries are no struct".to_owned(),
        ));
    };
    // Key and value are matched by position: their names differ between writers.
    let children = fields
        .iter()
        .zip(from.entries().columns())
        .map(|(field, child)| adapt_column(child, field))
        .collect::<Result<Vec<_>>>()?;
    let new = StructArray::try_new(fields.clone(), children, None)?;
    Ok(Arc::new(MapArray::try_new(
        Arc::clone(entries),
        from.offsets().clone(),
        new,
        from.nulls().cloned(),
        false,
    )?))
}

/// What Hudi's readers promote: Avro's promotions, numbers to text, decimals that grow, the same
/// value in another representation, and what `SchemaChangeUtils.isTypeUpdateAllow` (Hudi 1.2.0) lets
/// schema on read also do: numbers and text to decimals, text to dates.
fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    if is_text(from) && is_text(to) || is_bytes(from) && is_bytes(to) {
        return true;
    }
    match (from, to) {
        (T::Dictionary(_, value), to) => value.as_ref() == to || widens(value, to),
        (T::Int8 | T::Int16 | T::UInt8 | T::UInt16, T::Int32 | T::Int64)
        | (
            T::Int32 | T::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, None),
            T::Int64,
        )
        | (T::Int8 | T::Int16 | T::Int32 | T::Int64, T::Float32 | T::Float64)
        | (T::Float32, T::Float64)
        | (T::Time32(_), T::Time64(_))
        | (T::Int64, T::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, None)) => true,
        (from, T::Utf8) => {
            is_bytes(from)
                || from.is_integer()
                || matches!(
                    from,
                    T::Float32 | T::Float64 | T::Decimal128(..) | T::Date32
                )
        }
        (from, T::Binary | T::Date32) => is_text(from),
        (T::Decimal128(p, s), T::Decimal128(to_p, to_s)) => {
            to_s >= s && i16::from(*to_p) - i16::from(*to_s) >= i16::from(*p) - i16::from(*s)
        }
        (from, T::Decimal128(..)) => {
            from.is_integer() || is_text(from) || matches!(from, T::Float32 | T::Float64)
        }
        (T::Timestamp(from_unit, from_zone), T::Timestamp(to_unit, to_zone)) => {
            from_zone.is_some() == to_zone.is_some()
                && (finer_or_nanos(*from_unit, *to_unit) || micros_to_millis(*from_unit, *to_unit))
                && (from_zone.is_some() || rank(*from_unit) <= rank(*to_unit))
        }
        _ => false,
    }
}

/// Nanoseconds hold no more than microseconds where a writer of Hudi tables made them.
fn finer_or_nanos(from: TimeUnit, to: TimeUnit) -> bool {
    from == TimeUnit::Nanosecond || rank(from) <= rank(to)
}

fn micros_to_millis(from: TimeUnit, to: TimeUnit) -> bool {
    from == TimeUnit::Microsecond && to == TimeUnit::Millisecond
}

/// See [`micros_meant_as_millis`].
fn is_mis_stamped(from: &DataType, to: TimeUnit) -> bool {
    match from {
        DataType::Timestamp(unit, Some(zone)) => {
            micros_to_millis(*unit, to) && zone.as_ref() != INT96_ZONE
        }
        _ => false,
    }
}

fn rank(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn is_bytes(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

fn widen(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    use DataType as T;
    let column = match column.data_type() {
        T::Dictionary(_, value) => &cast(column, value)?,
        _ => column,
    };
    let to = field.data_type();
    match (column.data_type(), to) {
        (T::Float32 | T::Float64 | T::Decimal128(..), T::Utf8) => {
            Ok(Arc::new(java_text(column, field.name())?))
        }
        (T::Float32, T::Float64) => Ok(floats_to_doubles(column)),
        (from, T::Decimal128(..)) if from.is_floating() || is_text(from) => {
            to_decimals(column, field.name(), to)
        }
        (from, T::Date32) if is_text(from) => texts_to_dates(column, field.name()),
        (from, T::Timestamp(unit, zone)) if is_mis_stamped(from, *unit) => {
            Ok(micros_meant_as_millis(column, zone.clone()))
        }
        (T::Int64, T::Timestamp(unit, None)) => longs_to_local_timestamps(column, *unit)
            .ok_or_else(|| SliceError::Schema(format!("{to} is no timestamp of Avro"))),
        _ => {
            let options = arrow::compute::CastOptions {
                safe: false,
                ..Default::default()
            };
            arrow::compute::cast_with_options(column, to, &options)
                .map_err(|error| SliceError::Schema(format!("column {}: {error}", field.name())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        Float32Array, Float64Array, Int32Array, Int64Array, TimestampMicrosecondArray,
        TimestampMillisecondArray, TimestampNanosecondArray,
    };

    fn read(column: impl Array + 'static, to: DataType) -> Result<ArrayRef> {
        adapt_column(&(Arc::new(column) as ArrayRef), &Field::new("at", to, true))
    }

    fn utc(unit: TimeUnit) -> DataType {
        DataType::Timestamp(unit, Some("UTC".into()))
    }

    #[test]
    fn wider_values_are_read_if_they_fit() {
        let ints = read(Int64Array::from(vec![Some(-5), None]), DataType::Int32).unwrap();
        assert_eq!(ints.as_ref(), &Int32Array::from(vec![Some(-5), None]));
        let floats = read(Float64Array::from(vec![0.5, f64::NAN]), DataType::Float32).unwrap();
        assert_eq!(floats.as_ref(), &Float32Array::from(vec![0.5, f32::NAN]));
        assert!(read(Int64Array::from(vec![1 << 40]), DataType::Int32).is_err());
        assert!(read(Float64Array::from(vec![0.1]), DataType::Float32).is_err());
    }

    #[test]
    fn micros_of_a_millisecond_column_are_milliseconds() {
        let stored = TimestampMicrosecondArray::from(vec![1_709_209_800_123]);
        let zoned = stored.clone().with_timezone("UTC");
        let wanted = TimestampMillisecondArray::from(vec![1_709_209_800_123]);
        let found = read(zoned, utc(TimeUnit::Millisecond)).unwrap();
        assert_eq!(found.as_ref(), &wanted.with_timezone("UTC"));
        let local = DataType::Timestamp(TimeUnit::Millisecond, None);
        assert!(read(stored, local).is_err());
    }

    #[test]
    fn timestamps_of_int96_are_what_they_say() {
        let stored = TimestampMicrosecondArray::from(vec![1_709_209_800_123_000]);
        let wanted = TimestampMillisecondArray::from(vec![1_709_209_800_123]);
        let found = read(stored.with_timezone(INT96_ZONE), utc(TimeUnit::Millisecond)).unwrap();
        assert_eq!(found.as_ref(), &wanted.with_timezone("UTC"));
    }

    #[test]
    fn plain_longs_are_local_timestamps_but_no_instants() {
        let longs = Int64Array::from(vec![5]);
        let local = DataType::Timestamp(TimeUnit::Millisecond, None);
        let found = read(longs.clone(), local).unwrap();
        assert_eq!(found.as_ref(), &TimestampMillisecondArray::from(vec![5]));
        assert!(read(longs, utc(TimeUnit::Microsecond)).is_err());
    }

    #[test]
    fn nanoseconds_lose_what_no_writer_gave_them() {
        let stored = TimestampNanosecondArray::from(vec![5_000]).with_timezone("UTC");
        let found = read(stored, utc(TimeUnit::Microsecond)).unwrap();
        let wanted = TimestampMicrosecondArray::from(vec![5]).with_timezone("UTC");
        assert_eq!(found.as_ref(), &wanted);
    }

    #[test]
    fn a_value_that_the_new_type_cannot_hold_is_an_error() {
        let longs = Int64Array::from(vec![12_345]);
        let error = read(longs, DataType::Decimal128(4, 2)).unwrap_err();
        assert!(error.to_string().contains("column at"), "{error}");
        let texts = arrow::array::StringArray::from(vec!["abc"]);
        let error = read(texts, DataType::Date32).unwrap_err();
        assert!(error.to_string().contains("\"abc\""), "{error}");
    }
}
