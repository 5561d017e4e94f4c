//! Images as the JSON text that Hudi's change queries give (1.2.0).
//!
//! Hudi has two printers: rows that it reads from data files go through Jackson
//! (`InternalRowToJsonStringConverter`), records of change logs print themselves
//! (`GenericData.toString`). They differ in nulls, bytes and timestamps. Dates are days, times what is
//! stored. Decimals, of which both printers make nonsense, are plain numbers here.

use std::fmt::Write;

use arrow::array::{
    Array, AsArray, FixedSizeBinaryArray, MapArray, StringArray, StringBuilder, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time32MillisecondType, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};

use crate::error::{Result, SliceError};
use pyhudi_keys::{double_text, float_text};

/// Which of Hudi's printers is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Of rows from data files: null fields and map values are left out, bytes are Base64, timestamps
    /// microseconds.
    Row,
    /// Of records from change logs: nulls are there, each byte is the character of its number,
    /// timestamps are what is stored.
    Record,
}

/// One object a row, null where the image is.
pub(super) fn image_text(images: &StructArray, style: Style) -> Result<StringArray> {
    let mut texts = StringBuilder::with_capacity(images.len(), images.len() * 64);
    let mut text = String::new();
    for row in 0..images.len() {
        if images.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        object(&mut text, images, row, style)?;
        texts.append_value(&text);
    }
    Ok(texts.finish())
}

fn object(out: &mut String, from: &StructArray, row: usize, style: Style) -> Result<()> {
    let mut members = Members::open(out);
    for (field, column) in from.fields().iter().zip(from.columns()) {
        if column.is_valid(row) || style == Style::Record {
            let out = members.next(field.name());
            value(out, column, row, style)?;
        }
    }
    members.close();
    Ok(())
}

/// The members of an object that is being written.
struct Members<'a> {
    out: &'a mut String,
    first: bool,
}

impl<'a> Members<'a> {
    fn open(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, first: true }
    }

    fn next(&mut self, name: &str) -> &mut String {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(',');
        }
        quoted(self.out, name);
        self.out.push(':');
        self.out
    }

    fn close(self) {
        self.out.push('}');
    }
}

fn value(out: &mut String, from: &dyn Array, row: usize, style: Style) -> Result<()> {
    if from.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    match from.data_type() {
        DataType::Utf8 => quoted(out, from.as_string::<i32>().value(row)),
        DataType::Boolean => number(out, from.as_boolean().value(row)),
        DataType::Binary => bytes(out, from.as_binary::<i32>().value(row), style),
        DataType::FixedSizeBinary(_) => bytes(out, fixed(from).value(row), style),
        DataType::Float32 => {
            float(
                out,
                &float_text(from.as_primitive::<Float32Type>().value(row)),
            );
        }
        DataType::Float64 => {
            float(
                out,
                &double_text(from.as_primitive::<Float64Type>().value(row)),
            );
        }
        DataType::Decimal128(_, scale) => {
            let unscaled = from.as_primitive::<Decimal128Type>().value(row);
            out.push_str(&decimal(&unscaled.to_string(), *scale));
        }
        DataType::Decimal256(_, scale) => {
            let unscaled = from
                .as_primitive::<arrow::datatypes::Decimal256Type>()
                .value(row);
            out.push_str(&decimal(&unscaled.to_string(), *scale));
        }
        DataType::List(_) => list(out, &from.as_list::<i32>().value(row), style)?,
        DataType::Map(..) => map(out, from.as_map(), row, style)?,
        DataType::Struct(_) => object(out, from.as_struct(), row, style)?,
        _ => integer(out, from, row, style)?,
    }
    Ok(())
}

fn integer(out: &mut String, from: &dyn Array, row: usize, style: Style) -> Result<()> {
    match from.data_type() {
        DataType::Int32 => number(out, from.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => number(out, from.as_primitive::<Int64Type>().value(row)),
        DataType::Date32 => number(out, from.as_primitive::<Date32Type>().value(row)),
        DataType::Time32(TimeUnit::Millisecond) => {
            number(out, from.as_primitive::<Time32MillisecondType>().value(row));
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            number(out, from.as_primitive::<Time64MicrosecondType>().value(row));
        }
        DataType::Timestamp(unit, _) => {
            let stored = stored_time(from, *unit, row);
            let scale = match (style, unit) {
                (Style::Row, TimeUnit::Second) => 1_000_000,
                (Style::Row, TimeUnit::Millisecond) => 1000,
                _ => 1,
            };
            number(out, i128::from(stored) * scale);
        }
        DataType::FixedSizeList(..) => {
            return Err(SliceError::Unsupported {
                feature: "changes of a VECTOR column as JSON".to_owned(),
            });
        }
        other => {
            return Err(SliceError::Schema(format!(
                "values of type {other} have no JSON text"
            )));
        }
    }
    Ok(())
}

fn stored_time(from: &dyn Array, unit: TimeUnit, row: usize) -> i64 {
    match unit {
        TimeUnit::Second => from.as_primitive::<TimestampSecondType>().value(row),
        TimeUnit::Millisecond => from.as_primitive::<TimestampMillisecondType>().value(row),
        TimeUnit::Microsecond => from.as_primitive::<TimestampMicrosecondType>().value(row),
        TimeUnit::Nanosecond => from.as_primitive::<TimestampNanosecondType>().value(row),
    }
}

fn fixed(from: &dyn Array) -> &FixedSizeBinaryArray {
    from.as_fixed_size_binary()
}

fn number(out: &mut String, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{value}");
}

/// What is no number goes in quotes, as Jackson and Avro have it.
fn float(out: &mut String, text: &str) {
    let finite = !text.ends_with(|c: char| c.is_ascii_lowercase() || c == 'N');
    if finite {
        out.push_str(text);
    } else {
        quoted(out, text);
    }
}

/// A decimal without exponent.
fn decimal(unscaled: &str, scale: i8) -> String {
    let (sign, digits) = match unscaled.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", unscaled),
    };
    if scale <= 0 {
        let zeros = if digits == "0" {
            0
        } else {
            scale.unsigned_abs()
        };
        return format!("{sign}{digits}{}", "0".repeat(usize::from(zeros)));
    }
    let scale = usize::from(scale.unsigned_abs());
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (integer, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{integer}.{fraction}")
}

fn list(out: &mut String, items: &dyn Array, style: Style) -> Result<()> {
    out.push('[');
    for row in 0..items.len() {
        if row > 0 {
            out.push(',');
        }
        value(out, items, row, style)?;
    }
    out.push(']');
    Ok(())
}

fn map(out: &mut String, from: &MapArray, row: usize, style: Style) -> Result<()> {
    let entries = from.value(row);
    let keys = cast(entries.column(0), &DataType::Utf8)?;
    let keys = keys.as_string::<i32>();
    let values = entries.column(1);
    let mut members = Members::open(out);
    for at in 0..entries.len() {
        if values.is_valid(at) || style == Style::Record {
            let out = members.next(keys.value(at));
            value(out, values, at, style)?;
        }
    }
    members.close();
    Ok(())
}

fn bytes(out: &mut String, value: &[u8], style: Style) {
    match style {
        Style::Row => base64(out, value),
        Style::Record => quoted(
            out,
            &value.iter().map(|b| char::from(*b)).collect::<String>(),
        ),
    }
}

fn base64(out: &mut String, value: &[u8]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.push('"');
    for chunk in value.chunks(3) {
        let word = (0..3).fold(0u32, |word, at| {
            word << 8 | u32::from(chunk.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            let digit = ALPHABET.get((word >> (18 - 6 * at) & 63) as usize);
            let digit = digit.filter(|_| at <= chunk.len());
            out.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    out.push('"');
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => number(out, format_args!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests;
