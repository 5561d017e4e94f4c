//! One log block: where it lies and what its header says. The content is read on demand.

use bytes::Bytes;

use super::{BlockType, Header, HeaderKey};
use crate::{FormatError, ReadAt, Result};

/// A block found by [`LogScanner`](super::LogScanner).
///
/// ```text
/// magic "#HUDI#" 6 | block length L 8 | format version 4 | block type 4 | header map
///   | content length 8 | content | footer map (empty) 4 | trailing length 8
/// L counts what follows it: total - 14.   trailing length = total - 8.   Big-endian.
///
/// format version 0 (before Hudi 0.4):   magic 6 | L 8 | version 4 | content L
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogBlock {
    /// Where the magic starts.
    pub offset: u64,
    /// What the content is.
    pub block_type: BlockType,
    /// Version of the frame, 1 (or 0); not the version inside the content.
    pub format_version: u32,
    /// The header map.
    pub header: Header,
    /// Where the content starts.
    pub content_offset: u64,
    /// Length of the content.
    pub content_len: u64,
    /// Where the next block starts.
    pub end: u64,
}

impl LogBlock {
    /// Instant that wrote the block.
    pub fn instant_time(&self) -> Option<&str> {
        self.header.get(HeaderKey::InstantTime)
    }

    /// Avro schema of the records, as JSON.
    pub fn schema(&self) -> Option<&str> {
        self.header.get(HeaderKey::Schema)
    }

    /// Whether records hold only the changed columns.
    pub fn is_partial(&self) -> bool {
        let value = self.header.get(HeaderKey::IsPartial);
        value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The instant that a command block rolls back; an error for any other command.
    pub fn rollback_target(&self) -> Result<Option<&str>> {
        if self.block_type != BlockType::Command {
            return Ok(None);
        }
        match self.header.get(HeaderKey::CommandBlockType) {
            Some("0") => {}
            other => {
                return Err(FormatError::unsupported(format!(
                    "command block of type {}",
                    other.unwrap_or("(none)")
                )));
            }
        }
        match self.header.get(HeaderKey::TargetInstantTime) {
            Some(target) => Ok(Some(target)),
            None => Err(FormatError::corrupt(
                self.offset,
                "rollback block without a target",
            )),
        }
    }

    /// Instants that this log-compacted block replaces; none for other blocks.
    pub fn compacted_instants(&self) -> impl Iterator<Item = &str> {
        let times = self
            .header
            .get(HeaderKey::CompactedBlockTimes)
            .unwrap_or_default();
        times.split(',').filter(|time| !time.is_empty())
    }

    /// Base64 of the record positions, with the base file's instant they count in.
    ///
    /// Both must be there: one without the other means that keys decide.
    pub fn record_positions(&self) -> Option<(&str, &str)> {
        let positions = self.header.get(HeaderKey::RecordPositions)?;
        let base = self
            .header
            .get(HeaderKey::BaseFileInstantTimeOfRecordPositions)?;
        Some((positions, base))
    }

    /// Reads the content from the source that was scanned.
    pub fn content(&self, source: &(impl ReadAt + ?Sized)) -> Result<Bytes> {
        let fits = self.content_offset.checked_add(self.content_len);
        match (fits, usize::try_from(self.content_len)) {
            (Some(end), Ok(len)) if end <= source.size() => {
                source.read_at(self.content_offset, len)
            }
            _ => Err(FormatError::corrupt(
                self.content_offset,
                format!(
                    "block content of {} bytes exceeds the file",
                    self.content_len
                ),
            )),
        }
    }
}
