//! JSON text against what Hudi 1.2.0 printed for the same values.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Int32Array, Int32Builder, MapBuilder, StringBuilder, StructArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field};

use super::{Style, base64, decimal, float, image_text, quoted};

/// One image with a value of each kind that the printers differ in.
fn image() -> StructArray {
    let mut pairs = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    pairs.keys().append_value("x");
    pairs.values().append_null();
    pairs.append(true).unwrap();
    let field = |name: &str, column: &ArrayRef| {
        Arc::new(Field::new(name, column.data_type().clone(), true))
    };
    let nothing: ArrayRef = Arc::new(Int32Array::from(vec![None]));
    let inner: ArrayRef = Arc::new(StructArray::from(vec![(
        Arc::new(Field::new("a", DataType::Int32, true)),
        Arc::clone(&nothing),
    )]));
    let columns: [(&str, ArrayRef); 5] = [
        ("n", nothing),
        (
            "at",
            Arc::new(TimestampMicrosecondArray::from(vec![1_500_000])),
        ),
        ("raw", Arc::new(BinaryArray::from(vec![&[0_u8, 255][..]]))),
        ("pairs", Arc::new(pairs.finish())),
        ("inner", inner),
    ];
    columns
        .iter()
        .map(|(name, column)| (field(name, column), Arc::clone(column)))
        .collect::<Vec<_>>()
        .into()
}

#[test]
fn rows_of_data_files_leave_nulls_out() {
    let text = image_text(&image(), Style::Row).unwrap();
    assert_eq!(
        text.value(0),
        r#"{"at":1500000,"raw":"AP8=","pairs":{},"inner":{}}"#
    );
}

#[test]
fn records_of_change_logs_keep_nulls() {
    let text = image_text(&image(), Style::Record).unwrap();
    assert_eq!(
        text.value(0),
        r#"{"n":null,"at":1500000,"raw":"\u0000ÿ","pairs":{"x":null},"inner":{"a":null}}"#
    );
}

fn text(write: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    write(&mut out);
    out
}

#[test]
fn decimals_are_plain_numbers() {
    for (unscaled, scale, wanted) in [
        ("1250", 2, "12.50"),
        ("-5", 2, "-0.05"),
        ("0", 8, "0.00000000"),
        ("42", 0, "42"),
        ("42", -2, "4200"),
        ("0", -2, "0"),
    ] {
        assert_eq!(decimal(unscaled, scale), wanted);
    }
}

#[test]
fn what_is_no_number_is_text() {
    assert_eq!(text(|out| float(out, "1.0E10")), "1.0E10");
    assert_eq!(text(|out| float(out, "NaN")), "\"NaN\"");
    assert_eq!(text(|out| float(out, "-Infinity")), "\"-Infinity\"");
}

#[test]
fn base64_is_padded() {
    for (value, wanted) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
    ] {
        assert_eq!(
            text(|out| base64(out, value.as_bytes())),
            format!("\"{wanted}\"")
        );
    }
    assert_eq!(text(|out| base64(out, &[0, 255])), "\"AP8=\"");
}

#[test]
fn text_is_escaped() {
    assert_eq!(
        text(|out| quoted(out, "a\"b\\\n\u{1}é")),
        "\"a\\\"b\\\\\\n\\u0001é\""
    );
}
