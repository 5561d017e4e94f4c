//! What can happen to the bytes of a file.

use proptest::prelude::*;
use proptest::sample::Index;

/// Where the bytes end early, or which bit is another one.
#[derive(Debug, Clone, Copy)]
pub enum Damage {
    Cut(Index),
    Flip(Index, u8),
}

pub fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
    ]
}

impl Damage {
    /// The damaged bytes of some that are not empty, and the first place that differs.
    pub fn of(self, bytes: &[u8]) -> (Vec<u8>, usize) {
        match self {
            Self::Cut(at) => {
                let at = at.index(bytes.len());
                (bytes[..at].to_vec(), at)
            }
            Self::Flip(at, bit) => {
                let at = at.index(bytes.len());
                let mut bytes = bytes.to_vec();
                bytes[at] ^= 1 << bit;
                (bytes, at)
            }
        }
    }
}
