//! Records of a `secondary_index_…` partition: what a commit changes in one file group.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use pyhudi_avro::Value;
use pyhudi_slice::{Result, SliceError};

use super::recorder::Recorder;
use crate::secondary::{entry, older_form, value_len};

/// Kind of the records (`MetadataPartitionType`).
const KIND_SECONDARY_INDEX: i64 = 7;

/// Records that make the entries of the rows before into those of the rows after. Batches hold
/// record keys, then the column's values: text or whole numbers.
///
/// hashed_by_value: the file group of an entry follows from the value alone, and nulls have entries
/// (index version 2).
///
/// # Errors
/// The metadata table has no such partition; columns of other types; rows that cannot be read.
pub fn secondary_changes(
    recorder: &Recorder,
    index: &str,
    hashed_by_value: bool,
    before: impl Iterator<Item = Result<RecordBatch>>,
    after: impl Iterator<Item = Result<RecordBatch>>,
) -> Result<RecordBatch> {
    let mut old = HashSet::new();
    for batch in before {
        each_entry(&batch?, hashed_by_value, |key, _| {
            old.insert(key);
            Ok(())
        })?;
    }
    let mut rows = recorder.rows(index)?;
    let deleted = Value::Record(vec![("isDeleted", Value::Boolean(false))]);
    let fields = [
        ("type", Value::Whole(KIND_SECONDARY_INDEX)),
        ("SecondaryIndexMetadata", deleted),
    ];
    let hashed = |key: &str, value: usize| {
        let end = if hashed_by_value { value } else { key.len() };
        key.get(..end).unwrap_or(key).to_owned()
    };
    for batch in after {
        each_entry(&batch?, hashed_by_value, |key, value| {
            if old.remove(&key) {
                return Ok(());
            }
            rows.put_hashed(&key, &hashed(&key, value), &fields)
        })?;
    }
    // Of any writer, up to index version 1.
    let older = old.iter().filter_map(|key| older_form(key));
    let older: Vec<String> = older.filter(|_| !hashed_by_value).collect();
    for key in old.into_iter().chain(older) {
        let value = value_len(&key).unwrap_or(key.len());
        rows.delete_hashed(&key, &hashed(&key, value));
    }
    rows.finish()
}

/// Each row's entry, and how many bytes of it the value and the separator take. Up to index version
/// 1 nulls have none (Hudi 1.0.2).
fn each_entry(
    batch: &RecordBatch,
    with_nulls: bool,
    mut take: impl FnMut(String, usize) -> Result<()>,
) -> Result<()> {
    let (keys, values) = (texts(batch, 0)?, texts(batch, 1)?);
    for (row, key) in keys.iter().enumerate() {
        let value = values.is_valid(row).then(|| values.value(row));
        if value.is_none() && !with_nulls {
            continue;
        }
        let (entry, len) = entry(value, key.unwrap_or_default());
        take(entry, len)?;
    }
    Ok(())
}

fn texts(batch: &RecordBatch, column: usize) -> Result<StringArray> {
    let wrong = |kind: String| SliceError::Schema(format!("a secondary index of {kind}"));
    let Some(column) = batch.columns().get(column) else {
        return Err(wrong("a column that is missing".to_owned()));
    };
    let column: ArrayRef = match column.data_type() {
        DataType::Utf8 | DataType::Int32 | DataType::Int64 => cast(column, &DataType::Utf8)?,
        other => return Err(wrong(other.to_string())),
    };
    let texts = column.as_string_opt::<i32>().cloned();
    texts.ok_or_else(|| wrong("no text".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow::array::Int32Array;
    use arrow::datatypes::{Field, Schema};

    use super::*;

    const SCHEMA: &str = r#"{"type": "record", "name": "r", "fields": [
        {"name": "key", "type": "string"}, {"name": "type", "type": "int"},
        {"name": "SecondaryIndexMetadata", "type": ["null", {"type": "record", "name": "s",
         "fields": [{"name": "isDeleted", "type": "boolean"}]}], "default": null}]}"#;

    fn batch(keys: &[&str], values: ArrayRef) -> Result<RecordBatch> {
        let schema = Schema::new(vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", values.data_type().clone(), true),
        ]);
        let keys = Arc::new(StringArray::from(keys.to_vec()));
        Ok(RecordBatch::try_new(Arc::new(schema), vec![keys, values])?)
    }

    fn changes(before: Result<RecordBatch>, after: Result<RecordBatch>) -> Vec<(String, bool)> {
        changes_of(true, before, after)
    }

    fn changes_of(
        hashed_by_value: bool,
        before: Result<RecordBatch>,
        after: Result<RecordBatch>,
    ) -> Vec<(String, bool)> {
        let groups = HashMap::from([("secondary_index_i".to_owned(), 3)]);
        let recorder = Recorder::new(SCHEMA, groups).unwrap();
        let (before, after) = ([before].into_iter(), [after].into_iter());
        let index = "secondary_index_i";
        let rows = secondary_changes(&recorder, index, hashed_by_value, before, after).unwrap();
        let (keys, values) = (rows.column(1).as_string::<i32>(), rows.column(2));
        let mut found: Vec<_> = (0..rows.num_rows())
            .map(|row| (keys.value(row).to_owned(), values.is_valid(row)))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn entries_that_stay_are_left_alone() {
        let before = StringArray::from(vec![Some("x"), Some("a$"), None]);
        let after = StringArray::from(vec![Some("x"), None, Some("n")]);
        let found = changes(
            batch(&["1", "2", "3"], Arc::new(before)),
            batch(&["1", "2", "4"], Arc::new(after)),
        );
        let expected = [
            ("\0$2", true),
            ("\0$3", false),
            ("a\\$$2", false),
            ("n$4", true),
        ];
        assert_eq!(found, expected.map(|(key, is)| (key.to_owned(), is)));
    }

    #[test]
    fn entries_go_in_the_form_of_each_release() {
        let none = || batch(&[], Arc::new(StringArray::from(Vec::<&str>::new())));
        let before = || batch(&["1"], Arc::new(StringArray::from(vec!["a\0"])));
        let newer = ("a\\\0$1".to_owned(), false);
        let older = ("a\0$1".to_owned(), false);
        let both = [older, newer];
        assert_eq!(changes_of(true, before(), none()), both[1..]);
        assert_eq!(changes_of(false, before(), none()), both);
    }

    #[test]
    fn numbers_are_text() {
        let none = batch(&[], Arc::new(Int32Array::from(Vec::<i32>::new())));
        let found = changes(none, batch(&["k"], Arc::new(Int32Array::from(vec![-7]))));
        assert_eq!(found, [("-7$k".to_owned(), true)]);
    }
}
