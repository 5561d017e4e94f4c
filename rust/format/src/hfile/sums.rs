//! Checksums of a whole HFile, in the zeros of its trailer that readers pass over.
//!
//! Blocks have checksums, the trailer has none, and it says where the blocks are. The last bytes before
//! the version are a mark and three CRC-32: of all bytes before the trailer, of the trailer without
//! that number and the next one, and of what precedes the file in a log block, which is zero elsewhere.

use super::trailer::TRAILER;
use crate::{FormatError, Result};

const MARK: &[u8; 4] = b"PYCR";

/// Where the mark is, and the numbers after it.
const AT: usize = TRAILER - 20;
const OWN: usize = AT + 8;
const HEAD: usize = AT + 12;
const VERSION: usize = AT + 16;

/// The checksums of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HFileChecksums {
    /// Of all bytes before the trailer.
    pub data: u32,
    /// Of the head of the log block that the file is in; 0 elsewhere.
    pub head: u32,
}

impl HFileChecksums {
    /// Bytes of a trailer.
    pub const TRAILER: usize = TRAILER;

    /// The checksums in a trailer at `offset`; none if it has none.
    ///
    /// # Errors
    /// The trailer does not have its own checksum.
    pub fn of_trailer(trailer: &[u8], offset: u64) -> Result<Option<Self>> {
        if trailer.get(AT..AT + MARK.len()) != Some(MARK) {
            return Ok(None);
        }
        let number = |at: usize| {
            let bytes = trailer.get(at..at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        match (number(AT + 4), number(OWN), number(HEAD)) {
            (Some(data), Some(own), Some(head)) if own == own_sum(trailer) => {
                Ok(Some(Self { data, head }))
            }
            _ => Err(FormatError::corrupt(
                offset,
                "the trailer of an HFile does not have its checksum",
            )),
        }
    }
}

/// Puts the checksums into a trailer. data: that of the bytes before it.
pub(super) fn write(trailer: &mut [u8], data: u32) {
    if let Some(place) = trailer.get_mut(AT..OWN) {
        let (mark, number) = place.split_at_mut(MARK.len());
        mark.copy_from_slice(MARK);
        number.copy_from_slice(&data.to_be_bytes());
    }
    let own = own_sum(trailer);
    if let Some(place) = trailer.get_mut(OWN..HEAD) {
        place.copy_from_slice(&own.to_be_bytes());
    }
}

/// Puts the checksum of a log block's head into the file in the block.
pub(crate) fn write_head(file: &mut [u8], head: u32) -> Option<()> {
    let start = file.len().checked_sub(TRAILER)?;
    let trailer = file.get_mut(start..)?;
    if trailer.get(AT..AT + MARK.len()) == Some(MARK) {
        trailer
            .get_mut(HEAD..VERSION)?
            .copy_from_slice(&head.to_be_bytes());
    }
    Some(())
}

fn own_sum(trailer: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(trailer.get(..OWN).unwrap_or_default());
    sum.update(trailer.get(VERSION..).unwrap_or_default());
    sum.finalize()
}
