//! Histories of the log side of a file slice.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray};
use arrow::compute::cast;
use proptest::collection::vec;
use proptest::prelude::*;
use pyhudi_merge::{BaseOutcome, FieldMap, MergeRules, Written};

use crate::records::{DeleteValue, Row, delete, delete_values, key_text, row};

/// Few keys, so that most records meet another one.
pub const KEYS: Range<u8> = 0..5;

/// What a log side is made of, oldest first.
#[derive(Debug, Clone)]
pub enum Step<V> {
    Rows(Vec<Row<V>>),
    /// Keys of a delete block with their ordering values.
    Deletes(Vec<(u8, DeleteValue)>),
    /// What stands is added to a new map, as when memory is short.
    Reload,
}

pub fn keys(keys: impl Iterator<Item = u8>) -> StringArray {
    keys.map(|key| Some(key_text(key))).collect()
}

pub fn deleted<V>(rows: &[Row<V>]) -> BooleanArray {
    rows.iter().map(|row| row.is_deleted).collect()
}

pub fn ordering(rules: &MergeRules, values: impl Iterator<Item = Option<i64>>) -> Vec<ArrayRef> {
    let values: ArrayRef = Arc::new(values.collect::<Int64Array>());
    rules
        .ordering
        .iter()
        .map(|kind| cast(&values, kind).unwrap())
        .collect()
}

/// Adds a delete block to the log side.
pub fn add_deletes(map: &mut FieldMap, rules: &MergeRules, deletes: &[(u8, DeleteValue)]) {
    let keys = keys(deletes.iter().map(|(key, _)| *key));
    let records = map
        .encoder()
        .deletes(keys.into(), &delete_values(rules, deletes));
    map.add(records.unwrap(), None, Written::All).unwrap();
}

/// A new map of what stands in this one.
pub fn reloaded(map: &FieldMap) -> FieldMap {
    let mut new = map.emptied();
    for part in map.standing(2).unwrap() {
        new.add(part.records, Some(part.rows), part.written)
            .unwrap();
    }
    new
}

pub fn kept(outcome: BaseOutcome, rows: usize) -> Vec<bool> {
    match outcome {
        BaseOutcome::KeepAll => vec![true; rows],
        BaseOutcome::Keep(mask) => mask.values().iter().collect(),
    }
}

/// Log steps of rows with such values, and base rows, in which a key may be there twice.
pub fn history<V: Clone + std::fmt::Debug>(
    values: impl Strategy<Value = V> + Clone + 'static,
    has_deletes: bool,
) -> impl Strategy<Value = (Vec<Step<V>>, Vec<Row<V>>)> {
    let step = prop_oneof![
        5 => vec(row(KEYS, values.clone(), has_deletes), 0..7).prop_map(Step::Rows),
        2 => vec(delete(KEYS), 0..4).prop_map(Step::Deletes),
        1 => Just(Step::Reload),
    ];
    (vec(step, 0..6), vec(row(KEYS, values, false), 0..6))
}
