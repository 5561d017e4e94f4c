//! Bloom filters: written and read, filled in any way.

use proptest::collection::vec;
use proptest::prelude::*;
use pyhudi_format::BloomFilter;

use crate::damage::damage;

fn keys(most: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 1..40), 0..most)
}

/// An empty filter of either kind, and how many keys it may grow to.
fn empty() -> impl Strategy<Value = (BloomFilter, u32)> {
    let error_rate = prop_oneof![Just(1e-9), Just(0.01), 0.001..0.9];
    (1..60_u32, error_rate, 0..200_u32, any::<bool>()).prop_map(
        |(entries, fpp, max, is_dynamic)| {
            let filter = if is_dynamic {
                BloomFilter::dynamic(entries, fpp, max)
            } else {
                BloomFilter::simple(entries, fpp)
            };
            (filter, max)
        },
    )
}

fn filled(empty: &BloomFilter, keys: &[Vec<u8>]) -> BloomFilter {
    let mut filter = empty.clone();
    for key in keys {
        filter.add(key);
    }
    filter
}

proptest! {
    #[test]
    fn a_filter_is_read_as_it_was_written_and_has_its_keys(
        (empty, _) in empty(),
        keys in keys(300),
    ) {
        let filter = filled(&empty, &keys);
        let read = BloomFilter::from_base64(&filter.to_base64()).unwrap();
        prop_assert_eq!(read.to_bytes(), filter.to_bytes());
        prop_assert_eq!(read.type_code(), filter.type_code());
        prop_assert!(read.is_shaped_as(&empty));
        for key in &keys {
            prop_assert!(read.contains(key));
        }
    }

    #[test]
    fn many_keys_at_once_are_the_same_as_one_by_one((empty, _) in empty(), keys in keys(300)) {
        let mut at_once = empty.clone();
        at_once.add_all(keys.iter().map(Vec::as_slice));
        prop_assert_eq!(at_once, filled(&empty, &keys));
    }

    #[test]
    fn a_filter_that_was_read_goes_on_growing(
        (empty, max) in empty(),
        keys in keys(200),
        part in any::<prop::sample::Index>(),
    ) {
        // Beyond its limit a filter counts what is not stored.
        let keys = &keys[..keys.len().min(max as usize)];
        let (first, rest) = keys.split_at(part.index(keys.len() + 1));
        let stored = filled(&empty, first).to_bytes();
        let read = BloomFilter::parse(&stored).unwrap().growing_to(max);
        prop_assert_eq!(
            filled(&read, rest).to_bytes(),
            filled(&empty, keys).to_bytes()
        );
    }

    #[test]
    fn a_damaged_filter_is_an_error_or_a_filter(
        (empty, _) in empty(),
        keys in keys(50),
        damage in damage(),
    ) {
        let filter = filled(&empty, &keys);
        let (damaged, at) = damage.of(&filter.to_bytes());
        let is_cut = damaged.len() == at;
        let Ok(mut read) = BloomFilter::parse(&damaged) else {
            return Ok(());
        };
        prop_assert_eq!(read.to_bytes(), damaged);
        read.add(b"k");
        prop_assert!(read.contains(b"k"));
        prop_assert!(!is_cut || read.expect_type(filter.type_code()).is_err());
    }
}
