//! A column of a stripe, or a part of one, decoded to arrays. `open.rs` makes them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Fields};
use pyhudi_format::FormatError;
use pyhudi_format::orc::{Bits, ByteRuns, Ints, Stream};
use pyhudi_store::StoreFile;

use super::values::{Dictionary, Times, damaged, elements, run, texts};

type Result<T> = std::result::Result<T, FormatError>;

/// A column of a stripe from its first row on.
pub(super) struct Column {
    pub(super) present: Option<Bits<StoreFile>>,
    pub(super) values: Values,
}

pub(super) enum Values {
    Booleans(Bits<StoreFile>),
    /// Numbers of 32 bits: whole ones, times of day, days.
    Ints(Ints<StoreFile>, DataType),
    Longs(Ints<StoreFile>, DataType),
    Bytes(ByteRuns<StoreFile>),
    Floats(Stream<StoreFile>),
    Doubles(Stream<StoreFile>),
    /// Lengths, bytes, and whether they are text.
    Direct(Ints<StoreFile>, Stream<StoreFile>, bool),
    Dictionary(Dictionary, bool),
    /// Values, the scale of each, and the column's precision and scale.
    Decimals(Stream<StoreFile>, Ints<StoreFile>, u8, i8),
    Times(Times, DataType),
    List(Ints<StoreFile>, Box<Column>, FieldRef),
    Map(Ints<StoreFile>, Box<Column>, Box<Column>, FieldRef),
    Struct(Vec<Column>, Fields),
}

impl Column {
    /// The next rows. `above`: those that the struct around it has; the others are not stored.
    pub(super) fn read(&mut self, rows: usize, above: Option<&NullBuffer>) -> Result<ArrayRef> {
        let nulls = self.nulls(rows, above)?;
        let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        Ok(match &mut self.values {
            Values::Booleans(bits) => {
                let values = run(rows, valid, || bits.next())?;
                Arc::new(BooleanArray::new(values.into(), nulls))
            }
            Values::Bytes(bytes) => {
                let values = run(rows, valid, || Ok(i32::from(bytes.next()? as i8)))?;
                Arc::new(Int32Array::new(values.into(), nulls))
            }
            Values::Ints(ints, data_type) => {
                let values = run(rows, valid, || {
                    let value = ints.next()?;
                    i32::try_from(value)
                        .map_err(|_| damaged(0, format!("{value} in a column of 32 bits")))
                })?;
                match data_type {
                    DataType::Date32 => Arc::new(Date32Array::new(values.into(), nulls)),
                    _ => meant(Arc::new(Int32Array::new(values.into(), nulls)), data_type)?,
                }
            }
            Values::Longs(longs, data_type) => {
                let values = run(rows, valid, || longs.next())?;
                meant(Arc::new(Int64Array::new(values.into(), nulls)), data_type)?
            }
            Values::Floats(floats) => {
                let values = run(rows, valid, || floats.array().map(f32::from_le_bytes))?;
                Arc::new(Float32Array::new(values.into(), nulls))
            }
            Values::Doubles(doubles) => {
                let values = run(rows, valid, || doubles.array().map(f64::from_le_bytes))?;
                Arc::new(Float64Array::new(values.into(), nulls))
            }
            Values::Direct(lengths, data, is_text) => {
                let (ends, bytes) = texts(rows, valid, lengths, data)?;
                strings(ends, bytes, nulls, *is_text)?
            }
            Values::Dictionary(dictionary, is_text) => {
                let (ends, bytes) = dictionary.take(rows, valid)?;
                strings(ends, bytes, nulls, *is_text)?
            }
            Values::Decimals(data, scales, precision, scale) => {
                let values = run(rows, valid, || {
                    let (value, own) = (data.wide_zigzag()?, scales.next()?);
                    scaled(value, own, i64::from(*scale))
                })?;
                let values = Decimal128Array::new(values.into(), nulls);
                let values = values.with_precision_and_scale(*precision, *scale);
                Arc::new(values.map_err(of_arrow)?)
            }
            Values::Times(times, data_type) => {
                let values = run(rows, valid, || times.next())?;
                let values = TimestampMicrosecondArray::new(values.into(), nulls);
                Arc::new(values.with_data_type(data_type.clone()))
            }
            Values::List(lengths, child, item) => {
                let (ends, count) = elements(rows, valid, lengths)?;
                let values = child.read(count, None)?;
                let list = ListArray::try_new(Arc::clone(item), ends, values, nulls);
                Arc::new(list.map_err(of_arrow)?)
            }
            Values::Map(lengths, keys, values, entries) => {
                let (ends, count) = elements(rows, valid, lengths)?;
                let pairs = vec![keys.read(count, None)?, values.read(count, None)?];
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(damaged(0, "a map without entries"));
                };
                let pairs = StructArray::try_new_with_length(fields.clone(), pairs, None, count);
                let pairs = pairs.map_err(of_arrow)?;
                let map = MapArray::try_new(Arc::clone(entries), ends, pairs, nulls, false);
                Arc::new(map.map_err(of_arrow)?)
            }
            Values::Struct(parts, fields) => {
                let parts = parts.iter_mut().map(|part| part.read(rows, nulls.as_ref()));
                let parts = parts.collect::<Result<Vec<_>>>()?;
                let made = StructArray::try_new_with_length(fields.clone(), parts, nulls, rows);
                Arc::new(made.map_err(of_arrow)?)
            }
        })
    }

    fn nulls(&mut self, rows: usize, above: Option<&NullBuffer>) -> Result<Option<NullBuffer>> {
        let Some(present) = &mut self.present else {
            return Ok(above.cloned());
        };
        let there = |row: usize| above.is_none_or(|above| above.is_valid(row));
        let valid = run(rows, there, || present.next())?;
        Ok(Some(NullBuffer::from(valid)))
    }
}

fn strings(
    ends: OffsetBuffer<i32>,
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
    is_text: bool,
) -> Result<ArrayRef> {
    Ok(if is_text {
        Arc::new(StringArray::try_new(ends, bytes.into(), nulls).map_err(of_arrow)?)
    } else {
        Arc::new(BinaryArray::try_new(ends, bytes.into(), nulls).map_err(of_arrow)?)
    })
}

/// A decimal of the column's scale. Hive's writers leave out zeros at the end.
fn scaled(value: i128, own: i64, scale: i64) -> Result<i128> {
    let cannot = || {
        damaged(
            0,
            format!("{value} of scale {own} in a column of scale {scale}"),
        )
    };
    let power = |by: i64| {
        u32::try_from(by)
            .ok()
            .and_then(|by| 10_i128.checked_pow(by))
    };
    if own <= scale {
        let factor = power(scale.saturating_sub(own)).ok_or_else(cannot)?;
        return value.checked_mul(factor).ok_or_else(cannot);
    }
    let factor = power(own.saturating_sub(scale)).ok_or_else(cannot)?;
    if value % factor != 0 {
        return Err(cannot());
    }
    Ok(value / factor)
}

/// Numbers as the times of day that they are.
fn meant(numbers: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if numbers.data_type() == data_type {
        return Ok(numbers);
    }
    cast(&numbers, data_type).map_err(of_arrow)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn of_arrow(error: arrow::error::ArrowError) -> FormatError {
    damaged(0, error.to_string())
}
