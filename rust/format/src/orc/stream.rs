//! The bytes of one stream of a stripe, or of a part of the tail, unpacked chunk by chunk.

use bytes::{Buf, Bytes};

use super::Codec;
use crate::{FormatError, ReadAt, Result};

/// Bytes asked for at once.
const WINDOW: u64 = 256 << 10;

/// Length of the header of a chunk.
const HEADER: usize = 3;

/// A stream of bytes, of which some chunks at most are in memory.
#[derive(Debug)]
pub struct Stream<S> {
    source: S,
    codec: Codec,
    /// Bytes of a chunk at most.
    most: usize,
    /// What was fetched and not unpacked.
    window: Bytes,
    /// The file's bytes after the window.
    rest: std::ops::Range<u64>,
    chunk: Bytes,
}

impl<S: ReadAt> Stream<S> {
    /// The stream at `range` of the file. A `most` of bytes that no writer makes was checked before.
    pub(super) fn new(source: S, codec: Codec, most: usize, range: std::ops::Range<u64>) -> Self {
        Self {
            source,
            codec,
            most,
            window: Bytes::new(),
            rest: range,
            chunk: Bytes::new(),
        }
    }

    /// Where in the file the next chunk begins: near enough to say what is damaged.
    pub(super) fn offset(&self) -> u64 {
        self.rest.start.saturating_sub(self.window.len() as u64)
    }

    pub(super) fn damaged<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(FormatError::corrupt(self.offset(), what))
    }

    /// Unpacked bytes that are at hand, at least one; none at the end.
    fn fill(&mut self) -> Result<&[u8]> {
        while self.chunk.is_empty() && (!self.window.is_empty() || !self.rest.is_empty()) {
            self.chunk = self.next_chunk()?;
        }
        Ok(&self.chunk)
    }

    fn next_chunk(&mut self) -> Result<Bytes> {
        if self.codec == Codec::None {
            let left = self.rest.end.saturating_sub(self.rest.start);
            return self.raw(WINDOW.min(left) as usize);
        }
        let offset = self.offset();
        let mut header = self.raw(HEADER)?;
        let header = header.get_uint_le(HEADER) as usize;
        let packed = self.raw(header >> 1)?;
        if header & 1 == 1 {
            return Ok(packed);
        }
        self.codec.unpack(&packed, self.most, offset)
    }

    /// The next bytes of the file.
    fn raw(&mut self, length: usize) -> Result<Bytes> {
        if self.window.len() < length {
            let start = self.offset();
            let end = start.saturating_add(WINDOW.max(length as u64));
            let end = end.min(self.rest.end);
            if end.saturating_sub(start) < length as u64 {
                return self.damaged("the stream ends early");
            }
            self.window = self.source.read_at(start, (end - start) as usize)?;
            self.rest.start = end;
        }
        Ok(self.window.split_to(length))
    }

    /// The next byte.
    ///
    /// # Errors
    /// The stream has ended or is damaged, or its source fails; so for all that follow.
    pub fn byte(&mut self) -> Result<u8> {
        let Some(byte) = self.fill()?.first().copied() else {
            return self.damaged("the stream ends early");
        };
        self.chunk.advance(1);
        Ok(byte)
    }

    /// The next bytes, added to `to`.
    ///
    /// # Errors
    /// As [`byte`](Self::byte).
    pub fn append(&mut self, mut length: usize, to: &mut Vec<u8>) -> Result<()> {
        while length > 0 {
            let there = self.fill()?;
            let (now, _) = there.split_at(length.min(there.len()));
            if now.is_empty() {
                return self.damaged("the stream ends early");
            }
            let count = now.len();
            to.extend_from_slice(now);
            self.chunk.advance(count);
            length -= count;
        }
        Ok(())
    }

    /// All bytes that are left, `most` at most.
    pub(super) fn all(&mut self, most: usize) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let length = self.fill()?.len();
            if length == 0 {
                return Ok(all);
            }
            if all.len() + length > most {
                return self.damaged(format!("more than {most} bytes"));
            }
            self.append(length, &mut all)?;
        }
    }

    /// The next bytes as an array.
    ///
    /// # Errors
    /// As [`byte`](Self::byte).
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        if let Some(there) = self.fill()?.first_chunk::<N>() {
            array = *there;
            self.chunk.advance(N);
            return Ok(array);
        }
        for byte in &mut array {
            *byte = self.byte()?;
        }
        Ok(array)
    }

    /// The next number of base 128, low group first.
    pub(super) fn varint(&mut self) -> Result<u64> {
        let number = self.wide_varint()?;
        match u64::try_from(number) {
            Ok(number) => Ok(number),
            Err(_) => self.damaged("a number longer than 64 bits"),
        }
    }

    /// The same, of which every second is negative.
    ///
    /// # Errors
    /// As [`byte`](Self::byte).
    pub fn wide_zigzag(&mut self) -> Result<i128> {
        let number = self.wide_varint()?;
        Ok((number >> 1) as i128 ^ -((number & 1) as i128))
    }

    fn wide_varint(&mut self) -> Result<u128> {
        let mut number = 0_u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let group = u128::from(byte & 0x7f);
            if shift == 126 && group > 3 {
                break;
            }
            number |= group << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        self.damaged("a number longer than 128 bits")
    }
}
