//! The ordering rules, one scenario a test. `properties` compares the key map with a plain model.
#![cfg(test)]

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray, Time32MillisecondArray,
};
use arrow::datatypes::{DataType, TimeUnit};
use pyhudi_format::log::OrderingValue;
use pyhudi_merge::{
    BaseOutcome, KeyMap, KeyTagger, MergeCounts, MergeMode, MergeRules, combine_rows,
};

fn rules(mode: MergeMode, ordering: &[DataType]) -> MergeRules {
    MergeRules {
        mode,
        ordering: ordering.to_vec(),
        null_ordering_loses: false,
    }
}

fn event_time() -> KeyMap {
    KeyMap::new(rules(MergeMode::EventTime, &[DataType::Int64])).unwrap()
}

fn longs(values: &[i64]) -> Vec<ArrayRef> {
    vec![Arc::new(Int64Array::from(values.to_vec()))]
}

fn keys(keys: &[&str]) -> StringArray {
    StringArray::from(keys.to_vec())
}

fn kept(outcome: BaseOutcome, rows: usize) -> Vec<bool> {
    match outcome {
        BaseOutcome::KeepAll => vec![true; rows],
        BaseOutcome::Keep(mask) => mask.values().iter().collect(),
    }
}

fn wins(map: &mut KeyMap) -> Vec<Vec<bool>> {
    map.winners()
        .iter()
        .map(|mask| mask.iter().collect())
        .collect()
}

#[test]
fn a_writers_delete_takes_every_base_row_of_its_key() {
    for (writes, left) in [(true, [false, true, false]), (false, [false, true, true])] {
        let mut rules = rules(MergeMode::CommitTime, &[]);
        rules.null_ordering_loses = writes;
        let mut map = KeyMap::new(rules).unwrap();
        map.add_deletes(keys(&["a"]), &[OrderingValue::Int(0)])
            .unwrap();
        let outcome = map.merge_base(keys(&["a", "b", "a"]), &[]).unwrap();
        assert_eq!(kept(outcome, 3), left);
    }
}

#[test]
fn a_later_event_replaces_the_base_row() {
    let mut map = event_time();
    map.add_rows(keys(&["a"]), &longs(&[2]), None).unwrap();
    assert_eq!(
        kept(
            map.merge_base(keys(&["a", "b"]), &longs(&[1, 1])).unwrap(),
            2
        ),
        [false, true]
    );
    assert_eq!(wins(&mut map), [[true]]);
    assert_eq!(
        map.counts(),
        MergeCounts {
            updated: 1,
            deleted: 0,
            inserted: 0
        }
    );
}

#[test]
fn a_late_event_leaves_the_base_row() {
    let mut map = event_time();
    map.add_rows(keys(&["a"]), &longs(&[1]), None).unwrap();
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &longs(&[2])).unwrap(), 1),
        [true]
    );
    assert_eq!(wins(&mut map), [[false]]);
    assert_eq!(map.counts(), MergeCounts::default());
}

#[test]
fn ties_go_to_the_newer_record() {
    let mut map = event_time();
    map.add_rows(keys(&["a"]), &longs(&[1]), None).unwrap();
    map.add_rows(keys(&["a"]), &longs(&[1]), None).unwrap();
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &longs(&[1])).unwrap(), 1),
        [false]
    );
    assert_eq!(wins(&mut map), [[false], [true]]);
}

#[test]
fn an_event_time_delete_older_than_the_base_row_does_nothing() {
    let mut map = event_time();
    map.add_deletes(keys(&["a"]), &[OrderingValue::Long(1)])
        .unwrap();
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &longs(&[2])).unwrap(), 1),
        [true]
    );
}

#[test]
fn a_delete_without_ordering_value_beats_everything_before_it() {
    for value in [OrderingValue::Int(0), OrderingValue::Null] {
        let mut map = event_time();
        map.add_rows(keys(&["a"]), &longs(&[5]), None).unwrap();
        map.add_deletes(keys(&["a"]), &[value]).unwrap();
        assert_eq!(
            kept(map.merge_base(keys(&["a"]), &longs(&[9])).unwrap(), 1),
            [false]
        );
        assert_eq!(map.counts().deleted, 1);
        assert_eq!(wins(&mut map), [vec![false], vec![false]]);
    }
}

#[test]
fn a_record_after_such_a_delete_stands_but_can_still_lose_to_the_base_row() {
    let mut map = event_time();
    map.add_deletes(keys(&["a"]), &[OrderingValue::Int(0)])
        .unwrap();
    map.add_rows(keys(&["a"]), &longs(&[1]), None).unwrap();
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &longs(&[2])).unwrap(), 1),
        [true]
    );
    assert_eq!(wins(&mut map), [vec![false], vec![false]]);
}

#[test]
fn long_zero_is_a_value_and_integer_zero_is_none() {
    let mut map = event_time();
    map.add_deletes(keys(&["a"]), &[OrderingValue::Long(0)])
        .unwrap();
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &longs(&[1])).unwrap(), 1),
        [true]
    );
}

#[test]
fn a_delete_with_a_value_does_not_weaken_one_without() {
    let mut map = event_time();
    map.add_deletes(keys(&["a"]), &[OrderingValue::Int(0)])
        .unwrap();
    map.add_deletes(keys(&["a"]), &[OrderingValue::Long(1)])
        .unwrap();
    let deleted = BooleanArray::from(vec![true]);
    map.add_rows(keys(&["a"]), &longs(&[2]), Some(&deleted))
        .unwrap();
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &longs(&[9])).unwrap(), 1),
        [false]
    );
}

#[test]
fn a_delete_whose_value_is_of_another_class_wins() {
    let mut map = event_time();
    map.add_deletes(keys(&["a"]), &[OrderingValue::String("1".into())])
        .unwrap();
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &longs(&[5])).unwrap(), 1),
        [false]
    );
}

#[test]
fn a_row_marked_deleted_is_a_delete_with_its_ordering_value() {
    let mut map = event_time();
    let deleted = BooleanArray::from(vec![Some(true), Some(true), None]);
    map.add_rows(keys(&["a", "b", "c"]), &longs(&[3, 1, 3]), Some(&deleted))
        .unwrap();
    let outcome = map
        .merge_base(keys(&["a", "b", "c"]), &longs(&[2, 2, 2]))
        .unwrap();
    assert_eq!(kept(outcome, 3), [false, true, false]);
    assert_eq!(wins(&mut map), [[false, false, true]]);
}

#[test]
fn a_null_ordering_value_counts_as_zero() {
    let mut map = KeyMap::new(rules(MergeMode::EventTime, &[DataType::Int32])).unwrap();
    let null: ArrayRef = Arc::new(Int32Array::from(vec![None]));
    map.add_rows(keys(&["a"]), &[null], None).unwrap();
    let minus: ArrayRef = Arc::new(Int32Array::from(vec![-1]));
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &[minus]).unwrap(), 1),
        [false]
    );
}

#[test]
fn a_null_time_counts_as_midnight() {
    let kind = DataType::Time32(TimeUnit::Millisecond);
    let mut map = KeyMap::new(rules(MergeMode::EventTime, &[kind])).unwrap();
    let null: ArrayRef = Arc::new(Time32MillisecondArray::from(vec![None]));
    map.add_rows(keys(&["a"]), &[null], None).unwrap();
    let noon: ArrayRef = Arc::new(Time32MillisecondArray::from(vec![43_200_000]));
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &[noon]).unwrap(), 1),
        [true]
    );
}

#[test]
fn copy_on_write_lets_anything_beat_a_null() {
    let mut rules = rules(MergeMode::EventTime, &[DataType::Int64]);
    rules.null_ordering_loses = true;
    let mut map = KeyMap::new(rules).unwrap();
    map.add_rows(keys(&["a"]), &longs(&[-5]), None).unwrap();
    let null: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &[null]).unwrap(), 1),
        [false]
    );
}

#[test]
fn several_ordering_fields_compare_one_after_the_other() {
    let kinds = [DataType::Int64, DataType::Utf8];
    let mut map = KeyMap::new(rules(MergeMode::EventTime, &kinds)).unwrap();
    let fields = |ts: i64, seq: &str| -> Vec<ArrayRef> {
        vec![
            Arc::new(Int64Array::from(vec![ts])),
            Arc::new(StringArray::from(vec![seq])),
        ]
    };
    map.add_rows(keys(&["a"]), &fields(1, "b"), None).unwrap();
    map.add_rows(keys(&["a"]), &fields(1, "a"), None).unwrap();
    assert_eq!(wins(&mut map), [[true], [false]]);
    let both = OrderingValue::Array(vec![
        OrderingValue::Long(1),
        OrderingValue::String("c".into()),
    ]);
    map.add_deletes(keys(&["a"]), &[both]).unwrap();
    assert_eq!(wins(&mut map), [[false], [false], [false]]);
}

#[test]
fn commit_time_takes_the_last_whatever_its_value() {
    let mut map = KeyMap::new(rules(MergeMode::CommitTime, &[DataType::Int64])).unwrap();
    map.add_rows(keys(&["a", "b"]), &longs(&[1, 1]), None)
        .unwrap();
    map.add_deletes(keys(&["b"]), &[OrderingValue::Long(0)])
        .unwrap();
    let outcome = map.merge_base(keys(&["a", "b"]), &longs(&[9, 9])).unwrap();
    assert_eq!(kept(outcome, 2), [false, false]);
}

#[test]
fn each_key_is_merged_with_one_base_row() {
    let mut map = event_time();
    map.add_rows(keys(&["a"]), &longs(&[2]), None).unwrap();
    let outcome = map.merge_base(keys(&["a", "a"]), &longs(&[1, 1])).unwrap();
    assert_eq!(kept(outcome, 2), [false, true]);
    assert_eq!(
        kept(map.merge_base(keys(&["a"]), &longs(&[1])).unwrap(), 1),
        [true]
    );
}

#[test]
fn a_null_key_is_refused() {
    let mut map = event_time();
    let error = map.add_rows(StringArray::from(vec![None::<&str>]), &longs(&[1]), None);
    assert!(error.unwrap_err().to_string().contains("row 0"));
}

#[test]
fn combining_keeps_one_row_a_key() {
    let rows = keys(&["a", "b", "a"]);
    let by_time = rules(MergeMode::EventTime, &[DataType::Int64]);
    let mask = combine_rows(by_time, rows.clone(), &longs(&[2, 1, 1]), None).unwrap();
    assert_eq!(mask.iter().collect::<Vec<_>>(), [true, true, false]);
    let by_commit = rules(MergeMode::CommitTime, &[]);
    let mask = combine_rows(by_commit, rows, &[], None).unwrap();
    assert_eq!(mask.iter().collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn combining_takes_a_delete_without_ordering_value_by_its_place() {
    let by_time = rules(MergeMode::EventTime, &[DataType::Int32]);
    let ordering: [ArrayRef; 1] = [Arc::new(Int32Array::from(vec![5, 0, 0, -3]))];
    let deleted = BooleanArray::from(vec![false, true, true, false]);
    let rows = keys(&["a", "a", "b", "b"]);
    let mask = combine_rows(by_time, rows, &ordering, Some(&deleted)).unwrap();
    assert_eq!(mask.iter().collect::<Vec<_>>(), [false, true, false, true]);
}

#[test]
fn tags_every_row_of_a_key_with_the_first_location() {
    let tagger = KeyTagger::new(keys(&["a", "b", "a", "c"]));
    assert_eq!(tagger.probe(&keys(&["a", "x"]), 2), 2);
    assert_eq!(tagger.probe(&keys(&["a", "c"]), 1), 1);
    let locations: Vec<_> = tagger.locations().iter().collect();
    assert_eq!(locations, [Some(1), None, Some(1), Some(1)]);
}
