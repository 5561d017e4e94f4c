//! Columns with rules in the map of records: what meets what, and what a delete ends.
#![cfg(test)]

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use pyhudi_format::log::OrderingValue;
use pyhudi_merge::{
    BaseOutcome, ColumnRule, FieldMap, FieldRules, Fill, MergeError, MergeMode, MergeRules, Written,
};

/// Key, ordering value, count (added up), name (of the record that wins).
type Row<'a> = (&'a str, i64, i64, &'a str);

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("count", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
    ]))
}

fn map() -> FieldMap {
    let rules = FieldRules {
        order: MergeRules {
            mode: MergeMode::EventTime,
            ordering: vec![DataType::Int64],
            null_ordering_loses: false,
        },
        fill: Fill::Absent,
        newest: Vec::new(),
        deletes_always_win: true,
        marks_deletes: None,
        combined: vec![(0, ColumnRule::Sum)],
        starts_over: true,
        merger: None,
    };
    FieldMap::new(rules, &schema()).unwrap()
}

fn keys(rows: &[Row<'_>]) -> StringArray {
    rows.iter().map(|row| Some(row.0)).collect()
}

fn ordering(rows: &[Row<'_>]) -> Vec<ArrayRef> {
    let values = rows.iter().map(|row| row.1);
    vec![Arc::new(Int64Array::from_iter_values(values))]
}

fn batch(rows: &[Row<'_>]) -> RecordBatch {
    let counts = Int64Array::from_iter_values(rows.iter().map(|row| row.2));
    let names = StringArray::from_iter_values(rows.iter().map(|row| row.3));
    RecordBatch::try_new(schema(), vec![Arc::new(counts), Arc::new(names)]).unwrap()
}

fn add(map: &mut FieldMap, rows: &[Row<'_>]) -> Result<(), MergeError> {
    let records = map.encoder().rows(keys(rows).into(), &ordering(rows), None);
    map.add(records?, Some(batch(rows)), Written::All)
}

fn delete(map: &mut FieldMap, key: &str) {
    let deletes = map.encoder().deletes(
        StringArray::from(vec![key]).into(),
        &[OrderingValue::Long(1)],
    );
    map.add(deletes.unwrap(), None, Written::All).unwrap();
}

fn values(batch: &RecordBatch) -> Vec<(i64, String)> {
    let counts = batch.column(0).as_primitive::<Int64Type>().values().iter();
    let names = batch.column(1).as_string::<i32>().iter().flatten();
    counts.copied().zip(names.map(str::to_owned)).collect()
}

/// The rows that the map and a base row of the key come to.
fn over(map: &mut FieldMap, base: Row<'_>) -> Vec<(i64, String)> {
    let (outcome, made) = map
        .merge_base(keys(&[base]), &ordering(&[base]), &batch(&[base]))
        .unwrap();
    let kept = match outcome {
        BaseOutcome::KeepAll => values(&batch(&[base])),
        BaseOutcome::Keep(_) => Vec::new(),
    };
    let made = made.iter().flat_map(values);
    let new = map.winners(10).unwrap();
    let new = new.iter().flat_map(values);
    kept.into_iter().chain(made).chain(new).collect()
}

/// The same records in a new map, as they come back from disk.
fn reload(map: &FieldMap) -> FieldMap {
    let mut loaded = map.emptied();
    for part in map.standing(1).unwrap() {
        loaded
            .add(part.records, Some(part.rows), part.written)
            .unwrap();
    }
    loaded
}

fn row(count: i64, name: &str) -> (i64, String) {
    (count, name.to_owned())
}

#[test]
fn rules_apply_whichever_record_wins() {
    let mut map = map();
    add(&mut map, &[("a", 5, 1, "five"), ("a", 4, 2, "four")]).unwrap();
    add(&mut map, &[("a", 3, 4, "three")]).unwrap();
    let mut loaded = reload(&map);
    assert_eq!(over(&mut map, ("a", 2, 8, "two")), [row(15, "five")]);
    assert_eq!(over(&mut loaded, ("a", 9, 8, "nine")), [row(15, "nine")]);
}

#[test]
fn a_record_after_a_delete_does_not_meet_older_ones() {
    let mut map = map();
    add(&mut map, &[("a", 5, 1, "five")]).unwrap();
    delete(&mut map, "a");
    add(&mut map, &[("a", 3, 2, "three")]).unwrap();
    add(&mut map, &[("a", 2, 4, "two")]).unwrap();
    let mut loaded = reload(&reload(&map));
    for map in [&mut map, &mut loaded] {
        assert_eq!(over(map, ("a", 9, 8, "nine")), [row(6, "three")]);
    }
}

#[test]
fn a_delete_removes_the_base_row_whatever_its_ordering_value() {
    let mut map = map();
    delete(&mut map, "a");
    let mut loaded = reload(&map);
    assert_eq!(over(&mut map, ("a", 9, 8, "nine")), []);
    assert_eq!(over(&mut loaded, ("a", 9, 8, "nine")), []);
}

#[test]
fn an_overflow_names_column_and_key() {
    let mut map = map();
    let rows = [("a", 1, 1, ""), ("b", 1, i64::MAX, "")];
    add(&mut map, &rows).unwrap();
    let error = add(&mut map, &[("a", 1, 1, ""), ("b", 1, 1, "")]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("column \"count\" of key \"b\""), "{text}");
}

#[test]
fn a_sum_with_a_deleted_row_cannot_overflow() {
    let mut map = map();
    delete(&mut map, "a");
    add(&mut map, &[("a", 1, 1, "new")]).unwrap();
    assert_eq!(over(&mut map, ("a", 9, i64::MAX, "old")), [row(1, "new")]);
}
