//! How the chunks of a stream are packed.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::{FormatError, Result};

/// Compression of a file (`CompressionKind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Codec {
    None,
    Zlib,
    Snappy,
    Lz4,
    Zstd,
}

impl Codec {
    pub(super) fn of(number: u64) -> Result<Self> {
        match number {
            0 => Ok(Self::None),
            1 => Ok(Self::Zlib),
            2 => Ok(Self::Snappy),
            4 => Ok(Self::Lz4),
            5 => Ok(Self::Zstd),
            3 => Err(FormatError::unsupported("hoodie.orc.compression.codec LZO")),
            other => Err(FormatError::unsupported(format!("ORC compression {other}"))),
        }
    }

    pub(super) fn number(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Zlib => 1,
            Self::Snappy => 2,
            Self::Lz4 => 4,
            Self::Zstd => 5,
        }
    }

    /// A chunk, packed.
    pub(super) fn pack(self, chunk: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::None => Ok(chunk.to_vec()),
            Self::Zlib => {
                let mut to = DeflateEncoder::new(Vec::new(), Compression::default());
                to.write_all(chunk)?;
                to.finish()
            }
            Self::Zstd => zstd::bulk::compress(chunk, zstd::DEFAULT_COMPRESSION_LEVEL),
            Self::Snappy => Ok(snap::raw::Encoder::new().compress_vec(chunk)?),
            Self::Lz4 => Ok(lz4_flex::block::compress(chunk)),
        }
    }

    /// The bytes of a packed chunk that began at `offset`, `most` at most.
    pub(super) fn unpack(self, packed: &[u8], most: usize, offset: u64) -> Result<Bytes> {
        let damaged = |what: String| FormatError::corrupt(offset, what);
        let too_large = || damaged(format!("a chunk of more than {most} bytes"));
        let limit = most as u64 + 1;
        let mut out = Vec::new();
        let read = match self {
            Self::None => return Ok(Bytes::copy_from_slice(packed)),
            Self::Zlib => flate2::read::DeflateDecoder::new(packed)
                .take(limit)
                .read_to_end(&mut out),
            Self::Zstd => zstd::stream::read::Decoder::with_buffer(packed)
                .and_then(|decoder| decoder.take(limit).read_to_end(&mut out)),
            Self::Snappy => {
                let length = snap::raw::decompress_len(packed);
                if length.is_ok_and(|length| length > most) {
                    return Err(too_large());
                }
                return snap::raw::Decoder::new()
                    .decompress_vec(packed)
                    .map(Bytes::from)
                    .map_err(|error| damaged(error.to_string()));
            }
            Self::Lz4 => {
                return lz4_flex::block::decompress(packed, most)
                    .map(Bytes::from)
                    .map_err(|error| damaged(error.to_string()));
            }
        };
        read.map_err(|error| damaged(error.to_string()))?;
        if out.len() > most {
            return Err(too_large());
        }
        Ok(Bytes::from(out))
    }
}
