//! Least and greatest values as the statistics of the metadata table hold them.
//!
//! Reading them is `stat_value`'s part, where the numbers below are explained.

use pyhudi_format::log::big_endian;
use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
};
use pyhudi_avro::{Datum, Value};
use pyhudi_keys::double_order;

/// A value that can be a bound.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    Boolean(bool),
    Whole(i64),
    Single(f32),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Decimal(i128),
}

impl Bound {
    /// The value in a row, None for null and for types without bounds.
    pub(super) fn at(column: &ArrayRef, row: usize) -> Option<Self> {
        Self::least_and_greatest(&column.slice(row, 1)).map(|(value, _)| value)
    }

    /// Of a column's values, None where all are null and for types without bounds.
    pub(super) fn least_and_greatest(column: &ArrayRef) -> Option<(Self, Self)> {
        let whole = Self::Whole;
        match column.data_type() {
            DataType::Boolean => extremes(column.as_boolean().iter(), bool::cmp, Self::Boolean),
            DataType::Int32 => primitive::<Int32Type>(column, |value| whole(value.into())),
            DataType::Int64 => primitive::<Int64Type>(column, whole),
            DataType::Date32 => primitive::<Date32Type>(column, |value| whole(value.into())),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                primitive::<TimestampMicrosecondType>(column, whole)
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                primitive::<TimestampMillisecondType>(column, whole)
            }
            DataType::Decimal128(..) => primitive::<Decimal128Type>(column, Self::Decimal),
            DataType::Float32 => {
                let order = |a: &f32, b: &f32| double_order((*a).into(), (*b).into());
                let values = column.as_primitive::<Float32Type>().iter();
                extremes(values, order, Self::Single)
            }
            DataType::Float64 => {
                let order = |a: &f64, b: &f64| double_order(*a, *b);
                let values = column.as_primitive::<Float64Type>().iter();
                extremes(values, order, Self::Double)
            }
            DataType::Utf8 => {
                let texts = column.as_string::<i32>().iter();
                extremes(texts, Ord::cmp, |text| Self::Text(text.to_owned()))
            }
            DataType::Binary => {
                let values = column.as_binary::<i32>().iter();
                extremes(values, Ord::cmp, |bytes| Self::Bytes(bytes.to_vec()))
            }
            _ => None,
        }
    }

    /// The order of Spark and Java.
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::Whole(a), Self::Whole(b)) => a.cmp(b),
            (Self::Single(a), Self::Single(b)) => double_order(f64::from(*a), f64::from(*b)),
            (Self::Double(a), Self::Double(b)) => double_order(*a, *b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::Decimal(a), Self::Decimal(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }

    pub(super) fn least(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) if b.order(&a).is_lt() => Some(b),
            (a, b) => a.or(b),
        }
    }

    pub(super) fn greatest(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) if b.order(&a).is_gt() => Some(b),
            (a, b) => a.or(b),
        }
    }

    /// The wrapper record with its branch in the union.
    pub(super) fn wrapped<'v>(&self, wrapper: Wrapper, bytes: &'v Bytes) -> Value<'v> {
        let value = match (self, bytes) {
            (Self::Boolean(value), _) => Value::Boolean(*value),
            (Self::Whole(value), _) => Value::Whole(*value),
            (Self::Single(value), _) => Value::Float(*value),
            (Self::Double(value), _) => Value::Double(*value),
            (_, Bytes::Text(text)) => Value::Text(text),
            (_, Bytes::Raw(bytes)) => Value::Bytes(bytes),
        };
        let record = Value::Record(vec![("value", value)]);
        Value::Branch(wrapper.branch, Box::new(record))
    }

    /// The value in a wrapper record of that kind, None if it is not of the column's type.
    pub(super) fn unwrapped(stored: &Datum<'_>, wrapper: Wrapper, ty: &DataType) -> Option<Self> {
        let Datum::Branch(branch, record) = stored else {
            return None;
        };
        if *branch != wrapper.branch {
            return None;
        }
        Some(match (record.field("value"), ty) {
            (Datum::Boolean(value), DataType::Boolean) => Self::Boolean(*value),
            (Datum::Float(value), DataType::Float32) => Self::Single(*value),
            (Datum::Double(value), DataType::Float64) => Self::Double(*value),
            (Datum::String(value), DataType::Utf8) => Self::Text((*value).to_owned()),
            (Datum::Bytes(value), DataType::Binary) => Self::Bytes(value.to_vec()),
            (Datum::Bytes(value), DataType::Decimal128(..)) => {
                Self::Decimal(crate::stat_value::big_endian(value)?)
            }
            (value, ty) if !ty.is_floating() => Self::Whole(value.number()?),
            _ => return None,
        })
    }

    /// What [`Bound::wrapped`] borrows.
    pub(super) fn bytes(&self, wrapper: Wrapper) -> Bytes {
        match self {
            Self::Text(text) => Bytes::Text(text.clone()),
            Self::Bytes(bytes) => Bytes::Raw(bytes.clone()),
            Self::Decimal(value) => Bytes::Raw(big_endian(value.saturating_mul(wrapper.factor))),
            _ => Bytes::Raw(Vec::new()),
        }
    }
}

pub(super) enum Bytes {
    Text(String),
    Raw(Vec<u8>),
}

fn primitive<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    bound: impl Fn(T::Native) -> Bound,
) -> Option<(Bound, Bound)>
where
    T::Native: Ord,
{
    extremes(column.as_primitive::<T>().iter(), Ord::cmp, bound)
}

/// The least and the greatest of the values that are not null; of equal ones the first.
fn extremes<V: Copy>(
    values: impl Iterator<Item = Option<V>>,
    order: impl Fn(&V, &V) -> Ordering,
    bound: impl Fn(V) -> Bound,
) -> Option<(Bound, Bound)> {
    let mut values = values.flatten();
    let first = values.next()?;
    let (mut least, mut greatest) = (first, first);
    for value in values {
        if order(&value, &least).is_lt() {
            least = value;
        } else if order(&value, &greatest).is_gt() {
            greatest = value;
        }
    }
    Some((bound(least), bound(greatest)))
}

/// `ValueType` of a column without values.
pub(super) const ONLY_NULLS: i64 = 1;

/// How bounds of a column are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrapper {
    /// In the union of wrapper records.
    pub(super) branch: usize,
    /// `ValueType`, from index version 2 on.
    pub(super) kind: i64,
    /// What decimals are multiplied by.
    pub(super) factor: i128,
}

/// Scale and precision of the wrapper for decimals up to index version 1.
const DECIMAL_SCALE: i8 = 15;
const DECIMAL_PRECISION: i16 = 30;

/// The wrapper of a column's type, None for types without statistics.
pub(super) fn wrapper(ty: &DataType, with_value_type: bool) -> Option<Wrapper> {
    let mut factor = 1;
    let (old, new, kind) = match ty {
        DataType::Boolean => (1, 1, 2),
        DataType::Int32 => (2, 2, 3),
        DataType::Int64 => (3, 3, 4),
        DataType::Float32 => (4, 4, 5),
        DataType::Float64 => (5, 5, 6),
        DataType::Utf8 => (7, 7, 7),
        DataType::Binary => (6, 6, 8),
        DataType::Date32 => (8, 2, 12),
        DataType::Timestamp(TimeUnit::Millisecond, Some(_)) => (3, 3, 15),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => (3, 3, 16),
        DataType::Timestamp(TimeUnit::Millisecond, None) => (3, 3, 18),
        DataType::Timestamp(TimeUnit::Microsecond, None) => (3, 3, 19),
        DataType::Decimal128(..) if with_value_type => (9, 6, 10),
        DataType::Decimal128(precision, scale) => {
            let digits = u32::try_from(DECIMAL_SCALE.checked_sub(*scale)?).ok()?;
            if i16::from(*precision) + digits as i16 > DECIMAL_PRECISION {
                return None;
            }
            factor = 10_i128.checked_pow(digits)?;
            (9, 6, 10)
        }
        _ => return None,
    };
    Some(Wrapper {
        branch: if with_value_type { new } else { old },
        kind,
        factor,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_java_makes_them() {
        for (value, bytes) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0, 0x80]),
            (-1, &[0xff]),
            (-128, &[0x80]),
            (-129, &[0xff, 0x7f]),
            (1 << 64, &[1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(big_endian(value), bytes, "{value}");
        }
    }

    #[test]
    fn nan_is_greatest() {
        let (one, nan) = (Some(Bound::Double(1.0)), Some(Bound::Double(f64::NAN)));
        assert_eq!(Bound::least(nan.clone(), one.clone()), one);
        let Some(Bound::Double(most)) = Bound::greatest(nan, one) else {
            panic!("no bound");
        };
        assert!(most.is_nan());
    }
}
