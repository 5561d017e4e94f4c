//! Log blocks as bytes. Where they are stored, and when, is the writer's business.

use super::{BlockType, Header, HeaderKey};

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
    let (head, tail) = around_content(block_type, header, content.len());
    out.extend_from_slice(&head);
    out.extend_from_slice(content);
    out.extend_from_slice(&tail);
}

/// What stands before and after the content of a block, for those who do not copy it.
pub fn around_content(
    block_type: BlockType,
    header: &[(HeaderKey, &str)],
    content_len: usize,
) -> (Vec<u8>, Vec<u8>) {
    let (mut start, mut head) = (MAGIC.to_vec(), Vec::new());
    head.extend_from_slice(&FORMAT_VERSION.to_be_bytes());
    head.extend_from_slice(&block_type.ordinal().to_be_bytes());
    Header::encode(&mut head, header);
    head.extend_from_slice(&(content_len as u64).to_be_bytes());
    let mut tail = Vec::new();
    Header::encode(&mut tail, &[]);
    let length = (8 + head.len() + content_len + tail.len()) as u64;
    start.extend_from_slice(&length.to_be_bytes());
    start.append(&mut head);
    tail.extend_from_slice(&(length + MAGIC.len() as u64).to_be_bytes());
    (start, tail)
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
