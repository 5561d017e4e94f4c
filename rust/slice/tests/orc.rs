//! ORC files made by hand, for what no writer at hand makes.
#![allow(clippy::unwrap_used)]

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, Time32MillisecondType, TimestampMicrosecondType};
use pyhudi_slice::{SliceError, base_rows, base_schema};
use pyhudi_store::Store;

const AVRO: &str = r#"{"type": "record", "name": "r", "fields": [
    {"name": "at", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}}]}"#;

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3, out);
    varint(value, out);
}

fn bytes(field: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | 2, out);
    varint(value.len() as u64, out);
    out.extend(value);
}

fn message(fields: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, value) in fields {
        number(*field, *value, &mut out);
    }
    out
}

/// One run of version 1 that writes the numbers out.
fn run(numbers: &[u64]) -> Vec<u8> {
    let mut out = vec![(0x100 - numbers.len()) as u8];
    for number in numbers {
        varint(*number, &mut out);
    }
    out
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// A file of two rows: a time of day, a time, and a local time. `kind`: of the second column.
fn file(zone: &str, kind: u64) -> Vec<u8> {
    // -999 microseconds as Hudi has them: nanoseconds that are negative, two zeros and more left out.
    let nanos = [456_u64 << 3 | 2, ((-999_i64 << 3) | 2) as u64];
    let streams = [
        (1, 1, run(&[zigzag(1000), zigzag(86_399_999)])),
        (1, 2, run(&[zigzag(0), zigzag(-1_420_070_400 - 5)])),
        (5, 2, run(&nanos)),
        (1, 3, run(&[zigzag(7), zigzag(-7)])),
    ];
    let mut out = b"ORC".to_vec();
    let mut footer = Vec::new();
    for (kind, column, data) in &streams {
        out.extend(data);
        let stream = message(&[(1, *kind), (2, *column), (3, data.len() as u64)]);
        bytes(1, &stream, &mut footer);
    }
    for _ in 0..4 {
        bytes(2, &message(&[(1, 0)]), &mut footer);
    }
    bytes(3, zone.as_bytes(), &mut footer);
    let data = out.len() as u64 - 3;
    out.extend(&footer);
    let stripe = message(&[(1, 3), (2, 0), (3, data), (4, footer.len() as u64), (5, 2)]);
    let mut tail = Vec::new();
    bytes(3, &stripe, &mut tail);
    let mut root = message(&[(1, 12), (2, 1), (2, 2), (2, 3)]);
    for name in ["at", "seen", "local"] {
        bytes(3, name.as_bytes(), &mut root);
    }
    for of in [
        root,
        message(&[(1, 3)]),
        message(&[(1, kind)]),
        message(&[(1, 4)]),
    ] {
        bytes(4, &of, &mut tail);
    }
    let mut user = Vec::new();
    bytes(1, b"orc.avro.schema", &mut user);
    bytes(2, AVRO.as_bytes(), &mut user);
    bytes(5, &user, &mut tail);
    number(6, 2, &mut tail);
    out.extend(&tail);
    let mut postscript = message(&[(1, tail.len() as u64), (2, 0)]);
    bytes(8000, b"ORC", &mut postscript);
    out.extend(&postscript);
    out.push(postscript.len() as u8);
    out
}

fn read(content: &[u8]) -> Result<Vec<RecordBatch>, SliceError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.orc"), content).unwrap();
    let store = Store::open(&folder.path().to_string_lossy(), &[]).unwrap();
    assert_eq!(base_schema(&store, "f.orc")?.avro.as_deref(), Some(AVRO));
    let columns = ["at", "seen", "local"].map(str::to_owned);
    base_rows(&store, "f.orc", &columns, 10)?.collect()
}

fn feature(content: &[u8]) -> String {
    match read(content).unwrap_err() {
        SliceError::Unsupported { feature } => feature,
        other => format!("no refusal: {other}"),
    }
}

#[test]
fn times_are_what_the_avro_schema_and_hudi_mean() {
    let batches = read(&file("UTC", 9)).unwrap();
    let [batch] = batches.as_slice() else {
        panic!("{} batches", batches.len());
    };
    let at = batch.column(0).as_primitive::<Time32MillisecondType>();
    assert_eq!(at.values().as_ref(), [1000, 86_399_999]);
    let seen = batch.column(1).as_primitive::<TimestampMicrosecondType>();
    let seconds = 1_420_070_400_i64;
    assert_eq!(
        seen.values().as_ref(),
        [seconds * 1_000_000 + 456, -5_000_000 - 999]
    );
    assert_eq!(batch.column(2).data_type(), &DataType::Int64);
    assert_eq!(
        batch
            .column(2)
            .as_primitive::<Int64Type>()
            .values()
            .as_ref(),
        [7, -7]
    );
}

#[test]
fn times_by_other_clocks_are_refused() {
    let named = feature(&file("Europe/Berlin", 9));
    assert!(
        named.contains("hoodie.table.base.file.format ORC"),
        "{named}"
    );
    assert!(named.contains("Europe/Berlin"), "{named}");
    assert!(feature(&file("", 9)).contains("timestamps"));
    // Instants are not by any clock.
    assert!(read(&file("Europe/Berlin", 18)).is_ok());
}

#[test]
fn unions_are_refused() {
    let named = feature(&file("UTC", 13));
    assert!(named.contains("union of several types (seen)"), "{named}");
}
