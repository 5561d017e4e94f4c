//! Record keys and partition paths: different values have different ones, and they are told from them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use pyhudi_keys::{PartitionPaths, RecordKeys, add_keys};

const FIELDS: [&str; 3] = ["a", "b", "c"];

/// Of few parts, so that keys of different values can be spelled alike.
fn tricky() -> impl Strategy<Value = Option<String>> {
    option::weighted(
        0.9,
        "(__null__|__empty__|,b:|,c:|1){0,3}".prop_map(String::from),
    )
}

fn value() -> impl Strategy<Value = Option<String>> {
    option::weighted(0.9, prop_oneof![any::<String>(), "[ab:,_/.=% -]{0,6}"])
}

fn batch(values: &[Option<String>]) -> RecordBatch {
    let columns = FIELDS.iter().zip(values);
    let column =
        |value: &Option<String>| Arc::new(StringArray::from(vec![value.clone()])) as ArrayRef;
    RecordBatch::try_from_iter(columns.map(|(name, value)| (*name, column(value)))).unwrap()
}

fn fields(count: usize) -> Vec<String> {
    FIELDS[..count]
        .iter()
        .map(|field| (*field).to_owned())
        .collect()
}

/// `PartitionPathEncodeUtils.unescapePathName`.
fn unescaped(path: &str) -> String {
    let bytes = path.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let code = path
            .get(at + 1..at + 3)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(code) = code.filter(|_| bytes[at] == b'%') {
            out.push(code);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).unwrap()
}

proptest! {
    #[test]
    fn two_keys_that_are_written_differ_if_their_values_do(
        (values, others) in (2..=3_usize).prop_flat_map(|count| (vec(tricky(), count), vec(tricky(), count))),
    ) {
        let keys = RecordKeys {
            fields: fields(values.len()),
            prefixed: true,
        };
        let key = |values: &[Option<String>]| {
            let rows = add_keys(&batch(values), 0, &keys, &PartitionPaths::default(), None).ok()?;
            Some(rows.column(0).as_string::<i32>().value(0).to_owned())
        };
        if let (Some(one), Some(other)) = (key(&values), key(&others)) {
            prop_assert_eq!(one == other, values == others, "{} {}", one, other);
        }
    }

    #[test]
    fn an_escaped_path_has_one_folder_a_field_and_its_values(
        values in vec(value(), 1..=3),
        hive_style in any::<bool>(),
    ) {
        let paths = PartitionPaths {
            fields: fields(values.len()),
            hive_style,
            url_encode: true,
            slash_dates: false,
        };
        let Ok(path) = paths.of(&batch(&values)) else {
            return Ok(());
        };
        let path = path.value(0);
        let folders: Vec<&str> = path.split('/').collect();
        prop_assert_eq!(folders.len(), values.len());
        for ((folder, field), value) in folders.iter().zip(FIELDS).zip(&values) {
            prop_assert!(!["", ".", "..", ".hoodie"].contains(folder), "{path}");
            let text = if hive_style {
                folder.strip_prefix(&format!("{field}=")).unwrap()
            } else {
                folder
            };
            let value = value.as_deref().filter(|value| !value.is_empty());
            let expected = value.unwrap_or("__HIVE_DEFAULT_PARTITION__");
            prop_assert_eq!(unescaped(text), expected);
        }
    }

    #[test]
    fn a_path_that_is_not_escaped_stays_in_the_table(
        values in vec(value(), 1..=3),
        hive_style in any::<bool>(),
        slash_dates in any::<bool>(),
    ) {
        let paths = PartitionPaths {
            fields: fields(values.len()),
            hive_style,
            url_encode: false,
            slash_dates,
        };
        if let Ok(path) = paths.of(&batch(&values)) {
            let mut folders = path.value(0).split('/');
            prop_assert!(
                folders.all(|folder| !["", ".", "..", ".hoodie"].contains(&folder)),
                "{}",
                path.value(0)
            );
        }
    }
}
