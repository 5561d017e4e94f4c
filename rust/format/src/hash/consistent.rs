//! The consistent-hashing bucket index: a ring of nodes, each with the file group of a range.

use std::fmt::Write;

use twox_hash::XxHash32;

use super::md5;

/// The largest hash value.
const MASK: u64 = 0x7fff_ffff;

/// `ConsistentHashingNode`: a file group and the last hash value that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsistentNode {
    /// Last hash value of its range.
    pub value: u32,
    /// File id without the `-0` at its end.
    pub file_id_prefix: String,
}

/// The nodes of a partition before any split or merge: `HoodieConsistentHashingMetadata`.
pub fn consistent_nodes(partition: &str, buckets: u32) -> Vec<ConsistentNode> {
    let buckets = u64::from(buckets);
    let step = MASK.div_ceil(buckets.max(1));
    let node = |number: u64| {
        let end = step * number;
        ConsistentNode {
            value: end.min(MASK) as u32,
            file_id_prefix: file_id_prefix(partition, (end - step).min(MASK), end.min(MASK)),
        }
    };
    (1..=buckets).map(node).collect()
}

/// UUID of version 3 over the range and the partition.
fn file_id_prefix(partition: &str, start: u64, end: u64) -> String {
    let mut name = start.to_be_bytes().to_vec();
    name.extend_from_slice(&end.to_be_bytes());
    name.extend_from_slice(partition.as_bytes());
    let mut bits = u128::from_be_bytes(md5(&name));
    bits = bits & !(0xf << 76) | 3 << 76;
    bits = bits & !(3 << 62) | 2 << 62;
    let mut text = format!("{bits:032x}");
    for place in [20, 16, 12, 8] {
        text.insert(place, '-');
    }
    text
}

/// The hash value of hash-field values: of their concatenation, null as `null`.
///
/// `ConsistentBucketIdentifier.getBucket`.
pub fn consistent_hash<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> u32 {
    let mut text = String::new();
    for value in values {
        // Writing to a string cannot fail.
        let _ = text.write_str(value.unwrap_or("null"));
    }
    XxHash32::oneshot(0, text.as_bytes()) & MASK as u32
}

/// The node for a hash value: the first whose value is not below it, else the first of all.
/// `nodes` are in the order of their values.
pub fn consistent_node(nodes: &[ConsistentNode], hash: u32) -> Option<&ConsistentNode> {
    nodes
        .get(nodes.partition_point(|node| node.value < hash))
        .or_else(|| nodes.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/format/hashes.md`, consistent hashing, and `ConsistentBucketIdentifier` of 1.2.0 for the
    /// other nodes.
    #[test]
    fn same_as_java() {
        let found = |partition, buckets| {
            let nodes = consistent_nodes(partition, buckets).into_iter();
            nodes
                .map(|node| (node.value, node.file_id_prefix))
                .collect::<Vec<_>>()
        };
        let expected = |nodes: &[(u32, &str)]| {
            nodes
                .iter()
                .map(|(value, prefix)| (*value, (*prefix).to_owned()))
                .collect::<Vec<_>>()
        };
        let sf = [
            (536_870_912, "b191fdb9-1561-3229-90af-667100004fe7"),
            (1_073_741_824, "e009af8c-59dd-37ea-8cd4-c40db9f59b70"),
            (1_610_612_736, "4c1755a8-ea8a-334c-800b-7ecc7763d480"),
            (2_147_483_647, "e45844a0-f593-3584-b330-d1a850d5d69e"),
        ];
        let three = [
            (715_827_883, "05bafb51-fff3-35d5-980a-a8819edcca5f"),
            (1_431_655_766, "f007fac0-c8e4-33cc-9292-f8c6b54ac197"),
            (2_147_483_647, "bfc29f0c-f547-3294-b2f1-7907090d01a7"),
        ];
        assert_eq!(found("sf", 4), expected(&sf));
        assert_eq!(found("a/é", 3), expected(&three));
        assert_eq!(
            found("a/é", 1),
            expected(&[(2_147_483_647, "8b003ccb-7c31-3079-95df-27c2311fd70e")])
        );
        assert_eq!(found("a/é", 0), []);
    }

    /// Steps are rounded up, so that the last of very many ranges are empty.
    #[test]
    fn an_empty_range_starts_where_the_ring_ends() {
        let nodes = consistent_nodes("sf", 60_000);
        let last = nodes
            .last()
            .map(|node| (node.value, node.file_id_prefix.clone()));
        assert_eq!(last, Some((MASK as u32, file_id_prefix("sf", MASK, MASK))));
    }

    #[test]
    fn keys_find_their_nodes() {
        let nodes = consistent_nodes("sf", 4);
        for (key, hash, expected) in [
            ("k1", 113_350_462_i32, 0),
            ("key-12345", -2_011_060_892, 0),
            ("é", 866_461_991, 1),
            ("日本語キー", 2_080_514_815, 3),
            ("😀x", -1_865_557_859, 0),
            ("abcÿ", 571_469_564, 1),
        ] {
            let place = consistent_hash([Some(key)]);
            assert_eq!(place, (hash & i32::MAX).cast_unsigned(), "{key}");
            assert_eq!(consistent_node(&nodes, place), nodes.get(expected), "{key}");
        }
        assert_eq!(consistent_hash([None, Some("sf")]), 1_653_478_728);
        assert_eq!(consistent_node(&nodes[..1], u32::MAX), nodes.first());
        assert_eq!(consistent_node(&[], 0), None);
    }
}
