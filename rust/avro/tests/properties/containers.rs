//! Container files of the timeline: JSON to Avro and back.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use pyhudi_avro::{container_to_json, json_to_container};
use serde_json::{Value, json};

const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[
    {"name":"flag","type":"boolean"},
    {"name":"count","type":["null","int"]},
    {"name":"size","type":["long","null"]},
    {"name":"share","type":"double"},
    {"name":"name","type":["null","string"]},
    {"name":"data","type":"bytes"},
    {"name":"kind","type":{"type":"enum","name":"E","symbols":["A","B"]}},
    {"name":"files","type":{"type":"map","values":["null",{"type":"array","items":"string"}]}},
    {"name":"next","type":["null",{"type":"record","name":"N","fields":[{"name":"at","type":"long"}]}]}]}"#;

fn record() -> impl Strategy<Value = Value> {
    let bytes = vec(any::<u8>(), 0..9)
        .prop_map(|bytes| bytes.into_iter().map(char::from).collect::<String>());
    let share = prop_oneof![
        any::<f64>()
            .prop_filter("JSON has no others", |share| share.is_finite())
            .prop_map(Value::from),
        Just(json!("NaN")),
        Just(json!("-Infinity")),
    ];
    let files = vec(
        (any::<String>(), option::of(vec(any::<String>(), 0..4))),
        0..4,
    )
    .prop_map(|files| {
        Value::Object(
            files
                .into_iter()
                .map(|(name, items)| (name, Value::from(items)))
                .collect(),
        )
    });
    let first = (
        any::<bool>(),
        option::of(any::<i32>()),
        option::of(any::<i64>()),
        share,
    );
    let second = (
        option::of(any::<String>()),
        bytes,
        prop_oneof![Just("A"), Just("B")],
        files,
        option::of(any::<i64>()),
    );
    (first, second).prop_map(|((flag, count, size, share), (name, data, kind, files, next))| {
        let next = next.map(|at| json!({ "at": at }));
        json!({
            "flag": flag, "count": count, "size": size, "share": share, "name": name, "data": data,
            "kind": kind, "files": files, "next": next,
        })
    })
}

proptest! {
    #[test]
    fn records_come_back_in_their_order(records in vec(record(), 0..5), sync in any::<[u8; 16]>()) {
        let file = json_to_container(SCHEMA, &records, sync).unwrap();
        let (schema, found) = container_to_json(&file).unwrap();
        prop_assert_eq!(schema, SCHEMA);
        let text = |values: &[Value]| values.iter().map(Value::to_string).collect::<Vec<_>>();
        prop_assert_eq!(text(&found), text(&records));
    }

    #[test]
    fn no_flipped_bit_and_no_cut_of_a_container_is_read(
        records in vec(record(), 1..5),
        sync in any::<[u8; 16]>(),
        at in any::<Index>(),
        bit in 0..8_u8,
    ) {
        let file = json_to_container(SCHEMA, &records, sync).unwrap();
        let at = at.index(file.len());
        let mut damaged = file.clone();
        damaged[at] ^= 1 << bit;
        prop_assert!(
            container_to_json(&damaged).is_err(),
            "bit {bit} of byte {at}"
        );
        prop_assert!(container_to_json(&file[..at]).is_err());
    }
}
