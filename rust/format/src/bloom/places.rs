//! The bits of several keys at once, found without the waits of one key's chain of hashes.

use crate::hash::Inputs;

/// Keys that are processed together.
const LANES: usize = 4;

/// The places of some keys, in a filter of one shape.
pub(super) struct Places {
    inputs: Inputs<LANES>,
    bits: u32,
    /// 2^64 / `bits`, rounded up: a remainder by it is two multiplications (Lemire's fastmod).
    inverse: u64,
    /// One of each key by hash.
    found: Vec<[u32; LANES]>,
}

impl Places {
    pub(super) fn new(hashes: u32, bits: u32) -> Self {
        Self {
            inputs: Inputs::new(),
            bits,
            inverse: (u64::MAX / u64::from(bits.max(1))).wrapping_add(1),
            found: vec![[0; LANES]; hashes as usize],
        }
    }

    /// Finds the places of keys; false where they have to be added one by one.
    pub(super) fn take(&mut self, keys: [&[u8]; LANES]) -> bool {
        if !self.inputs.take(keys) {
            return false;
        }
        let mut hashes = [0; LANES];
        for places in &mut self.found {
            hashes = self.inputs.hash(hashes);
            *places = hashes.map(|hash| remainder(hash, self.bits, self.inverse));
        }
        true
    }

    /// The places of one of the keys.
    pub(super) fn of(&self, lane: usize) -> impl Iterator<Item = u32> {
        self.found
            .iter()
            .filter_map(move |places| places.get(lane).copied())
    }
}

/// `Math.abs(hash % bits)` of Java.
fn remainder(hash: u32, bits: u32, inverse: u64) -> u32 {
    let size = u64::from((hash as i32).unsigned_abs());
    let fraction = inverse.wrapping_mul(size);
    ((u128::from(fraction) * u128::from(bits)) >> 64) as u32
}

#[cfg(test)]
mod tests {
    use super::remainder;

    #[test]
    fn remainders_are_exact() {
        for bits in [1_u32, 2, 3, 20, 431_328, 2_587_966, i32::MAX as u32] {
            let inverse = (u64::MAX / u64::from(bits)).wrapping_add(1);
            let mut hash = 1_u32;
            for edge in [0, 1, bits, bits - 1, i32::MAX as u32, 1 << 31, u32::MAX] {
                hash = hash.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                for value in [edge, hash] {
                    let wanted = (i64::from(value as i32) % i64::from(bits)).unsigned_abs();
                    assert_eq!(u64::from(remainder(value, bits, inverse)), wanted);
                }
            }
        }
    }
}
