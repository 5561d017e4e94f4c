//! One bit vector with its header: a `SIMPLE` filter, or a row of a dynamic one.

use crate::cursor::Cursor;
use crate::hash::murmur;
use crate::{FormatError, Result};

const LAYOUT: i32 = -1;
const MURMUR: u8 = 1;
/// No error rate of any use needs as many; keeps a damaged header from stalling a look-up.
const HASHES_MOST: u32 = 4096;
/// The bits and how many of them stand for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) hashes: u32,
    pub(super) bits: u32,
    pub(super) vector: Vec<u8>,
}

impl Row {
    pub(super) fn new(hashes: u32, bits: u32) -> Self {
        Self {
            hashes,
            bits,
            vector: vec![0; vector_len(bits)],
        }
    }

    /// Byte and mask of each bit that stands for a key.
    pub(super) fn places<'k>(&self, key: &'k [u8]) -> impl Iterator<Item = (usize, u8)> + use<'k> {
        let bits = i64::from(self.bits);
        let first = murmur(key, 0);
        std::iter::successors(Some(first), move |hash| Some(murmur(key, *hash)))
            .take(self.hashes as usize)
            .map(move |hash| {
                let place = (i64::from(hash) % bits).unsigned_abs() as usize;
                (place >> 3, 1 << (place & 7))
            })
    }

    pub(super) fn add(&mut self, key: &[u8]) {
        for (byte, mask) in self.places(key) {
            if let Some(byte) = self.vector.get_mut(byte) {
                *byte |= mask;
            }
        }
    }

    /// Adds a key by its places.
    pub(super) fn set(&mut self, places: impl Iterator<Item = u32>) {
        for place in places {
            if let Some(byte) = self.vector.get_mut((place >> 3) as usize) {
                *byte |= 1 << (place & 7);
            }
        }
    }

    /// The share of other keys that are found in it, about.
    pub(super) fn passed_share(&self) -> f64 {
        let set: u64 = self
            .vector
            .iter()
            .map(|byte| u64::from(byte.count_ones()))
            .sum();
        let share = set as f64 / f64::from(self.bits.max(1));
        share.min(1.0).powi(self.hashes as i32)
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.places(key)
            .all(|(byte, mask)| self.vector.get(byte).is_some_and(|byte| byte & mask != 0))
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_header(out, self.hashes, self.bits);
        out.extend_from_slice(&self.vector);
    }
}

/// Number of hashes and of bits.
pub(super) fn shape(entries: u32, fpp: f64) -> (u32, u32) {
    let entries = f64::from(entries.max(1));
    let ln2 = std::f64::consts::LN_2;
    let bits = (entries * (-fpp.ln() / (ln2 * ln2)))
        .ceil()
        .clamp(1.0, f64::from(i32::MAX));
    let hashes = (ln2 * bits / entries)
        .ceil()
        .clamp(1.0, f64::from(HASHES_MOST));
    (hashes as u32, bits as u32)
}

pub(super) fn vector_len(bits: u32) -> usize {
    (bits as usize).div_ceil(8)
}

pub(super) fn header(cursor: &mut Cursor<'_>) -> Result<(u32, u32)> {
    let at = cursor.clone();
    match cursor.i32()? {
        LAYOUT => {}
        1.. => {
            return Err(FormatError::unsupported(
                "bloom filter without a layout version",
            ));
        }
        other => return at.corrupt(format!("bloom filter layout {other}")),
    }
    let hashes = cursor.u32()?;
    match cursor.u8()? {
        MURMUR => {}
        0 => return Err(FormatError::unsupported("bloom filter of Jenkins hashes")),
        other => return at.corrupt(format!("bloom filter hash {other}")),
    }
    let bits = cursor.u32()?;
    if hashes == 0 || hashes > HASHES_MOST || bits == 0 || bits > i32::MAX as u32 {
        return at.corrupt(format!("bloom filter of {hashes} hashes over {bits} bits"));
    }
    Ok((hashes, bits))
}

pub(super) fn put_header(out: &mut Vec<u8>, hashes: u32, bits: u32) {
    out.extend_from_slice(&LAYOUT.to_be_bytes());
    out.extend_from_slice(&hashes.to_be_bytes());
    out.push(MURMUR);
    out.extend_from_slice(&bits.to_be_bytes());
}
