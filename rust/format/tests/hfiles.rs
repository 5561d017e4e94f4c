//! HFiles that Hudi and HBase wrote; where each is from stands in `data/README.md`.
#![cfg(test)]

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use pyhudi_format::hfile::{HFileOptions, KeyOrder, write_hfile};
use pyhudi_format::{BloomFilter, FormatError, HFile, ReadAt, Result};

const FILES: [(&str, &[u8], u64); 6] = [
    (
        "files_v6",
        include_bytes!("data/hfile/files_v6_0.15.hfile"),
        0,
    ),
    (
        "files_v9",
        include_bytes!("data/hfile/files_v9_1.2.hfile"),
        0,
    ),
    (
        "levels",
        include_bytes!("data/hfile/hb_levels_none_crc32c.hfile"),
        180,
    ),
    (
        "two_levels",
        include_bytes!("data/hfile/hb_two_levels_gz_crc32.hfile"),
        300,
    ),
    ("empty", include_bytes!("data/hfile/hb_empty_none.hfile"), 0),
    (
        "native",
        include_bytes!("data/hfile/native_blocks_gz.hfile"),
        300,
    ),
];

type Pairs = Vec<(Bytes, Bytes)>;

fn bytes(name: &str) -> Bytes {
    Bytes::from_static(FILES.iter().find(|(known, ..)| *known == name).unwrap().1)
}

/// Everything a reader can ask for.
fn read_all(source: &Bytes) -> Result<Pairs> {
    let file = HFile::open(source)?;
    let pairs = file.scan().collect::<Result<Pairs>>()?;
    let _ = (file.schema(), file.meta_block("bloomFilter"));
    for (key, _) in pairs.iter().step_by(50) {
        let _ = (file.get(key), file.prefix(key).count());
    }
    Ok(pairs)
}

/// Counts the reads of the source below.
struct Counted(Bytes, AtomicUsize);

impl ReadAt for Counted {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read_at(offset, len)
    }
}

#[test]
fn base_files_of_the_metadata_table() {
    for name in ["files_v6", "files_v9"] {
        let file = HFile::open(bytes(name)).unwrap();
        let pairs: Pairs = file.scan().map(Result::unwrap).collect();
        assert_eq!(pairs.len() as u64, file.entry_count());
        let keys: Vec<_> = pairs.iter().map(|(key, _)| key.clone()).collect();
        assert!(
            keys.contains(&Bytes::from_static(b"__all_partitions__")),
            "{name} {keys:?}"
        );
        assert!(file.schema().unwrap().contains("HoodieMetadataRecord"));
        assert_eq!(file.info("minRecordKey"), Some(keys[0].as_ref()));
        assert_eq!(file.info("bloomFilterTypeCode"), Some(&b"DYNAMIC_V0"[..]));
        let text = file.meta_block("bloomFilter").unwrap().unwrap();
        let filter = BloomFilter::from_base64(std::str::from_utf8(&text).unwrap()).unwrap();
        assert_eq!(filter.to_base64().as_bytes(), text);
        assert!(keys.iter().all(|key| filter.contains(key)));
        assert!(!filter.contains(b"no such key"));
        assert_eq!(file.meta_block("other").unwrap(), None);
    }
}

#[test]
fn every_index_shape_finds_every_key() {
    for (name, _, count) in FILES.into_iter().filter(|(.., count)| *count > 0) {
        let file = HFile::open(bytes(name)).unwrap();
        assert_eq!(file.schema(), Some("\"bytes\""));
        let key = |number: u64| format!("key{number:05}");
        let expected: Pairs = (0..count)
            .map(|number| (key(number * 2).into(), format!("value {number}").into()))
            .collect();
        assert_eq!(
            file.scan().collect::<Result<Pairs>>().unwrap(),
            expected,
            "{name}"
        );
        for (number, (_, value)) in (0..).zip(&expected) {
            assert_eq!(
                file.get(key(number * 2).as_bytes()).unwrap().as_ref(),
                Some(value)
            );
            assert_eq!(
                file.get(key(number * 2 + 1).as_bytes()).unwrap(),
                None,
                "{name} {number}"
            );
        }
        assert_eq!(file.get(b"").unwrap(), None);
        assert_eq!(file.get(b"a").unwrap(), None);
        assert_eq!(file.get(b"z").unwrap(), None);
        for prefix in [
            "key001", "key0012", "key00000", "k", "", "key00001", "z", "a",
        ] {
            let found: Pairs = file.prefix(prefix.as_bytes()).map(Result::unwrap).collect();
            let starts = |pair: &&(Bytes, Bytes)| pair.0.starts_with(prefix.as_bytes());
            let expected: Pairs = expected.iter().filter(starts).cloned().collect();
            assert_eq!(found, expected, "{name} {prefix}");
        }
    }
}

#[test]
fn rising_keys_read_each_block_once_and_other_orders_work() {
    for name in ["levels", "two_levels", "native"] {
        let source = Counted(bytes(name), AtomicUsize::new(0));
        let file = HFile::open(&source).unwrap();
        let opened = source.1.swap(0, Ordering::Relaxed);
        assert!(opened <= 2, "{opened}");
        let pairs: Pairs = file.scan().map(Result::unwrap).collect();
        let for_scan = source.1.swap(0, Ordering::Relaxed);
        assert_eq!(file.prefix(b"").count(), pairs.len());
        let blocks = source.1.swap(0, Ordering::Relaxed);
        assert!(for_scan < blocks, "a scan reads many blocks at once");
        let keys = || pairs.iter().map(|(key, _)| key.as_ref());
        let found: Pairs = file.lookup(keys()).map(Result::unwrap).collect();
        assert_eq!(found, pairs);
        assert_eq!(source.1.swap(0, Ordering::Relaxed), blocks);
        let mut reversed: Pairs = file.lookup(keys().rev()).map(Result::unwrap).collect();
        reversed.reverse();
        assert_eq!(reversed, pairs);
        let twice = [keys().next().unwrap(); 2];
        assert_eq!(file.lookup(twice).count(), 2);
    }
}

#[test]
fn an_empty_file_is_legal() {
    let file = HFile::open(bytes("empty")).unwrap();
    assert_eq!((file.entry_count(), file.scan().count()), (0, 0));
    assert_eq!(file.get(b"k").unwrap(), None);
    assert_eq!(file.prefix(b"").count(), 0);
}

#[test]
fn a_flipped_byte_is_noticed_or_harmless() {
    for (name, original, _) in FILES {
        let expected = read_all(&bytes(name)).unwrap();
        let step = if original.len() > 8000 { 7 } else { 1 };
        for at in (0..original.len()).step_by(step) {
            for mask in [1, 0xff] {
                let mut damaged = original.to_vec();
                damaged[at] ^= mask;
                if let Ok(found) = read_all(&Bytes::from(damaged)) {
                    assert!(found == expected, "{name}: byte {at} changes what is read");
                }
            }
        }
        for at in (0..original.len()).step_by(step) {
            let cut = read_all(&Bytes::copy_from_slice(&original[..at]));
            assert!(cut.is_err(), "{name} cut at {at}");
        }
    }
}

#[test]
fn other_compressions_are_refused_by_name() {
    let mut damaged = bytes("two_levels").to_vec();
    let trailer = damaged.len() - 4096;
    // Field 12 of the trailer, one byte: the codec.
    let at = (trailer..damaged.len())
        .rev()
        .find(|at| damaged[*at] == 0x60)
        .unwrap();
    assert_eq!(damaged[at + 1], 1);
    damaged[at + 1] = 6;
    match HFile::open(Bytes::from(damaged)) {
        Err(FormatError::Unsupported { feature }) => assert_eq!(feature, "HFile compression ZSTD"),
        other => panic!("{other:?}"),
    }
}

/// Keys of letters at which the two orders of keys differ, and of others.
fn odd_keys() -> Vec<String> {
    let letters = ["a", "é", "\u{E000}", "\u{FF21}", "\u{10000}", "\u{1F600}"];
    let mut keys = Vec::new();
    for first in letters {
        keys.push(format!("k-{first}"));
        for second in letters {
            keys.push(format!("k-{first}{second}"));
            keys.push(format!("k-{first}{second}{first}x"));
        }
    }
    keys
}

/// An HFile with these keys as they come, each its own value. The writer takes rising keys only, so
/// it is given others of the same length.
fn with_keys_in_any_order(keys: &[String], block_bytes: usize, mark: &str) -> Bytes {
    let stand_ins: Vec<String> = (0..keys.len())
        .map(|number| format!("{number:03}"))
        .zip(keys)
        .map(|(number, key)| format!("{number:#<len$}", len = key.len()))
        .collect();
    let pairs = stand_ins.iter().map(|key| (key.as_bytes(), key.as_bytes()));
    let options = HFileOptions {
        block_bytes,
        gzip: false,
    };
    let mut file = write_hfile(pairs, &[], &options).unwrap();
    let mut replace = |old: &[u8], new: &[u8]| {
        for at in 0..file.len() - new.len() {
            if file[at..].starts_with(old) {
                file[at..at + new.len()].copy_from_slice(new);
            }
        }
    };
    replace(b"pyhudi.order", mark.as_bytes());
    for (old, new) in stand_ins.iter().zip(keys) {
        replace(old.as_bytes(), new.as_bytes());
    }
    // The checksums are those of other keys.
    for at in 0..file.len() - 24 {
        if [&b"DATABLK*"[..], b"IDXROOT2", b"FILEINF2"]
            .iter()
            .any(|magic| file[at..].starts_with(magic))
        {
            file[at + 24] = 0;
        }
    }
    let mark = file.len() - 20;
    file[mark..mark + 4].fill(0);
    Bytes::from(file)
}

fn in_order(order: KeyOrder) -> Vec<String> {
    let mut keys = odd_keys();
    keys.sort_by(|a, b| order.compare(a.as_bytes(), b.as_bytes()));
    keys
}

#[test]
fn keys_are_found_in_the_order_of_bytes_and_in_that_of_java() {
    assert_ne!(in_order(KeyOrder::Bytes), in_order(KeyOrder::Utf16));
    for order in [KeyOrder::Bytes, KeyOrder::Utf16] {
        let keys = in_order(order);
        for block_bytes in [1, 150, 700, 100_000] {
            let file = with_keys_in_any_order(&keys, block_bytes, "another.mark");
            let file = HFile::open(file).unwrap();
            let scanned: Pairs = file.scan().map(Result::unwrap).collect();
            assert_eq!(scanned.len(), keys.len());
            for key in &keys {
                let found = file.get(key.as_bytes()).unwrap();
                assert_eq!(
                    found.as_deref(),
                    Some(key.as_bytes()),
                    "{order:?} {block_bytes} {key}"
                );
                for absent in [format!("{key}\u{FFFD}"), format!("{key}\u{1F601}")] {
                    assert_eq!(file.get(absent.as_bytes()).unwrap(), None);
                }
                let with_prefix = file.prefix(key.as_bytes()).collect::<Result<Pairs>>();
                let expected = keys.iter().filter(|other| other.starts_with(key.as_str()));
                assert_eq!(
                    with_prefix.unwrap().len(),
                    expected.count(),
                    "{order:?} {key}"
                );
            }
            for wanted in [in_order(KeyOrder::Bytes), in_order(KeyOrder::Utf16)] {
                let mut wanted: Vec<&[u8]> = wanted.iter().map(String::as_bytes).collect();
                wanted.insert(0, b"k-");
                let mut values = vec![None; wanted.len()];
                file.each_value(&wanted, |number, value| {
                    values[number] = Some(value.to_vec());
                })
                .unwrap();
                let expected = wanted.iter().map(|key| Some(key.to_vec()));
                let expected: Vec<_> = std::iter::once(None).chain(expected.skip(1)).collect();
                assert_eq!(values, expected, "{order:?} {block_bytes}");
                let found = file.lookup(wanted).collect::<Result<Pairs>>().unwrap();
                assert_eq!(found.len(), keys.len(), "{order:?} {block_bytes}");
            }
        }
    }
}

#[test]
fn keys_in_neither_order_are_damage_with_its_place() {
    let bytes = in_order(KeyOrder::Bytes);
    let mut mixed = in_order(KeyOrder::Utf16);
    let half = mixed.len() / 2;
    mixed.sort_by_key(|key| bytes.iter().position(|other| other == key) > Some(half));
    for block_bytes in [1, 700, 100_000] {
        let file = with_keys_in_any_order(&mixed, block_bytes, "another.mark");
        let read = HFile::open(file).and_then(|file| file.scan().collect::<Result<Pairs>>());
        let error = read.unwrap_err();
        assert!(matches!(error, FormatError::Corrupt { .. }), "{error}");
        assert!(
            error.to_string().contains("in neither the order"),
            "{error}"
        );
    }
    // What a file says of itself is checked as well.
    let keys = in_order(KeyOrder::Utf16);
    let file = HFile::open(with_keys_in_any_order(&keys, 100_000, "pyhudi.order")).unwrap();
    file.scan().collect::<Result<Pairs>>().unwrap_err();
    let last = keys.last().unwrap();
    assert!(file.get(last.as_bytes()).is_err());
}
