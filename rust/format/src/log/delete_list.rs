//! The Avro bytes inside a delete block: a list of keys with ordering values.
//!
//! No schema travels with them, so the branch numbers of the unions are the format.

use std::borrow::Cow;

use super::{DeleteRecord, OrderingValue};
use crate::cursor::Cursor;
use crate::{FormatError, Result};

/// Key branch and length, partition branch, ordering branch.
const RECORD_LEAST: usize = 4;
/// An array holds one value for each ordering field of a table.
const ARRAY_MOST: usize = 4096;

/// Decodes an Avro `HoodieDeleteRecordList`; texts stay where they are.
///
/// ```text
/// array of records, in Avro blocks:   count (zig-zag)  [ byte size, if count < 0 ]  records ...  0
/// record:   key [null, string] | partition [null, string] | ordering value
/// ordering value:   0 null  1 boolean  2 int  3 long  4 float  5 double  6 bytes  7 string
///   8 date  9 decimal(30,15)  10 time-micros  11 timestamp-micros
///   12 array: [null, array of values 0 to 11 and 12 local date]     (Hudi 1.1 and later)
/// ```
///
/// `HoodieDeleteBlock.deserialize` and `HoodieDeleteRecord.avsc`, Hudi 0.13 to 1.2.
pub fn decode(avro_bytes: &[u8]) -> Result<impl Iterator<Item = Result<DeleteRecord<'_>>>> {
    let mut cursor = Cursor::new(avro_bytes);
    let left = array_block(&mut cursor, RECORD_LEAST)?;
    if left == 0 {
        cursor.finish()?;
    }
    Ok(Decoder { cursor, left })
}

struct Decoder<'a> {
    cursor: Cursor<'a>,
    /// Records to come in the current block of the array; 0 after the end or an error.
    left: usize,
}

impl<'a> Iterator for Decoder<'a> {
    type Item = Result<DeleteRecord<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = self.record();
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }
}

impl<'a> Decoder<'a> {
    fn record(&mut self) -> Result<DeleteRecord<'a>> {
        let record = record(&mut self.cursor)?;
        if self.left == 0 {
            self.left = array_block(&mut self.cursor, RECORD_LEAST)?;
            if self.left == 0 {
                self.cursor.finish()?;
            }
        }
        Ok(record)
    }
}

/// The item count of the next block of an Avro array, 0 at its end.
fn array_block(cursor: &mut Cursor<'_>, item_least: usize) -> Result<usize> {
    let at = cursor.clone();
    let count = cursor.zigzag()?;
    if count < 0 {
        let size = cursor.zigzag()?;
        if usize::try_from(size).map_or(true, |size| size > cursor.remaining()) {
            return at.corrupt(format!("array block of {size} bytes"));
        }
    }
    let most = cursor.remaining() / item_least;
    match usize::try_from(count.unsigned_abs()) {
        Ok(count) if count <= most => Ok(count),
        _ => at.corrupt(format!("array block of {count} items, room for {most}")),
    }
}

fn record<'a>(cursor: &mut Cursor<'a>) -> Result<DeleteRecord<'a>> {
    let at = cursor.clone();
    let Some(record_key) = optional_text(cursor)? else {
        return at.corrupt("delete record without a key");
    };
    let partition_path = optional_text(cursor)?.map(Cow::Borrowed);
    let ordering = ordering(cursor)?;
    Ok(DeleteRecord {
        record_key: Cow::Borrowed(record_key),
        partition_path,
        ordering,
    })
}

fn optional_text<'a>(cursor: &mut Cursor<'a>) -> Result<Option<&'a str>> {
    Ok(if optional(cursor)? {
        Some(cursor.avro_text()?)
    } else {
        None
    })
}

/// Reads the branch of a union of null and something.
fn optional(cursor: &mut Cursor<'_>) -> Result<bool> {
    let at = cursor.clone();
    match cursor.zigzag()? {
        0 => Ok(false),
        1 => Ok(true),
        other => at.corrupt(format!("branch {other} of a nullable field")),
    }
}

fn ordering<'a>(cursor: &mut Cursor<'a>) -> Result<OrderingValue<'a>> {
    match cursor.zigzag()? {
        12 => array(cursor),
        branch => scalar(cursor, branch),
    }
}

fn array<'a>(cursor: &mut Cursor<'a>) -> Result<OrderingValue<'a>> {
    let mut values = Vec::new();
    if !optional(cursor)? {
        return Ok(OrderingValue::Array(values));
    }
    loop {
        let count = array_block(cursor, 1)?;
        if count == 0 {
            return Ok(OrderingValue::Array(values));
        }
        if values.len().saturating_add(count) > ARRAY_MOST {
            return Err(FormatError::unsupported(format!(
                "more than {ARRAY_MOST} ordering fields"
            )));
        }
        for _ in 0..count {
            values.push(match cursor.zigzag()? {
                12 => OrderingValue::LocalDate(int(cursor)?),
                branch => scalar(cursor, branch)?,
            });
        }
    }
}

/// The branches that the ordering union and the array's union have in common.
fn scalar<'a>(cursor: &mut Cursor<'a>, branch: i64) -> Result<OrderingValue<'a>> {
    Ok(match branch {
        0 => OrderingValue::Null,
        1 => OrderingValue::Boolean(cursor.u8()? != 0),
        2 => OrderingValue::Int(int(cursor)?),
        3 => OrderingValue::Long(cursor.zigzag()?),
        4 => OrderingValue::Float(cursor.f32_le()?),
        5 => OrderingValue::Double(cursor.f64_le()?),
        6 => OrderingValue::Bytes(Cow::Borrowed(cursor.avro_bytes()?)),
        7 => OrderingValue::String(Cow::Borrowed(cursor.avro_text()?)),
        8 => OrderingValue::Date(int(cursor)?),
        9 => OrderingValue::Decimal(Cow::Borrowed(cursor.avro_bytes()?)),
        10 => OrderingValue::TimeMicros(cursor.zigzag()?),
        11 => OrderingValue::TimestampMicros(cursor.zigzag()?),
        other => return cursor.corrupt(format!("branch {other} of an ordering value")),
    })
}

fn int(cursor: &mut Cursor<'_>) -> Result<i32> {
    let at = cursor.clone();
    let value = cursor.zigzag()?;
    i32::try_from(value).or_else(|_| at.corrupt(format!("{value} where an int belongs")))
}

/// Encodes the list as Java does: one array block with all records, then the end.
///
/// A date is written as `DateWrapper`, [`OrderingValue::LocalDate`] too when it stands alone:
/// outside an array the union has no branch for it. Arrays inside arrays do not exist in the
/// format and are written as null.
pub fn encode<'a>(records: impl Iterator<Item = DeleteRecord<'a>>) -> Vec<u8> {
    let mut body = Vec::new();
    let mut count = 0_i64;
    for record in records {
        put_optional_text(&mut body, Some(&record.record_key));
        put_optional_text(&mut body, record.partition_path.as_deref());
        match &record.ordering {
            OrderingValue::Array(values) => put_array(&mut body, values),
            OrderingValue::LocalDate(days) => put_scalar(&mut body, &OrderingValue::Date(*days)),
            value => put_scalar(&mut body, value),
        }
        count += 1;
    }
    let mut out = Vec::with_capacity(body.len() + 11);
    if count > 0 {
        put_zigzag(&mut out, count);
        out.append(&mut body);
    }
    out.push(0);
    out
}

fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_zigzag(out, bytes.len() as i64);
    out.extend_from_slice(bytes);
}

fn put_optional_text(out: &mut Vec<u8>, text: Option<&str>) {
    put_zigzag(out, i64::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(out, text.as_bytes());
    }
}

fn put_array(out: &mut Vec<u8>, values: &[OrderingValue<'_>]) {
    put_zigzag(out, 12);
    put_zigzag(out, 1);
    if !values.is_empty() {
        put_zigzag(out, values.len() as i64);
    }
    for value in values {
        put_scalar(out, value);
    }
    out.push(0);
}

fn put_scalar(out: &mut Vec<u8>, value: &OrderingValue<'_>) {
    let mut number = |branch, value: i64| {
        put_zigzag(out, branch);
        put_zigzag(out, value);
    };
    match value {
        OrderingValue::Int(value) => number(2, i64::from(*value)),
        OrderingValue::Long(value) => number(3, *value),
        OrderingValue::Date(days) => number(8, i64::from(*days)),
        OrderingValue::TimeMicros(micros) => number(10, *micros),
        OrderingValue::TimestampMicros(micros) => number(11, *micros),
        OrderingValue::LocalDate(days) => number(12, i64::from(*days)),
        OrderingValue::Null | OrderingValue::Array(_) => out.push(0),
        OrderingValue::Boolean(value) => out.extend_from_slice(&[2, u8::from(*value)]),
        OrderingValue::Float(value) => {
            out.push(8);
            out.extend_from_slice(&value.to_le_bytes());
        }
        OrderingValue::Double(value) => {
            out.push(10);
            out.extend_from_slice(&value.to_le_bytes());
        }
        OrderingValue::Bytes(bytes) => {
            out.push(12);
            put_bytes(out, bytes);
        }
        OrderingValue::String(text) => {
            out.push(14);
            put_bytes(out, text.as_bytes());
        }
        OrderingValue::Decimal(bytes) => {
            out.push(18);
            put_bytes(out, bytes);
        }
    }
}

#[cfg(test)]
mod tests;
