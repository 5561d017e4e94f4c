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

use crate::error::{Result, SliceError};
use crate::java_text::java_text;

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
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
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

fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema
        .fields()
        .iter()
        .map(|f| f.as_ref().clone().with_nullable(true))
        .collect();
    Arc::new(arrow::datatypes::Schema::new(fields))
}

/// One column in the type of `field`.
pub(crate) fn adapt_column(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    match (column.data_type(), field.data_type()) {
        (DataType::Struct(_), DataType::Struct(fields)) => adapt_struct(column, fields),
        (
            DataType::List(_) | DataType::LargeList(_) | DataType::ListView(_),
            DataType::List(item),
        ) => adapt_list(column, item),
        (DataType::Map(..), DataType::Map(entries, _)) => adapt_map(column, entries),
        (from, to) if widens(from, to) => widen(column, field),
        (from, to) => Err(SliceError::Schema(format!(
            "column {} is stored as {from}, which cannot be read as {to}",
            field.name()
        ))),
    }
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
    // Key and value go by place: their names differ between writers.
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

/// What Hudi's readers promote: Avro's promotions, numbers to text, decimals that grow, and the
/// same value in another representation.
fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    if is_text(from) && is_text(to) || is_bytes(from) && is_bytes(to) {
        return true;
    }
    match (from, to) {
        (T::Dictionary(_, value), to) => value.as_ref() == to || widens(value, to),
        (T::Int8 | T::Int16 | T::UInt8 | T::UInt16, T::Int32 | T::Int64)
        | (T::Int32, T::Int64)
        | (T::Int8 | T::Int16 | T::Int32 | T::Int64, T::Float32 | T::Float64)
        | (T::Float32, T::Float64)
        | (T::Time32(_), T::Time64(_)) => true,
        (from, T::Utf8) => {
            is_bytes(from)
                || from.is_integer()
                || matches!(
                    from,
                    T::Float32 | T::Float64 | T::Decimal128(..) | T::Date32
                )
        }
        (from, T::Binary) => is_text(from),
        (T::Int32 | T::Int64, T::Decimal128(precision, scale)) => {
            let digits = if *from == T::Int32 { 10 } else { 19 };
            i16::from(*precision) - i16::from(*scale) >= digits
        }
        (T::Decimal128(p, s), T::Decimal128(to_p, to_s)) => {
            to_s >= s && i16::from(*to_p) - i16::from(*to_s) >= i16::from(*p) - i16::from(*s)
        }
        (T::Timestamp(from_unit, from_zone), T::Timestamp(to_unit, to_zone)) => {
            from_zone.is_some() == to_zone.is_some() && finer_or_nanos(*from_unit, *to_unit)
        }
        _ => false,
    }
}

/// Nanoseconds come only from INT96, which Spark fills with microseconds.
fn finer_or_nanos(from: TimeUnit, to: TimeUnit) -> bool {
    from == TimeUnit::Nanosecond || rank(from) <= rank(to)
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
    let to = field.data_type();
    let as_java_prints = matches!(
        column.data_type(),
        DataType::Float32 | DataType::Float64 | DataType::Decimal128(..)
    );
    if *to == DataType::Utf8 && as_java_prints {
        return Ok(Arc::new(java_text(column, field.name())?));
    }
    let options = arrow::compute::CastOptions {
        safe: false,
        ..Default::default()
    };
    Ok(arrow::compute::cast_with_options(column, to, &options)?)
}
