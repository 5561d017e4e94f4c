//! Rows made of several records: partial updates, defaults, markers, columns of the newest record.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use pyhudi_merge::{FieldMap, FieldRules, Fill, MergeRules, Written};

use crate::history::{Step, add_deletes, deleted, history, kept, keys, ordering, reloaded};
use crate::records::{Row, Weight, rules};

const COLUMNS: usize = 3;

/// The values of a row, and the columns that it was written with.
#[derive(Debug, Clone, PartialEq)]
struct Cells {
    values: [Option<&'static str>; COLUMNS],
    written: [bool; COLUMNS],
}

fn cells() -> impl Strategy<Value = Cells> + Clone {
    let value = prop_oneof![
        Just(None),
        Just(Some("a")),
        Just(Some("b")),
        Just(Some("?")),
        Just(Some("d"))
    ];
    let written = prop_oneof![2 => Just([true; COLUMNS]), 1 => any::<[bool; COLUMNS]>()];
    (prop::array::uniform3(value), written).prop_map(|(mut values, written)| {
        for (value, is_written) in values.iter_mut().zip(written) {
            *value = value.filter(|_| is_written);
        }
        Cells { values, written }
    })
}

fn schema() -> SchemaRef {
    let fields = ["x", "y", "z"].map(|name| Field::new(name, DataType::Utf8, true));
    Arc::new(Schema::new(fields.to_vec()))
}

fn batch(rows: &[Row<Cells>]) -> RecordBatch {
    let column = |at: usize| {
        Arc::new(
            rows.iter()
                .map(|row| row.values.values[at])
                .collect::<StringArray>(),
        ) as ArrayRef
    };
    RecordBatch::try_new(schema(), (0..COLUMNS).map(column).collect()).unwrap()
}

/// The rows of batches, in an order of their own.
fn sorted<'b>(batches: impl IntoIterator<Item = &'b RecordBatch>) -> Vec<Vec<Option<String>>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let value = |column: &ArrayRef| {
                column
                    .is_valid(row)
                    .then(|| column.as_string::<i32>().value(row).to_owned())
            };
            rows.push(batch.columns().iter().map(value).collect());
        }
    }
    rows.sort();
    rows
}

fn fill() -> impl Strategy<Value = Fill> {
    let default = prop_oneof![
        Just(None),
        Just(Some(
            Arc::new(StringArray::from(vec![Some("d")])) as ArrayRef
        )),
        Just(Some(
            Arc::new(StringArray::from(vec![None::<&str>])) as ArrayRef
        )),
    ];
    prop_oneof![
        2 => Just(Fill::Absent),
        1 => vec(default, COLUMNS).prop_map(Fill::Defaults),
        1 => Just(Fill::Marker("?".to_owned())),
        1 => Just(Fill::NewerMarker("?".to_owned())),
    ]
}

/// Order, fill, columns of the newest record, and whether deletes always win.
type Settings = (MergeRules, Fill, Vec<usize>, bool);

fn settings() -> impl Strategy<Value = Settings> {
    let newest = subsequence((0..COLUMNS).collect::<Vec<_>>(), 0..COLUMNS);
    (rules(), fill(), newest, any::<bool>())
}

fn field_rules((order, fill, newest, deletes_always_win): Settings) -> FieldRules {
    FieldRules {
        order,
        fill,
        newest,
        deletes_always_win,
        marks_deletes: None,
        combined: Vec::new(),
        starts_over: false,
        merger: None,
    }
}

/// Base rows that stay, and the rows that are made or given out.
type Outcome = (Vec<bool>, Vec<Vec<Option<String>>>);

fn merged(rules: &FieldRules, log: &[Step<Cells>], base: &[Row<Cells>]) -> Outcome {
    let mut map = FieldMap::new(rules.clone(), &schema()).unwrap();
    for step in log {
        match step {
            Step::Rows(rows) => {
                let times = ordering(&rules.order, rows.iter().map(|row| row.ts));
                let keys = keys(rows.iter().map(|row| row.key));
                let records = map
                    .encoder()
                    .rows(keys.into(), &times, Some(deleted(rows)))
                    .unwrap();
                let written =
                    Written::Each(rows.iter().map(|row| row.values.written.to_vec()).collect());
                map.add(records, Some(batch(rows)), written).unwrap();
            }
            Step::Deletes(deletes) => add_deletes(&mut map, &rules.order, deletes),
            Step::Reload => map = reloaded(&map),
        }
    }
    let times = ordering(&rules.order, base.iter().map(|row| row.ts));
    let keys = keys(base.iter().map(|row| row.key));
    let (outcome, made) = map.merge_base(keys, &times, &batch(base)).unwrap();
    let new = map.winners(2).unwrap();
    (kept(outcome, base.len()), sorted(made.iter().chain(&new)))
}

/// The record of a key: none of a delete has values.
type Record = (Weight, Option<Cells>);

/// The values of the winner, but for those that the rules take from the loser.
fn meet(rules: &FieldRules, older: &Cells, newer: &Cells, newer_wins: bool) -> Cells {
    let (winner, loser) = if newer_wins {
        (newer, older)
    } else {
        (older, newer)
    };
    let mut made = winner.clone();
    for at in 0..COLUMNS {
        let value = winner.values[at];
        let is_unsaid = match &rules.fill {
            Fill::Absent => false,
            Fill::Defaults(defaults) => match &defaults[at] {
                None => value.is_none(),
                Some(default) => {
                    default.is_valid(0) && value == Some(default.as_string::<i32>().value(0))
                }
            },
            Fill::Marker(marker) => value == Some(marker),
            Fill::NewerMarker(marker) => newer_wins && value == Some(marker),
        };
        let is_absent = !winner.written[at] && loser.written[at];
        if rules.newest.contains(&at) {
            made.values[at] = newer.values[at];
        } else if is_unsaid || is_absent {
            made.values[at] = loser.values[at];
        }
        made.written[at] |= loser.written[at];
    }
    made
}

fn fold(rules: &FieldRules, older: &Record, newer: Record) -> Record {
    let one_deleted = older.1.is_none() || newer.1.is_none();
    let newer_wins =
        (rules.deletes_always_win && one_deleted) || newer.0.beats(older.0, &rules.order);
    let weight = if newer_wins { newer.0 } else { older.0 };
    match (&older.1, &newer.1) {
        (Some(old), Some(new)) => (weight, Some(meet(rules, old, new, newer_wins))),
        _ if newer_wins => newer,
        _ => older.clone(),
    }
}

fn expected(rules: &FieldRules, log: &[Step<Cells>], base: &[Row<Cells>]) -> Outcome {
    let mut standing: BTreeMap<u8, Record> = BTreeMap::new();
    let records = log.iter().flat_map(|step| match step {
        Step::Rows(rows) => {
            let record = |row: &Row<Cells>| {
                let weight = Weight::of_row(row);
                (
                    row.key,
                    (weight, (!weight.is_deleted).then(|| row.values.clone())),
                )
            };
            rows.iter().map(record).collect()
        }
        Step::Deletes(deletes) => deletes
            .iter()
            .map(|(key, value)| (*key, (Weight::of_delete(*value), None)))
            .collect(),
        Step::Reload => Vec::new(),
    });
    for (key, newer) in records {
        let folded = match standing.get(&key) {
            Some(older) => fold(rules, older, newer),
            None => newer,
        };
        standing.insert(key, folded);
    }
    let order: &MergeRules = &rules.order;
    let (mut met, mut rows) = (Vec::new(), Vec::new());
    let mut stay = Vec::new();
    for row in base {
        let Some((weight, cells)) = standing.get(&row.key) else {
            stay.push(true);
            continue;
        };
        let is_first = !met.contains(&row.key);
        met.push(row.key);
        let takes_all = order.null_ordering_loses && cells.is_none();
        let log_wins =
            (rules.deletes_always_win && cells.is_none()) || weight.beats_base(row, order);
        stay.push(match cells {
            _ if !is_first && !takes_all => true,
            None => !log_wins,
            Some(cells) => {
                let base = Cells {
                    written: [true; COLUMNS],
                    ..row.values.clone()
                };
                rows.push(meet(rules, &base, cells, log_wins));
                false
            }
        });
    }
    let new = standing.iter().filter(|(key, _)| !met.contains(key));
    rows.extend(new.filter_map(|(_, (_, cells))| cells.clone()));
    let texts = |cells: &Cells| {
        cells
            .values
            .iter()
            .map(|value| value.map(str::to_owned))
            .collect()
    };
    let mut rows: Vec<Vec<Option<String>>> = rows.iter().map(texts).collect();
    rows.sort();
    (stay, rows)
}

proptest! {
    #[test]
    fn a_field_map_agrees_with_a_plain_map(
        settings in settings(),
        (log, base) in history(cells(), true),
    ) {
        let rules = field_rules(settings);
        prop_assert_eq!(merged(&rules, &log, &base), expected(&rules, &log, &base));
    }
}
