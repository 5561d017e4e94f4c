//! The last 4096 bytes of an HFile: where everything else is.

use super::block::Codec;
use super::sums::HFileChecksums;
use crate::cursor::Cursor;
use crate::proto;
use crate::{FormatError, Result};

/// Length of the trailer of version 3, padding included.
pub(super) const TRAILER: usize = 4096;
const MAGIC: &[u8; 8] = b"TRABLK\"$";
const MAJOR: u32 = 3;

/// ```text
/// magic "TRABLK\"$" 8 | length varint | Protocol Buffers FileTrailerProto | zeros
///   | minor version 1 | major version 3 bytes
/// ```
///
/// `HFileWriterImpl`/`FixedFileTrailer` of HBase, `org.apache.hudi.io.hfile.HFileTrailer` of Hudi
/// 1.1 and later. Of the fields, those that a reader needs.
#[derive(Debug, Default)]
pub(super) struct Trailer {
    pub(super) file_info_offset: u64,
    pub(super) load_on_open_offset: u64,
    pub(super) data_index_count: u64,
    pub(super) meta_index_count: u64,
    pub(super) entry_count: u64,
    pub(super) index_levels: u64,
    pub(super) codec: Codec,
}

impl Trailer {
    /// `bytes` are the last [`TRAILER`] bytes of the file, which start at `offset`.
    pub(super) fn decode(bytes: &[u8], offset: u64) -> Result<Self> {
        let mut cursor = Cursor::at(bytes, offset);
        if cursor.take(MAGIC.len())? != MAGIC {
            return Err(FormatError::corrupt(offset, "no HFile trailer"));
        }
        HFileChecksums::of_trailer(bytes, offset)?;
        let mut message = proto::delimited(&mut cursor)?;
        cursor.take(cursor.remaining().saturating_sub(4))?;
        let version = cursor.u32()?;
        if version & 0x00ff_ffff != MAJOR {
            let feature = format!("HFile version {}", version & 0x00ff_ffff);
            return Err(FormatError::unsupported(feature));
        }
        Self::fields(&mut message)
    }

    fn fields(message: &mut Cursor<'_>) -> Result<Self> {
        let mut trailer = Self {
            index_levels: 1,
            ..Self::default()
        };
        while let Some((number, value)) = proto::field(message)? {
            let count = value.number();
            let place = match number {
                1 => &mut trailer.file_info_offset,
                2 => &mut trailer.load_on_open_offset,
                5 => &mut trailer.data_index_count,
                6 => &mut trailer.meta_index_count,
                7 => &mut trailer.entry_count,
                8 => &mut trailer.index_levels,
                11 => {
                    check_comparator(value.bytes().unwrap_or_default())?;
                    continue;
                }
                12 => {
                    trailer.codec = Codec::from_number(count.unwrap_or(u64::MAX))?;
                    continue;
                }
                13 if value.bytes().is_some_and(|key| !key.is_empty()) => {
                    return Err(FormatError::unsupported("encrypted HFile"));
                }
                _ => continue,
            };
            match count {
                Some(count) => *place = count,
                None => return message.corrupt(format!("trailer field {number} is no number")),
            }
        }
        Ok(trailer)
    }
}

/// Only plain byte order is known here. Hudi's name and the HBase names for it have moved between
/// packages, hence the suffixes.
fn check_comparator(name: &[u8]) -> Result<()> {
    const BYTE_ORDER: [&[u8]; 2] = [b"KVComparator", b"CellComparatorImpl"];
    if BYTE_ORDER.iter().any(|suffix| name.ends_with(suffix)) {
        return Ok(());
    }
    let name = String::from_utf8_lossy(name);
    Err(FormatError::unsupported(format!("HFile comparator {name}")))
}
