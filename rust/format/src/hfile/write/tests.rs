use super::*;
use crate::HFile;
use bytes::Bytes;

fn pairs(count: usize) -> Vec<(String, String)> {
    let pair = |number| (format!("key-{number:06}"), format!("value {number}"));
    (0..count).map(pair).collect()
}

fn written(pairs: &[(String, String)], options: &HFileOptions) -> Result<Vec<u8>> {
    let bytes = pairs
        .iter()
        .map(|(key, value)| (key.as_bytes(), value.as_bytes()));
    write_hfile(bytes, &[("schema", b"\"string\"")], options)
}

#[test]
fn what_is_written_is_read() {
    for (count, block_bytes, gzip) in [(0, 100, true), (1, 100, false), (3000, 5000, true)] {
        let (pairs, options) = (pairs(count), HFileOptions { block_bytes, gzip });
        let file = HFile::open(Bytes::from(written(&pairs, &options).unwrap())).unwrap();
        assert_eq!(file.entry_count(), count as u64);
        assert_eq!(file.schema(), Some("\"string\""));
        let found: Vec<_> = file.scan().collect::<Result<_>>().unwrap();
        let expected: Vec<_> = pairs
            .into_iter()
            .map(|(key, value)| (Bytes::from(key), Bytes::from(value)))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn keys_are_found_across_blocks() {
    let options = HFileOptions {
        block_bytes: 300,
        gzip: true,
    };
    let file = HFile::open(Bytes::from(written(&pairs(500), &options).unwrap())).unwrap();
    assert_eq!(file.get(b"key-000499").unwrap().unwrap(), "value 499");
    assert_eq!(file.get(b"key-000500").unwrap(), None);
    assert_eq!(file.prefix(b"key-00012").count(), 10);
}

#[test]
fn long_keys_have_long_lengths_in_the_index() {
    let pairs = [("k".repeat(ROW_MOST), "v".to_owned())];
    let file = written(&pairs, &HFileOptions::default()).unwrap();
    let file = HFile::open(Bytes::from(file)).unwrap();
    assert_eq!(file.get(pairs[0].0.as_bytes()).unwrap().unwrap(), "v");
    let too_long = [("k".repeat(ROW_MOST + 1), String::new())];
    let error = written(&too_long, &HFileOptions::default()).unwrap_err();
    let said = format!(
        "key of 32768 bytes in an HFile, which holds 32767 ({}…)",
        "k".repeat(SHOWN)
    );
    assert!(error.to_string().contains(&said), "{error}");
}

#[test]
fn keys_must_rise() {
    for keys in [["b", "a"], ["a", "a"]] {
        let pairs = keys.map(|key| (key.to_owned(), String::new()));
        assert!(written(&pairs, &HFileOptions::default()).is_err());
    }
}

#[test]
fn named_blocks_are_found_by_their_names() {
    let pairs = [("a", "1"), ("b", "2")];
    let mut writer = HFileWriter::new(&HFileOptions::default());
    for (key, value) in pairs {
        writer.add(key.as_bytes(), value.as_bytes()).unwrap();
    }
    let metas: [(&str, &[u8]); 1] = [("bloomFilter", b"text")];
    let file = writer.finish(&metas, &[("schema", b"x")]).unwrap();
    let file = HFile::open(Bytes::from(file)).unwrap();
    assert_eq!(file.meta_block("bloomFilter").unwrap().unwrap(), "text");
    assert_eq!(file.meta_block("other").unwrap(), None);
    assert_eq!(file.get(b"b").unwrap().unwrap(), "2");
}

fn bytes(pairs: &[(String, String)]) -> Vec<(&[u8], &[u8])> {
    pairs
        .iter()
        .map(|(key, value)| (key.as_bytes(), value.as_bytes()))
        .collect()
}

#[test]
fn blocks_are_taken_over_beside_new_pairs() {
    let options = HFileOptions {
        block_bytes: 500,
        gzip: true,
    };
    let old = HFile::open(Bytes::from(written(&pairs(300), &options).unwrap())).unwrap();
    assert!(old.can_be_taken_over());
    let blocks: Vec<_> = old.packed_blocks().collect::<Result<_>>().unwrap();
    assert!(blocks.len() > 20);
    let mut writer = HFileWriter::new(&options);
    let (mut read, mut new) = (0, 0);
    for (number, block) in blocks.iter().enumerate() {
        if number % 3 == 0 {
            let mut run = old.pairs_of(block).unwrap();
            read += run.len() as u64;
            let mut more = run.last().unwrap().0.to_vec();
            more.extend(b"-new");
            run.push((Bytes::from(more), Bytes::from("new")));
            new += run.len() as u64;
            let run: Vec<_> = run.iter().map(|(key, value)| (&**key, &**value)).collect();
            writer.add_run(&run).unwrap();
        } else {
            writer.take_over(block).unwrap();
        }
    }
    let last = [(b"z".as_slice(), b"last".as_slice())];
    writer.add_run(&last).unwrap();
    writer.count(old.entry_count() - read, old.averages());
    let file = writer.finish(&[], &[("schema", b"\"string\"")]).unwrap();
    let file = HFile::open(Bytes::from(file)).unwrap();
    // A scan counts the pairs.
    let found: Vec<_> = file.scan().collect::<Result<_>>().unwrap();
    assert_eq!(found.len() as u64, 300 - read + new + 1);
    assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
    for (key, value) in bytes(&pairs(300)) {
        assert_eq!(file.get(key).unwrap().unwrap(), value);
    }
    assert_eq!(file.get(b"z").unwrap().unwrap(), "last");
    assert!(file.get(b"key-000000-new").unwrap().is_none());
    assert_eq!(file.info("hfile.LASTKEY").unwrap(), b"\0\x01z");
}

#[test]
fn a_run_is_cut_into_blocks_of_one_size() {
    let options = HFileOptions {
        block_bytes: 1000,
        gzip: true,
    };
    for (count, least) in [(1, 1), (20, 1), (30, 1), (60, 2), (1000, 40)] {
        let mut writer = HFileWriter::new(&options);
        writer.add_run(&bytes(&pairs(count))).unwrap();
        let file = writer.finish(&[], &[]).unwrap();
        let file = HFile::open(Bytes::from(file)).unwrap();
        let sizes: Vec<_> = file
            .packed_blocks()
            .map(|block| file.pairs_of(&block.unwrap()).unwrap().len())
            .collect();
        assert!(sizes.len() >= least, "{sizes:?}");
        let (small, large) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(large - small <= large / 2, "{sizes:?}");
    }
}

#[test]
fn blocks_out_of_order_are_not_taken_over() {
    let options = HFileOptions {
        block_bytes: 500,
        gzip: true,
    };
    let file = HFile::open(Bytes::from(written(&pairs(300), &options).unwrap())).unwrap();
    let blocks: Vec<_> = file.packed_blocks().collect::<Result<_>>().unwrap();
    let mut writer = HFileWriter::new(&options);
    writer.take_over(&blocks[1]).unwrap();
    assert!(writer.take_over(&blocks[0]).is_err());
    let damaged = PackedBlock {
        bytes: blocks[2].bytes.slice(1..),
        ..blocks[2].clone()
    };
    assert!(writer.take_over(&damaged).is_err());
    assert!(file.pairs_of(&damaged).is_err());
    let early = PackedBlock {
        end: Some(blocks[2].first.clone()),
        ..blocks[2].clone()
    };
    assert!(file.pairs_of(&early).is_err());
}
