//! Reading ahead in modest pieces, so that a file of small blocks costs few reads.

use bytes::Bytes;

use crate::{ReadAt, Result};

/// How much one read fetches at least: a frame with the schema of the metadata table fits.
const READ_AHEAD: usize = 32 << 10;

/// A source with the piece of it that was read last.
#[derive(Debug)]
pub(super) struct Window<R> {
    source: R,
    start: u64,
    bytes: Bytes,
}

impl<R: ReadAt> Window<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            start: 0,
            bytes: Bytes::new(),
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.source.size()
    }

    /// Where bytes may be other than zero from `offset` on.
    pub(super) fn next_data(&self, offset: u64) -> u64 {
        self.source.next_data(offset).clamp(offset, self.size())
    }

    /// Fails where the caller wants no more.
    pub(super) fn check(&self) -> Result<()> {
        self.source.check()
    }

    /// At least `len` bytes from `offset` on, or all there are; often more.
    pub(super) fn peek(&mut self, offset: u64, len: usize) -> Result<Bytes> {
        let left = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = len.min(left);
        if let Some(bytes) = self.held(offset, len) {
            return Ok(bytes);
        }
        self.bytes = self.source.read_at(offset, len.max(READ_AHEAD).min(left))?;
        self.start = offset;
        Ok(self.bytes.clone())
    }

    fn held(&self, offset: u64, len: usize) -> Option<Bytes> {
        let skip = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let held = self.bytes.len().checked_sub(skip)?;
        (held >= len).then(|| self.bytes.slice(skip..))
    }
}
