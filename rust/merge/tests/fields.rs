//! Records merged field by field, one rule a test, and records that leave a map and come back.
#![cfg(test)]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, RecordBatch, StringArray,
    new_null_array,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, SchemaRef};
use pyhudi_format::log::OrderingValue;
use pyhudi_merge::{
    BaseOutcome, Encoder, FieldMap, FieldRules, Fill, KeyMap, MergeCounts, MergeError, MergeMode,
    MergeRules, Records, RowMerger, Written,
};

/// Key, ordering value, and the two columns of a row.
type Row<'a> = (&'a str, i64, Option<&'a str>, Option<i64>);

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("text", DataType::Utf8, true),
        Field::new("number", DataType::Int64, true),
    ]))
}

fn rules(mode: MergeMode, fill: Fill) -> FieldRules {
    FieldRules {
        order: MergeRules {
            mode,
            ordering: vec![DataType::Int64],
            null_ordering_loses: false,
        },
        fill,
        newest: Vec::new(),
        deletes_always_win: false,
        marks_deletes: None,
        combined: Vec::new(),
        starts_over: false,
        merger: None,
    }
}

fn map(rules: FieldRules) -> FieldMap {
    FieldMap::new(rules, &schema()).unwrap()
}

fn keys(rows: &[Row<'_>]) -> StringArray {
    rows.iter().map(|row| Some(row.0)).collect()
}

fn ordering(rows: &[Row<'_>]) -> Vec<ArrayRef> {
    vec![Arc::new(Int64Array::from_iter_values(
        rows.iter().map(|row| row.1),
    ))]
}

fn batch(rows: &[Row<'_>]) -> RecordBatch {
    let texts: StringArray = rows.iter().map(|row| row.2).collect();
    let numbers: Int64Array = rows.iter().map(|row| row.3).collect();
    RecordBatch::try_new(schema(), vec![Arc::new(texts), Arc::new(numbers)]).unwrap()
}

fn add(map: &mut FieldMap, rows: &[Row<'_>]) {
    add_written(map, rows, Written::All);
}

fn add_written(map: &mut FieldMap, rows: &[Row<'_>], written: Written) {
    let records = map.encoder().rows(keys(rows).into(), &ordering(rows), None);
    map.add(records.unwrap(), Some(batch(rows)), written)
        .unwrap();
}

fn add_delete(map: &mut FieldMap, key: &str, ordering: OrderingValue<'_>) {
    let records = map
        .encoder()
        .deletes(StringArray::from(vec![key]).into(), &[ordering]);
    map.add(records.unwrap(), None, Written::All).unwrap();
}

/// Text and number of a row.
type Values = (Option<String>, Option<i64>);

fn values(batch: &RecordBatch) -> Vec<Values> {
    let texts = batch.column(0).as_string::<i32>().iter();
    let numbers = batch.column(1).as_primitive::<Int64Type>().iter();
    texts.map(|t| t.map(str::to_owned)).zip(numbers).collect()
}

/// What the log side alone gives.
fn log_rows(map: &mut FieldMap) -> Vec<Values> {
    let batches = map.winners(100).unwrap();
    batches.iter().flat_map(values).collect()
}

/// Base rows that stay, and rows made of both sides.
fn merged(map: &mut FieldMap, rows: &[Row<'_>]) -> (Vec<bool>, Vec<Values>) {
    let (outcome, made) = map
        .merge_base(keys(rows), &ordering(rows), &batch(rows))
        .unwrap();
    let kept = match outcome {
        BaseOutcome::KeepAll => vec![true; rows.len()],
        BaseOutcome::Keep(mask) => mask.values().iter().collect(),
    };
    (kept, made.as_ref().map(values).unwrap_or_default())
}

fn row(text: &str, number: i64) -> Values {
    (Some(text.to_owned()), Some(number))
}

const ONLY_NUMBER: [bool; 2] = [false, true];

#[test]
fn a_column_that_the_winner_was_written_without_comes_from_the_loser() {
    for (newer, wanted) in [(9, row("old", 2)), (1, row("old", 1))] {
        let mut map = map(rules(MergeMode::EventTime, Fill::Absent));
        add(&mut map, &[("a", 5, Some("old"), Some(1))]);
        let partial = Written::Same(ONLY_NUMBER.to_vec());
        add_written(&mut map, &[("a", newer, None, Some(2))], partial);
        assert_eq!(log_rows(&mut map), [wanted]);
    }
}

#[test]
fn a_null_that_was_written_stays() {
    let mut map = map(rules(MergeMode::CommitTime, Fill::Absent));
    add(&mut map, &[("a", 0, Some("old"), Some(1))]);
    add(&mut map, &[("a", 0, None, Some(2))]);
    assert_eq!(log_rows(&mut map), [(None, Some(2))]);
}

#[test]
fn partial_records_gather_columns_until_a_base_row_has_the_rest() {
    let mut map = map(rules(MergeMode::CommitTime, Fill::Absent));
    let only_text = Written::Each(vec![vec![true, false]]);
    let only_number = Written::Same(ONLY_NUMBER.to_vec());
    add_written(&mut map, &[("a", 0, Some("new"), None)], only_text);
    add_written(
        &mut map,
        &[("b", 0, None, Some(7)), ("a", 0, None, Some(8))],
        only_number,
    );
    let base = [("a", 0, Some("x"), Some(1)), ("b", 0, Some("y"), Some(2))];
    let (kept, mut made) = merged(&mut map, &base);
    made.sort();
    assert_eq!(kept, [false, false]);
    assert_eq!(made, [row("new", 8), row("y", 7)]);
    assert_eq!(map.counts().updated, 2);
}

#[test]
fn defaults_of_the_winner_give_way_and_nulls_where_they_are_the_default() {
    let defaults: Vec<Option<ArrayRef>> = vec![
        None,
        Some(Arc::new(arrow::array::Int32Array::from(vec![7]))),
    ];
    let mut map = map(rules(MergeMode::EventTime, Fill::Defaults(defaults)));
    add(
        &mut map,
        &[
            ("a", 1, Some("old"), Some(1)),
            ("b", 1, Some("old"), Some(1)),
            ("c", 9, None, Some(7)),
        ],
    );
    add(
        &mut map,
        &[
            ("a", 1, None, Some(7)),
            ("b", 1, None, None),
            ("c", 1, Some("late"), Some(3)),
        ],
    );
    let null = (Some("old".to_owned()), None);
    assert_eq!(log_rows(&mut map), [row("old", 1), null, row("late", 3)]);
}

#[test]
fn nothing_equals_a_default_that_is_given_as_null() {
    let defaults = vec![None, Some(new_null_array(&DataType::Int64, 1))];
    let mut map = map(rules(MergeMode::CommitTime, Fill::Defaults(defaults)));
    add(&mut map, &[("a", 1, Some("old"), Some(1))]);
    add(&mut map, &[("a", 1, None, None)]);
    assert_eq!(log_rows(&mut map), [(Some("old".to_owned()), None)]);
}

#[test]
fn a_column_that_was_not_written_is_filled_whatever_its_default() {
    let defaults: Vec<Option<ArrayRef>> =
        vec![Some(Arc::new(StringArray::from(vec!["none"]))), None];
    let mut map = map(rules(MergeMode::CommitTime, Fill::Defaults(defaults)));
    add(&mut map, &[("a", 1, Some("old"), Some(1))]);
    let partial = Written::Same(ONLY_NUMBER.to_vec());
    add_written(&mut map, &[("a", 1, None, Some(2))], partial);
    assert_eq!(log_rows(&mut map), [row("old", 2)]);
}

#[test]
fn only_texts_equal_to_the_marker_give_way() {
    let mut map = map(rules(MergeMode::CommitTime, Fill::Marker("?".to_owned())));
    add(&mut map, &[("a", 0, Some("old"), Some(1))]);
    add(&mut map, &[("a", 0, Some("?"), None)]);
    assert_eq!(log_rows(&mut map), [(Some("old".to_owned()), None)]);
}

#[test]
fn a_marker_does_not_keep_absent_columns_from_being_filled() {
    let mut map = map(rules(MergeMode::CommitTime, Fill::Marker("?".to_owned())));
    add(&mut map, &[("a", 0, Some("old"), Some(1))]);
    let partial = Written::Same(ONLY_NUMBER.to_vec());
    add_written(&mut map, &[("a", 0, None, Some(2))], partial);
    assert_eq!(log_rows(&mut map), [row("old", 2)]);
    let partial = Written::Same(vec![true, false]);
    add_written(&mut map, &[("a", 0, Some("?"), None)], partial);
    assert_eq!(log_rows(&mut map), [row("old", 2)]);
}

#[test]
fn columns_of_the_newest_record_come_from_it_though_it_loses() {
    let mut own = rules(MergeMode::EventTime, Fill::Absent);
    own.newest = vec![0];
    let mut map = map(own);
    add(&mut map, &[("a", 5, Some("first"), Some(1))]);
    add(&mut map, &[("a", 2, Some("second"), Some(2))]);
    assert_eq!(log_rows(&mut map), [row("second", 1)]);
    let base = [("a", 9, Some("base"), Some(0))];
    assert_eq!(
        merged(&mut map, &base),
        (vec![false], vec![row("second", 0)])
    );
}

#[test]
fn a_late_delete_counts_only_where_deletes_always_win() {
    for always in [false, true] {
        let mut own = rules(MergeMode::EventTime, Fill::Absent);
        own.deletes_always_win = always;
        let mut map = map(own);
        add(&mut map, &[("a", 5, Some("x"), Some(1))]);
        add_delete(&mut map, "a", OrderingValue::Long(2));
        assert_eq!(log_rows(&mut map).is_empty(), always);
        let base = [("a", 9, Some("base"), Some(0))];
        let (kept, made) = merged(&mut map, &base);
        let wanted = if always { vec![] } else { vec![row("base", 0)] };
        assert_eq!((kept, made), (vec![false], wanted));
        assert_eq!(map.counts().deleted, u64::from(always));
    }
}

#[test]
fn what_comes_after_a_delete_stands_alone_where_deletes_always_win() {
    let mut own = rules(MergeMode::EventTime, Fill::Absent);
    own.deletes_always_win = true;
    let mut map = map(own);
    add(&mut map, &[("a", 5, Some("x"), Some(1))]);
    add_delete(&mut map, "a", OrderingValue::Long(9));
    add(&mut map, &[("a", 1, None, Some(2))]);
    assert_eq!(log_rows(&mut map), [(None, Some(2))]);
}

#[test]
fn records_of_one_key_in_one_batch_are_merged_one_after_the_other() {
    let mut map = map(rules(
        MergeMode::EventTime,
        Fill::Defaults(vec![None, None]),
    ));
    add(
        &mut map,
        &[
            ("a", 1, Some("1"), None),
            ("b", 1, Some("b"), None),
            ("a", 3, None, Some(3)),
            ("a", 2, Some("2"), Some(2)),
            ("a", 3, None, None),
        ],
    );
    assert_eq!(
        log_rows(&mut map),
        [row("1", 3), (Some("b".to_owned()), None)]
    );
}

struct Difference;

impl RowMerger for Difference {
    fn merge(
        &self,
        older: &RecordBatch,
        newer: &RecordBatch,
    ) -> Result<(RecordBatch, Option<BooleanArray>), MergeError> {
        let (a, b) = (older.column(1).as_primitive::<Int64Type>(), newer.column(1));
        let b = b.as_primitive::<Int64Type>();
        let left: Int64Array = a.iter().zip(b).map(|(a, b)| Some(a? - b?)).collect();
        let gone = left.iter().map(|n| Some(n == Some(0))).collect();
        let columns = vec![Arc::clone(newer.column(0)), Arc::new(left) as ArrayRef];
        Ok((RecordBatch::try_new(newer.schema(), columns)?, Some(gone)))
    }
}

#[test]
fn a_merger_sees_pairs_in_order_and_can_delete() {
    let mut own = rules(MergeMode::CommitTime, Fill::Absent);
    own.merger = Some(Arc::new(Difference));
    let mut map = map(own);
    add(
        &mut map,
        &[
            ("a", 0, Some("a1"), Some(10)),
            ("b", 0, Some("b1"), Some(4)),
        ],
    );
    add(
        &mut map,
        &[("a", 0, Some("a2"), Some(3)), ("b", 0, Some("b2"), Some(4))],
    );
    add(
        &mut map,
        &[("c", 0, Some("c1"), Some(1)), ("d", 0, Some("d1"), Some(6))],
    );
    let base = [
        ("b", 0, Some("b0"), Some(1)),
        ("c", 0, Some("c0"), Some(1)),
        ("d", 0, Some("d0"), Some(7)),
    ];
    let (kept, made) = merged(&mut map, &base);
    assert_eq!((kept, made), (vec![false; 3], vec![row("d1", 1)]));
    assert_eq!(log_rows(&mut map), [row("a2", 7)]);
    let counts = MergeCounts {
        updated: 1,
        deleted: 2,
        inserted: 1,
    };
    assert_eq!(map.counts(), counts);
}

/// Ordering values as they go to disk and come back.
fn through_columns(encoder: &Encoder, records: Records) -> Records {
    let ordering = records.ordering.and_then(|ordering| {
        let (values, default, null) = ordering.into_columns().unwrap();
        encoder.restore(&values, default, null)
    });
    Records {
        keys: records.keys,
        ordering,
        deleted: records.deleted,
    }
}

#[test]
fn what_stands_says_all_of_a_map() {
    let partial = || Written::Same(ONLY_NUMBER.to_vec());
    let filled = || {
        let mut map = map(rules(MergeMode::EventTime, Fill::Absent));
        add(
            &mut map,
            &[("a", 5, Some("a"), Some(1)), ("b", 5, Some("b"), Some(1))],
        );
        add_written(
            &mut map,
            &[("c", 5, None, Some(3)), ("a", 7, None, Some(4))],
            partial(),
        );
        add_delete(&mut map, "b", OrderingValue::Long(6));
        add_delete(&mut map, "d", OrderingValue::Int(0));
        map
    };
    let finish = |map: &mut FieldMap| {
        add(
            map,
            &[
                ("b", 5, Some("late"), Some(9)),
                ("d", 1, Some("again"), Some(9)),
            ],
        );
        let base = [
            ("a", 6, Some("base a"), Some(0)),
            ("b", 5, Some("base b"), Some(0)),
            ("c", 4, Some("base c"), Some(0)),
            ("d", 2, Some("base d"), Some(0)),
        ];
        (merged(map, &base), log_rows(map), map.counts())
    };
    for (batch_rows, by_columns) in [(1, false), (3, false), (3, true), (100, true)] {
        let whole = filled();
        let mut copy = if by_columns {
            map(rules(MergeMode::EventTime, Fill::Absent))
        } else {
            whole.emptied()
        };
        for part in whole.standing(batch_rows).unwrap() {
            let records = if by_columns {
                through_columns(copy.encoder(), part.records)
            } else {
                part.records
            };
            copy.add(records, Some(part.rows), part.written).unwrap();
        }
        // What stands of a copy stands as well: its ordering values were not made by it.
        assert_eq!(
            copy.standing(2).unwrap().len(),
            whole.standing(2).unwrap().len()
        );
        assert_eq!(finish(&mut copy), finish(&mut filled()));
    }
}

#[test]
fn what_stands_of_a_key_map_stands_in_the_next_one() {
    let order = rules(MergeMode::EventTime, Fill::Absent).order;
    let mut map = KeyMap::new(order).unwrap();
    let longs = |values: &[i64]| vec![Arc::new(Int64Array::from(values.to_vec())) as ArrayRef];
    let keys = |keys: &[&str]| StringArray::from(keys.to_vec());
    map.add_rows(keys(&["a", "b", "a"]), &longs(&[1, 5, 3]), None)
        .unwrap();
    map.add_deletes(keys(&["b"]), &[OrderingValue::Long(9)])
        .unwrap();
    for _ in 0..3 {
        let mut next = map.emptied();
        for standing in map.standing() {
            next.add(standing.records);
        }
        map = next;
    }
    let base = map.merge_base(keys(&["a", "b", "c"]), &longs(&[4, 8, 0]));
    let BaseOutcome::Keep(kept) = base.unwrap() else {
        panic!("b is deleted");
    };
    assert_eq!(
        kept.iter().collect::<Vec<_>>(),
        [Some(true), Some(false), Some(true)]
    );
    assert!(map.winners().iter().all(|wins| wins.count_set_bits() == 0));
}

#[test]
fn deletes_alone_stand_beside_nested_columns() {
    let list = DataType::new_list(DataType::Int32, true);
    let fields = vec![
        Field::new("list", list.clone(), true),
        Field::new(
            "inside",
            DataType::Struct(vec![Field::new("l", list, true)].into()),
            true,
        ),
    ];
    let schema = Arc::new(Schema::new(fields));
    let own = rules(MergeMode::CommitTime, Fill::Defaults(vec![None, None]));
    let mut map = FieldMap::new(own, &schema).unwrap();
    add_delete(&mut map, "a", OrderingValue::Null);
    add_delete(&mut map, "b", OrderingValue::Null);
    let standing = map.standing(10).unwrap();
    let [only] = standing.as_slice() else {
        panic!("one batch");
    };
    assert_eq!(only.rows.num_rows(), 2);
    assert_eq!(only.records.deleted.as_ref().unwrap().true_count(), 2);

    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None])]);
    let inside = new_null_array(schema.field(1).data_type(), 1);
    let row = RecordBatch::try_new(schema, vec![Arc::new(list), inside]).unwrap();
    let records = map
        .encoder()
        .rows(StringArray::from(vec!["c"]).into(), &[], None);
    map.add(records.unwrap(), Some(row.clone()), Written::All)
        .unwrap();
    let standing = map.standing(2).unwrap();
    let all = concat_batches(
        &standing[0].rows.schema(),
        standing.iter().map(|part| &part.rows),
    );
    assert_eq!(
        all.unwrap().column(0).slice(2, 1).as_ref(),
        row.column(0).as_ref()
    );
}
