//! VARIANT: values of parts, and values of JSON.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use pyhudi_format::variant::{
    VariantNames, VariantPart, VariantWriter, check_variant, object_fields, variant_from_json,
    variant_size, variant_to_json,
};
use serde_json::{Number, Value};

use crate::damage::damage;

#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Float(f32),
    Double(f64),
    Decimal(i128, u8),
    Date(i32),
    Time(i64),
    Timestamp { value: i64, nanos: bool, utc: bool },
    Binary(Vec<u8>),
    Text(String),
    Uuid([u8; 16]),
    Array(Vec<Tree>),
    Object(BTreeMap<String, Tree>),
}

fn tree() -> impl Strategy<Value = Tree> {
    let whole = prop_oneof![any::<i64>(), any::<i16>().prop_map(i64::from)];
    let unscaled = prop_oneof![
        any::<i64>().prop_map(i128::from),
        -(10_i128.pow(38) - 1)..10_i128.pow(38)
    ];
    let timestamp = (any::<i64>(), any::<bool>(), any::<bool>());
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        whole.prop_map(Tree::Int),
        any::<f32>()
            .prop_filter("NaN equals nothing", |value| !value.is_nan())
            .prop_map(Tree::Float),
        any::<f64>()
            .prop_filter("NaN equals nothing", |value| !value.is_nan())
            .prop_map(Tree::Double),
        (unscaled, 0..=38_u8).prop_map(|(unscaled, scale)| Tree::Decimal(unscaled, scale)),
        any::<i32>().prop_map(Tree::Date),
        any::<i64>().prop_map(Tree::Time),
        timestamp.prop_map(|(value, nanos, utc)| Tree::Timestamp { value, nanos, utc }),
        vec(any::<u8>(), 0..20).prop_map(Tree::Binary),
        prop_oneof![any::<String>(), "[a-z]{60,70}"].prop_map(Tree::Text),
        any::<[u8; 16]>().prop_map(Tree::Uuid),
    ];
    leaf.prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Tree::Array),
            btree_map("[a-dé]{0,3}", inner, 0..8).prop_map(Tree::Object),
        ]
    })
}

/// Metadata with the names of all objects.
fn metadata(tree: &Tree) -> Vec<u8> {
    fn collect(tree: &Tree, names: &mut serde_json::Map<String, Value>) {
        match tree {
            Tree::Array(items) => items.iter().for_each(|item| collect(item, names)),
            Tree::Object(fields) => fields.iter().for_each(|(name, field)| {
                names.insert(name.clone(), Value::Null);
                collect(field, names);
            }),
            _ => {}
        }
    }
    let mut names = serde_json::Map::new();
    collect(tree, &mut names);
    variant_from_json(&Value::Object(names).to_string())
        .unwrap()
        .0
}

fn write(tree: &Tree, names: &VariantNames<'_>, out: &mut VariantWriter) {
    match tree {
        Tree::Null => out.null(),
        Tree::Bool(value) => out.bool(*value),
        Tree::Int(value) => out.int(*value),
        Tree::Float(value) => out.float(*value),
        Tree::Double(value) => out.double(*value),
        Tree::Decimal(unscaled, scale) => out.decimal(*unscaled, *scale),
        Tree::Date(days) => out.date(*days),
        Tree::Time(micros) => out.time(*micros),
        Tree::Timestamp { value, nanos, utc } => out.timestamp(*value, *nanos, *utc),
        Tree::Binary(bytes) => out.binary(bytes).unwrap(),
        Tree::Text(text) => out.string(text).unwrap(),
        Tree::Uuid(bytes) => out.uuid(bytes),
        Tree::Array(items) => {
            let start = out.len();
            let starts: Vec<usize> = items
                .iter()
                .map(|item| {
                    let at = out.len();
                    write(item, names, out);
                    at
                })
                .collect();
            out.array(start, &starts).unwrap();
        }
        Tree::Object(fields) => {
            let start = out.len();
            let starts: Vec<(u32, usize)> = fields
                .iter()
                .map(|(name, field)| {
                    let at = out.len();
                    write(field, names, out);
                    (names.number(name).unwrap(), at)
                })
                .collect();
            out.object(names, start, &starts).unwrap();
        }
    }
}

fn read(bytes: &[u8], names: &VariantNames<'_>) -> Tree {
    match VariantPart::parse(bytes).unwrap() {
        VariantPart::Null => Tree::Null,
        VariantPart::Bool(value) => Tree::Bool(value),
        VariantPart::Int(value) => Tree::Int(value),
        VariantPart::Float(value) => Tree::Float(value),
        VariantPart::Double(value) => Tree::Double(value),
        VariantPart::Decimal(unscaled, scale) => Tree::Decimal(unscaled, scale),
        VariantPart::Date(days) => Tree::Date(days),
        VariantPart::Time(micros) => Tree::Time(micros),
        VariantPart::Timestamp { value, nanos, utc } => Tree::Timestamp { value, nanos, utc },
        VariantPart::Binary(bytes) => Tree::Binary(bytes.to_vec()),
        VariantPart::String(text) => Tree::Text(text.to_owned()),
        VariantPart::Uuid(bytes) => Tree::Uuid(bytes.try_into().unwrap()),
        VariantPart::Array(items) => {
            Tree::Array(items.iter().map(|item| read(item, names)).collect())
        }
        VariantPart::Object(_) => {
            let fields = object_fields(bytes).unwrap().unwrap();
            let by_name = fields
                .iter()
                .map(|(id, field)| (names.get(*id).unwrap().to_owned(), read(field, names)));
            Tree::Object(by_name.collect())
        }
    }
}

/// JSON whose numbers keep their sign in a decimal.
fn json() -> impl Strategy<Value = Value> {
    let float = any::<f64>().prop_filter_map("zero has no sign in a decimal", |value| {
        Number::from_f64(value).filter(|_| value != 0.0 || value.is_sign_positive())
    });
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        float.prop_map(Value::Number),
        (-1_000_000..1_000_000_i64, 0..5_i32)
            .prop_map(|(number, digits)| Value::from(number as f64 / 10_f64.powi(digits)))
            .prop_filter("zero has no sign in a decimal", |value| value.as_f64()
                != Some(0.0)),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::Array),
            btree_map(any::<String>(), inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_of_parts_is_read_as_its_parts(tree in tree()) {
        let metadata = metadata(&tree);
        let names = VariantNames::parse(&metadata).unwrap();
        let mut out = VariantWriter::default();
        write(&tree, &names, &mut out);
        check_variant(&metadata, out.bytes()).unwrap();
        prop_assert_eq!(variant_size(out.bytes()).unwrap(), out.len());
        prop_assert_eq!(read(out.bytes(), &names), tree);
        let text = variant_to_json(&metadata, out.bytes()).unwrap();
        serde_json::from_str::<Value>(&text).unwrap();
    }

    #[test]
    fn json_comes_back(json in json()) {
        let (metadata, value) = variant_from_json(&json.to_string()).unwrap();
        check_variant(&metadata, &value).unwrap();
        let text = variant_to_json(&metadata, &value).unwrap();
        let again: Value = serde_json::from_str(&text).unwrap();
        prop_assert!(is_same(&again, &json), "{text}");
    }

    #[test]
    fn doubles_keep_each_bit(
        number in any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()),
    ) {
        let (metadata, value) = variant_from_json(&format!("{number:e}")).unwrap();
        prop_assert_eq!(
            VariantPart::parse(&value).unwrap(),
            VariantPart::Double(number)
        );
        let text = variant_to_json(&metadata, &value).unwrap();
        prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), number.to_bits());
    }

    #[test]
    fn damaged_values_never_panic(
        tree in tree(),
        first in damage(),
        second in damage(),
        both in any::<bool>(),
    ) {
        let metadata = metadata(&tree);
        let mut out = VariantWriter::default();
        write(&tree, &VariantNames::parse(&metadata).unwrap(), &mut out);
        let (value, at) = first.of(out.bytes());
        let is_cut = value.len() == at;
        let metadata = if both {
            second.of(&metadata).0
        } else {
            metadata
        };
        let _ = (
            variant_size(&value),
            object_fields(&value).is_ok(),
            VariantPart::parse(&value).is_ok(),
        );
        let text = variant_to_json(&metadata, &value);
        let is_sound = check_variant(&metadata, &value).is_ok();
        prop_assert!(!is_cut || !is_sound);
        if let (true, Ok(text)) = (is_sound, text) {
            // It may have a field twice.
            let _ = variant_from_json(&text);
        }
    }

    #[test]
    fn damaged_json_is_an_error_or_a_value(json in json(), damage in damage()) {
        let damaged = damage.of(json.to_string().as_bytes()).0;
        if let Ok((metadata, value)) = variant_from_json(&String::from_utf8_lossy(&damaged)) {
            check_variant(&metadata, &value).unwrap();
            let again = variant_to_json(&metadata, &value).unwrap();
            variant_from_json(&again).unwrap();
        }
    }
}

/// Whether both have the same values: a number may be a whole one in one and a floating one in the other.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|field| is_same(value, field))
            };
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}
