//! HFiles: all ways to read what was written, blocks that are taken over, damage.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::Index;
use pyhudi_format::hfile::{HFileOptions, HFileWriter};
use pyhudi_format::{HFile, Result};

use crate::damage::damage;

pub type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Keys of few letters are prefixes of each other, and others lie between them.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let letters = prop_oneof![
        Just(0_u8),
        Just(b'a'),
        Just(b'b'),
        Just(0xee),
        Just(0xf0),
        Just(0xff)
    ];
    prop_oneof![
        vec(letters, 0..6),
        vec(any::<u8>(), 0..30),
        "key-[0-9]{1,4}".prop_map(String::into_bytes)
    ]
}

pub fn pairs(most: usize) -> impl Strategy<Value = Pairs> {
    btree_map(key(), vec(any::<u8>(), 0..60), 0..most)
}

fn options() -> impl Strategy<Value = HFileOptions> {
    (prop_oneof![1..300_usize, 300..5000_usize], any::<bool>())
        .prop_map(|(block_bytes, gzip)| HFileOptions { block_bytes, gzip })
}

pub fn written(pairs: &Pairs, options: &HFileOptions) -> Bytes {
    let mut writer = HFileWriter::new(options);
    for (key, value) in pairs {
        writer.add(key, value).unwrap();
    }
    let metas: [(&str, &[u8]); 1] = [("bloomFilter", b"filter")];
    writer
        .finish(&metas, &[("schema", b"\"bytes\"")])
        .unwrap()
        .into()
}

pub fn scanned(file: &Bytes) -> Result<Pairs> {
    HFile::open(file)?
        .scan()
        .map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())))
        .collect()
}

proptest! {
    #[test]
    fn every_way_to_read_gives_what_was_written(
        pairs in pairs(120),
        options in options(),
        others in vec(key(), 0..20),
    ) {
        let bytes = written(&pairs, &options);
        prop_assert_eq!(&scanned(&bytes).unwrap(), &pairs);
        let file = HFile::open(&bytes).unwrap();
        prop_assert_eq!(file.entry_count(), pairs.len() as u64);
        prop_assert_eq!(file.schema(), Some("\"bytes\""));
        prop_assert_eq!(file.meta_block("bloomFilter").unwrap().unwrap(), "filter");
        for key in others.iter().chain(pairs.keys()) {
            let found = file.get(key).unwrap();
            prop_assert_eq!(found.as_deref(), pairs.get(key).map(Vec::as_slice));
            let with_prefix: Vec<_> = file
                .prefix(key)
                .map(|pair| pair.unwrap().0.to_vec())
                .collect();
            let wanted: Vec<_> = pairs
                .keys()
                .filter(|other| other.starts_with(key))
                .cloned()
                .collect();
            prop_assert_eq!(with_prefix, wanted);
        }
    }

    #[test]
    fn keys_are_found_in_any_order(
        pairs in pairs(120),
        options in options(),
        others in vec(key(), 0..10),
        order in any::<prop::sample::Selector>(),
    ) {
        let file = HFile::open(written(&pairs, &options)).unwrap();
        let all: Vec<&[u8]> = pairs.keys().chain(&others).map(Vec::as_slice).collect();
        let wanted: Vec<&[u8]> = (0..all.len()).map(|_| *order.select(&all)).collect();
        let mut found = vec![None; wanted.len()];
        file.each_value(&wanted, |number, value| {
            found[number] = Some(value.to_vec());
        })
        .unwrap();
        let expected: Vec<_> = wanted.iter().map(|key| pairs.get(*key).cloned()).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn blocks_that_are_taken_over_keep_their_pairs(
        pairs in pairs(200),
        block_bytes in 50..1500_usize,
        rewritten in vec(any::<bool>(), 1..8),
    ) {
        let options = HFileOptions {
            block_bytes,
            gzip: true,
        };
        let old = HFile::open(written(&pairs, &options)).unwrap();
        let mut writer = HFileWriter::new(&options);
        let mut read = 0;
        for (block, is_rewritten) in old.packed_blocks().zip(rewritten.iter().cycle()) {
            let block = block.unwrap();
            if *is_rewritten {
                let run = old.pairs_of(&block).unwrap();
                read += run.len() as u64;
                let run: Vec<_> = run.iter().map(|(key, value)| (&**key, &**value)).collect();
                writer.add_run(&run).unwrap();
            } else {
                writer.take_over(&block).unwrap();
            }
        }
        writer.count(old.entry_count() - read, old.averages());
        let new = Bytes::from(writer.finish(&[], &[]).unwrap());
        prop_assert_eq!(scanned(&new).unwrap(), pairs);
    }

    #[test]
    fn damage_is_noticed_or_harmless(
        pairs in pairs(60),
        options in options(),
        damage in damage(),
        place in any::<Index>(),
    ) {
        let bytes = written(&pairs, &options);
        let (damaged, at) = damage.of(&bytes);
        let is_cut = damaged.len() == at;
        let damaged = Bytes::from(damaged);
        if let Ok(found) = scanned(&damaged) {
            prop_assert!(!is_cut && found == pairs);
        }
        // A look-up may pass by the damage, or end there.
        let keys: Vec<_> = pairs.keys().collect();
        if let (Ok(file), false) = (HFile::open(&damaged), keys.is_empty()) {
            let key = keys[place.index(keys.len())];
            if let Ok(found) = file.get(key) {
                prop_assert_eq!(found.as_deref(), pairs.get(key).map(Vec::as_slice));
            }
        }
    }
}
