//! Kryo's texts and longs, which are not those of Java's or Avro's streams.

use crate::Result;
use crate::cursor::Cursor;

/// Kryo's text: ASCII with the last byte marked, or a number of UTF-16 units with each unit
/// in one to three bytes.
pub(super) fn text(cursor: &mut Cursor<'_>) -> Result<Option<String>> {
    let at = cursor.clone();
    let first = cursor.u8()?;
    if first & 0x80 == 0 {
        return ascii(cursor, first).map(Some);
    }
    let mut units = u64::from(first & 0x3f);
    if first & 0x40 != 0 {
        let rest = cursor.varint()?;
        units |= rest
            .checked_mul(64)
            .map_or_else(|| at.corrupt("text length"), Ok)?;
    }
    let Some(units) = units.checked_sub(1) else {
        return Ok(None);
    };
    if units > cursor.remaining() as u64 {
        return at.corrupt(format!("text of {units} units"));
    }
    let mut text = Vec::with_capacity(units as usize);
    for _ in 0..units {
        text.push(unit(cursor)?);
    }
    String::from_utf16(&text)
        .map(Some)
        .or_else(|_| at.corrupt("half a surrogate pair"))
}

fn ascii(cursor: &mut Cursor<'_>, first: u8) -> Result<String> {
    let mut text = String::from(char::from(first));
    loop {
        let byte = cursor.u8()?;
        text.push(char::from(byte & 0x7f));
        if byte & 0x80 != 0 {
            return Ok(text);
        }
    }
}

fn unit(cursor: &mut Cursor<'_>) -> Result<u16> {
    let at = cursor.clone();
    let first = u16::from(cursor.u8()?);
    let more = match first >> 4 {
        0..=7 => return Ok(first),
        12 | 13 => 1,
        14 => 2,
        _ => return at.corrupt("text is not Kryo's UTF-8"),
    };
    let mut unit = first & (0x3f >> more);
    for _ in 0..more {
        unit = unit << 6 | u16::from(cursor.u8()? & 0x3f);
    }
    Ok(unit)
}

/// Kryo's zig-zag long, whose ninth byte holds eight bits.
pub(super) fn long(cursor: &mut Cursor<'_>) -> Result<i64> {
    let mut value = 0_u64;
    for shift in (0..57).step_by(7) {
        let byte = u64::from(cursor.u8()?);
        if shift == 56 || byte < 0x80 {
            value |= byte << shift;
            break;
        }
        value |= (byte & 0x7f) << shift;
    }
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}
