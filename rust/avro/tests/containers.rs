//! Container files: those of Apache Hudi byte for byte, and damaged ones.
#![cfg(test)]

use std::io::Write;

use apache_avro::types::Value as AvroValue;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use pyhudi_avro::{AvroError, container_to_json, json_to_container, records_to_json};
use serde_json::{Value, json};

const COMMIT: &[u8] = include_bytes!("data/v9_mor_all_types.deltacommit");
const CLEAN: &[u8] = include_bytes!("data/v6_mor_archived.clean");
const SYNC: [u8; 16] = *b"0123456789abcdef";

fn sync_of(file: &[u8]) -> [u8; 16] {
    file[file.len() - 16..].try_into().unwrap()
}

fn with_marker(file: &[u8], old: [u8; 16], new: [u8; 16]) -> Vec<u8> {
    let mut file = file.to_vec();
    for at in 0..file.len() - 15 {
        if file[at..at + 16] == old {
            file[at..at + 16].copy_from_slice(&new);
        }
    }
    file
}

#[test]
fn every_flipped_bit_is_an_error() {
    let schema = r#"{"type":"record","name":"A","fields":[{"name":"x","type":"long"}]}"#;
    let file = json_to_container(schema, &[json!({"x": 77})], SYNC).unwrap();
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(container_to_json(&damaged).is_err(), "bit {bit}");
    }
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
        let own = json_to_container(&schema, &records, sync_of(file)).unwrap();
        // Sync markers have checksums.
        let (marker, hudi) = (sync_of(&own), sync_of(file));
        assert!(marker.starts_with(b"PYCR") && marker[8..] == hudi[8..]);
        assert!(with_marker(&own, marker, hudi) == file);
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
    for mask in [0x01, 0x80, 0x81, 0xff] {
        for at in 0..CLEAN.len() {
            let mut bytes = CLEAN.to_vec();
            bytes[at] ^= mask;
            let _ = container_to_json(&bytes);
        }
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
    let sync = sync_of(&file);
    assert!(file.windows(16).filter(|w| *w == sync).count() > 3);
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
    put_length(&mut file, block.len());
    file.extend_from_slice(block);
    file.extend_from_slice(&SYNC);
    file
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    let mut raw = length * 2;
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn codecs() {
    let block = b"\x02a\x04bc";
    let values = vec![json!("a"), json!("bc")];
    assert_eq!(
        container_to_json(&with_codec("null", block)).unwrap().1,
        values
    );
    assert_eq!(
        container_to_json(&with_codec("deflate", &deflated(block)))
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

#[test]
fn lengths_beyond_the_bytes_are_damage_and_those_beyond_the_limit_are_not() {
    let too_long = (64 << 20) + 1;
    let mut bytes = Vec::new();
    put_length(&mut bytes, too_long);
    let cut = records_to_json("\"string\"", [bytes.as_slice()]);
    assert!(matches!(cut, Err(AvroError::Corrupt { .. })), "{cut:?}");
    bytes.resize(bytes.len() + too_long, b'a');
    let whole = records_to_json("\"string\"", [bytes.as_slice()]);
    assert!(matches!(whole, Err(AvroError::Unsupported { .. })));
}

#[test]
fn a_block_that_inflates_to_very_much_is_refused() {
    let bomb = with_codec("deflate", &deflated(&vec![0; (64 << 20) + 1]));
    assert!(matches!(
        container_to_json(&bomb),
        Err(AvroError::Unsupported { .. })
    ));
}

#[test]
fn values_that_end_early_are_damage() {
    for schema in ["[\"null\",\"int\"]", "\"boolean\"", "\"string\""] {
        let cut = records_to_json(schema, [[].as_slice()]);
        assert!(matches!(cut, Err(AvroError::Corrupt { .. })), "{schema}");
    }
    let mut file = json_to_container("\"string\"", &[json!("abc")], SYNC).unwrap();
    let length = file.len() - 16 - 4;
    assert_eq!(file[length], 6);
    file[length] = 4;
    let left_over = container_to_json(&file).unwrap_err();
    assert!(left_over.to_string().contains("1 bytes after 1 records"));
    file[length] = 6;
    file.push(0x82);
    assert!(container_to_json(&file).is_err());
}

/// apache-avro, given these texts, takes a type for one that holds itself, until the stack ends.
#[test]
fn names_that_a_library_may_confuse() {
    let empty_namespace = r#"{"type":"record","name":"Root","fields":[
        {"name":"a","type":{"type":"record","name":"R","fields":[{"name":"i","type":"int"}]}},
        {"name":"b","type":{"type":"record","name":"R","namespace":"n","fields":[
            {"name":"x","type":{"type":"record","name":"S","namespace":"","fields":[
                {"name":"y","type":"R"}]}}]}}]}"#;
    let value = json!({"a": {"i": 1}, "b": {"x": {"y": {"i": 2}}}});
    assert_eq!(round_trip(empty_namespace, &value).unwrap(), value);
    let alias = r#"{"type":"record","name":"Root","fields":[
        {"name":"f","type":{"type":"fixed","name":"A","aliases":["n.C"],"size":1}},
        {"name":"c","type":{"type":"record","name":"C","namespace":"n","aliases":["A"],"fields":[
            {"name":"a","type":"A"}]}}]}"#;
    let value = json!({"f": "x", "c": {"a": "y"}});
    assert_eq!(round_trip(alias, &value).unwrap(), value);
}

#[test]
fn deep_values() {
    let mut schema = "\"int\"".to_owned();
    let mut value = json!(7);
    for level in 0..20 {
        schema = format!(
            r#"{{"type":"record","name":"R{level}","fields":[
                {{"name":"f","type":["null",{{"type":"array","items":{schema}}}]}}]}}"#
        );
        value = json!({"f": [value]});
    }
    assert_eq!(round_trip(&schema, &value).unwrap(), value);
}

/// With its own reader and its own reading of the schema's text.
#[test]
fn apache_avro_reads_what_is_written() {
    let value = json!({"a": -5, "b": ["z", "é"], "c": {"z": 0.1, "a": "NaN"}, "d": "x"});
    let file = json_to_container(RECORD, std::slice::from_ref(&value), SYNC).unwrap();
    // First, as apache-avro's limit is the one of the first reader in the process.
    assert_eq!(container_to_json(&file).unwrap().1, [value]);
    let read: Result<Vec<_>, _> = apache_avro::Reader::new(file.as_slice()).unwrap().collect();
    let AvroValue::Record(fields) = read.unwrap().remove(0) else {
        panic!("not a record");
    };
    let union = |branch, value| AvroValue::Union(branch, Box::new(value));
    let text = |text: &str| AvroValue::String(text.to_owned());
    let [(_, a), (_, b), (_, c), (_, d)] = fields.as_slice() else {
        panic!("not four fields");
    };
    assert_eq!(*a, union(0, AvroValue::Int(-5)));
    assert_eq!(*b, union(1, AvroValue::Array(vec![text("z"), text("é")])));
    let AvroValue::Map(map) = c else {
        panic!("not a map");
    };
    assert_eq!(map.len(), 2);
    assert_eq!(map["z"], AvroValue::Double(0.1));
    assert!(matches!(map["a"], AvroValue::Double(nan) if nan.is_nan()));
    assert_eq!(*d, union(1, text("x")));
    for file in [COMMIT, CLEAN] {
        let reader = apache_avro::Reader::new(file).unwrap();
        assert_eq!(reader.map(Result::unwrap).count(), 1);
    }
}
