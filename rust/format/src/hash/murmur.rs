//! The murmur hash of Hadoop, which is not the published Murmur2.

const M: i32 = 0x5bd1_e995;

/// `org.apache.hudi.common.util.hash.MurmurHash.hash`.
///
/// Two traps: the last one to three bytes are taken from the end of the input backwards, and each
/// is extended with its sign.
pub fn murmur(bytes: &[u8], seed: i32) -> i32 {
    let mut hash = seed ^ bytes.len() as i32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = i32::from_le_bytes(*word).wrapping_mul(M);
        k ^= (k as u32 >> 24) as i32;
        k = k.wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    if !rest.is_empty() {
        for (shift, byte) in (0..).step_by(8).zip(rest.iter().rev()) {
            hash ^= i32::from(*byte as i8) << shift;
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= (hash as u32 >> 13) as i32;
    hash = hash.wrapping_mul(M);
    hash ^ (hash as u32 >> 15) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `vectors.md` 10.1: hash with seed 0, then with that hash as the seed.
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
}
