use super::*;
use pyhudi_avro::DatumReader;

const SCHEMA: &str = r#"{"type": "record", "name": "s", "fields": [
  {"name": "v", "type": ["null",
    {"type": "record", "name": "B", "fields": [{"name": "value", "type": "boolean"}]},
    {"type": "record", "name": "I", "fields": [{"name": "value", "type": "int"}]},
    {"type": "record", "name": "L", "fields": [{"name": "value", "type": "long"}]},
    {"type": "record", "name": "F", "fields": [{"name": "value", "type": "float"}]},
    {"type": "record", "name": "D", "fields": [{"name": "value", "type": "double"}]},
    {"type": "record", "name": "Y", "fields": [{"name": "value", "type": "bytes"}]},
    {"type": "record", "name": "S", "fields": [{"name": "value", "type": "string"}]}]},
  {"name": "t", "type": ["null", {"type": "record", "name": "T", "fields": [
    {"name": "typeOrdinal", "type": "int"},
    {"name": "additionalInfo", "type": ["null", "string"]}]}]}]}"#;

fn found(bytes: &[u8], column: &DataType) -> Option<Bound> {
    let reader = DatumReader::new(SCHEMA).unwrap();
    let record = reader.read(bytes).unwrap();
    bound(record.field("v"), record.field("t"), column)
}

#[test]
fn a_value_counts_only_in_its_own_type() {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    assert_eq!(found(&[4, 6, 0], &DataType::Int64), Some(Bound::Whole(3)));
    assert_eq!(found(&[4, 6, 0], &DataType::Int32), Some(Bound::Whole(3)));
    assert_eq!(found(&[6, 6, 0], &DataType::Int32), None);
    assert_eq!(found(&[4, 6, 0], &DataType::Utf8), None);
    assert_eq!(found(&[4, 6, 0], &DataType::Date32), None);
    assert_eq!(
        found(&[4, 6, 2, 24, 0], &DataType::Date32),
        Some(Bound::Whole(3))
    );
    assert_eq!(found(&[4, 6, 2, 24, 0], &DataType::Int32), None);
    assert_eq!(found(&[6, 6, 2, 30, 0], &utc), Some(Bound::Whole(3000)));
    assert_eq!(found(&[6, 6, 2, 32, 0], &utc), Some(Bound::Whole(3)));
    assert_eq!(found(&[6, 6, 2, 38, 0], &utc), None);
    assert_eq!(found(&[6, 6, 0], &utc), None);
}

#[test]
fn decimals_need_their_own_precision_and_scale() {
    let bytes = [12, 4, 0xff, 0x85, 2, 20, 2, 6, b'5', b',', b'2'];
    assert_eq!(
        found(&bytes, &DataType::Decimal128(5, 2)),
        Some(Bound::Whole(-123))
    );
    assert_eq!(found(&bytes, &DataType::Decimal128(6, 2)), None);
}

#[test]
fn not_a_number_and_far_characters_bound_nothing() {
    let nan: Vec<u8> = [&[10][..], &f64::NAN.to_le_bytes(), &[0]].concat();
    assert_eq!(found(&nan, &DataType::Float64), None);
    let (low, zero, high) = (
        Bound::Floating(-1.5),
        Bound::Floating(0.0),
        Bound::Floating(1.5),
    );
    assert!(zero.may_hide(&zero) && low.may_hide(&high) && zero.may_hide(&high));
    assert!(!high.may_hide(&high) && !low.may_hide(&low));
    assert_eq!(text("\u{ffff}"), None);
    assert_eq!(text("é日"), Some(Bound::Text("é日".to_owned())));
}

#[test]
fn a_long_that_could_be_milliseconds_of_any_year_bounds_nothing() {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let of = |value: i64| micros(wrapper::LONG, kind::UNSAID, value, true);
    // 0001-01-01 and 9999-12-31 in milliseconds, 2024 in microseconds.
    assert_eq!(of(-62_135_596_800_000), None);
    assert_eq!(of(253_402_214_400_000), None);
    assert_eq!(
        of(1_714_867_200_000_000),
        Some(Bound::Whole(1_714_867_200_000_000))
    );
    assert_eq!(found(&[6, 6, 0], &utc), None);
}
