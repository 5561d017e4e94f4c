//! The hash function of Spark SQL, `hash(x)`: `Murmur3_x86_32` with the seed 42.

/// The hash of a null, and the seed of all others.
pub const SPARK_SEED: u32 = 42;

/// `Murmur3_x86_32.hashUnsafeBytes` of text.
///
/// Unlike the published Murmur3, each of the last one to three bytes is a word, with its sign.
pub fn spark_text_hash(text: &str) -> i32 {
    let (words, rest) = text.as_bytes().as_chunks::<4>();
    let mut hash = SPARK_SEED;
    for word in words {
        hash = mix(hash, u32::from_le_bytes(*word));
    }
    for byte in rest {
        hash = mix(hash, i32::from(byte.cast_signed()).cast_unsigned());
    }
    finish(hash, text.len() as u32)
}

/// `Murmur3_x86_32.hashInt`.
pub fn spark_int_hash(value: i32) -> i32 {
    finish(mix(SPARK_SEED, value.cast_unsigned()), 4)
}

/// `Murmur3_x86_32.hashLong`.
pub fn spark_long_hash(value: i64) -> i32 {
    let bits = value.cast_unsigned();
    finish(mix(mix(SPARK_SEED, bits as u32), (bits >> 32) as u32), 8)
}

fn mix(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15);
    let hash = (hash ^ word.wrapping_mul(0x1b87_3593)).rotate_left(13);
    hash.wrapping_mul(5).wrapping_add(0xe654_6b64)
}

fn finish(hash: u32, length: u32) -> i32 {
    let hash = hash ^ length;
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    (hash ^ hash >> 16).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `SELECT hash(...)` of Spark 3.5.
    #[test]
    fn hashes_are_those_of_spark() {
        assert_eq!(spark_int_hash(1), -559_580_957);
        assert_eq!(spark_long_hash(1), -1_712_319_331);
    }
}
