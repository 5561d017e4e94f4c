//! Checksums of a log block.
//!
//! Hudi's format has none, and its readers fail on entries of headers and footers that they do not
//! know. But they read as many records or bytes of a content as its beginning says, and pass over what
//! follows. There pyhudi's blocks have a mark, the CRC-32 of the content before it and that of the
//! block's head: all bytes before the content. HFiles and Parquet files as contents have checksums of
//! their own, and a place for that of the head.

use super::BlockType;
use crate::cursor::Cursor;
use crate::{FileChecksums, Result, hfile};

/// Bytes of a seal.
pub const SEAL: usize = 12;

const MARK: &[u8; 4] = b"PYCR";

/// The checksums in a block's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    /// Of the content before the seal.
    pub content: u32,
    /// Of the block before its content.
    pub head: u32,
}

impl Seal {
    /// The seal that is the last bytes of a content.
    pub fn decode(end: &[u8]) -> Option<Self> {
        let (_, seal) = end.split_last_chunk::<SEAL>()?;
        let mut cursor = Cursor::new(seal.strip_prefix(MARK)?);
        Some(Self {
            content: cursor.u32().ok()?,
            head: cursor.u32().ok()?,
        })
    }

    fn encode(self) -> Vec<u8> {
        let mut bytes = MARK.to_vec();
        bytes.extend(self.content.to_be_bytes());
        bytes.extend(self.head.to_be_bytes());
        bytes
    }
}

/// Bytes that a content of this type gets longer.
pub(super) fn seal_length(block_type: BlockType) -> usize {
    match block_type {
        // Of command blocks Hudi reads the header alone; all of pyhudi's equal those of Java.
        BlockType::HfileData | BlockType::ParquetData | BlockType::Command => 0,
        _ => SEAL,
    }
}

/// Puts the checksum of the head into a content that has a place for it; the seal to follow another one.
pub(super) fn seal(block_type: BlockType, head: &[u8], content: &mut [u8]) -> Vec<u8> {
    let head = crc32fast::hash(head);
    match block_type {
        BlockType::HfileData => hfile::write_head(content, head),
        BlockType::ParquetData => FileChecksums::write_head(content, head),
        BlockType::Command => None,
        _ => {
            let content = crc32fast::hash(content);
            return Seal { content, head }.encode();
        }
    };
    Vec::new()
}

/// The end of a content: nothing, or a seal that fits what was read before.
pub(super) fn check_end(cursor: &mut Cursor<'_>, content: &[u8]) -> Result<()> {
    let end = cursor.clone();
    if let Some(seal) = content.get(end.position()..).and_then(Seal::decode)
        && end.remaining() == SEAL
    {
        cursor.take(SEAL)?;
        let before = content.get(..end.position()).unwrap_or_default();
        if crc32fast::hash(before) != seal.content {
            return end.corrupt("the content of a log block does not have its checksum");
        }
    }
    cursor.finish()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::log::{
        AvroStream, Corruption, HeaderKey, LogScanner, avro_content, avro_records, delete_body,
        delete_content, write_block,
    };

    #[test]
    fn no_flipped_bit_of_a_content_is_read() {
        let header = [(HeaderKey::InstantTime, "1")];
        let avro = avro_content([&b"one"[..], b"two"]);
        for (kind, content) in [
            (BlockType::AvroData, avro),
            (BlockType::Delete, delete_content(b"list")),
        ] {
            let mut file = Vec::new();
            write_block(&mut file, kind, &header, &content);
            let block = LogScanner::new(Bytes::from(file.clone()), Corruption::Check)
                .next()
                .unwrap()
                .unwrap();
            let start = block.content_offset as usize;
            let sealed = content.len() + SEAL;
            assert_eq!(block.content_len as usize, sealed);
            let head = crc32fast::hash(&file[..start]);
            assert_eq!(
                Seal::decode(&file[start..start + sealed]).unwrap().head,
                head
            );
            for bit in 0..=(sealed - 4) * 8 {
                let mut damaged = file.clone();
                let is_whole = bit == (sealed - 4) * 8;
                if !is_whole {
                    damaged[start + bit / 8] ^= 1 << (bit % 8);
                }
                let damaged = Bytes::from(damaged);
                let content = block.content(&damaged).unwrap();
                let is_read = if kind == BlockType::Delete {
                    delete_body(&content).is_ok()
                } else {
                    let mut stream = AvroStream::open(&damaged, &block);
                    let streamed = stream.as_mut().is_ok_and(|stream| {
                        loop {
                            match stream.next_record() {
                                Ok(Some(_)) => {}
                                Ok(None) => return true,
                                Err(_) => return false,
                            }
                        }
                    });
                    assert_eq!(streamed, avro_records(&content, 1).is_ok());
                    streamed
                };
                assert_eq!(is_read, is_whole, "bit {bit}");
            }
        }
    }
}
