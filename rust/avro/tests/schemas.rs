//! Avro to Arrow schemas and back: names, unions, references, what is refused.
#![cfg(test)]

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use pyhudi_avro::{AvroError, DatumDecoder, arrow_schema, avro_schema, with_meta_fields};

fn record(field_type: &str) -> String {
    format!(r#"{{"type":"record","name":"R","fields":[{{"name":"x","type":{field_type}}}]}}"#)
}

fn field(field_type: &str) -> Field {
    arrow_schema(&record(field_type)).unwrap().field(0).clone()
}

fn unsupported(schema: &str) -> String {
    match arrow_schema(schema) {
        Err(AvroError::Unsupported { feature }) => feature,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_type() {
    let logical = |base: &str, name: &str| format!(r#"{{"type":"{base}","logicalType":"{name}"}}"#);
    let utc = Some("UTC".into());
    let cases = [
        ("\"boolean\"".to_owned(), DataType::Boolean),
        ("{\"type\":\"string\",\"avro.java.string\":\"String\"}".to_owned(), DataType::Utf8),
        ("{\"type\":{\"type\":\"string\"}}".to_owned(), DataType::Utf8),
        (logical("string", "uuid"), DataType::Utf8),
        (logical("long", "no such type"), DataType::Int64),
        (logical("int", "timestamp-micros"), DataType::Int32),
        (logical("int", "date"), DataType::Date32),
        (logical("int", "time-millis"), DataType::Time32(TimeUnit::Millisecond)),
        (logical("long", "time-micros"), DataType::Time64(TimeUnit::Microsecond)),
        (logical("long", "timestamp-millis"), DataType::Timestamp(TimeUnit::Millisecond, utc.clone())),
        (logical("long", "timestamp-micros"), DataType::Timestamp(TimeUnit::Microsecond, utc)),
        (logical("long", "local-timestamp-micros"), DataType::Timestamp(TimeUnit::Microsecond, None)),
        (r#"{"type":"enum","name":"E","symbols":["A"]}"#.to_owned(), DataType::Utf8),
        (r#"{"type":"fixed","name":"F","size":3}"#.to_owned(), DataType::FixedSizeBinary(3)),
        (
            r#"{"type":"bytes","logicalType":"decimal","precision":12}"#.to_owned(),
            DataType::Decimal128(12, 0),
        ),
        (
            r#"{"type":"fixed","name":"F","size":20,"logicalType":"decimal","precision":40,"scale":3}"#.to_owned(),
            DataType::Decimal256(40, 3),
        ),
    ];
    for (avro, arrow) in cases {
        assert_eq!(field(&avro), Field::new("x", arrow, false), "{avro}");
    }
}

#[test]
fn null_on_either_side_is_nullable() {
    for union in [r#"["null","int"]"#, r#"["int","null"]"#] {
        assert_eq!(field(union), Field::new("x", DataType::Int32, true));
    }
    let list = field(r#"{"type":"array","items":["string","null"]}"#);
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    assert_eq!(list.data_type(), &DataType::List(item));
}

#[test]
fn references_by_short_and_full_name() {
    let schema = r#"{"type":"record","name":"R","namespace":"a.b","fields":[
        {"name":"x","type":{"type":"record","name":"S","fields":[{"name":"v","type":"int"}]}},
        {"name":"y","type":["null","S"]},
        {"name":"z","type":{"type":"map","values":"a.b.S"}}]}"#;
    let arrow = arrow_schema(schema).unwrap();
    assert_eq!(arrow.field(0).data_type(), arrow.field(1).data_type());
    // The definition is not among the wanted columns.
    let mut decoder = DatumDecoder::new(schema, Some(&["y"]), 10).unwrap();
    decoder.push(&[2, 2, 4, 0]).unwrap();
    let batch = decoder.flush().unwrap().unwrap();
    assert_eq!(batch.num_columns(), 1);
}

#[test]
fn names_that_need_escapes() {
    let schema = "{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"\\u00e9\\\"\",\"type\":\"int\"}]}";
    let mut decoder = DatumDecoder::new(schema, None, 10).unwrap();
    decoder.push(&[2]).unwrap();
    assert_eq!(
        decoder.flush().unwrap().unwrap().schema().field(0).name(),
        "é\""
    );
}

#[test]
fn refused_by_name() {
    assert!(unsupported(&record(r#"["null","int","string"]"#)).ends_with("at x"));
    assert!(unsupported(&record("[\"int\"]")).ends_with("at x"));
    assert!(unsupported(&record("\"null\"")).ends_with("at x"));
    let deep = r#"{"type":"array","items":{"type":"record","name":"S","fields":[
        {"name":"u","type":["int","string"]}]}}"#;
    assert!(unsupported(&record(deep)).ends_with("at x.items.u"));
    assert!(unsupported(&record("[\"null\",\"R\"]")).contains("recursive"));
    let nothing = r#"{"type":"array","items":{"type":"record","name":"S","fields":[]}}"#;
    assert!(unsupported(&record(nothing)).contains("without bytes"));
}

#[test]
fn a_refused_type_may_be_skipped() {
    let schema = r#"{"type":"record","name":"R","fields":[
        {"name":"x","type":["null","int",{"type":"enum","name":"E","symbols":["A"]}]},
        {"name":"y","type":"int"}]}"#;
    assert!(DatumDecoder::new(schema, None, 10).is_err());
    let mut decoder = DatumDecoder::new(schema, Some(&["y"]), 10).unwrap();
    decoder.push(&[0, 2]).unwrap();
    decoder.push(&[2, 8, 4]).unwrap();
    decoder.push(&[4, 0, 6]).unwrap();
    assert_eq!(decoder.flush().unwrap().unwrap().num_rows(), 3);
}

#[test]
fn invalid_schemas() {
    for schema in [
        "",
        "\"int\"",
        "{}",
        &record("\"nope\""),
        &record("[]"),
        &record("[[\"int\"]]"),
        &record(r#"{"type":"bytes","logicalType":"decimal","precision":2,"scale":3}"#),
        r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}"#,
    ] {
        assert!(
            matches!(arrow_schema(schema), Err(AvroError::Schema(_))),
            "{schema}"
        );
    }
}

#[test]
fn references_do_not_explode() {
    let mut fields = vec![r#"{"name":"f0","type":{"type":"record","name":"R0","fields":[{"name":"v","type":"int"}]}}"#.to_owned()];
    for i in 1..40 {
        let below = i - 1;
        fields.push(format!(
            r#"{{"name":"f{i}","type":{{"type":"record","name":"R{i}","fields":[
                {{"name":"a","type":"R{below}"}},{{"name":"b","type":"R{below}"}}]}}}}"#
        ));
    }
    let schema = format!(
        r#"{{"type":"record","name":"T","fields":[{}]}}"#,
        fields.join(",")
    );
    assert!(unsupported(&schema).contains("types"));
}

#[test]
fn required_and_nested_fields_as_spark_names_them() {
    let inner = DataType::Struct(Fields::from(vec![Field::new(
        "d",
        DataType::Decimal128(5, 1),
        false,
    )]));
    let list = DataType::LargeList(Arc::new(Field::new("element", inner, false)));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8));
    let schema = Schema::new(vec![
        Field::new("id", dictionary, false),
        Field::new("l", list, true),
        Field::new("n", DataType::Timestamp(TimeUnit::Nanosecond, None), true),
    ]);
    let text = avro_schema(&schema, "t_record", "hoodie.t").unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"type":"record","name":"t_record","namespace":"hoodie.t","fields":["#,
            r#"{"name":"id","type":"string"},"#,
            r#"{"name":"l","type":["null",{"type":"array","items":{"type":"record","name":"l","#,
            r#""namespace":"hoodie.t.t_record","fields":[{"name":"d","type":{"type":"fixed","#,
            r#""name":"fixed","namespace":"hoodie.t.t_record.l.d","size":3,"logicalType":"decimal","#,
            r#""precision":5,"scale":1}}]}}],"default":null},"#,
            r#"{"name":"n","type":["null",{"type":"long","logicalType":"local-timestamp-micros"}],"default":null}]}"#
        )
    );
}

#[test]
fn decimal_sizes_as_spark_computes_them() {
    // Spark's Decimal.minBytesForPrecision, from 1 to 38.
    let sizes = [
        1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9, 9, 9, 10, 10, 11, 11, 11, 12, 12,
        13, 13, 13, 14, 14, 15, 15, 16, 16, 16,
    ];
    for (index, size) in sizes.iter().enumerate() {
        let decimal = DataType::Decimal128(index as u8 + 1, 0);
        let schema = Schema::new(vec![Field::new("x", decimal, false)]);
        let text = avro_schema(&schema, "R", "n").unwrap();
        assert!(text.contains(&format!("\"size\":{size},")), "{text}");
    }
}

#[test]
fn columns_that_avro_lacks() {
    let bad = [
        DataType::UInt64,
        DataType::Null,
        DataType::Duration(TimeUnit::Second),
        DataType::Decimal128(5, -2),
    ];
    for ty in bad {
        let schema = Schema::new(vec![Field::new("x", ty, true)]);
        let made = avro_schema(&schema, "R", "n");
        assert!(
            matches!(made, Err(AvroError::Unsupported { .. })),
            "{made:?}"
        );
    }
    let schema = Schema::new(vec![Field::new("no name", DataType::Int32, true)]);
    assert!(matches!(
        avro_schema(&schema, "R", "n"),
        Err(AvroError::Schema(_))
    ));
}

#[test]
fn the_operation_field() {
    let plain = record("\"int\"");
    let five = with_meta_fields(&plain, false).unwrap();
    let six = with_meta_fields(&plain, true).unwrap();
    assert!(!five.contains("_hoodie_operation"));
    assert_eq!(
        arrow_schema(&six).unwrap().field(5).name(),
        "_hoodie_operation"
    );
    assert_eq!(with_meta_fields(&five, true).unwrap(), six);
    assert_eq!(with_meta_fields(&six, false).unwrap(), six);
}
