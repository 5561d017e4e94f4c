//! As much of Protocol Buffers as HFile and ORC need: the fields of one message.

use crate::Result;
use crate::cursor::Cursor;

/// The value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Bytes(_) => None,
        }
    }

    pub(crate) fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Number(_) => None,
            Self::Bytes(bytes) => Some(bytes),
        }
    }
}

/// A message preceded by its length.
pub(crate) fn delimited<'a>(cursor: &mut Cursor<'a>) -> Result<Cursor<'a>> {
    let at = cursor.clone();
    let length = cursor.varint()?;
    match usize::try_from(length) {
        Ok(length) if length <= cursor.remaining() => {
            let start = cursor.offset();
            Ok(Cursor::at(cursor.take(length)?, start))
        }
        _ => at.corrupt(format!(
            "message of {length} bytes, {} left",
            cursor.remaining()
        )),
    }
}

/// The next field as number and value, [`None`] at the end of the message.
pub(crate) fn field<'a>(message: &mut Cursor<'a>) -> Result<Option<(u64, Value<'a>)>> {
    if message.remaining() == 0 {
        return Ok(None);
    }
    let at = message.clone();
    let tag = message.varint()?;
    let value = match tag & 7 {
        0 => Value::Number(message.varint()?),
        1 => Value::Bytes(message.take(8)?),
        2 => {
            let mut inner = delimited(message)?;
            Value::Bytes(inner.take(inner.remaining())?)
        }
        5 => Value::Bytes(message.take(4)?),
        kind => return at.corrupt(format!("wire type {kind}")),
    };
    Ok(Some((tag >> 3, value)))
}

/// A number of base 128, low group first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A field that is a number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(out, number << 3);
    put_varint(out, value);
}

/// A field that is bytes, or a message.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(out, number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}
