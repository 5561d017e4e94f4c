//! The key-value pairs of a data block.

use std::cmp::Ordering;
use std::ops::Range;

use bytes::Bytes;

use super::block::Unpacking;
use super::order::{KeyOrder, Orders};
use crate::cursor::Cursor;
use crate::{FormatError, Result};

/// Family length, timestamp and type follow the row in a key; 2 bytes of row length precede it.
const KEY_OVERHEAD: usize = 12;
const PUT: u8 = 4;
/// Bytes of the two lengths that a pair begins with.
const LENGTHS: usize = 8;

/// Where the parts of a pair lie in the bytes that it was parsed from.
///
/// ```text
/// key length 4 | value length 4 | row length 2 | row | family length 1 (0) | timestamp 8 | type 1
///   | value | MVCC, Hadoop variable long (0)
/// ```
///
/// `KeyValue` of HBase. Hudi's key is the row; it writes no family, qualifier, tags or deletes.
struct Span {
    row: Range<usize>,
    value: Range<usize>,
    len: usize,
}

impl Span {
    /// Of the pair that `bytes` begin with. `at` is where its block starts in the file, for errors:
    /// the block may be compressed.
    fn parse(bytes: &[u8], at: u64, mvcc: bool) -> Result<Self> {
        let mut cursor = Cursor::at(bytes, at);
        let key_len = cursor.u32()? as usize;
        let value_len = cursor.u32()? as usize;
        let row_len = usize::from(cursor.u16()?);
        if key_len != row_len + KEY_OVERHEAD {
            return Err(FormatError::corrupt(
                at,
                format!("HFile key of {key_len} bytes around a row of {row_len}"),
            ));
        }
        let row = cursor.position();
        cursor.take(row_len)?;
        let family = cursor.u8()?;
        cursor.take(8)?;
        let kind = cursor.u8()?;
        if (family, kind) != (0, PUT) {
            let feature = format!("HFile cell of type {kind} with a family of {family} bytes");
            return Err(FormatError::unsupported(feature));
        }
        let value = cursor.position();
        cursor.take(value_len)?;
        if mvcc && cursor.u8()? != 0 {
            return Err(FormatError::unsupported("HFile cell with an MVCC number"));
        }
        Ok(Self {
            row: row..row + row_len,
            value: value..value + value_len,
            len: cursor.position(),
        })
    }

    /// Of the pair that `bytes` begin with, if it is all there and as it should be.
    fn of_whole(bytes: &[u8], mvcc: bool) -> Option<Self> {
        let (key_len, rest) = bytes.split_first_chunk()?;
        let (value_len, rest) = rest.split_first_chunk()?;
        let (row_len, rest) = rest.split_first_chunk()?;
        let row_len = usize::from(u16::from_be_bytes(*row_len));
        if u32::from_be_bytes(*key_len) as usize != row_len + KEY_OVERHEAD {
            return None;
        }
        let [family, .., kind] = rest.get(row_len..)?.first_chunk::<10>()?;
        let row = LENGTHS + 2;
        let value = row + row_len + 10;
        let value_end = value + u32::from_be_bytes(*value_len) as usize;
        let len = value_end + usize::from(mvcc);
        let is_whole = bytes.len() >= len && (!mvcc || bytes.get(value_end) == Some(&0));
        (is_whole && (*family, *kind) == (0, PUT)).then_some(Self {
            row: row..row + row_len,
            value: value..value_end,
            len,
        })
    }

    /// The most bytes that the pair may have that `bytes` begin with, as far as they tell.
    fn most(bytes: &[u8]) -> Option<usize> {
        let mut cursor = Cursor::at(bytes, 0);
        let (key, value) = (cursor.u32().ok()?, cursor.u32().ok()?);
        (LENGTHS + 1)
            .checked_add(key as usize)?
            .checked_add(value as usize)
    }
}

/// The pairs of one block, in order.
#[derive(Debug)]
pub(super) struct Pairs {
    payload: Bytes,
    position: usize,
    at: u64,
    mvcc: bool,
}

impl Pairs {
    pub(super) fn new(payload: Bytes, at: u64, mvcc: bool) -> Self {
        Self {
            payload,
            position: 0,
            at,
            mvcc,
        }
    }

    /// Where the block starts in the file.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The pair that comes next, which the bytes given begin with.
    fn peek(&self) -> Result<Option<(&[u8], Span)>> {
        match self.payload.get(self.position..) {
            None | Some([]) => Ok(None),
            Some(rest) => Ok(Some((rest, Span::parse(rest, self.at, self.mvcc)?))),
        }
    }

    /// The next pair.
    pub(super) fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        let Some((_, span)) = self.peek()? else {
            return Ok(None);
        };
        let start = self.position;
        let part = |of: Range<usize>| self.payload.slice(start + of.start..start + of.end);
        let pair = (part(span.row), part(span.value));
        self.position += span.len;
        Ok(Some(pair))
    }

    /// Leaves out pairs whose key is before `key` in an order, and gives the last of their keys.
    pub(super) fn skip_before(
        &mut self,
        key: &[u8],
        order: KeyOrder,
        orders: &mut Orders,
    ) -> Result<Option<Bytes>> {
        let mut last: Option<Range<usize>> = None;
        while let Some((rest, span)) = self.peek()? {
            let found = rest.get(span.row.clone()).unwrap_or_default();
            if let Some(last) = last.clone().and_then(|last| self.payload.get(last)) {
                orders.pass(last, found, self.at)?;
            }
            if order.compare(found, key).is_ge() {
                break;
            }
            last = Some(self.position + span.row.start..self.position + span.row.end);
            self.position += span.len;
        }
        Ok(last.map(|last| self.payload.slice(last)))
    }
}

/// The pairs of one block among which rising keys are looked for.
#[derive(Debug)]
pub(super) struct Search {
    content: Unpacking,
    position: usize,
    /// Where the last key that was passed lies.
    last: Range<usize>,
    /// Where the value of the key that was found lies.
    value: Range<usize>,
    at: u64,
    mvcc: bool,
}

impl Search {
    pub(super) fn new(content: Unpacking, at: u64, mvcc: bool) -> Self {
        Self {
            content,
            position: 0,
            last: 0..0,
            value: 0..0,
            at,
            mvcc,
        }
    }

    /// The memory of the content, for the next block.
    pub(super) fn into_memory(self) -> Vec<u8> {
        self.content.into_memory()
    }

    /// The value of the key that was found last.
    pub(super) fn value(&self) -> &[u8] {
        let bytes = self.content.bytes();
        bytes.get(self.value.clone()).unwrap_or_default()
    }

    /// Whether the pair of `key` comes next or later in an order; moves up to it.
    pub(super) fn find(
        &mut self,
        key: &[u8],
        order: KeyOrder,
        orders: &mut Orders,
    ) -> Result<bool> {
        loop {
            let start = self.position;
            let Some(span) = self.span()? else {
                return Ok(false);
            };
            let bytes = self.content.bytes();
            let rest = bytes.get(start..).unwrap_or_default();
            let found = rest.get(span.row.clone()).unwrap_or_default();
            let last = bytes.get(self.last.clone()).unwrap_or_default();
            orders.pass(last, found, self.at)?;
            self.last = start + span.row.start..start + span.row.end;
            match order.compare(found, key) {
                Ordering::Less => self.position += span.len,
                Ordering::Equal => {
                    self.value = start + span.value.start..start + span.value.end;
                    return Ok(true);
                }
                Ordering::Greater => return Ok(false),
            }
        }
    }

    /// The next pair, if there is one.
    fn span(&mut self) -> Result<Option<Span>> {
        let start = self.position;
        let unpacked = self.content.bytes().get(start..);
        if let Some(span) = unpacked.and_then(|rest| Span::of_whole(rest, self.mvcc)) {
            return Ok(Some(span));
        }
        let bytes = self.content.reach(start + LENGTHS)?;
        let most = bytes.get(start..).and_then(Span::most);
        let end = most.map_or(start, |most| start.saturating_add(most));
        let bytes = self.content.reach(end)?;
        match bytes.get(start..).filter(|rest| !rest.is_empty()) {
            Some(rest) => Span::parse(rest, self.at, self.mvcc).map(Some),
            None => Ok(None),
        }
    }
}
