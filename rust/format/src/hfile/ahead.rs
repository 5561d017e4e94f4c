//! Reading data blocks that follow each other, many at once.

use bytes::Bytes;

use super::index::Entry;
use crate::{FormatError, ReadAt, Result};

/// Bytes of one read: few requests, each of a size that stores answer at once.
const READ: u64 = 4 << 20;

/// What was read last of a file that is gone through from its beginning to `end`.
#[derive(Debug)]
pub(super) struct Ahead {
    start: u64,
    bytes: Bytes,
    end: u64,
}

impl Ahead {
    /// end: where data blocks end.
    pub(super) fn new(end: u64) -> Self {
        Self {
            start: 0,
            bytes: Bytes::new(),
            end,
        }
    }

    /// The bytes of a block.
    pub(super) fn block(&mut self, source: &impl ReadAt, entry: &Entry) -> Result<Bytes> {
        if let Some(held) = self.held(entry) {
            return Ok(held);
        }
        let size = entry.size as u64;
        let left = self.end.max(entry.offset).min(source.size()) - entry.offset.min(source.size());
        if size > left {
            let what = "HFile block exceeds the file";
            return Err(FormatError::corrupt(entry.offset, what));
        }
        self.bytes = source.read_at(entry.offset, size.max(left.min(READ)) as usize)?;
        self.start = entry.offset;
        Ok(self.bytes.slice(..entry.size))
    }

    fn held(&self, entry: &Entry) -> Option<Bytes> {
        let skip = usize::try_from(entry.offset.checked_sub(self.start)?).ok()?;
        let end = skip.checked_add(entry.size)?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(skip..end))
    }
}
