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
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    let length_at = out.len();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&FORMAT_VERSION.to_be_bytes());
    out.extend_from_slice(&block_type.ordinal().to_be_bytes());
    Header::encode(out, header);
    out.extend_from_slice(&(content.len() as u64).to_be_bytes());
    out.extend_from_slice(content);
    Header::encode(out, &[]);
    let trailing = (out.len() - start) as u64;
    out.extend_from_slice(&trailing.to_be_bytes());
    let length = trailing - MAGIC.len() as u64;
    if let Some(place) = out.get_mut(length_at..length_at + 8) {
        place.copy_from_slice(&length.to_be_bytes());
    }
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
