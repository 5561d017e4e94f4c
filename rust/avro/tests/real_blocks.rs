//! Log blocks that Apache Hudi wrote: decoded, and encoded again to the same bytes.
#![cfg(test)]

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Decimal128Type, Int32Type, TimestampMicrosecondType};
use bytes::Bytes;
use pyhudi_avro::{
    DatumDecoder, arrow_schema, avro_schema, encode, records_to_json, with_meta_fields,
    without_meta_fields,
};
use pyhudi_format::log::{AvroRecords, Corruption, LogScanner, avro_records};

const ALL_TYPES: &[u8] = include_bytes!("data/v6_mor_all_types.log");
const NULL_ELEMENTS: &[u8] = include_bytes!("data/v9_mor_null_elements.log");
const CDC: &[u8] = include_bytes!("data/v6_cow_cdc_op_key_only.cdc");

/// The schema text and the records of the first block.
fn block(file: &'static [u8]) -> (String, AvroRecords) {
    let bytes = Bytes::from_static(file);
    let mut blocks = LogScanner::new(bytes.clone(), Corruption::Check);
    let block = blocks.next().unwrap().unwrap();
    let content = block.content(&bytes).unwrap();
    let records = avro_records(&content, block.format_version).unwrap();
    (block.schema().unwrap().to_owned(), records)
}

fn decode(mut decoder: DatumDecoder, records: &AvroRecords) -> RecordBatch {
    for record in records.iter() {
        decoder.push(record).unwrap();
    }
    decoder.flush().unwrap().unwrap()
}

fn decoded(file: &'static [u8]) -> (String, AvroRecords, RecordBatch) {
    let (schema, records) = block(file);
    let decoder = DatumDecoder::new(&schema, None, 1000).unwrap();
    let batch = decode(decoder, &records);
    (schema, records, batch)
}

#[test]
fn encoding_gives_the_same_bytes() {
    for file in [ALL_TYPES, NULL_ELEMENTS, CDC] {
        let (schema, records, batch) = decoded(file);
        let encoded = encode(&batch, &schema).unwrap();
        assert_eq!(encoded.len(), records.count);
        assert!(encoded.iter().eq(records.iter()));
    }
}

#[test]
fn batches_have_the_schema_and_no_more_rows_than_asked() {
    let (schema, records) = block(ALL_TYPES);
    let mut decoder = DatumDecoder::new(&schema, None, 3).unwrap();
    assert_eq!(*decoder.schema(), arrow_schema(&schema).unwrap());
    let mut rows = Vec::new();
    for record in records.iter() {
        if decoder.is_full() {
            assert!(decoder.push(record).is_err());
            rows.push(decoder.flush().unwrap().unwrap().num_rows());
        }
        decoder.push(record).unwrap();
    }
    rows.push(decoder.flush().unwrap().unwrap().num_rows());
    assert_eq!(rows.iter().sum::<usize>(), records.count);
    assert!(rows[..rows.len() - 1].iter().all(|n| *n == 3));
    assert!(decoder.flush().unwrap().is_none());
}

#[test]
fn values_of_every_type() {
    let (_, _, batch) = decoded(ALL_TYPES);
    let keys = batch["_hoodie_record_key"].as_string::<i32>();
    let row = keys.iter().position(|key| key == Some("k0")).unwrap();
    assert!(batch["b"].as_boolean().value(row));
    assert_eq!(batch["i"].as_primitive::<Int32Type>().value(row), i32::MAX);
    let decimals = batch["dec102"].as_primitive::<Decimal128Type>();
    assert_eq!(decimals.value(row), -9_999_999_999);
    let times = batch["at"].as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.value(row), 1_709_251_199_999_999);
    assert_eq!(times.timezone(), Some("UTC"));
    assert_eq!(batch["bin"].as_binary::<i32>().value(row), [0, 0xff, 0x10]);
    let list = batch["arr"].as_list::<i32>().value(row);
    let list: Vec<_> = list.as_string::<i32>().iter().flatten().collect();
    assert_eq!(list, ["a", "", "ç"]);
    let deep = batch["st"].as_struct()["z"].as_struct();
    assert!(deep["w"].is_valid(row));
}

#[test]
fn projection_reorders_and_skips() {
    let (schema, records, all) = decoded(ALL_TYPES);
    let columns = ["ts", "mst", "id", "dec3810"];
    let decoder = DatumDecoder::new(&schema, Some(&columns), 1000).unwrap();
    let some = decode(decoder, &records);
    let names: Vec<_> = some
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    assert_eq!(names, columns);
    assert!(
        columns
            .iter()
            .all(|c| some.column_by_name(c) == all.column_by_name(c))
    );
    let none = DatumDecoder::new(&schema, Some(&[]), 1000).unwrap();
    assert_eq!(decode(none, &records).num_rows(), records.count);
    assert!(DatumDecoder::new(&schema, Some(&["nope"]), 10).is_err());
    assert!(DatumDecoder::new(&schema, Some(&["id", "id"]), 10).is_err());
}

#[test]
fn reading_with_the_same_schema_changes_nothing() {
    for file in [ALL_TYPES, NULL_ELEMENTS, CDC] {
        let (schema, records, batch) = decoded(file);
        let decoder = DatumDecoder::with_reader_schema(&schema, &schema, 1000).unwrap();
        assert_eq!(decode(decoder, &records), batch);
    }
}

#[test]
fn schema_text_is_the_one_that_hudi_writes() {
    for (file, table) in [
        (ALL_TYPES, "v6_mor_all_types"),
        (NULL_ELEMENTS, "v9_mor_null_elements"),
    ] {
        let (schema, _) = block(file);
        let user = without_meta_fields(&schema).unwrap();
        assert!(!user.contains("_hoodie_"));
        assert_eq!(with_meta_fields(&user, false).unwrap(), schema);
        assert_eq!(with_meta_fields(&schema, false).unwrap(), schema);
        let arrow = arrow_schema(&user).unwrap();
        let made = avro_schema(
            &arrow,
            &format!("{table}_record"),
            &format!("hoodie.{table}"),
        );
        assert_eq!(made.unwrap(), user);
    }
}

#[test]
fn json_has_the_same_keys() {
    let (schema, records, batch) = decoded(ALL_TYPES);
    let json = records_to_json(&schema, records.iter()).unwrap();
    let keys: Vec<_> = json.iter().map(|row| row["id"].as_str()).collect();
    let ids: Vec<_> = batch["id"].as_string::<i32>().iter().collect();
    assert_eq!(keys, ids);
}

#[test]
fn damage_is_an_error_or_another_value_but_no_panic() {
    let (schema, records) = block(ALL_TYPES);
    let record = records.iter().next().unwrap();
    let try_one = |bytes: &[u8]| {
        let mut decoder = DatumDecoder::new(&schema, None, 10).unwrap();
        decoder.push(bytes).and_then(|()| decoder.flush())
    };
    for end in 0..record.len() {
        assert!(try_one(&record[..end]).is_err());
    }
    for at in 0..record.len() {
        let mut bytes = record.to_vec();
        bytes[at] ^= 0xff;
        let _ = try_one(&bytes);
        let _ = records_to_json(&schema, [bytes.as_slice()]);
    }
    let longer = [record, &[0]].concat();
    assert!(try_one(&longer).is_err());
}

#[test]
fn a_decoder_that_failed_refuses_everything() {
    let (schema, records) = block(ALL_TYPES);
    let record = records.iter().next().unwrap();
    let mut decoder = DatumDecoder::new(&schema, None, 10).unwrap();
    assert!(decoder.push(&record[..10]).is_err());
    assert!(decoder.push(record).is_err());
    assert!(decoder.flush().is_err());
}
