//! Log files of metadata as JSON lines.
#![cfg(test)]

use std::sync::atomic::{AtomicU32, Ordering};

use pyhudi_format::log::{BlockType, HeaderKey, avro_content, write_block};

use pyhudi_slice::{Result, SliceError, log_records_json};
use pyhudi_store::Store;

const SCHEMA: &str =
    r#"{"type":"record","name":"r","fields":[{"name":"a","type":["null","string"]}]}"#;

/// Lines of a log file with these bytes.
fn lines(bytes: &[u8]) -> Result<Vec<String>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("pyhudi-log-json-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("log"), bytes).unwrap();
    let found = Store::open(folder.to_str().unwrap(), &[]).map(|s| log_records_json(&s, "log"));
    std::fs::remove_dir_all(&folder).unwrap();
    found.unwrap()
}

fn block(header: &[(HeaderKey, &str)], records: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let content = avro_content(records.iter().copied());
    write_block(&mut out, BlockType::AvroData, header, &content);
    out
}

#[test]
fn records_of_all_blocks_in_order() {
    let schema = [(HeaderKey::Schema, SCHEMA)];
    let mut bytes = block(&schema, &[&[2, 2, b'x'], &[0]]);
    bytes.extend(block(&schema, &[&[2, 4, b'y', b'"']]));
    assert_eq!(
        lines(&bytes).unwrap(),
        [r#"{"a":"x"}"#, r#"{"a":null}"#, r#"{"a":"y\""}"#]
    );
}

#[test]
fn a_torn_block_is_passed_over() {
    let schema = [(HeaderKey::Schema, SCHEMA)];
    let mut bytes = block(&schema, &[&[0]]);
    let whole = bytes.len();
    bytes.extend(block(&schema, &[&[2, 2, b'x']]));
    bytes.truncate(whole + 40);
    assert_eq!(lines(&bytes).unwrap(), [r#"{"a":null}"#]);
}

#[test]
fn damage_has_a_place() {
    let schema = [(HeaderKey::Schema, SCHEMA)];
    let bytes = block(&schema, &[&[2, 9, b'x']]);
    assert!(matches!(
        lines(&bytes),
        Err(SliceError::Corrupt { file, offset: Some(_), .. }) if file == "log"
    ));
    assert!(matches!(
        lines(&block(&[], &[&[0]])),
        Err(SliceError::Corrupt {
            offset: Some(0),
            ..
        })
    ));
}

#[test]
fn rows_of_a_table_are_not_metadata() {
    let mut bytes = Vec::new();
    write_block(&mut bytes, BlockType::Delete, &[], &[]);
    assert!(matches!(
        lines(&bytes),
        Err(SliceError::Unsupported { feature }) if feature.contains("log")
    ));
}
