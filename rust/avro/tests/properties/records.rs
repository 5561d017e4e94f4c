//! Records of the metadata table: trees of values to Avro and back.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use pyhudi_avro::{Datum, DatumReader, DatumWriter, Value, with_text};

const SCHEMA: &str = r#"{"type":"record","name":"r","fields":[
    {"name":"a","type":["null","string"]},
    {"name":"b","type":["null","string"]},
    {"name":"kind","type":"int"},
    {"name":"files","type":["null",{"type":"map","values":{"type":"record","name":"F","fields":[
        {"name":"size","type":"long"},{"name":"isDeleted","type":"boolean"}]}}]},
    {"name":"least","type":["null",
        {"type":"record","name":"I","fields":[{"name":"value","type":"int"}]},
        {"type":"record","name":"D","fields":[{"name":"value","type":"double"}]},
        {"type":"record","name":"B","fields":[{"name":"value","type":"bytes"}]},
        {"type":"record","name":"S","fields":[{"name":"value","type":"string"}]}]}]}"#;

#[derive(Debug, Clone)]
enum Bound {
    Int(i32),
    Double(f64),
    Bytes(Vec<u8>),
    Text(String),
}

#[derive(Debug, Clone)]
struct Record {
    texts: [Option<String>; 2],
    kind: i32,
    files: BTreeMap<String, (i64, bool)>,
    least: Option<Bound>,
}

fn record() -> impl Strategy<Value = Record> {
    let bound = prop_oneof![
        any::<i32>().prop_map(Bound::Int),
        any::<f64>()
            .prop_filter("NaN equals nothing", |value| !value.is_nan())
            .prop_map(Bound::Double),
        vec(any::<u8>(), 0..9).prop_map(Bound::Bytes),
        any::<String>().prop_map(Bound::Text),
    ];
    let files = btree_map(any::<String>(), (any::<i64>(), any::<bool>()), 0..5);
    let texts = prop::array::uniform2(option::of(any::<String>()));
    (texts, any::<i32>(), files, option::of(bound)).prop_map(|(texts, kind, files, least)| Record {
        texts,
        kind,
        files,
        least,
    })
}

fn written(record: &Record) -> Vec<u8> {
    let [a, b] = record
        .texts
        .each_ref()
        .map(|text| text.as_deref().map_or(Value::Null, Value::Text));
    let files = record.files.iter().map(|(name, (size, is_deleted))| {
        let fields = vec![
            ("size", Value::Whole(*size)),
            ("isDeleted", Value::Boolean(*is_deleted)),
        ];
        (name.as_str(), Value::Record(fields))
    });
    let least = record.least.as_ref().map_or(Value::Null, |bound| {
        let (branch, value) = match bound {
            Bound::Int(value) => (1, Value::Whole((*value).into())),
            Bound::Double(value) => (2, Value::Double(*value)),
            Bound::Bytes(bytes) => (3, Value::Bytes(bytes)),
            Bound::Text(text) => (4, Value::Text(text)),
        };
        Value::Branch(branch, Box::new(Value::Record(vec![("value", value)])))
    });
    let fields = [
        ("a", a),
        ("b", b),
        ("kind", Value::Whole(record.kind.into())),
        ("files", Value::Map(files.collect())),
        ("least", least),
    ];
    DatumWriter::new(SCHEMA).unwrap().write(&fields).unwrap()
}

proptest! {
    #[test]
    fn a_record_has_the_values_that_were_written(
        record in record(),
        at in any::<Index>(),
        bit in 0..8_u8,
    ) {
        let bytes = written(&record);
        let reader = DatumReader::new(SCHEMA).unwrap();
        let read = reader.read(&bytes).unwrap();
        prop_assert_eq!(
            [read.field("a").text(), read.field("b").text()],
            record.texts.each_ref().map(Option::as_deref)
        );
        prop_assert_eq!(read.field("kind").number(), Some(record.kind.into()));
        let Datum::Map(files) = read.field("files") else {
            panic!("{read:?}")
        };
        let files: Vec<_> = files
            .iter()
            .map(|(name, file)| {
                (
                    *name,
                    file.field("size").number().unwrap(),
                    file.field("isDeleted").is_true(),
                )
            })
            .collect();
        let wanted: Vec<_> = record
            .files
            .iter()
            .map(|(name, (size, is_deleted))| (name.as_str(), *size, *is_deleted))
            .collect();
        prop_assert_eq!(files, wanted);
        match (read.field("least"), &record.least) {
            (Datum::Null, None) => {}
            (Datum::Branch(branch, least), Some(bound)) => {
                let (number, value) = match bound {
                    Bound::Int(value) => (1, Datum::Int(*value)),
                    Bound::Double(value) => (2, Datum::Double(*value)),
                    Bound::Bytes(bytes) => (3, Datum::Bytes(bytes)),
                    Bound::Text(text) => (4, Datum::String(text)),
                };
                prop_assert_eq!((*branch, least.field("value")), (number, &value));
            }
            (found, _) => panic!("{found:?}"),
        }
        let at = at.index(bytes.len());
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << bit;
        let _ = reader.read(&damaged);
        prop_assert!(reader.read(&bytes[..at]).is_err());
    }

    #[test]
    fn a_text_is_replaced_as_if_it_had_been_written(record in record(), text in any::<String>()) {
        let (found, place) = with_text(&written(&record), 1, &text).unwrap();
        let mut expected = record;
        expected.texts[1] = Some(text);
        prop_assert_eq!(&found, &written(&expected));
        let [a, b] = expected
            .texts
            .each_ref()
            .map(|text| text.as_ref().map_or(0, String::len));
        prop_assert!(place > a + b && place < found.len());
    }
}
