//! Records of flat columns: the values, what is passed over, what damage does, and what memory they take.
#![cfg(test)]

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    Time32MillisecondArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray,
};
use arrow::datatypes::Schema;
use pyhudi_avro::{DatumDecoder, arrow_schema, encode};

const FLAT: &str = r#"{"type":"record","name":"R","fields":[
    {"name":"paid","type":"boolean"},
    {"name":"count","type":["null","int"]},
    {"name":"size","type":["long","null"]},
    {"name":"ratio","type":"float"},
    {"name":"fare","type":["null","double"]},
    {"name":"id","type":["null","string"]},
    {"name":"raw","type":"bytes"},
    {"name":"day","type":{"type":"int","logicalType":"date"}},
    {"name":"clock","type":["null",{"type":"int","logicalType":"time-millis"}]},
    {"name":"tick","type":{"type":"long","logicalType":"time-micros"}},
    {"name":"at","type":["null",{"type":"long","logicalType":"timestamp-millis"}]},
    {"name":"seen","type":{"type":"long","logicalType":"local-timestamp-micros"}},
    {"name":"price","type":["null",
        {"type":"bytes","logicalType":"decimal","precision":20,"scale":2}]},
    {"name":"rate","type":
        {"type":"fixed","name":"F","size":5,"logicalType":"decimal","precision":10,"scale":3}},
    {"name":"hash","type":["null",{"type":"fixed","name":"H","size":3}]}]}"#;

fn rows() -> RecordBatch {
    let price = Decimal128Array::from(vec![Some(-12_345), None, Some(1 << 62)]);
    let rate = Decimal128Array::from(vec![0, -1, 9_999_999_999]);
    let hash = [Some([1, 2, 3]), None, Some([0; 3])].into_iter();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(vec![true, false, true])),
        Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(63)])),
        Arc::new(Int64Array::from(vec![None, Some(i64::MAX), Some(-65)])),
        Arc::new(Float32Array::from(vec![0.5, -0.0, f32::INFINITY])),
        Arc::new(Float64Array::from(vec![None, Some(1.25), Some(f64::MIN)])),
        Arc::new(StringArray::from(vec![Some("größe"), None, Some("")])),
        Arc::new(BinaryArray::from(vec![&b"\xff"[..], b"", b"abc"])),
        Arc::new(Date32Array::from(vec![0, -1, 20_000])),
        Arc::new(Time32MillisecondArray::from(vec![Some(1), None, Some(9)])),
        Arc::new(Time64MicrosecondArray::from(vec![1, 2, 3])),
        Arc::new(
            TimestampMillisecondArray::from(vec![Some(-1), None, Some(2)]).with_timezone("UTC"),
        ),
        Arc::new(TimestampMicrosecondArray::from(vec![7, 8, 9])),
        Arc::new(price.with_precision_and_scale(20, 2).unwrap()),
        Arc::new(rate.with_precision_and_scale(10, 3).unwrap()),
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(hash, 3).unwrap()),
    ];
    RecordBatch::try_new(Arc::new(arrow_schema(FLAT).unwrap()), columns).unwrap()
}

fn decode(schema: &str, columns: Option<&[&str]>, records: &[&[u8]]) -> RecordBatch {
    let mut decoder = DatumDecoder::new(schema, columns, records.len()).unwrap();
    for record in records {
        decoder.push(record).unwrap();
    }
    decoder.flush().unwrap().unwrap()
}

#[test]
fn every_flat_type_comes_back_whichever_columns_are_asked_for() {
    let (rows, schema) = (rows(), arrow_schema(FLAT).unwrap());
    let encoded = encode(&rows, FLAT).unwrap();
    let records: Vec<&[u8]> = encoded.iter().collect();
    assert_eq!(decode(FLAT, None, &records), rows);
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    for (at, name) in names.iter().enumerate() {
        let others: Vec<usize> = (0..names.len())
            .rev()
            .filter(|other| *other != at)
            .collect();
        let wanted: Vec<&str> = others.iter().map(|other| names[*other]).collect();
        let found = decode(FLAT, Some(&wanted), &records);
        assert_eq!(found, rows.project(&others).unwrap(), "without {name}");
    }
    let none = decode(FLAT, Some(&[]), &records);
    assert_eq!((none.num_rows(), none.num_columns()), (3, 0));
}

#[test]
fn every_cut_and_every_wrong_branch_is_an_error() {
    let encoded = encode(&rows(), FLAT).unwrap();
    for columns in [None, Some(&["at"][..]), Some(&[][..])] {
        for record in encoded.iter() {
            for cut in 0..record.len() {
                let mut decoder = DatumDecoder::new(FLAT, columns, 1).unwrap();
                assert!(
                    decoder.push(&record[..cut]).is_err(),
                    "{cut} of {columns:?}"
                );
            }
        }
    }
    let optional = r#"{"type":"record","name":"R","fields":[{"name":"x","type":["null","int"]}]}"#;
    for columns in [None, Some(&[][..])] {
        for record in [&[4, 2][..], &[1, 2], &[2, 0x80], &[]] {
            let mut decoder = DatumDecoder::new(optional, columns, 1).unwrap();
            assert!(decoder.push(record).is_err(), "{record:?} of {columns:?}");
        }
    }
}

#[test]
fn a_string_that_is_no_text_is_an_error() {
    let text = r#"{"type":"record","name":"R","fields":[{"name":"x","type":"string"}]}"#;
    let mut decoder = DatumDecoder::new(text, None, 2).unwrap();
    // A character of two bytes, divided among two strings.
    decoder.push(&[2, 0xc3]).unwrap();
    decoder.push(&[2, 0xb6]).unwrap();
    assert!(decoder.flush().is_err());
}

#[test]
fn nested_columns_that_are_not_asked_for_are_passed_over() {
    let schema = r#"{"type":"record","name":"R","fields":[
        {"name":"tags","type":{"type":"array","items":"string"}},
        {"name":"sizes","type":["null",{"type":"map","values":["null","long"]}]},
        {"name":"place","type":{"type":"record","name":"P","fields":[
            {"name":"kind","type":{"type":"enum","name":"K","symbols":["A","B"]}},
            {"name":"many","type":["int","string","null"]}]}},
        {"name":"id","type":"long"}]}"#;
    let record = [
        &[2, 2, b'a', 3, 6, 4, b'b', b'c', 0][..],
        &[2, 2, 2, b'k', 0, 1, 8, 2, b'l', 2, 4, 0],
        &[2, 2, 4, b'h', b'i'],
        &[0xac, 0x02],
    ]
    .concat();
    let found = decode(schema, Some(&["id"]), &[&record]);
    assert_eq!(found.column(0).as_ref(), &Int64Array::from(vec![150]));
    for cut in 0..record.len() {
        let mut decoder = DatumDecoder::new(schema, Some(&["id"]), 1).unwrap();
        assert!(decoder.push(&record[..cut]).is_err(), "cut at {cut}");
    }
}

/// Batches of log records stay in memory until they are merged.
#[test]
fn batches_take_no_more_memory_than_their_values() {
    let schema = r#"{"type":"record","name":"R","fields":[
        {"name":"id","type":"string"}, {"name":"n","type":"long"}, {"name":"note","type":"string"}]}"#;
    let count: usize = 5000;
    let texts: StringArray = (0..count).map(|n| Some(format!("key-{n:06}"))).collect();
    let numbers: Int64Array = (0..count as i64).map(Some).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(texts.clone()), Arc::new(numbers), Arc::new(texts)];
    let fields = arrow_schema(schema).unwrap();
    let rows = RecordBatch::try_new(Arc::new(Schema::clone(&fields)), columns).unwrap();
    let encoded = encode(&rows, schema).unwrap();
    let mut decoder = DatumDecoder::new(schema, None, count).unwrap();
    for _ in 0..2 {
        for record in encoded.iter() {
            decoder.push(record).unwrap();
        }
        let found = decoder.flush().unwrap().unwrap();
        // Two offsets of 4 bytes, two texts of 10, a number of 8.
        let least = count * (2 * 4 + 2 * 10 + 8);
        let taken = found.get_array_memory_size();
        assert!(taken < least + least / 20 + 1000, "{taken} for {least}");
    }
}
