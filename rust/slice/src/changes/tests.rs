//! Two small states against each other.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use pyhudi_merge::RowMatcher;

use super::{Batches, ChangeSpec, Changes};

type Row<'a> = (&'a str, &'a str, Option<i32>);

fn batch(rows: &[Row<'_>]) -> RecordBatch {
    let text = |of: fn(&Row<'_>) -> String| -> ArrayRef {
        Arc::new(
            rows.iter()
                .map(|row| Some(of(row)))
                .collect::<StringArray>(),
        )
    };
    let numbers: Int32Array = rows.iter().map(|row| row.2).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("id", text(|row| row.0.to_owned()), true),
        ("city", text(|row| row.1.to_owned()), true),
        ("n", Arc::new(numbers) as ArrayRef, true),
    ])
    .unwrap()
}

fn spec() -> ChangeSpec {
    ChangeSpec {
        schema: Arc::new(Schema::new(vec![
            Field::new("id", DataType::Utf8, true),
            Field::new("n", DataType::Int32, true),
        ])),
        images: 2,
        key_fields: vec!["id".to_owned()],
        place: Some("city".to_owned()),
        constants: Vec::new(),
        only: None,
        bucket: None,
        as_json: true,
    }
}

/// One batch a row, so that keys meet across batches.
fn batches(rows: &[Row<'_>]) -> Batches {
    let batches: Vec<_> = rows.iter().map(|row| Ok(batch(&[*row]))).collect();
    Box::new(batches.into_iter())
}

fn changes(before: &[Row<'_>], after: &[Row<'_>], spec: ChangeSpec) -> Vec<String> {
    let changes = Changes::new(Some(batches(before)), Some(batches(after)), spec).unwrap();
    let mut found: Vec<String> = changes.flat_map(|batch| texts(&batch.unwrap())).collect();
    found.sort();
    found
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let text = |at: usize, row: usize| {
        let column = batch.column(at).as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let row = |row: usize| {
        let (before, after) = (text(2, row), text(3, row));
        let images = [before, after].map(Option::unwrap_or_default);
        format!("{} {}", text(0, row).unwrap(), images.join(">"))
    };
    (0..batch.num_rows()).map(row).collect()
}

#[test]
fn inserts_updates_and_deletes() {
    let before = [("a", "p", Some(1)), ("b", "p", Some(2)), ("c", "p", None)];
    let after = [("b", "p", Some(3)), ("c", "p", None), ("d", "p", Some(4))];
    assert_eq!(
        changes(&before, &after, spec()),
        [
            r#"d {"id":"a","n":1}>"#,
            r#"i >{"id":"d","n":4}"#,
            r#"u {"id":"b","n":2}>{"id":"b","n":3}"#,
        ]
    );
}

#[test]
fn a_record_that_moved_is_an_update_or_nothing() {
    let before = [("a", "p", Some(1)), ("b", "p", Some(2))];
    let after = [("a", "q", Some(1)), ("b", "q", Some(3))];
    assert_eq!(
        changes(&before, &after, spec()),
        [r#"u {"id":"b","n":2}>{"id":"b","n":3}"#]
    );
}

#[test]
fn a_key_of_two_places_is_two_records() {
    let before = [("a", "p", Some(1))];
    let after = [("a", "q", Some(9)), ("a", "p", Some(2))];
    assert_eq!(
        changes(&before, &after, spec()),
        [
            r#"i >{"id":"a","n":9}"#,
            r#"u {"id":"a","n":1}>{"id":"a","n":2}"#
        ]
    );
}

#[test]
fn of_repeated_keys_equal_rows_pair_first() {
    let before = [("a", "p", Some(1)), ("a", "p", Some(2))];
    let after = [
        ("a", "p", Some(3)),
        ("a", "p", Some(1)),
        ("a", "p", Some(4)),
    ];
    assert_eq!(
        changes(&before, &after, spec()),
        [
            r#"i >{"id":"a","n":4}"#,
            r#"u {"id":"a","n":2}>{"id":"a","n":3}"#
        ]
    );
}

#[test]
fn buckets_together_are_the_whole() {
    let keys: Vec<String> = (0..200).map(|n| format!("k{n}")).collect();
    let before: Vec<Row<'_>> = keys.iter().map(|k| (k.as_str(), "p", Some(1))).collect();
    let after: Vec<Row<'_>> = keys
        .iter()
        .skip(50)
        .map(|k| (k.as_str(), "q", None))
        .collect();
    let whole = changes(&before, &after, spec());
    let mut parts: Vec<String> = (0..3)
        .flat_map(|bucket| {
            let bucket = Some((bucket, 3));
            changes(&before, &after, ChangeSpec { bucket, ..spec() })
        })
        .collect();
    parts.sort();
    assert_eq!(whole.len(), 200);
    assert_eq!(parts, whole);
}

#[test]
fn only_wanted_keys_count() {
    let mut only = RowMatcher::default();
    only.add(StringArray::from(vec!["b"]), None).unwrap();
    let only = Some(only);
    let before = [("a", "p", Some(1)), ("b", "p", Some(2))];
    assert_eq!(
        changes(&before, &[], ChangeSpec { only, ..spec() }),
        [r#"d {"id":"b","n":2}>"#]
    );
}

#[test]
fn constants_stand_for_columns_and_types_are_cast() {
    let constants = vec![(
        "n".to_owned(),
        Arc::new(Int32Array::from(vec![7])) as ArrayRef,
    )];
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Utf8, true)]));
    let spec = ChangeSpec {
        schema,
        images: 1,
        constants,
        ..spec()
    };
    assert_eq!(
        changes(&[], &[("a", "p", Some(1))], spec),
        [r#"i >{"n":"7"}"#]
    );
}

#[test]
fn changed_columns_are_named_of_updates_only() {
    let before = batches(&[("a", "p", Some(1)), ("b", "p", Some(2))]);
    let changes = Changes::new(Some(before), Some(batches(&[("a", "p", None)])), spec()).unwrap();
    let found: Vec<RecordBatch> = changes.map(Result::unwrap).collect();
    let names = |at: usize| found[at].column(4).as_list::<i32>().clone();
    let of_update = names(0).value(0);
    assert_eq!(of_update.as_string::<i32>().value(0), "n");
    assert_eq!(of_update.len(), 1);
    assert!(names(1).is_null(0));
}

#[test]
fn a_missing_column_and_a_failing_side_are_errors() {
    let failing: Batches = Box::new(std::iter::once(Err(crate::SliceError::Schema("no".into()))));
    let mut changes = Changes::new(Some(failing), None, spec()).unwrap();
    assert!(changes.next().unwrap().is_err());
    let spec = ChangeSpec {
        schema: Arc::new(Schema::new(vec![Field::new("x", DataType::Utf8, true)])),
        images: 1,
        ..spec()
    };
    let mut changes = Changes::new(None, Some(batches(&[("a", "p", None)])), spec).unwrap();
    let message = changes.next().unwrap().unwrap_err().to_string();
    assert!(message.contains("no column x"), "{message}");
}
