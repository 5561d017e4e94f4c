//! Packing blocks: one gzip member each, as HBase has it.

use std::fmt;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

use super::deflate::{PairAt, PairDeflate};
use crate::{FormatError, Result};

/// Magic, deflate, no flags, no time, no extra flags, no system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0];
/// A tenth larger than with the usual level, in half of the time.
const LEVEL: u32 = 2;

/// Packs one block after the other with the same memory.
pub(super) struct Gzip {
    any: Compress,
    pairs: PairDeflate,
}

impl Gzip {
    pub(super) fn new() -> Self {
        Self {
            any: Compress::new(Compression::new(LEVEL), false),
            pairs: PairDeflate::default(),
        }
    }

    /// pairs: those of a data block.
    pub(super) fn member(&mut self, payload: &[u8], pairs: &[PairAt]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(payload.len() / 4 + 64);
        out.extend(HEAD);
        if pairs.is_empty() || !self.pairs.deflate(payload, pairs, &mut out) {
            self.search(payload, &mut out)?;
        }
        let mut crc = Crc::new();
        crc.update(payload);
        out.extend(crc.sum().to_le_bytes());
        out.extend((payload.len() as u32).to_le_bytes());
        Ok(out)
    }

    fn search(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.any.reset();
        loop {
            let taken = self.any.total_in() as usize;
            let rest = payload.get(taken..).unwrap_or_default();
            let status = (self.any)
                .compress_vec(rest, out, FlushCompress::Finish)
                .map_err(|error| FormatError::Read(Box::new(error)))?;
            if status == Status::StreamEnd {
                return Ok(());
            }
            out.reserve(payload.len() / 4 + 64);
        }
    }
}

impl fmt::Debug for Gzip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gzip")
    }
}
