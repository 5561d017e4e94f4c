//! The key-value pairs of a data block.

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::{FormatError, Result};

/// Family length, timestamp and type follow the row in a key; 2 bytes of row length precede it.
const KEY_OVERHEAD: usize = 12;
const PUT: u8 = 4;

/// The pairs of one block, in order.
///
/// ```text
/// key length 4 | value length 4 | row length 2 | row | family length 1 (0) | timestamp 8 | type 1
///   | value | MVCC, Hadoop variable long (0)
/// ```
///
/// `KeyValue` of HBase. Hudi's key is the row; it writes no family, qualifier, tags or deletes.
#[derive(Debug)]
pub(super) struct Pairs {
    payload: Bytes,
    position: usize,
    /// Where the block starts in the file, for errors: the block may be compressed.
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

    /// The next pair, without moving on.
    fn peek(&self) -> Result<Option<(Bytes, Bytes, usize)>> {
        let rest = self.payload.slice(self.position..);
        if rest.is_empty() {
            return Ok(None);
        }
        let mut cursor = Cursor::at(&rest, self.at);
        let key_len = cursor.u32()? as usize;
        let value_len = cursor.u32()? as usize;
        let row_len = usize::from(cursor.u16()?);
        if key_len != row_len + KEY_OVERHEAD {
            return Err(FormatError::corrupt(
                self.at,
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
        if self.mvcc && cursor.u8()? != 0 {
            return Err(FormatError::unsupported("HFile cell with an MVCC number"));
        }
        let next = self.position + cursor.position();
        Ok(Some((
            rest.slice(row..row + row_len),
            rest.slice(value..value + value_len),
            next,
        )))
    }

    /// The next pair.
    pub(super) fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        Ok(self.peek()?.map(|(key, value, next)| {
            self.position = next;
            (key, value)
        }))
    }

    /// Leaves out pairs whose key is before `key`.
    pub(super) fn skip_before(&mut self, key: &[u8]) -> Result<()> {
        while let Some((found, _, next)) = self.peek()? {
            if found >= key {
                break;
            }
            self.position = next;
        }
        Ok(())
    }

    /// The value of `key` if it comes next or later; moves up to it.
    pub(super) fn find(&mut self, key: &[u8]) -> Result<Option<(Bytes, Bytes)>> {
        self.skip_before(key)?;
        let pair = self.peek()?.filter(|(found, ..)| found == key);
        Ok(pair.map(|(key, value, _)| (key, value)))
    }
}
