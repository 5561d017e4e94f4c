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
    assert!(written(&too_long, &HFileOptions::default()).is_err());
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
    let bytes = pairs.map(|(key, value)| (key.as_bytes(), value.as_bytes()));
    let metas: [(&str, &[u8]); 1] = [("bloomFilter", b"text")];
    let infos: [(&str, &[u8]); 1] = [("schema", b"x")];
    let options = HFileOptions::default();
    let file = write_hfile_with_metas(bytes, &metas, &infos, &options).unwrap();
    let file = HFile::open(Bytes::from(file)).unwrap();
    assert_eq!(file.meta_block("bloomFilter").unwrap().unwrap(), "text");
    assert_eq!(file.meta_block("other").unwrap(), None);
    assert_eq!(file.get(b"b").unwrap().unwrap(), "2");
}
