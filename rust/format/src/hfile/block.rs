//! One HFile block: header, checks, decompression.

use std::io::Read;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use flate2::bufread::GzDecoder;

use super::checksum::Checksum;
use crate::cursor::Cursor;
use crate::{FormatError, ReadAt, Result};

/// Length of a block header.
pub(super) const HEADER: usize = 33;
/// No writer makes blocks of this size; their target is one megabyte.
const UNCOMPRESSED_MOST: usize = 1 << 30;
/// Deflate cannot shrink further than 1032 to 1.
const DEFLATE_MOST: usize = 1040;
/// Memory taken before any byte is inflated.
const FIRST_CAPACITY: usize = 1 << 20;
/// Inflated at a time where only the beginning of a block may be wanted.
const STEP: usize = 8 << 10;

/// What a block holds, by its magic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Meta,
    /// The roots of both indexes: data and meta.
    Root,
    Intermediate,
    Leaf,
    FileInfo,
}

impl Kind {
    pub(super) fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Data => b"DATABLK*",
            Self::Meta => b"METABLKc",
            Self::Root => b"IDXROOT2",
            Self::Intermediate => b"IDXINTE2",
            Self::Leaf => b"IDXLEAF2",
            Self::FileInfo => b"FILEINF2",
        }
    }
}

/// How block contents are compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Codec {
    Gzip,
    #[default]
    None,
}

impl Codec {
    /// Its number in the trailer.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Gzip => 1,
            Self::None => 2,
        }
    }

    /// By the numbers of HBase's `Compression.Algorithm`, which the trailer stores.
    pub(super) fn from_number(number: u64) -> Result<Self> {
        let name = match number {
            0 => "LZO",
            1 => return Ok(Self::Gzip),
            2 => return Ok(Self::None),
            3 => "SNAPPY",
            4 => "LZ4",
            5 => "BZIP2",
            6 => "ZSTD",
            _ => {
                return Err(FormatError::unsupported(format!(
                    "HFile compression {number}"
                )));
            }
        };
        Err(FormatError::unsupported(format!(
            "HFile compression {name}"
        )))
    }
}

/// A block's content, checked and decompressed.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) payload: Bytes,
    /// Where the next block starts.
    pub(super) end: u64,
}

/// ```text
/// magic 8 | on-disk size without header 4 | uncompressed size 4 | previous block 8
///   | checksum type 1 | bytes per checksum 4 | on-disk data size with header 4
///   | data (compressed) | checksums 4 each
/// ```
///
/// `HFileBlock` of HBase and of `org.apache.hudi.io.hfile`. The checksums cover the header too.
struct Header {
    /// Data and checksums.
    on_disk: usize,
    uncompressed: usize,
    checksum: Checksum,
    per_checksum: usize,
    /// Header and data.
    summed: usize,
}

impl Header {
    fn decode(cursor: &mut Cursor<'_>, kind: Kind) -> Result<Self> {
        let at = cursor.clone();
        let magic = cursor.take(8)?;
        if magic != kind.magic() {
            let found = magic.escape_ascii();
            let expected = kind.magic().escape_ascii();
            return at.corrupt(format!("HFile block {expected} expected, {found} found"));
        }
        let header = Self {
            on_disk: size(cursor)?,
            uncompressed: size(cursor)?,
            checksum: {
                cursor.u64()?;
                Checksum::from_number(cursor.u8()?)?
            },
            per_checksum: size(cursor)?,
            summed: size(cursor)?,
        };
        let data = header.summed.checked_sub(HEADER);
        if data.is_none_or(|data| data > header.on_disk) || header.uncompressed > UNCOMPRESSED_MOST
        {
            return at.corrupt("sizes in HFile block header");
        }
        Ok(header)
    }
}

/// The content of a block as it stands in the file, its checksums right.
pub(super) struct Packed {
    pub(super) data: Bytes,
    pub(super) uncompressed: usize,
    /// Where the next block starts.
    end: u64,
}

impl Packed {
    /// Of the data block at the start of `bytes`, which lie at `offset` of the file.
    pub(super) fn of(bytes: &Bytes, offset: u64) -> Result<Self> {
        Self::of_kind(bytes, offset, Kind::Data)
    }

    /// Of the block that starts at `offset` of the file and has `len` bytes.
    pub(super) fn read(source: &impl ReadAt, offset: u64, len: usize, kind: Kind) -> Result<Self> {
        if offset
            .checked_add(len as u64)
            .is_none_or(|end| end > source.size())
        {
            return Err(FormatError::corrupt(offset, "HFile block exceeds the file"));
        }
        Self::whole(&source.read_at(offset, len)?, offset, kind)
    }

    /// Of the block that `bytes` are, which lie at `offset` of the file.
    fn whole(bytes: &Bytes, offset: u64, kind: Kind) -> Result<Self> {
        let packed = Self::of_kind(bytes, offset, kind)?;
        let (found, len) = (packed.end - offset, bytes.len());
        if found != len as u64 {
            let what = format!("HFile block of {found} bytes, its index says {len}");
            return Err(FormatError::corrupt(offset, what));
        }
        Ok(packed)
    }

    fn of_kind(bytes: &Bytes, offset: u64, kind: Kind) -> Result<Self> {
        let mut cursor = Cursor::at(bytes, offset);
        let header = Header::decode(&mut cursor, kind)?;
        cursor.clone().take(header.on_disk)?;
        let data = bytes.slice(HEADER..header.summed);
        cursor.take(header.summed - HEADER)?;
        verify(bytes, &header, &mut cursor, offset)?;
        Ok(Self {
            data,
            uncompressed: header.uncompressed,
            end: offset + (HEADER + header.on_disk) as u64,
        })
    }

    fn unpack(self, codec: Codec, offset: u64) -> Result<Block> {
        let payload = match codec {
            Codec::None => self.data,
            Codec::Gzip => inflate(&self.data, self.uncompressed, offset)?,
        };
        check_size(payload.len(), self.uncompressed, offset)?;
        Ok(Block {
            payload,
            end: self.end,
        })
    }
}

fn check_size(found: usize, announced: usize, offset: u64) -> Result<()> {
    if found == announced {
        return Ok(());
    }
    let what = format!("{found} bytes in a block of {announced}");
    Err(FormatError::corrupt(offset, what))
}

fn size(cursor: &mut Cursor<'_>) -> Result<usize> {
    let at = cursor.clone();
    let value = cursor.i32()?;
    usize::try_from(value).or_else(|_| at.corrupt(format!("size {value}")))
}

impl Block {
    /// Reads the block that starts at `offset` of the file and has `len` bytes.
    pub(super) fn read(
        source: &impl ReadAt,
        offset: u64,
        len: usize,
        kind: Kind,
        codec: Codec,
    ) -> Result<Self> {
        Packed::read(source, offset, len, kind)?.unpack(codec, offset)
    }

    /// Decodes the block that `bytes` are, which lie at `offset` of the file.
    pub(super) fn whole(bytes: &Bytes, offset: u64, kind: Kind, codec: Codec) -> Result<Self> {
        Packed::whole(bytes, offset, kind)?.unpack(codec, offset)
    }

    /// Decodes the block at the start of `bytes`, which lie at `offset` of the file.
    pub(super) fn decode(bytes: &Bytes, offset: u64, kind: Kind, codec: Codec) -> Result<Self> {
        Packed::of_kind(bytes, offset, kind)?.unpack(codec, offset)
    }
}

/// The content of a data block, inflated only as far as needed: a lookup of a key goes
/// half of the way on average.
#[derive(Debug)]
pub(super) struct Unpacking {
    /// All of it, where it was kept.
    whole: Option<Bytes>,
    bytes: Vec<u8>,
    rest: Option<GzDecoder<Reader<Bytes>>>,
    uncompressed: usize,
    offset: u64,
}

impl Unpacking {
    /// Of the block that starts at `offset` of the file and has `len` bytes. `memory` is used again.
    pub(super) fn read(
        source: &impl ReadAt,
        offset: u64,
        len: usize,
        codec: Codec,
        memory: Vec<u8>,
    ) -> Result<Self> {
        let packed = Packed::read(source, offset, len, Kind::Data)?;
        let uncompressed = packed.uncompressed;
        let (whole, bytes, rest) = match codec {
            Codec::None => {
                check_size(packed.data.len(), uncompressed, offset)?;
                (Some(packed.data), memory, None)
            }
            Codec::Gzip => {
                check_ratio(packed.data.len(), uncompressed, offset)?;
                let mut bytes = memory;
                bytes.clear();
                bytes.reserve(uncompressed.min(FIRST_CAPACITY));
                (None, bytes, Some(GzDecoder::new(packed.data.reader())))
            }
        };
        Ok(Self {
            whole,
            bytes,
            rest,
            uncompressed,
            offset,
        })
    }

    /// The memory of the content, for another block.
    pub(super) fn into_memory(self) -> Vec<u8> {
        self.bytes
    }

    /// What is unpacked so far.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.whole {
            Some(whole) => whole,
            None => &self.bytes,
        }
    }

    /// Of a block that was unpacked before.
    pub(super) fn unpacked(content: Bytes, offset: u64) -> Self {
        Self {
            uncompressed: content.len(),
            whole: Some(content),
            bytes: Vec::new(),
            rest: None,
            offset,
        }
    }

    /// The content from its beginning, at least `len` bytes of it if it has them.
    pub(super) fn reach(&mut self, len: usize) -> Result<&[u8]> {
        while self.bytes.len() < len
            && let Some(rest) = &mut self.rest
        {
            let read = rest.take(STEP as u64).read_to_end(&mut self.bytes);
            let read = read.map_err(|error| not_inflated(self.offset, &error))?;
            if read < STEP || self.bytes.len() > self.uncompressed {
                self.rest = None;
                check_size(self.bytes.len(), self.uncompressed, self.offset)?;
            }
        }
        Ok(self.bytes())
    }
}

fn verify(bytes: &Bytes, header: &Header, sums: &mut Cursor<'_>, offset: u64) -> Result<()> {
    if header.checksum == Checksum::None {
        return Ok(());
    }
    let summed = bytes.slice(..header.summed);
    let per_checksum = header.per_checksum.max(1);
    if summed.len().div_ceil(per_checksum) * 4 != header.on_disk + HEADER - header.summed {
        return Err(FormatError::corrupt(
            offset,
            "number of checksums of an HFile block",
        ));
    }
    for chunk in summed.chunks(per_checksum) {
        let at = sums.clone();
        let stored = sums.u32()?;
        if header.checksum.of(chunk).is_some_and(|sum| sum != stored) {
            return at.corrupt("checksum of an HFile block");
        }
    }
    Ok(())
}

/// The gzip form of HBase: one member for each block.
fn inflate(data: &[u8], uncompressed: usize, offset: u64) -> Result<Bytes> {
    check_ratio(data.len(), uncompressed, offset)?;
    let mut out = Vec::with_capacity(uncompressed.min(FIRST_CAPACITY));
    // One byte more than announced, so that the caller notices the difference.
    let limit = uncompressed as u64 + 1;
    match GzDecoder::new(data).take(limit).read_to_end(&mut out) {
        Ok(_) => Ok(Bytes::from(out)),
        Err(error) => Err(not_inflated(offset, &error)),
    }
}

fn check_ratio(packed: usize, uncompressed: usize, offset: u64) -> Result<()> {
    if uncompressed / DEFLATE_MOST > packed {
        let what = format!("{uncompressed} bytes cannot come from {packed}");
        return Err(FormatError::corrupt(offset, what));
    }
    Ok(())
}

fn not_inflated(offset: u64, error: &std::io::Error) -> FormatError {
    FormatError::corrupt(offset, format!("HFile block does not inflate: {error}"))
}
