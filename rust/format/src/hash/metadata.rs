//! Keys and file groups of the metadata table.

use std::hash::Hasher;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use twox_hash::XxHash64;

use super::string_hash;

/// Java passes the int `0xdabadaba`; widening to a long extends its sign.
pub const HASH_SEED: u64 = 0xffff_ffff_daba_daba;

/// `HoodieTableMetadataUtil.mapRecordKeyToFileGroupIndex`: which of the file groups of a metadata
/// partition, ordered by file id, holds a key. 0 when there are no groups.
///
/// What part of the key is hashed depends on the partition and its index version.
pub fn metadata_file_group(key: &str, groups: u32) -> u32 {
    // Java's abs leaves the smallest int negative, and its remainder keeps that sign.
    let hash = i64::from(string_hash(key).wrapping_abs());
    hash.checked_rem(i64::from(groups))
        .map_or(0, |rest| rest.unsigned_abs() as u32)
}

/// 64-bit xxHash with Hudi's seed (`HashID.Size.BITS_64`).
pub fn hash64(text: &str) -> [u8; 8] {
    let mut hasher = XxHash64::with_seed(HASH_SEED);
    hasher.write(text.as_bytes());
    hasher.finish().to_be_bytes()
}

/// MD5 (`HashID.Size.BITS_128`).
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

/// [`hash64`] as the metadata table writes it in keys: for columns and partitions, where the
/// partition without a path is called `.`.
pub fn text_hash64(text: &str) -> String {
    STANDARD.encode(hash64(text))
}

/// [`md5`] as the metadata table writes it in keys: for file names.
pub fn text_md5(text: &str) -> String {
    STANDARD.encode(md5(text.as_bytes()))
}

/// Key of column statistics (with a file) and of partition statistics (without).
///
/// `HoodieMetadataPayload.getColumnStatsIndexKey`, `getPartitionStatsIndexKey`.
pub fn column_key(column: &str, partition: &str, file: Option<&str>) -> String {
    let partition = if partition.is_empty() { "." } else { partition };
    let mut key = text_hash64(column) + &text_hash64(partition);
    if let Some(file) = file {
        key += &text_md5(file);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/format/hashes.md`, keys of the metadata table and buckets.
    #[test]
    fn same_as_java() {
        for (text, hash, md5, group) in [
            ("k1", "r1LF0h6r03A=", "tjexevCKztiFDBjMzekV2g==", 6),
            ("key-12345", "bR5wkSJ9SDU=", "xOSTqxTZ2PEZrdnatNspig==", 9),
            ("é", "LUZDkiDptdI=", "Zt3Nl8/eq7L2+4qZm0vHbw==", 3),
            ("日本語キー", "6lJYPHKW5CU=", "bZsPbTgPCKWH6q0aS9ghiw==", 2),
            ("😀x", "rxIH4J8yo7Y=", "OHUhtiCYxLscd9xGTRsmXA==", 9),
            ("abcÿ", "5Udm0agJKfE=", "8WujvjGw48vzzPbsFS0O6A==", 9),
        ] {
            assert_eq!(text_hash64(text), hash);
            assert_eq!(text_md5(text), md5);
            assert_eq!(metadata_file_group(text, 10), group);
        }
        assert_eq!(column_key("k1", "sf", None), "r1LF0h6r03A=HPdM43JrNDs=");
        assert_eq!(column_key("k1", "", None), "r1LF0h6r03A=FXThHwelITM=");
        assert_eq!(metadata_file_group("k1", 1), 0);
        assert_eq!(metadata_file_group("k1", 0), 0);
        // String.hashCode of this text is Integer.MIN_VALUE.
        assert_eq!(metadata_file_group("polygenelubricants", 10), 8);
    }
}
