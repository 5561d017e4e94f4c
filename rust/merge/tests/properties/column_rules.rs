//! Merge rules of columns: a fold over the records of a key since its last delete, in the order of commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Float64Type, Int32Type, Int64Type, Schema, SchemaRef};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use pyhudi_merge::{ColumnRule, FieldMap, FieldRules, Fill, MergeMode, MergeRules, Written};

use crate::history::{Step, add_deletes, history, kept, keys, ordering, reloaded};
use crate::records::{Row, Weight};

/// The values of a row.
#[derive(Debug, Clone, Default, PartialEq)]
struct Cells {
    sum: Option<i64>,
    max: Option<f64>,
    min: Option<&'static str>,
    first: Option<&'static str>,
    last: Option<i64>,
    append: Option<Vec<Option<i32>>>,
    union: Option<Vec<Option<i32>>>,
    /// Without a rule: that of the row that wins.
    name: Option<&'static str>,
}

const RULES: [&str; 7] = [
    "sum",
    "max",
    "min",
    "first",
    "last_non_null",
    "append",
    "union",
];

fn cells() -> impl Strategy<Value = Cells> + Clone {
    let number = || option::of(-100..100_i64);
    let text = || {
        option::of(prop::sample::select(vec![
            "",
            "Z",
            "a",
            "ä",
            "\u{E000}",
            "\u{1F600}",
        ]))
    };
    let float = option::of(prop::sample::select(vec![-1.5, 0.0, 2.0, f64::INFINITY]));
    let list = || option::of(vec(option::of(0..4_i32), 0..4));
    (
        number(),
        float,
        text(),
        text(),
        number(),
        list(),
        list(),
        text(),
    )
        .prop_map(|(sum, max, min, first, last, append, union, name)| Cells {
            sum,
            max,
            min,
            first,
            last,
            append,
            union,
            name,
        })
}

fn schema() -> SchemaRef {
    let list = DataType::new_list(DataType::Int32, true);
    let kinds = [
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8,
        DataType::Utf8,
        DataType::Int64,
        list.clone(),
        list,
        DataType::Utf8,
    ];
    let names = RULES.into_iter().chain(["name"]);
    let fields: Vec<_> = names
        .zip(kinds)
        .map(|(name, kind)| Field::new(name, kind, true))
        .collect();
    Arc::new(Schema::new(fields))
}

fn batch(rows: &[Row<Cells>]) -> RecordBatch {
    let cells = || rows.iter().map(|row| &row.values);
    let list = |of: fn(&Cells) -> &Option<Vec<Option<i32>>>| {
        ListArray::from_iter_primitive::<Int32Type, _, _>(cells().map(|cells| of(cells).clone()))
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(cells().map(|cells| cells.sum).collect::<Int64Array>()),
        Arc::new(cells().map(|cells| cells.max).collect::<Float64Array>()),
        Arc::new(cells().map(|cells| cells.min).collect::<StringArray>()),
        Arc::new(cells().map(|cells| cells.first).collect::<StringArray>()),
        Arc::new(cells().map(|cells| cells.last).collect::<Int64Array>()),
        Arc::new(list(|cells| &cells.append)),
        Arc::new(list(|cells| &cells.union)),
        Arc::new(cells().map(|cells| cells.name).collect::<StringArray>()),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

/// A row as text: floating numbers and lists have no order of their own.
fn texts(batch: &RecordBatch) -> Vec<String> {
    let number = |at: usize, row: usize| {
        let numbers = batch.column(at).as_primitive::<Int64Type>();
        numbers.is_valid(row).then(|| numbers.value(row))
    };
    let text = |at: usize, row: usize| {
        let texts = batch.column(at).as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row))
    };
    let list = |at: usize, row: usize| {
        let lists = batch.column(at).as_list::<i32>();
        lists.is_valid(row).then(|| {
            lists
                .value(row)
                .as_primitive::<Int32Type>()
                .iter()
                .collect::<Vec<_>>()
        })
    };
    let floats = batch.column(1).as_primitive::<Float64Type>();
    let row = |row: usize| {
        let float = floats.is_valid(row).then(|| floats.value(row));
        format!(
            "{:?}",
            (
                number(0, row),
                float,
                text(2, row),
                text(3, row),
                number(4, row),
                list(5, row),
                list(6, row),
                text(7, row)
            )
        )
    };
    (0..batch.num_rows()).map(row).collect()
}

fn expected_text(cells: &Cells) -> String {
    let Cells {
        sum,
        max,
        min,
        first,
        last,
        append,
        union,
        name,
    } = cells;
    format!("{:?}", (sum, max, min, first, last, append, union, name))
}

fn rules(mode: MergeMode) -> FieldRules {
    let combined = RULES
        .iter()
        .map(|name| ColumnRule::named(name).unwrap())
        .enumerate();
    FieldRules {
        order: MergeRules {
            mode,
            ordering: vec![DataType::Int64],
            null_ordering_loses: false,
        },
        fill: Fill::Absent,
        newest: Vec::new(),
        deletes_always_win: true,
        marks_deletes: None,
        combined: combined.collect(),
        starts_over: true,
        merger: None,
    }
}

fn merged(rules: &FieldRules, log: &[Step<Cells>], base: &[Row<Cells>]) -> Vec<String> {
    let mut map = FieldMap::new(rules.clone(), &schema()).unwrap();
    for step in log {
        match step {
            Step::Rows(rows) => {
                let times = ordering(&rules.order, rows.iter().map(|row| row.ts));
                let records =
                    map.encoder()
                        .rows(keys(rows.iter().map(|row| row.key)).into(), &times, None);
                map.add(records.unwrap(), Some(batch(rows)), Written::All)
                    .unwrap();
            }
            Step::Deletes(deletes) => add_deletes(&mut map, &rules.order, deletes),
            Step::Reload => map = reloaded(&map),
        }
    }
    let times = ordering(&rules.order, base.iter().map(|row| row.ts));
    let (outcome, made) = map
        .merge_base(keys(base.iter().map(|row| row.key)), &times, &batch(base))
        .unwrap();
    let stays = kept(outcome, base.len());
    let kept: Vec<_> = base
        .iter()
        .zip(stays)
        .filter(|(_, stays)| *stays)
        .map(|(row, _)| row.clone())
        .collect();
    let new = map.winners(2).unwrap();
    let mut rows: Vec<String> = made
        .iter()
        .chain(&new)
        .chain([&batch(&kept)])
        .flat_map(texts)
        .collect();
    rows.sort();
    rows
}

/// The newer value where the older one is null, and the other way round; else both by a rule.
fn both<T: Clone>(older: Option<&T>, newer: Option<&T>, rule: impl Fn(&T, &T) -> T) -> Option<T> {
    match (older, newer) {
        (Some(older), Some(newer)) => Some(rule(older, newer)),
        (older, newer) => newer.or(older).cloned(),
    }
}

fn fold(older: &Cells, newer: &Cells, newer_wins: bool) -> Cells {
    let join = |older: &Vec<Option<i32>>, newer: &Vec<Option<i32>>| {
        [older.clone(), newer.clone()].concat()
    };
    let unite = |older: &Vec<Option<i32>>, newer: &Vec<Option<i32>>| {
        let mut distinct = Vec::new();
        for element in older.iter().chain(newer) {
            if !distinct.contains(element) {
                distinct.push(*element);
            }
        }
        distinct
    };
    Cells {
        sum: both(older.sum.as_ref(), newer.sum.as_ref(), |older, newer| {
            older + newer
        }),
        max: both(older.max.as_ref(), newer.max.as_ref(), |older, newer| {
            older.max(*newer)
        }),
        min: both(older.min.as_ref(), newer.min.as_ref(), |older, newer| {
            if newer.as_bytes() < older.as_bytes() {
                newer
            } else {
                older
            }
        }),
        first: both(older.first.as_ref(), newer.first.as_ref(), |older, _| older),
        last: both(older.last.as_ref(), newer.last.as_ref(), |_, newer| *newer),
        append: both(older.append.as_ref(), newer.append.as_ref(), join),
        union: both(older.union.as_ref(), newer.union.as_ref(), unite),
        name: if newer_wins { newer.name } else { older.name },
    }
}

/// From the oldest record to the newest: base row first, and anew after each delete.
fn expected(rules: &FieldRules, log: &[Step<Cells>], base: &[Row<Cells>]) -> Vec<String> {
    let mut standing: BTreeMap<u8, (Weight, Cells)> = BTreeMap::new();
    let put = |standing: &mut BTreeMap<u8, (Weight, Cells)>, row: &Row<Cells>| {
        let weight = Weight::of_row(row);
        let folded = match standing.get(&row.key) {
            None => (weight, row.values.clone()),
            Some((older, cells)) => {
                let newer_wins = weight.beats(*older, &rules.order);
                (
                    if newer_wins { weight } else { *older },
                    fold(cells, &row.values, newer_wins),
                )
            }
        };
        standing.insert(row.key, folded);
    };
    for row in base {
        put(&mut standing, row);
    }
    for step in log {
        match step {
            Step::Rows(rows) => rows.iter().for_each(|row| put(&mut standing, row)),
            Step::Deletes(deletes) => deletes
                .iter()
                .for_each(|(key, _)| drop(standing.remove(key))),
            Step::Reload => {}
        }
    }
    let mut rows: Vec<String> = standing
        .values()
        .map(|(_, cells)| expected_text(cells))
        .collect();
    rows.sort();
    rows
}

proptest! {
    #[test]
    fn rules_agree_with_a_fold_from_the_oldest_record_on(
        is_event_time in any::<bool>(),
        (log, base) in history(cells(), false),
    ) {
        let mode = if is_event_time {
            MergeMode::EventTime
        } else {
            MergeMode::CommitTime
        };
        // The same key twice in base rows is no older record.
        let base: BTreeMap<u8, _> = base.into_iter().map(|row| (row.key, row)).collect();
        let base: Vec<_> = base.into_values().collect();
        let rules = rules(mode);
        prop_assert_eq!(merged(&rules, &log, &base), expected(&rules, &log, &base));
    }
}
