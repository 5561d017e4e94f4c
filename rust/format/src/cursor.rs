//! The one place that indexes into bytes: a position that only moves within what is there.

use crate::{FormatError, Result};

/// A reader over a slice. Errors carry `base` + position, so that a cursor over a part of a file
/// reports offsets in the file.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    base: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    pub(crate) fn at(bytes: &'a [u8], base: u64) -> Self {
        Self {
            bytes,
            position: 0,
            base,
        }
    }

    /// Index of the next byte in the slice.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Offset of the next byte as errors report it.
    pub(crate) fn offset(&self) -> u64 {
        self.base.saturating_add(self.position as u64)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    pub(crate) fn corrupt<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(FormatError::corrupt(self.offset(), what))
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.position.checked_add(len);
        let Some(bytes) = end.and_then(|end| self.bytes.get(self.position..end)) else {
            return self.corrupt(format!("{len} bytes wanted, {} left", self.remaining()));
        };
        self.position += len;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn f32_le(&mut self) -> Result<f32> {
        self.array().map(f32::from_le_bytes)
    }

    pub(crate) fn f64_le(&mut self) -> Result<f64> {
        self.array().map(f64::from_le_bytes)
    }

    /// An unsigned number of one to four bytes, lowest first.
    pub(crate) fn uint_le(&mut self, width: usize) -> Result<usize> {
        let bytes = self.take(width)?;
        let number = bytes.iter().rev();
        Ok(number.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// A signed number of one to sixteen bytes, lowest first.
    pub(crate) fn int_le(&mut self, width: usize) -> Result<i128> {
        let bytes = self.take(width)?;
        let sign = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let number = bytes.iter().rev();
        let start = if sign { -1 } else { 0 };
        Ok(number.fold(start, |number, byte| number << 8 | i128::from(*byte)))
    }

    /// A Java int that counts bytes still to come.
    pub(crate) fn length(&mut self) -> Result<usize> {
        let at = self.clone();
        let value = self.i32()?;
        match usize::try_from(value) {
            Ok(length) if length <= self.remaining() => Ok(length),
            _ => at.corrupt(format!("length {value}, {} bytes left", self.remaining())),
        }
    }

    /// A Java int that counts items of at least `item` bytes each.
    pub(crate) fn count(&mut self, item: usize) -> Result<usize> {
        let at = self.clone();
        let value = self.i32()?;
        let most = self.remaining() / item.max(1);
        match usize::try_from(value) {
            Ok(count) if count <= most => Ok(count),
            _ => at.corrupt(format!("count {value}, room for {most}")),
        }
    }

    /// Base 128, low group first, as Avro and Protocol Buffers write unsigned numbers.
    pub(crate) fn varint(&mut self) -> Result<u64> {
        let at = self.clone();
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let group = u64::from(byte & 0x7f);
            if shift == 63 && group > 1 {
                break;
            }
            value |= group << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        at.corrupt("number longer than 64 bits")
    }

    /// Avro's zig-zag long.
    pub(crate) fn zigzag(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Avro's bytes and string: zig-zag length, then that many bytes.
    pub(crate) fn avro_bytes(&mut self) -> Result<&'a [u8]> {
        let at = self.clone();
        let length = self.zigzag()?;
        match usize::try_from(length) {
            Ok(len) if len <= self.remaining() => self.take(len),
            _ => at.corrupt(format!("length {length}, {} bytes left", self.remaining())),
        }
    }

    /// The next `len` bytes as text.
    pub(crate) fn text(&mut self, len: usize) -> Result<&'a str> {
        let at = self.clone();
        std::str::from_utf8(self.take(len)?)
            .or_else(|error| at.corrupt(format!("text is not UTF-8: {error}")))
    }

    /// Avro's string.
    pub(crate) fn avro_text(&mut self) -> Result<&'a str> {
        let at = self.clone();
        std::str::from_utf8(self.avro_bytes()?)
            .or_else(|error| at.corrupt(format!("text is not UTF-8: {error}")))
    }

    /// Nothing may follow.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            left => self.corrupt(format!("{left} bytes too many")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_bounded_by_what_is_left() {
        for bytes in [
            [0xff, 0xff, 0xff, 0xff, 0],
            [0, 0, 0, 2, 0],
            [0x7f, 0xff, 0xff, 0xff, 0],
        ] {
            let error = Cursor::at(&bytes, 100).length().unwrap_err();
            assert!(
                matches!(error, FormatError::Corrupt { offset: 100, .. }),
                "{error}"
            );
        }
        assert_eq!(Cursor::new(&[0, 0, 0, 1, 0]).length().unwrap(), 1);
        assert!(Cursor::new(&[0, 0, 0, 2, 0, 0, 0]).count(2).is_err());
    }

    #[test]
    fn varints_end_within_ten_bytes() {
        assert_eq!(Cursor::new(&[0xac, 0x02]).varint().unwrap(), 300);
        assert_eq!(Cursor::new(&[0x01]).zigzag().unwrap(), -1);
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Cursor::new(&most).varint().unwrap(), u64::MAX);
        assert_eq!(Cursor::new(&most).zigzag().unwrap(), i64::MIN);
        assert!(Cursor::new(&[0xff; 11]).varint().is_err());
        assert!(Cursor::new(&[0x80]).varint().is_err());
    }
}
