//! Container files: those of Apache Hudi byte for byte, and damaged ones.

use std::io::Write;

use pyhudi_avro::{AvroError, container_to_json, json_to_container};
use serde_json::{Value, json};

const COMMIT: &[u8] = include_bytes!("data/v9_mor_all_types.deltacommit");
const CLEAN: &[u8] = include_bytes!("data/v6_mor_archived.clean");
const SYNC: [u8; 16] = *b"0123456789abcdef";

fn sync_of(file: &[u8]) -> [u8; 16] {
    file[file.len() - 16..].try_into().unwrap()
}

fn round_trip(schema: &str, value: &Value) -> Result<Value, AvroError> {
    let file = json_to_container(schema, std::slice::from_ref(value), SYNC)?;
    let (text, mut values) = container_to_json(&file)?;
    assert_eq!(text, schema);
    Ok(values.remove(0))
}

#[test]
fn files_of_hudi_come_out_the_same() {
    for file in [COMMIT, CLEAN] {
        let (schema, records) = container_to_json(file).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(
            json_to_container(&schema, &records, sync_of(file)).unwrap(),
            file
        );
    }
}

#[test]
fn unions_are_unwrapped() {
    let (_, records) = container_to_json(COMMIT).unwrap();
    assert_eq!(records[0]["operationType"], "UPSERT");
    assert_eq!(records[0]["version"], Value::Null);
    assert!(records[0]["extraMetadata"]["schema"].is_string());
}

#[test]
fn damage_is_an_error_or_another_value_but_no_panic() {
    for end in 1..CLEAN.len() {
        // Cut after the header, a container is whole, and empty.
        match container_to_json(&CLEAN[..end]) {
            Ok((_, records)) => assert!(records.is_empty()),
            Err(error) => assert!(matches!(error, AvroError::Corrupt { .. }), "{error}"),
        }
    }
    for at in 0..CLEAN.len() {
        let mut bytes = CLEAN.to_vec();
        bytes[at] ^= 0x81;
        let _ = container_to_json(&bytes);
    }
    assert!(matches!(
        container_to_json(b""),
        Err(AvroError::Corrupt { .. })
    ));
}

const RECORD: &str = r#"{"type":"record","name":"R","fields":[
    {"name":"a","type":["int","null"],"default":1},
    {"name":"b","type":["null",{"type":"array","items":"string","default":null}],"default":null},
    {"name":"c","type":{"type":"map","values":"double"},"default":{}},
    {"name":"d","type":["null","string"]}]}"#;

#[test]
fn missing_fields_take_defaults() {
    let value = round_trip(RECORD, &json!({"d": null})).unwrap();
    assert_eq!(value, json!({"a": 1, "b": null, "c": {}, "d": null}));
}

#[test]
fn a_missing_field_without_default_is_an_error() {
    let error = round_trip(RECORD, &json!({})).unwrap_err();
    assert!(error.to_string().contains('d'), "{error}");
}

#[test]
fn an_unknown_field_is_an_error() {
    let error = round_trip(RECORD, &json!({"d": "", "zz": 1})).unwrap_err();
    assert!(error.to_string().contains("zz"), "{error}");
}

#[test]
fn a_wrong_value_names_its_field() {
    let error = round_trip(RECORD, &json!({"d": "x", "b": ["y", 1]})).unwrap_err();
    assert!(error.to_string().contains("b: string from 1"), "{error}");
}

#[test]
fn maps_keep_their_order_and_doubles_their_value() {
    let value =
        json!({"a": -5, "b": ["z", "é"], "c": {"z": 0.1, "a": "NaN", "m": "-Infinity"}, "d": "x"});
    let back = round_trip(RECORD, &value).unwrap();
    assert_eq!(back.to_string(), value.to_string());
}

#[test]
fn bytes_are_characters() {
    let schema = r#"{"type":"record","name":"R","fields":[
        {"name":"b","type":"bytes"},{"name":"f","type":{"type":"fixed","name":"F","size":2}}]}"#;
    let value = json!({"b": "\u{0}\u{ff}a", "f": "\u{80}\u{7f}"});
    assert_eq!(round_trip(schema, &value).unwrap(), value);
    assert!(round_trip(schema, &json!({"b": "", "f": "abc"})).is_err());
    assert!(round_trip(schema, &json!({"b": "€", "f": "ab"})).is_err());
}

#[test]
fn the_first_union_branch_that_takes_the_value() {
    let schema = r#"["null","int","long",{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]},
        {"type":"record","name":"B","fields":[{"name":"y","type":"string"}]}]"#;
    for value in [
        json!(null),
        json!(1),
        json!(1_i64 << 40),
        json!({"x": 1}),
        json!({"y": "s"}),
    ] {
        assert_eq!(round_trip(schema, &value).unwrap(), value);
    }
    assert!(round_trip(schema, &json!(true)).is_err());
}

#[test]
fn many_records_make_several_blocks() {
    let records: Vec<_> = (0..50_000).map(|i| json!(format!("record {i}"))).collect();
    let file = json_to_container("\"string\"", &records, SYNC).unwrap();
    assert!(file.windows(16).filter(|w| *w == SYNC).count() > 3);
    assert_eq!(container_to_json(&file).unwrap().1, records);
    let empty = json_to_container("\"string\"", &[], SYNC).unwrap();
    assert_eq!(container_to_json(&empty).unwrap().1, Vec::<Value>::new());
}

/// A container of two strings with this codec.
fn with_codec(codec: &str, block: &[u8]) -> Vec<u8> {
    let mut file = b"Obj\x01\x04\x16avro.schema\x10\"string\"\x14avro.codec".to_vec();
    file.push(codec.len() as u8 * 2);
    file.extend_from_slice(codec.as_bytes());
    file.push(0);
    file.extend_from_slice(&SYNC);
    file.push(4);
    file.push(block.len() as u8 * 2);
    file.extend_from_slice(block);
    file.extend_from_slice(&SYNC);
    file
}

#[test]
fn codecs() {
    let block = b"\x02a\x04bc";
    let values = vec![json!("a"), json!("bc")];
    assert_eq!(
        container_to_json(&with_codec("null", block)).unwrap().1,
        values
    );
    let mut encoder =
        flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(block).unwrap();
    let deflated = encoder.finish().unwrap();
    assert_eq!(
        container_to_json(&with_codec("deflate", &deflated))
            .unwrap()
            .1,
        values
    );
    let snappy = container_to_json(&with_codec("snappy", block));
    assert!(matches!(snappy, Err(AvroError::Unsupported { .. })));
    let wrong = container_to_json(&with_codec("deflate", b"\xff\xff"));
    assert!(matches!(wrong, Err(AvroError::Corrupt { .. })));
}

#[test]
fn counts_beyond_the_bytes_are_refused_at_once() {
    let schema = r#"{"type":"array","items":"int"}"#;
    let mut file = json_to_container(schema, &[json!([1])], SYNC).unwrap();
    let block = file.len() - 16 - 5;
    assert_eq!(&file[block..block + 5], b"\x02\x06\x02\x02\x00");
    file[block + 2] = 0x7e;
    assert!(matches!(
        container_to_json(&file),
        Err(AvroError::Corrupt { .. })
    ));
}
