//! Casts that keep every value, or fail.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, PrimitiveArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray,
};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{ArrowTimestampType, DataType, TimeUnit};

use crate::error::{AvroError, Result, schema_error};

/// Casts; a value that the target type cannot hold at all is an error.
///
/// A timestamp's zone is only a name here: no zone counts as UTC.
pub(crate) fn checked_cast(array: &ArrayRef, to: &DataType, path: &str) -> Result<ArrayRef> {
    let from = array.data_type();
    if from == to {
        return Ok(Arc::clone(array));
    }
    // Arrow looks up the zone for some of these casts and, built without the zone database,
    // does not even know "UTC".
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let cast = cast_with_options(&with_zone(array, None), &without_zone(to), &options);
    let cast = cast.map_err(|e| AvroError::Schema(format!("{path}: {from} to {to}: {e}")))?;
    Ok(match to {
        DataType::Timestamp(_, zone) => with_zone(&cast, zone.as_ref()),
        _ => cast,
    })
}

/// Casts; a value that the target type holds only in part (nanoseconds in a microsecond
/// column, 0.1 in a float column) is an error too.
pub(crate) fn exact_cast(array: &ArrayRef, to: &DataType, path: &str) -> Result<ArrayRef> {
    let from = array.data_type();
    let out = checked_cast(array, to, path)?;
    if from == to || from.is_string() || from.is_binary() {
        return Ok(out);
    }
    let back = checked_cast(&out, from, path)?;
    if distinct(&back, array)?.has_true() {
        return schema_error(format!("{path}: {from} values that {to} cannot hold"));
    }
    Ok(out)
}

fn without_zone(ty: &DataType) -> DataType {
    match ty {
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
        other => other.clone(),
    }
}

/// The same instants under another zone; other arrays as they are.
fn with_zone(array: &ArrayRef, zone: Option<&Arc<str>>) -> ArrayRef {
    let DataType::Timestamp(unit, _) = array.data_type() else {
        return Arc::clone(array);
    };
    match unit {
        TimeUnit::Second => rezoned(array.as_primitive() as &TimestampSecondArray, zone),
        TimeUnit::Millisecond => rezoned(array.as_primitive() as &TimestampMillisecondArray, zone),
        TimeUnit::Microsecond => rezoned(array.as_primitive() as &TimestampMicrosecondArray, zone),
        TimeUnit::Nanosecond => rezoned(array.as_primitive() as &TimestampNanosecondArray, zone),
    }
}

fn rezoned<T: ArrowTimestampType>(array: &PrimitiveArray<T>, zone: Option<&Arc<str>>) -> ArrayRef {
    Arc::new(array.clone().with_timezone_opt(zone.cloned()))
}
