//! Arrow batches to Avro records: casts, nulls, layouts that must not leak into the bytes.
#![cfg(test)]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float64Array, Int32Array, Int64Array, LargeStringArray, ListArray,
    NullArray, RecordBatch, RecordBatchOptions, StringArray, StringViewArray, StructArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Int8Type, Int32Type, Schema};
use pyhudi_avro::{AvroError, DatumDecoder, encode};

fn record(fields: &str) -> String {
    format!(r#"{{"type":"record","name":"R","fields":[{fields}]}}"#)
}

fn x(field_type: &str) -> String {
    record(&format!(r#"{{"name":"x","type":{field_type}}}"#))
}

fn batch(name: &str, array: ArrayRef) -> RecordBatch {
    let field = Field::new(name, array.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

fn bytes(field_type: &str, array: impl Array + 'static) -> Result<Vec<Vec<u8>>, AvroError> {
    let rows = encode(&batch("x", Arc::new(array)), &x(field_type))?;
    Ok(rows.iter().map(<[u8]>::to_vec).collect())
}

fn decoded(schema: &str, rows: &[Vec<u8>]) -> RecordBatch {
    let mut decoder = DatumDecoder::new(schema, None, 100).unwrap();
    for row in rows {
        decoder.push(row).unwrap();
    }
    decoder.flush().unwrap().unwrap()
}

#[test]
fn strings_of_every_layout() {
    let expected = vec![vec![2, 2, b'a'], vec![0]];
    let union = r#"["null","string"]"#;
    let values = || [Some("a"), None].into_iter();
    assert_eq!(
        bytes(union, values().collect::<StringArray>()).unwrap(),
        expected
    );
    assert_eq!(
        bytes(union, values().collect::<LargeStringArray>()).unwrap(),
        expected
    );
    assert_eq!(
        bytes(union, values().collect::<StringViewArray>()).unwrap(),
        expected
    );
    assert_eq!(
        bytes(union, values().collect::<DictionaryArray<Int8Type>>()).unwrap(),
        expected
    );
}

#[test]
fn null_second_and_columns_of_nulls() {
    let ints = Int32Array::from(vec![Some(1), None]);
    assert_eq!(
        bytes(r#"["int","null"]"#, ints).unwrap(),
        [vec![0, 2], vec![2]]
    );
    assert_eq!(
        bytes(r#"["int","null"]"#, NullArray::new(1)).unwrap(),
        [[2]]
    );
    let list = r#"["null",{"type":"array","items":{"type":"enum","name":"E","symbols":["A"]}}]"#;
    assert_eq!(bytes(list, NullArray::new(2)).unwrap(), [[0], [0]]);
}

#[test]
fn missing_and_additional_columns() {
    let schema = record(
        r#"{"name":"s","type":["null",{"type":"record","name":"S","fields":[{"name":"v","type":"int"}]}]},
           {"name":"x","type":"int"}"#,
    );
    let rows = encode(&batch("x", Arc::new(Int32Array::from(vec![3]))), &schema).unwrap();
    assert_eq!(rows.row(0), Some(&[0_u8, 6][..]));
    let error = encode(&batch("y", Arc::new(Int32Array::from(vec![3]))), &schema).unwrap_err();
    assert!(error.to_string().contains("x: required"), "{error}");
}

#[test]
fn a_record_without_fields_has_rows() {
    let options = RecordBatchOptions::new().with_row_count(Some(2));
    let schema = Arc::new(Schema::empty());
    let empty = RecordBatch::try_new_with_options(schema, vec![], &options).unwrap();
    let rows = encode(&empty, &record("")).unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(<[u8]>::is_empty));
    let none = encode(
        &batch("x", Arc::new(Int32Array::from(Vec::<i32>::new()))),
        &x("\"int\""),
    );
    assert!(none.unwrap().is_empty());
}

#[test]
fn null_in_a_required_field() {
    let error = bytes("\"int\"", Int32Array::from(vec![Some(1), None])).unwrap_err();
    assert!(error.to_string().contains("x: null"), "{error}");
    let error = bytes("\"string\"", NullArray::new(1)).unwrap_err();
    assert!(error.to_string().contains("x: null"), "{error}");
}

fn nested(valid: Vec<bool>, values: Vec<Option<i32>>) -> StructArray {
    let field = Field::new("v", DataType::Int32, true);
    let values: ArrayRef = Arc::new(Int32Array::from(values));
    StructArray::new(
        vec![field].into(),
        vec![values],
        Some(NullBuffer::from(valid)),
    )
}

#[test]
fn null_in_a_required_field_of_a_null_struct() {
    let s = r#"["null",{"type":"record","name":"S","fields":[{"name":"v","type":"int"}]}]"#;
    let hidden = nested(vec![true, false], vec![Some(1), None]);
    assert_eq!(bytes(s, hidden).unwrap(), [vec![2, 2], vec![0]]);
    let shown = nested(vec![true, false], vec![None, Some(1)]);
    let error = bytes(s, shown).unwrap_err();
    assert!(error.to_string().contains("x.v: null"), "{error}");
}

#[test]
fn a_nested_column_that_the_schema_lacks() {
    let s =
        r#"["null",{"type":"record","name":"S","fields":[{"name":"w","type":["null","int"]}]}]"#;
    let error = bytes(s, nested(vec![true], vec![Some(1)])).unwrap_err();
    assert!(error.to_string().contains("x.v"), "{error}");
}

fn booleans(offsets: Vec<i32>, values: Vec<Option<bool>>, valid: Option<Vec<bool>>) -> ListArray {
    ListArray::new(
        Arc::new(Field::new("any", DataType::Boolean, true)),
        OffsetBuffer::new(offsets.into()),
        Arc::new(BooleanArray::from(values)),
        valid.map(NullBuffer::from),
    )
}

#[test]
fn sliced_lists_of_booleans() {
    let list = r#"{"type":"array","items":"boolean"}"#;
    let values = vec![Some(true), Some(true), Some(false), Some(true)];
    let array = booleans(vec![0, 1, 3, 4], values, None);
    assert_eq!(
        bytes(list, array.slice(1, 2)).unwrap(),
        [vec![4, 1, 0, 0], vec![2, 1, 0]]
    );
    // A values array with an offset of its own.
    let values = BooleanArray::from(vec![false, true, true, false]).slice(1, 3);
    let field = Arc::new(Field::new("item", DataType::Boolean, false));
    let offsets = OffsetBuffer::new(vec![0, 2, 3].into());
    let array = ListArray::new(field, offsets, Arc::new(values), None);
    assert_eq!(
        bytes(list, array).unwrap(),
        [vec![4, 1, 1, 0], vec![2, 0, 0]]
    );
}

#[test]
fn items_under_a_null_list_are_not_data() {
    let list = r#"["null",{"type":"array","items":"boolean"}]"#;
    let values = vec![Some(true), None, Some(false)];
    let array = booleans(
        vec![0, 1, 2, 3],
        values.clone(),
        Some(vec![true, false, true]),
    );
    let expected = [vec![2, 2, 1, 0], vec![0], vec![2, 2, 0, 0]];
    assert_eq!(bytes(list, array).unwrap(), expected);
    let error = bytes(list, booleans(vec![0, 3], values, None)).unwrap_err();
    assert!(error.to_string().contains("x.items: null"), "{error}");
}

#[test]
fn casts_keep_the_value_or_fail() {
    assert_eq!(bytes("\"int\"", Int64Array::from(vec![-1])).unwrap(), [[1]]);
    assert!(bytes("\"int\"", Int64Array::from(vec![1 << 40])).is_err());
    assert!(bytes("\"float\"", Float64Array::from(vec![0.5, f64::NAN])).is_ok());
    assert!(bytes("\"float\"", Float64Array::from(vec![0.1])).is_err());
    assert!(bytes("\"string\"", Int64Array::from(vec![1])).is_err());
    let decimal =
        r#"{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":4,"scale":2}"#;
    let of = |value, p, s| {
        Decimal128Array::from(vec![value])
            .with_precision_and_scale(p, s)
            .unwrap()
    };
    assert_eq!(bytes(decimal, of(-12, 3, 1)).unwrap(), [[0xff, 0x88]]);
    assert!(bytes(decimal, of(1234, 6, 3)).is_err());
    assert_eq!(bytes(decimal, of(12_340, 6, 3)).unwrap(), [[4, 0xd2]]);
    // Fits two bytes, but not four digits.
    assert!(bytes(decimal, of(12_345, 4, 2)).is_err());
}

#[test]
fn timestamps_of_every_unit_and_zone() {
    let micros = r#"{"type":"long","logicalType":"timestamp-micros"}"#;
    let local = r#"{"type":"long","logicalType":"local-timestamp-micros"}"#;
    for ty in [micros, local] {
        let paris = TimestampMillisecondArray::from(vec![1]).with_timezone("Europe/Paris");
        assert_eq!(bytes(ty, paris).unwrap(), [[0xd0, 0x0f]]);
        assert_eq!(
            bytes(ty, TimestampMicrosecondArray::from(vec![1])).unwrap(),
            [[2]]
        );
        let utc = TimestampNanosecondArray::from(vec![-1000]).with_timezone("UTC");
        assert_eq!(bytes(ty, utc).unwrap(), [[1]]);
        assert!(bytes(ty, TimestampNanosecondArray::from(vec![1001])).is_err());
    }
}

#[test]
fn bytes_and_fixed() {
    let fixed = r#"{"type":"fixed","name":"F","size":2}"#;
    let two = || FixedSizeBinaryArray::try_from_iter([[1_u8, 2]].iter()).unwrap();
    assert_eq!(bytes(fixed, two()).unwrap(), [[1, 2]]);
    assert_eq!(bytes("\"bytes\"", two()).unwrap(), [[4, 1, 2]]);
    assert_eq!(
        bytes(fixed, BinaryArray::from(vec![&[1_u8, 2][..]])).unwrap(),
        [[1, 2]]
    );
    assert!(bytes(fixed, BinaryArray::from(vec![&[1_u8][..]])).is_err());
}

#[test]
fn enums_from_strings() {
    let union = r#"["null",{"type":"enum","name":"E","symbols":["A","B"]}]"#;
    let rows = bytes(union, StringArray::from(vec![Some("B"), None])).unwrap();
    assert_eq!(rows, [vec![2, 2], vec![0]]);
    assert_eq!(
        decoded(&x(union), &rows).column(0).data_type(),
        &DataType::Utf8
    );
    assert!(bytes(union, StringArray::from(vec!["C"])).is_err());
}

#[test]
fn null_records_hide_any_value() {
    let inner = r#"{"name":"e","type":{"type":"enum","name":"E","symbols":["A"]}},
        {"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":2,"scale":0}}"#;
    let union = format!(r#"["null",{{"type":"record","name":"S","fields":[{inner}]}}]"#);
    let symbols = |first| Arc::new(StringArray::from(vec![first, "A"])) as ArrayRef;
    let decimals = Decimal128Array::from(vec![1000, 1]).with_precision_and_scale(2, 0);
    let decimals: ArrayRef = Arc::new(decimals.unwrap());
    let rows = |symbols: ArrayRef, nulls: Option<NullBuffer>| {
        let fields = [("e", &symbols), ("d", &decimals)];
        let field = |(name, array): (&str, &ArrayRef)| {
            Field::new(name, array.data_type().clone(), nulls.is_some())
        };
        let fields: Fields = fields.into_iter().map(field).collect();
        let array = StructArray::new(fields, vec![symbols, Arc::clone(&decimals)], nulls);
        bytes(&union, array)
    };
    let hidden = rows(symbols(""), Some(NullBuffer::from(vec![false, true]))).unwrap();
    assert_eq!(hidden, [vec![0], vec![2, 0, 2, 1]]);
    assert!(rows(symbols(""), None).is_err());
    assert!(rows(symbols("A"), None).is_err());
}

#[test]
fn other_unions_are_refused() {
    let refused = bytes(r#"["null","int","string"]"#, Int32Array::from(vec![1]));
    assert!(matches!(refused, Err(AvroError::Unsupported { .. })));
}

#[test]
fn nulls_inside_lists_and_maps_come_back() {
    let schema = record(
        r#"{"name":"x","type":["null",{"type":"array","items":["string","null"]}]},
           {"name":"m","type":["null",{"type":"map","values":["null",
               {"type":"array","items":["null","long"]}]}]}"#,
    );
    let rows = [
        // x: ["a", null], m: {"k": null, "l": [null, 1]}
        vec![
            2, 4, 0, 2, b'a', 2, 0, 2, 4, 2, b'k', 0, 2, b'l', 2, 4, 0, 2, 2, 0, 0,
        ],
        // x: null, m: {}
        vec![0, 2, 0],
        // x: [], m: null
        vec![2, 0, 0],
    ];
    let batch = decoded(&schema, &rows);
    let list = batch["x"].as_list::<i32>();
    assert!(list.is_null(1) && list.is_valid(2));
    assert_eq!(list.value(0).null_count(), 1);
    let map = batch["m"].as_map();
    assert!(map.value(0).column(1).is_null(0));
    let inner = map.values().as_list::<i32>().value(1);
    assert_eq!(inner.null_count(), 1);
    let again = encode(&batch, &schema).unwrap();
    assert!(again.iter().eq(rows.iter().map(Vec::as_slice)));
    // Rows of a slice, where offsets do not start at zero.
    let tail = encode(&batch.slice(1, 2), &schema).unwrap();
    assert!(tail.iter().eq(rows[1..].iter().map(Vec::as_slice)));
}

#[test]
fn blocks_with_a_size_in_front_are_read() {
    // Java's blocking encoder: count -2, 2 bytes, then the items.
    let schema = x(r#"{"type":"array","items":"int"}"#);
    let batch = decoded(&schema, &[vec![3, 4, 2, 4, 0]]);
    assert_eq!(batch["x"].as_list::<i32>().value(0).len(), 2);
    let y =
        record(r#"{"name":"x","type":{"type":"array","items":"int"}},{"name":"y","type":"int"}"#);
    let mut decoder = DatumDecoder::new(&y, Some(&["y"]), 1).unwrap();
    decoder.push(&[3, 4, 2, 4, 0, 8]).unwrap();
    let batch = decoder.flush().unwrap().unwrap();
    assert_eq!(batch["y"].as_primitive::<Int32Type>().value(0), 4);
}
