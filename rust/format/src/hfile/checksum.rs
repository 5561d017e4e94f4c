//! The checksums of HFile blocks (`org.apache.hadoop.hbase.util.ChecksumType`).

use crate::{FormatError, Result};

/// How the chunks of a block are summed; the discriminant is the number on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    /// Sums are zero bytes or absent: Hudi's own writer, from 1.1 on.
    None = 0,
    /// pyhudi.
    Crc32 = 1,
    /// The HBase writer's choice.
    Crc32c = 2,
}

impl Checksum {
    pub(super) fn from_number(number: u8) -> Result<Self> {
        [Self::None, Self::Crc32, Self::Crc32c]
            .into_iter()
            .find(|checksum| *checksum as u8 == number)
            .ok_or_else(|| FormatError::unsupported(format!("HFile checksum type {number}")))
    }

    /// The sum of a chunk; [`None`] when chunks are not summed.
    pub(super) fn of(self, chunk: &[u8]) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Crc32 => Some(crc32fast::hash(chunk)),
            Self::Crc32c => Some(crc32c(chunk)),
        }
    }
}

/// Castagnoli's polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

#[expect(
    clippy::indexing_slicing,
    reason = "runs in the compiler, on a table of its own length"
)]
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[expect(clippy::indexing_slicing, reason = "a byte indexes a table of 256")]
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_both_polynomials() {
        assert_eq!(Checksum::Crc32c.of(b"123456789"), Some(0xe306_9283));
        assert_eq!(Checksum::Crc32.of(b"123456789"), Some(0xcbf4_3926));
        assert_eq!(Checksum::None.of(b"123456789"), None);
        assert!(Checksum::from_number(3).is_err());
    }
}
