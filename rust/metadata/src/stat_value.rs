//! Bounds in statistics: from the wrapper records that hold them to values of a column's type.
//!
//! Up to index version 1 (tables of version 6 and 8) the wrapper's own type says what a value is;
//! from version 2 on `valueType` names it and some types share a wrapper (`ValueType`, Hudi 1.2.0).

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array,
    Int64Array, StringArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::datatypes::{DataType, TimeUnit};
use pyhudi_avro::Datum;
use pyhudi_slice::{Result, is_of_both_calendars};

/// A least or greatest value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    Boolean(bool),
    /// Every kind of number but floating ones, in the column's unit or scale.
    Whole(i128),
    Floating(f64),
    Text(String),
}

impl Bound {
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => Some(a.cmp(b)),
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(b)),
            (Self::Floating(a), Self::Floating(b)) => a.partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// Whether values may lie outside of these bounds. Parquet keeps no bounds of floating numbers
    /// with a NaN among them, and Hudi takes the zeros that it finds instead into its own.
    pub(super) fn may_hide(&self, greatest: &Self) -> bool {
        match (self, greatest) {
            (Self::Floating(least), Self::Floating(greatest)) => *least <= 0.0 && 0.0 <= *greatest,
            _ => false,
        }
    }

    pub(super) fn least(a: &Self, b: &Self) -> Option<Self> {
        let order = a.compare(b)?;
        Some(if order.is_le() { a } else { b }.clone())
    }

    pub(super) fn greatest(a: &Self, b: &Self) -> Option<Self> {
        let order = a.compare(b)?;
        Some(if order.is_ge() { a } else { b }.clone())
    }
}

/// Branches of the wrapper union; later releases only add to its end.
mod wrapper {
    pub(super) const BOOLEAN: usize = 1;
    pub(super) const INT: usize = 2;
    pub(super) const LONG: usize = 3;
    pub(super) const FLOAT: usize = 4;
    pub(super) const DOUBLE: usize = 5;
    pub(super) const BYTES: usize = 6;
    pub(super) const STRING: usize = 7;
    pub(super) const DATE: usize = 8;
    pub(super) const DECIMAL: usize = 9;
    pub(super) const TIMESTAMP_MICROS: usize = 11;
}

/// `ValueType` ordinals.
mod kind {
    pub(super) const UNSAID: i64 = 0;
    pub(super) const BOOLEAN: i64 = 2;
    pub(super) const INT: i64 = 3;
    pub(super) const LONG: i64 = 4;
    pub(super) const FLOAT: i64 = 5;
    pub(super) const DOUBLE: i64 = 6;
    pub(super) const STRING: i64 = 7;
    pub(super) const DECIMAL: i64 = 10;
    pub(super) const DATE: i64 = 12;
    pub(super) const TIMESTAMP_MILLIS: i64 = 15;
    pub(super) const TIMESTAMP_MICROS: i64 = 16;
    pub(super) const LOCAL_TIMESTAMP_MILLIS: i64 = 18;
    pub(super) const LOCAL_TIMESTAMP_MICROS: i64 = 19;
}

/// Scale of the wrapper for decimals.
const DECIMAL_SCALE: i8 = 15;
/// A time in microseconds is beyond this from 1978 on, one in milliseconds after year 9999.
const SURELY_MICROS: i64 = 253_402_300_799_999;

/// The value in a wrapper, when it surely is one of `column`.
///
/// Days and times of Spark's old calendar are read as others than those that statistics have.
pub(super) fn bound(
    stored: &Datum<'_>,
    value_type: &Datum<'_>,
    column: &DataType,
) -> Option<Bound> {
    unwrapped(stored, value_type, column).filter(|bound| match bound {
        Bound::Whole(value) => is_of_both_calendars(column, *value),
        _ => true,
    })
}

fn unwrapped(stored: &Datum<'_>, value_type: &Datum<'_>, column: &DataType) -> Option<Bound> {
    let Datum::Branch(branch, wrapped) = stored else {
        return None;
    };
    let kind = value_type
        .field("typeOrdinal")
        .number()
        .unwrap_or(kind::UNSAID);
    let value = wrapped.field("value");
    match column {
        DataType::Boolean => match (branch, kind, value) {
            (&wrapper::BOOLEAN, kind::UNSAID | kind::BOOLEAN, Datum::Boolean(value)) => {
                Some(Bound::Boolean(*value))
            }
            _ => None,
        },
        DataType::Int32 | DataType::Int64 => integer(*branch, kind, value, column),
        DataType::Date32 => match (*branch, kind) {
            (wrapper::DATE, kind::UNSAID | kind::DATE) | (wrapper::INT, kind::DATE) => {
                value.number().map(whole)
            }
            _ => None,
        },
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            micros(*branch, kind, value.number()?, zone.is_some())
        }
        DataType::Float32 => match (branch, kind, value) {
            (&wrapper::FLOAT, kind::UNSAID | kind::FLOAT, Datum::Float(value)) => {
                floating(f64::from(*value))
            }
            _ => None,
        },
        DataType::Float64 => match (branch, kind, value) {
            (&wrapper::DOUBLE, kind::UNSAID | kind::DOUBLE, Datum::Double(value)) => {
                floating(*value)
            }
            _ => None,
        },
        DataType::Utf8 => match (*branch, kind) {
            (wrapper::STRING, kind::UNSAID | kind::STRING) => text(value.text()?),
            _ => None,
        },
        DataType::Decimal128(precision, scale) => {
            decimal(*branch, kind, value, value_type, (*precision, *scale))
        }
        _ => None,
    }
}

fn whole(value: i64) -> Bound {
    Bound::Whole(i128::from(value))
}

fn integer(branch: usize, kind: i64, value: &Datum<'_>, column: &DataType) -> Option<Bound> {
    let fits = match (branch, kind) {
        (wrapper::INT, kind::UNSAID | kind::INT) => true,
        (wrapper::LONG, kind::UNSAID | kind::LONG) => *column == DataType::Int64,
        _ => false,
    };
    value.number().filter(|_| fits).map(whole)
}

fn micros(branch: usize, kind: i64, value: i64, in_utc: bool) -> Option<Bound> {
    let (in_micros, in_millis) = if in_utc {
        (kind::TIMESTAMP_MICROS, kind::TIMESTAMP_MILLIS)
    } else {
        (kind::LOCAL_TIMESTAMP_MICROS, kind::LOCAL_TIMESTAMP_MILLIS)
    };
    match branch {
        wrapper::LONG | wrapper::TIMESTAMP_MICROS if kind == in_micros => Some(whole(value)),
        wrapper::LONG if kind == in_millis => value.checked_mul(1000).map(whole),
        wrapper::TIMESTAMP_MICROS if kind == kind::UNSAID => Some(whole(value)),
        wrapper::LONG if kind == kind::UNSAID && value.unsigned_abs() > SURELY_MICROS as u64 => {
            Some(whole(value))
        }
        _ => None,
    }
}

pub(super) fn floating(value: f64) -> Option<Bound> {
    (!value.is_nan()).then_some(Bound::Floating(value))
}

/// Java orders text by UTF-16 units, Parquet and Arrow by bytes. Both agree unless a character
/// above the surrogates is met.
pub(super) fn text(value: &str) -> Option<Bound> {
    let plain = value.chars().all(|one| one < '\u{e000}');
    plain.then(|| Bound::Text(value.to_owned()))
}

fn decimal(
    branch: usize,
    kind: i64,
    value: &Datum<'_>,
    value_type: &Datum<'_>,
    (precision, scale): (u8, i8),
) -> Option<Bound> {
    let Datum::Bytes(bytes) = value else {
        return None;
    };
    let unscaled = big_endian(bytes)?;
    match (branch, kind) {
        (wrapper::DECIMAL, kind::UNSAID) => {
            let digits = u32::try_from(DECIMAL_SCALE.checked_sub(scale)?).ok()?;
            let factor = 10_i128.checked_pow(digits)?;
            (unscaled % factor == 0).then_some(Bound::Whole(unscaled / factor))
        }
        (wrapper::BYTES, kind::DECIMAL) => {
            let said = value_type.field("additionalInfo").text()?;
            (said == format!("{precision},{scale}")).then_some(Bound::Whole(unscaled))
        }
        _ => None,
    }
}

pub(super) fn big_endian(bytes: &[u8]) -> Option<i128> {
    let first = bytes.first()?;
    let mut wide = if *first < 0x80 { [0; 16] } else { [0xff; 16] };
    let start = wide.len().checked_sub(bytes.len())?;
    wide.get_mut(start..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

/// Bounds as an array of the column's type; null if there is no bound.
pub(super) fn bounds_array<'b>(
    bounds: impl ExactSizeIterator<Item = Option<&'b Bound>>,
    column: &DataType,
) -> Result<ArrayRef> {
    let wholes = |bound: Option<&Bound>| match bound {
        Some(Bound::Whole(value)) => i64::try_from(*value).ok(),
        _ => None,
    };
    let days = |bound: Option<&Bound>| wholes(bound).and_then(|value| i32::try_from(value).ok());
    let floats = |bound: Option<&Bound>| match bound {
        Some(Bound::Floating(value)) => Some(*value),
        _ => None,
    };
    Ok(match column {
        DataType::Boolean => {
            let values = bounds.map(|bound| match bound {
                Some(Bound::Boolean(value)) => Some(*value),
                _ => None,
            });
            Arc::new(values.collect::<BooleanArray>())
        }
        DataType::Int32 => Arc::new(bounds.map(days).collect::<Int32Array>()),
        DataType::Int64 => Arc::new(bounds.map(wholes).collect::<Int64Array>()),
        DataType::Date32 => Arc::new(bounds.map(days).collect::<Date32Array>()),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let values: TimestampMicrosecondArray = bounds.map(wholes).collect();
            Arc::new(values.with_timezone_opt(zone.clone()))
        }
        DataType::Float32 => {
            let values = bounds.map(|bound| floats(bound).map(|value| value as f32));
            Arc::new(values.collect::<Float32Array>())
        }
        DataType::Float64 => Arc::new(bounds.map(floats).collect::<Float64Array>()),
        DataType::Utf8 => {
            let values = bounds.map(|bound| match bound {
                Some(Bound::Text(value)) => Some(value.as_str()),
                _ => None,
            });
            Arc::new(values.collect::<StringArray>())
        }
        DataType::Decimal128(precision, scale) => {
            let values = bounds.map(|bound| match bound {
                Some(Bound::Whole(value)) => Some(*value),
                _ => None,
            });
            let values: Decimal128Array = values.collect();
            Arc::new(values.with_precision_and_scale(*precision, *scale)?)
        }
        other => new_null_array(other, bounds.len()),
    })
}

#[cfg(test)]
mod tests;
