//! Reading records with another schema than they were written with.
#![cfg(test)]

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{
    Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
};
use pyhudi_avro::{AvroError, DatumDecoder};

fn record(fields: &str) -> String {
    format!(r#"{{"type":"record","name":"R","fields":[{fields}]}}"#)
}

fn x(field_type: &str) -> String {
    record(&format!(r#"{{"name":"x","type":{field_type}}}"#))
}

fn read(writer: &str, reader: &str, records: &[&[u8]]) -> Result<RecordBatch, AvroError> {
    let mut decoder = DatumDecoder::with_reader_schema(writer, reader, 100)?;
    for record in records {
        decoder.push(record)?;
    }
    Ok(decoder.flush()?.unwrap())
}

fn read_x(writer: &str, reader: &str, records: &[&[u8]]) -> Result<ArrayRef, AvroError> {
    Ok(read(&x(writer), &x(reader), records)?.column(0).clone())
}

fn timestamp(name: &str) -> String {
    format!(r#"["null",{{"type":"long","logicalType":"{name}"}}]"#)
}

#[test]
fn promotions() {
    let long = read_x(
        "[\"null\",\"int\"]",
        "[\"null\",\"long\"]",
        &[&[0], &[2, 5]],
    )
    .unwrap();
    let values: Vec<_> = long.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(values, [None, Some(-3)]);
    let double = read_x("\"long\"", "[\"null\",\"double\"]", &[&[8]]).unwrap();
    assert!((double.as_primitive::<Float64Type>().value(0) - 4.0).abs() < f64::EPSILON);
    let bytes = read_x("\"string\"", "\"bytes\"", &[&[4, b'a', b'b']]).unwrap();
    assert_eq!(bytes.as_binary::<i32>().value(0), b"ab");
    let string = read_x("\"bytes\"", "\"string\"", &[&[4, b'a', b'b']]).unwrap();
    assert_eq!(string.as_string::<i32>().value(0), "ab");
    assert!(read_x("\"bytes\"", "\"string\"", &[&[2, 0xff]]).is_err());
    let text = read_x("\"long\"", "\"string\"", &[&[5]]).unwrap();
    assert_eq!(text.as_string::<i32>().value(0), "-3");
}

#[test]
fn null_on_the_other_side_of_the_union() {
    let long = read_x(
        "[\"int\",\"null\"]",
        "[\"null\",\"long\"]",
        &[&[0, 2], &[2]],
    )
    .unwrap();
    let values: Vec<_> = long.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(values, [Some(1), None]);
}

#[test]
fn millis_are_not_read_as_micros() {
    let millis = timestamp("timestamp-millis");
    let micros = timestamp("timestamp-micros");
    let array = read_x(&millis, &micros, &[&[2, 6], &[0]]).unwrap();
    let array = array.as_primitive::<TimestampMicrosecondType>();
    assert_eq!(array.iter().collect::<Vec<_>>(), [Some(3000), None]);
    assert_eq!(array.timezone(), Some("UTC"));
    // 3 micros are no millis; 1000 are one.
    assert!(read_x(&micros, &millis, &[&[2, 6]]).is_err());
    let array = read_x(&micros, &millis, &[&[2, 0xd0, 0x0f]]).unwrap();
    assert_eq!(array.as_primitive::<TimestampMillisecondType>().value(0), 1);
    let array = read_x(&timestamp("local-timestamp-micros"), &micros, &[&[2, 6]]).unwrap();
    assert_eq!(array.as_primitive::<TimestampMicrosecondType>().value(0), 3);
    let array = read_x("\"long\"", &micros, &[&[6]]).unwrap();
    assert_eq!(array.as_primitive::<TimestampMicrosecondType>().value(0), 3);
}

#[test]
fn decimals_widen() {
    let decimal =
        |p, s| format!(r#"{{"type":"bytes","logicalType":"decimal","precision":{p},"scale":{s}}}"#);
    let array = read_x(&decimal(4, 1), &decimal(10, 3), &[&[2, 0xff]]).unwrap();
    assert_eq!(array.as_primitive::<Decimal128Type>().value(0), -100);
    assert!(matches!(
        read_x(&decimal(4, 3), &decimal(10, 1), &[&[2, 1]]),
        Err(AvroError::Unsupported { .. })
    ));
    // 255 does not fit two digits.
    assert!(read_x(&decimal(4, 0), &decimal(2, 0), &[&[4, 0, 0xff]]).is_err());
    let fixed =
        r#"{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":4,"scale":1}"#;
    let array = read_x(fixed, &decimal(4, 1), &[&[0xff, 0xfe]]).unwrap();
    assert_eq!(array.as_primitive::<Decimal128Type>().value(0), -2);
}

#[test]
fn fields_come_and_go_at_every_level() {
    let writer = record(
        r#"{"name":"gone","type":"string"},
           {"name":"s","type":["null",{"type":"record","name":"S","fields":[
               {"name":"a","type":"int"},{"name":"gone","type":"int"}]}]},
           {"name":"old","type":"int"}"#,
    );
    let reader = record(
        r#"{"name":"new","type":["null","string"],"default":null},
           {"name":"none","type":["null","string"]},
           {"name":"list","type":{"type":"array","items":"string"},"default":["p","q"]},
           {"name":"s","type":["null",{"type":"record","name":"Other","fields":[
               {"name":"b","type":"string","default":"é"},{"name":"a","type":"long"}]}]},
           {"name":"renamed","aliases":["old"],"type":"long"}"#,
    );
    let batch = read(&writer, &reader, &[&[2, b'g', 2, 2, 4, 6], &[0, 0, 8]]).unwrap();
    assert_eq!(batch["new"].null_count(), 2);
    assert_eq!(batch["none"].null_count(), 2);
    let list = batch["list"].as_list::<i32>().value(1);
    assert_eq!(
        list.as_string::<i32>().iter().flatten().collect::<Vec<_>>(),
        ["p", "q"]
    );
    let s = batch["s"].as_struct();
    assert!(s.is_valid(0) && s.is_null(1));
    assert_eq!(s["b"].as_string::<i32>().value(0), "é");
    assert_eq!(s["a"].as_primitive::<Int64Type>().value(0), 1);
    let renamed = batch["renamed"].as_primitive::<Int64Type>();
    assert_eq!(renamed.values(), &[3, 4]);
}

#[test]
fn required_fields_of_the_reader() {
    let missing = DatumDecoder::with_reader_schema(&record(""), &x("\"int\""), 1);
    assert!(matches!(missing, Err(AvroError::Schema(_))));
    assert!(read_x("[\"null\",\"int\"]", "\"int\"", &[&[2, 2]]).is_ok());
    assert!(read_x("[\"null\",\"int\"]", "\"int\"", &[&[0]]).is_err());
}

#[test]
fn enums_are_strings() {
    let ab = r#"{"type":"enum","name":"E","symbols":["A","B"]}"#;
    let ba = r#"["null",{"type":"enum","name":"F","symbols":["C","B","A"]}]"#;
    let array = read_x(ab, ba, &[&[2], &[0]]).unwrap();
    assert_eq!(
        array
            .as_string::<i32>()
            .iter()
            .flatten()
            .collect::<Vec<_>>(),
        ["B", "A"]
    );
    assert!(read_x(ab, "\"string\"", &[&[2]]).is_ok());
    let fewer = r#"{"type":"enum","name":"E","symbols":["A"]}"#;
    assert!(matches!(
        read_x(ab, fewer, &[&[0]]),
        Err(AvroError::Unsupported { .. })
    ));
    assert!(matches!(
        read_x(ab, ab, &[&[4]]),
        Err(AvroError::Corrupt { .. })
    ));
}

#[test]
fn what_avro_does_not_resolve() {
    for (writer, reader) in [
        ("\"long\"", "\"int\""),
        ("\"double\"", "\"float\""),
        ("\"double\"", "\"string\""),
        ("\"string\"", "\"int\""),
        ("\"int\"", "{\"type\":\"array\",\"items\":\"int\"}"),
        ("{\"type\":\"int\",\"logicalType\":\"date\"}", "\"string\""),
    ] {
        let refused = DatumDecoder::with_reader_schema(&x(writer), &x(reader), 1);
        assert!(
            matches!(refused, Err(AvroError::Unsupported { .. })),
            "{writer} {reader}"
        );
    }
}

/// Found by the property of defaults: the number was read as its neighbour.
#[test]
fn a_default_has_each_bit_of_its_double() {
    let writer = x("\"int\"");
    let reader = record(r#"{"name":"d","type":"double","default":2.422582434812003e232}"#);
    let batch = read(&writer, &reader, &[&[2]]).unwrap();
    let default = batch.column(0).as_primitive::<Float64Type>().value(0);
    assert_eq!(default.to_bits(), 2.422_582_434_812_003e232_f64.to_bits());
}
