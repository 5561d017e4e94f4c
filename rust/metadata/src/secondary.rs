//! A `secondary_index_…` partition: for each value of a column the keys of the records with it.

use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};

use super::MetadataPartition;
use super::records::{Keep, Records, Wanted};
use pyhudi_format::hash::metadata_file_group;
use pyhudi_slice::{Result, SliceError};

/// What to look up in a secondary index.
#[derive(Debug, Clone, Default)]
pub struct SecondaryKeys {
    /// Values of the column as text; [`None`] for all entries.
    pub values: Option<Vec<String>>,
    /// The hash is over the value alone (index version 2), so one file group has all its entries.
    pub hashed_by_value: bool,
}

/// Entries of the index: columns value (null for null) and record_key.
pub fn secondary_keys(partition: &MetadataPartition, keys: &SecondaryKeys) -> Result<RecordBatch> {
    let (mut values, mut record_keys) = (Vec::new(), Vec::new());
    for (number, slice) in partition.groups.iter().enumerate() {
        let prefixes = keys.values.as_ref().map(|values| {
            let prefixes = values.iter().map(|value| escaped(value) + "$");
            let here = |prefix: &String| {
                let group = metadata_file_group(prefix, partition.groups.len() as u32);
                !keys.hashed_by_value || group as usize == number
            };
            prefixes.filter(here).collect::<Vec<_>>()
        });
        let wanted = match &prefixes {
            Some(prefixes) if prefixes.is_empty() => continue,
            Some(prefixes) => Wanted::Prefixes(prefixes),
            None => Wanted::All,
        };
        let records = Records::read(partition, slice, &wanted, Keep::Newest)?;
        for record in records.iter() {
            let (key, versions) = record?;
            let deleted = versions.last().is_some_and(|newest| {
                newest
                    .field("SecondaryIndexMetadata")
                    .field("isDeleted")
                    .is_true()
            });
            if deleted {
                continue;
            }
            let Some((value, record_key)) = parts(key) else {
                return Err(records.damaged(format!("the secondary index key {key:?}")));
            };
            values.push(value);
            record_keys.push(record_key);
        }
    }
    let schema = Schema::new(vec![
        Field::new("value", DataType::Utf8, true),
        Field::new("record_key", DataType::Utf8, false),
    ]);
    RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(StringArray::from(values)),
            Arc::new(StringArray::from(record_keys)),
        ],
    )
    .map_err(SliceError::Arrow)
}

const ESCAPE: char = '\\';
const SEPARATOR: char = '$';
const NULL: char = '\0';

/// `SecondaryIndexKeyUtils.escapeSpecialChars` (Hudi 1.2.0).
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for one in value.chars() {
        if matches!(one, ESCAPE | SEPARATOR | NULL) {
            out.push(ESCAPE);
        }
        out.push(one);
    }
    out
}

/// The key of an entry, and how many bytes of it the value and the separator take
/// (`SecondaryIndexKeyUtils.constructSecondaryIndexKey`, Hudi 1.2.0).
pub(super) fn entry(value: Option<&str>, record_key: &str) -> (String, usize) {
    let mut key = value.map_or_else(|| NULL.to_string(), escaped);
    key.push(SEPARATOR);
    let value = key.len();
    key.push_str(&escaped(record_key));
    (key, value)
}

/// The key of an entry as Hudi 1.0.2 writes it, which escapes no null character; [`None`] where that
/// is the same.
pub(super) fn older_form(key: &str) -> Option<String> {
    key.contains(NULL).then(|| key.replace("\\\0", "\0"))
}

/// Bytes of an entry's key up to its separator and with it.
pub(super) fn value_len(key: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, one) in key.char_indices() {
        match one {
            ESCAPE if !is_escaped => is_escaped = true,
            SEPARATOR if !is_escaped => return Some(at + 1),
            _ => is_escaped = false,
        }
    }
    None
}

/// Value, null for the lone null character, and record key.
fn parts(key: &str) -> Option<(Option<String>, String)> {
    let (mut value, mut is_escaped) = (String::new(), false);
    for (at, one) in key.char_indices() {
        match one {
            ESCAPE if !is_escaped => is_escaped = true,
            SEPARATOR if !is_escaped => {
                let is_null = key.starts_with(NULL) && at == 1;
                let record_key = unescaped(key.get(at + 1..)?);
                return Some(((!is_null).then_some(value), record_key));
            }
            other => {
                value.push(other);
                is_escaped = false;
            }
        }
    }
    None
}

fn unescaped(text: &str) -> String {
    let (mut out, mut is_escaped) = (String::new(), false);
    for one in text.chars() {
        if one == ESCAPE && !is_escaped {
            is_escaped = true;
        } else {
            out.push(one);
            is_escaped = false;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/format/hashes.md`, secondary index keys.
    #[test]
    fn keys_come_apart_again() {
        assert_eq!(escaped("a$b"), "a\\$b");
        let found =
            |value: Option<&str>, key: &str| Some((value.map(str::to_owned), key.to_owned()));
        assert_eq!(parts("a\\$b$r\\\\1"), found(Some("a$b"), "r\\1"));
        assert_eq!(parts("\0$k"), found(None, "k"));
        assert_eq!(parts("\\\0$k"), found(Some("\0"), "k"));
        assert_eq!(parts("$k"), found(Some(""), "k"));
        assert_eq!(parts("n1$k1"), found(Some("n1"), "k1"));
        assert_eq!(parts("n1\\$k1"), None);
        for (value, key) in [(None, "k"), (Some("a$\\b"), "r\\$"), (Some("\0"), "")] {
            let (whole, len) = entry(value, key);
            assert_eq!(value_len(&whole), Some(len));
            assert_eq!(parts(&whole), found(value, key));
        }
    }

    #[test]
    fn entries_of_an_older_release_hold_null_characters_as_they_are() {
        let form = |value: &str, key: &str| older_form(&entry(Some(value), key).0);
        assert_eq!(form("a\0b", "k\0"), Some("a\0b$k\0".to_owned()));
        assert_eq!(form("\\\0$", "k"), Some("\\\\\0\\$$k".to_owned()));
        assert_eq!(form("a$", "k"), None);
    }
}

#[cfg(test)]
mod properties {
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    /// Of few characters, most of them special.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[\\\\$\\x00a]{0,5}", any::<String>()]
    }

    proptest! {
        #[test]
        fn entries_come_apart_and_are_found_by_their_value_alone(
            value in option::of(text()),
            other in text(),
            key in text(),
        ) {
            let (whole, len) = entry(value.as_deref(), &key);
            prop_assert_eq!(parts(&whole), Some((value.clone(), key)));
            prop_assert_eq!(value_len(&whole), Some(len));
            // A look-up of a value finds the entries of this value alone.
            let is_found = whole.starts_with(&(escaped(&other) + "$"));
            prop_assert_eq!(is_found, value.as_ref() == Some(&other));
        }
    }
}
