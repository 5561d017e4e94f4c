//! The murmur hash of Hadoop, which is not the published Murmur2.

const M: u32 = 0x5bd1_e995;

/// `org.apache.hudi.common.util.hash.MurmurHash.hash`.
///
/// Two traps: the last one to three bytes are taken from the end of the input backwards, and each
/// is extended with its sign.
pub fn murmur(bytes: &[u8], seed: i32) -> i32 {
    let mut hash = seed as u32 ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_mul(M) ^ mixed_word(*word);
    }
    if !rest.is_empty() {
        hash = (hash ^ mixed_rest(rest)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    (hash ^ hash >> 15) as i32
}

/// Several inputs of one length, made ready to be hashed with many seeds.
///
/// Only the seed's way through the words is left for each hash. It is a chain in which every step
/// waits for the one before; the chains of several inputs run side by side.
pub(crate) struct Inputs<const N: usize> {
    length: u32,
    words: Vec<[u32; N]>,
    rest: Option<[u32; N]>,
}

impl<const N: usize> Inputs<N> {
    /// Room that is used again for each next inputs.
    pub(crate) fn new() -> Self {
        Self {
            length: 0,
            words: Vec::new(),
            rest: None,
        }
    }

    /// Takes inputs in place of those before; false, and nothing of use, if their lengths differ.
    pub(crate) fn take(&mut self, inputs: [&[u8]; N]) -> bool {
        let length = inputs.first().map_or(0, |input| input.len());
        if inputs.iter().any(|input| input.len() != length) {
            return false;
        }
        self.length = length as u32;
        self.words.clear();
        self.words.resize(length / 4, [0; N]);
        self.rest = (!length.is_multiple_of(4)).then_some([0; N]);
        for (at, input) in inputs.into_iter().enumerate() {
            let (words, rest) = input.as_chunks::<4>();
            for (word, mixed) in words.iter().zip(&mut self.words) {
                set(mixed, at, mixed_word(*word));
            }
            if let Some(mixed) = &mut self.rest {
                set(mixed, at, mixed_rest(rest));
            }
        }
        true
    }

    /// [`murmur`] of each input with its seed.
    pub(crate) fn hash(&self, seeds: [u32; N]) -> [u32; N] {
        let mut hashes = seeds.map(|seed| seed ^ self.length);
        for words in &self.words {
            for (hash, word) in hashes.iter_mut().zip(words) {
                *hash = hash.wrapping_mul(M) ^ word;
            }
        }
        if let Some(rests) = &self.rest {
            for (hash, rest) in hashes.iter_mut().zip(rests) {
                *hash = (*hash ^ rest).wrapping_mul(M);
            }
        }
        hashes.map(|hash| {
            let hash = (hash ^ hash >> 13).wrapping_mul(M);
            hash ^ hash >> 15
        })
    }
}

fn set<const N: usize>(values: &mut [u32; N], at: usize, value: u32) {
    if let Some(place) = values.get_mut(at) {
        *place = value;
    }
}

fn mixed_word(word: [u8; 4]) -> u32 {
    let k = u32::from_le_bytes(word).wrapping_mul(M);
    (k ^ k >> 24).wrapping_mul(M)
}

fn mixed_rest(rest: &[u8]) -> u32 {
    let bytes = (0..).step_by(8).zip(rest.iter().rev());
    bytes.fold(0, |mixed, (shift, byte)| {
        mixed ^ (i32::from(*byte as i8) << shift) as u32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/format/hashes.md`, bloom filters: hash with seed 0, then with that hash as the seed.
    #[test]
    fn same_as_java() {
        for (key, first, second) in [
            ("k1", -1_682_427_553, 1_749_047_190),
            ("key-12345", 11_918_386, -312_550_989),
            ("é", -384_040_333, 1_849_032_984),
            ("日本語キー", -2_105_071_645, 1_536_166_540),
            ("😀x", 1_276_919_489, -1_422_367_754),
            ("abcÿ", -557_513_358, 132_968_930),
        ] {
            assert_eq!(murmur(key.as_bytes(), 0), first, "{key}");
            assert_eq!(murmur(key.as_bytes(), first), second, "{key}");
        }
    }
    #[test]
    fn side_by_side_is_the_same() {
        for length in 0..19_usize {
            let texts: Vec<Vec<u8>> = (0..4_usize)
                .map(|lane| {
                    (0..length)
                        .map(|at| (at * 71 + lane * 131 + 9) as u8)
                        .collect()
                })
                .collect();
            let mut inputs = Inputs::<4>::new();
            assert!(inputs.take([&texts[0], &texts[1], &texts[2], &texts[3]]));
            let seeds = [0, 7, 0xffff_0001, 0x8000_0000];
            let wanted: Vec<u32> = texts
                .iter()
                .zip(seeds)
                .map(|(text, seed)| murmur(text, seed as i32) as u32)
                .collect();
            assert_eq!(inputs.hash(seeds).to_vec(), wanted, "{length}");
        }
        assert!(!Inputs::<2>::new().take([b"abc", b"abcd"]));
    }
}
