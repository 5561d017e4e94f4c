//! Log blocks as bytes. Where they are stored, and when, is the writer's business.

use super::seal::{seal, seal_length};
use super::{BlockType, Header, HeaderKey};

/// Bytes of a footer without entries.
const EMPTY_FOOTER: usize = 4;

/// First bytes of every block (`HoodieLogFormat.MAGIC`).
pub const MAGIC: [u8; 6] = *b"#HUDI#";

/// Version of the block frame that Hudi 0.4 and later write (`HoodieLogFormat.CURRENT_VERSION`).
pub const FORMAT_VERSION: u32 = 1;

/// Appends one block. The layout is drawn at [`LogBlock`](super::LogBlock).
///
/// [`BlockType::Corrupt`] exists only for readers: a block written with it is refused by all.
pub fn write_block(
    out: &mut Vec<u8>,
    block_type: BlockType,
    header: &[(HeaderKey, &str)],
    content: &[u8],
) {
    let head = head(block_type, header, content.len());
    out.extend_from_slice(&head);
    let at = out.len();
    out.extend_from_slice(content);
    let content = out.get_mut(at..).unwrap_or_default();
    let tail = tail(block_type, &head, content);
    out.extend_from_slice(&tail);
}

/// What stands before and after the content of a block, for those who do not copy it. A content that
/// has a place for the checksum of its head gets it.
pub fn around_content(
    block_type: BlockType,
    header: &[(HeaderKey, &str)],
    content: &mut [u8],
) -> (Vec<u8>, Vec<u8>) {
    let head = head(block_type, header, content.len());
    let tail = tail(block_type, &head, content);
    (head, tail)
}

/// All bytes of a block before its content.
fn head(block_type: BlockType, header: &[(HeaderKey, &str)], content_len: usize) -> Vec<u8> {
    let content_len = content_len + seal_length(block_type);
    let (mut start, mut head) = (MAGIC.to_vec(), Vec::new());
    head.extend_from_slice(&FORMAT_VERSION.to_be_bytes());
    head.extend_from_slice(&block_type.ordinal().to_be_bytes());
    Header::encode(&mut head, header);
    head.extend_from_slice(&(content_len as u64).to_be_bytes());
    let length = (8 + head.len() + content_len + EMPTY_FOOTER) as u64;
    start.extend_from_slice(&length.to_be_bytes());
    start.append(&mut head);
    start
}

/// The seal of the content, the empty footer and the trailing length.
fn tail(block_type: BlockType, head: &[u8], content: &mut [u8]) -> Vec<u8> {
    let mut tail = seal(block_type, head, content);
    let length = (head.len() + content.len() + tail.len() + EMPTY_FOOTER) as u64;
    Header::encode(&mut tail, &[]);
    tail.extend_from_slice(&length.to_be_bytes());
    tail
}

/// Appends the command block that makes readers drop `target_instant` (tables of version 6).
pub fn rollback_block(out: &mut Vec<u8>, rollback_instant: &str, target_instant: &str) {
    let header = [
        (HeaderKey::InstantTime, rollback_instant),
        (HeaderKey::TargetInstantTime, target_instant),
        (HeaderKey::CommandBlockType, "0"),
    ];
    write_block(out, BlockType::Command, &header, &[]);
}
