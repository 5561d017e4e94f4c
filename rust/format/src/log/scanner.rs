//! Walks the blocks of a log file, skipping over damage the way Hudi's reader does.
//!
//! Follows `HoodieLogFileReader` (0.14 to 1.2). Reads frames and headers, never whole contents.

use bytes::Bytes;
use memchr::memmem;

use crate::cursor::Cursor;
use crate::{FormatError, ReadAt, Result};

use super::window::Window;
use super::{BlockType, FORMAT_VERSION, Header, LogBlock, MAGIC};

/// How far one step of the search for the next block looks.
const RECOVERY_STEP: usize = 1 << 20;
/// After how many bytes the search asks whether the caller still wants it.
const RECOVERY_CHECK: u64 = 16 << 20;
/// Magic, block length, format version, block type.
const FRAME: usize = 22;
/// Empty footer map and trailing length.
const TAIL: u64 = 12;
/// A footer is empty in every release; more than this is damage.
const FOOTER_MOST: u64 = 1 << 20;

/// Whether a half-written block can exist in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corruption {
    /// It can: verify each block's two lengths and what follows it, and skip what fails.
    Check,
    /// Writes appear whole or not at all (`s3`, `gs`, ...): save the reads of the check.
    Trust,
}

/// The blocks of one log file, in file order.
///
/// A damaged block comes out as one of type [`BlockType::Corrupt`] that covers everything up to
/// the next magic. An error ends the iteration.
#[derive(Debug)]
pub struct LogScanner<R> {
    window: Window<R>,
    corruption: Corruption,
    offset: u64,
    failed: bool,
}

/// What the first bytes of a block say.
struct Frame {
    length: u64,
    version: u32,
    end: u64,
}

impl<R: ReadAt> LogScanner<R> {
    /// Starts at the first byte of `source`. Nothing is read yet.
    pub fn new(source: R, corruption: Corruption) -> Self {
        Self {
            window: Window::new(source),
            corruption,
            offset: 0,
            failed: false,
        }
    }

    fn block(&mut self) -> Result<Option<LogBlock>> {
        let start = self.offset;
        let head = self.window.peek(start, FRAME)?;
        // Java takes fewer bytes than a magic as the end of the file.
        let Some(magic) = head.get(..MAGIC.len()) else {
            return Ok(None);
        };
        if magic != MAGIC {
            return Err(FormatError::corrupt(start, "no log block starts here"));
        }
        match self.frame(start, &head)? {
            Some(frame) if frame.version == 0 => Ok(Some(old_block(start, &frame))),
            Some(frame) => self.read_block(start, head, &frame).map(Some),
            None => self.recover(start).map(Some),
        }
    }

    /// The frame of the block at `start`, or [`None`] when the block is damaged.
    fn frame(&mut self, start: u64, head: &[u8]) -> Result<Option<Frame>> {
        let mut cursor = Cursor::at(head, start);
        cursor.take(MAGIC.len())?;
        let Ok(length) = cursor.u64() else {
            return Ok(None);
        };
        let version = cursor.u32().ok();
        let extra = if version == Some(0) { 18 } else { 14 };
        let end = start
            .checked_add(extra)
            .and_then(|content| content.checked_add(length));
        match (version, end) {
            (Some(version), Some(end)) if end <= self.window.size() => {
                let frame = Frame {
                    length,
                    version,
                    end,
                };
                let sound = self.corruption == Corruption::Trust || self.is_sound(start, &frame)?;
                Ok(sound.then_some(frame))
            }
            _ if self.corruption == Corruption::Check => Ok(None),
            _ => Err(FormatError::corrupt(
                start,
                "log block runs past the end of the file",
            )),
        }
    }

    /// The trailing length agrees, and another block or the end of the file follows.
    fn is_sound(&mut self, start: u64, frame: &Frame) -> Result<bool> {
        let next = if frame.version == 0 {
            self.window.peek(frame.end, MAGIC.len())?
        } else {
            let Some(tail) = frame
                .end
                .checked_sub(TAIL)
                .filter(|tail| *tail >= start + 14)
            else {
                return Ok(false);
            };
            // From the footer on, which is read later.
            let bytes = self.window.peek(tail, TAIL as usize + MAGIC.len())?;
            let mut cursor = Cursor::at(&bytes, tail);
            cursor.u32()?;
            if cursor.u64()?.checked_sub(MAGIC.len() as u64) != Some(frame.length) {
                return Ok(false);
            }
            bytes.slice(cursor.position()..)
        };
        Ok(next.get(..MAGIC.len()).is_none_or(|magic| magic == MAGIC))
    }

    fn read_block(&mut self, start: u64, head: Bytes, frame: &Frame) -> Result<LogBlock> {
        if frame.version != FORMAT_VERSION {
            return Err(FormatError::unsupported(format!(
                "log format version {}",
                frame.version
            )));
        }
        let (block_type, header, content_offset, content_len) =
            self.read_header(start, head, frame)?;
        let block = LogBlock {
            offset: start,
            block_type,
            format_version: frame.version,
            header,
            content_offset,
            content_len,
            end: frame.end,
        };
        self.check_footer(&block)?;
        Ok(block)
    }

    /// Block type, header, content offset and content length.
    fn read_header(
        &mut self,
        start: u64,
        mut bytes: Bytes,
        frame: &Frame,
    ) -> Result<(BlockType, Header, u64, u64)> {
        loop {
            let mut cursor = Cursor::at(&bytes, start);
            cursor.take(FRAME - 4)?;
            let ordinal = cursor.u32()?;
            let block_type = match BlockType::from_ordinal(ordinal) {
                Some(BlockType::Corrupt) => {
                    return Err(FormatError::corrupt(start, "a block of type CORRUPT_BLOCK"));
                }
                Some(block_type) => block_type,
                None => {
                    return Err(FormatError::unsupported(format!(
                        "log block type {ordinal}"
                    )));
                }
            };
            let header = Header::decode(&mut cursor, frame.end)?;
            if let (Some(header), Ok(length)) = (header, cursor.u64()) {
                return Ok((block_type, header, cursor.offset(), length));
            }
            if start.saturating_add(bytes.len() as u64) >= frame.end {
                return cursor.corrupt("log block ends inside its header");
            }
            bytes = self.window.peek(start, bytes.len().saturating_mul(2))?;
        }
    }

    /// The content, an empty footer and the trailing length fill the block.
    fn check_footer(&mut self, block: &LogBlock) -> Result<()> {
        let end = block.content_offset.checked_add(block.content_len);
        let footer = end.and_then(|end| Some((end, block.end.checked_sub(end)?)));
        let Some((offset, length)) = footer.filter(|(_, length)| *length >= TAIL) else {
            let what = format!(
                "block content of {} bytes exceeds its block",
                block.content_len
            );
            return Err(FormatError::corrupt(block.content_offset, what));
        };
        if length == TAIL && self.corruption == Corruption::Trust {
            return Ok(());
        }
        let wrong = || FormatError::corrupt(offset, format!("log block footer of {length} bytes"));
        if length > FOOTER_MOST {
            return Err(wrong());
        }
        let bytes = self.window.peek(offset, length as usize)?;
        let mut cursor = Cursor::at(&bytes, offset);
        let limit = block.end.saturating_sub(8);
        match Header::decode(&mut cursor, limit)? {
            Some(_) if cursor.offset() == limit => Ok(()),
            _ => Err(wrong()),
        }
    }

    /// Everything from the damaged block up to the next magic, as one block.
    fn recover(&mut self, start: u64) -> Result<LogBlock> {
        let content_offset = start + MAGIC.len() as u64;
        let end = self.next_magic(content_offset)?;
        Ok(LogBlock {
            offset: start,
            block_type: BlockType::Corrupt,
            format_version: FORMAT_VERSION,
            header: Header::default(),
            content_offset,
            content_len: end - content_offset,
            end,
        })
    }

    fn next_magic(&mut self, from: u64) -> Result<u64> {
        let mut offset = from;
        let mut check = from + RECOVERY_CHECK;
        loop {
            if offset >= check {
                self.window.check()?;
                check = offset + RECOVERY_CHECK;
            }
            offset = self.window.next_data(offset);
            let bytes = self.window.peek(offset, RECOVERY_STEP)?;
            if let Some(found) = memmem::find(&bytes, &MAGIC) {
                return Ok(offset + found as u64);
            }
            if offset + bytes.len() as u64 >= self.window.size() {
                return Ok(self.window.size());
            }
            offset += (bytes.len() - (MAGIC.len() - 1)) as u64;
        }
    }
}

fn old_block(start: u64, frame: &Frame) -> LogBlock {
    LogBlock {
        offset: start,
        block_type: BlockType::AvroData,
        format_version: 0,
        header: Header::default(),
        content_offset: frame.end - frame.length,
        content_len: frame.length,
        end: frame.end,
    }
}

impl<R: ReadAt> Iterator for LogScanner<R> {
    type Item = Result<LogBlock>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.block().transpose()?;
        match &item {
            Ok(block) => self.offset = block.end,
            Err(_) => self.failed = true,
        }
        Some(item)
    }
}

impl<R: ReadAt> std::iter::FusedIterator for LogScanner<R> {}

#[cfg(test)]
mod tests;
