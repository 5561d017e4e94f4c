//! Generated file slices, read in many ways, compared with a fold over a plain map.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type, Schema};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::subsequence;
use pyhudi_slice::{
    BlockFilter, Comparison, FillRule, Filter, Incoming, Lookup, LookupCache, MergeSpec, SliceRead,
    SliceReader, SpillOptions,
};
use pyhudi_store::Store;

use crate::generated::{
    BASE_INSTANT, COLUMNS, Cells, Files, KEY_COLUMN, KEYS, Value, array, avro_of, batch, files,
    instant, log_name, name_of, number, text,
};
use crate::records::key_text;

/// One way to read.
#[derive(Debug, Clone)]
struct Way {
    /// With the key as the last one, so that rows can be told apart.
    columns: Vec<usize>,
    filters: Vec<Test>,
    batch_rows: usize,
    memory_limit: Option<usize>,
    two_threads: bool,
}

/// A filter: a column by its number or the key, a comparison, literals.
#[derive(Debug, Clone)]
struct Test {
    column: usize,
    comparison: Comparison,
    literals: Vec<Value>,
}

fn test() -> impl Strategy<Value = Test> {
    let comparison = prop::sample::select(vec![
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ]);
    let key = KEYS.prop_map(|key| Value::Text(key_text(key))).boxed();
    let column = prop::sample::select(vec![
        (0, number().boxed()),
        (1, text().boxed()),
        (KEY_COLUMN, key),
    ]);
    column.prop_flat_map(move |(column, literal)| {
        let one = (
            comparison.clone(),
            literal.clone().prop_map(|one| vec![one]),
        );
        let list = (Just(Comparison::In), vec(literal, 1..12));
        prop_oneof![one.boxed(), list.boxed()].prop_map(move |(comparison, literals)| Test {
            column,
            comparison,
            literals,
        })
    })
}

fn way() -> impl Strategy<Value = Way> {
    let columns = subsequence((0..COLUMNS.len()).collect::<Vec<_>>(), 0..=COLUMNS.len());
    let memory_limit =
        prop_oneof![2 => Just(None), 3 => Just(Some(1)), 1 => (1..20_000_usize).prop_map(Some)];
    (
        columns.prop_shuffle(),
        prop_oneof![1 => Just(Vec::new()), 2 => vec(test(), 1..3)],
        prop_oneof![1..5_usize, Just(1000)],
        memory_limit,
        any::<bool>(),
    )
        .prop_map(
            |(mut columns, filters, batch_rows, memory_limit, two_threads)| {
                let more: BTreeSet<usize> = filters.iter().map(|test| test.column).collect();
                columns.retain(|column| !more.contains(column));
                columns.extend(more.into_iter().filter(|column| *column != KEY_COLUMN));
                columns.push(KEY_COLUMN);
                Way {
                    columns,
                    filters,
                    batch_rows,
                    memory_limit,
                    two_threads,
                }
            },
        )
}

impl Files {
    fn read(&self, store: &Store, way: &Way) -> SliceRead {
        let committed = self.logs.iter().enumerate();
        let committed = committed.filter(|(_, (_, is_committed))| *is_committed);
        let table: Schema = pyhudi_avro::arrow_schema(&avro_of(&self.rules, &[])).unwrap();
        let schema = Arc::new(table);
        let incoming = self.incoming.as_ref().map(|(rows, deletes)| {
            let avro = avro_of(&self.rules, &[]);
            let batches = rows.chunks(way.batch_rows);
            let batches: Vec<_> = batches.map(|rows| Ok(batch(&avro, rows))).collect();
            Incoming {
                rows: Some(Box::new(batches.into_iter())),
                delete_keys: Some(deletes.iter().map(|key| Some(key_text(*key))).collect()),
            }
        });
        SliceRead {
            base: self.base.as_ref().map(|base| base.name().to_owned()),
            base_instant: self.has_positions.then(|| BASE_INSTANT.to_owned()),
            logs: (0..self.logs.len()).map(log_name).collect(),
            columns: way
                .columns
                .iter()
                .map(|column| name_of(*column).to_owned())
                .collect(),
            merge: self.merge_spec(),
            filter: BlockFilter {
                valid_instants: Some(committed.map(|(number, _)| instant(number)).collect()),
                ..BlockFilter::default()
            },
            incoming: incoming.unwrap_or_default(),
            filters: way.filters.iter().map(Test::filter).collect(),
            batch_rows: way.batch_rows,
            two_threads: way.two_threads,
            spill: way.memory_limit.map(|memory_limit| SpillOptions {
                memory_limit,
                folder: None,
            }),
            ..SliceRead::new(store.clone(), schema)
        }
    }

    fn merge_spec(&self) -> MergeSpec {
        MergeSpec {
            mode: self.rules.mode,
            ordering_fields: self
                .rules
                .ordering
                .iter()
                .map(|_| "ts".to_owned())
                .collect(),
            null_ordering_loses: self.rules.null_ordering_loses,
            fill: if self.fills_nulls {
                FillRule::Defaults(None)
            } else {
                FillRule::Absent
            },
            ..MergeSpec::default()
        }
    }
}

impl Test {
    fn filter(&self) -> Filter {
        let literals: Vec<_> = self.literals.iter().cloned().map(Some).collect();
        let kind = match self.literals.first() {
            Some(Value::Text(_)) => DataType::Utf8,
            _ => DataType::Int64,
        };
        Filter {
            column: name_of(self.column).to_owned(),
            comparison: self.comparison,
            literals: array(&literals, &kind),
        }
    }

    fn passes(&self, value: Option<&Value>) -> bool {
        let (Some(value), Some(literal)) = (value, self.literals.first()) else {
            return false;
        };
        match self.comparison {
            Comparison::In => self.literals.contains(value),
            Comparison::Less => value < literal,
            Comparison::LessOrEqual => value <= literal,
            Comparison::Greater => value > literal,
            Comparison::GreaterOrEqual => value >= literal,
        }
    }
}

type OutRow = Vec<Option<Value>>;

impl Way {
    /// Rows of the model with these columns, that pass the filters, in an order of their own.
    fn expected(&self, rows: &[(u8, Cells)]) -> Vec<OutRow> {
        let row = |(key, cells): &(u8, Cells)| -> OutRow {
            let value = |column: &usize| match cells.values.get(*column) {
                Some(value) => value.clone(),
                None => Some(Value::Text(key_text(*key))),
            };
            self.columns.iter().map(value).collect()
        };
        self.passing(rows.iter().map(row).collect())
    }

    fn passing(&self, mut rows: Vec<OutRow>) -> Vec<OutRow> {
        rows.retain(|row| {
            self.filters.iter().all(|test| {
                let at = self
                    .columns
                    .iter()
                    .position(|column| *column == test.column);
                test.passes(row[at.unwrap()].as_ref())
            })
        });
        rows.sort();
        rows
    }
}

fn out_rows(batch: &RecordBatch) -> Vec<OutRow> {
    let columns: Vec<Vec<Option<Value>>> = batch.columns().iter().map(values_of).collect();
    let row = |row: usize| columns.iter().map(|column| column[row].clone()).collect();
    (0..batch.num_rows()).map(row).collect()
}

fn values_of(column: &ArrayRef) -> Vec<Option<Value>> {
    match column.data_type() {
        DataType::Utf8 => {
            let texts = column.as_string::<i32>().iter();
            texts
                .map(|text| Some(Value::Text(text?.to_owned())))
                .collect()
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>().iter();
            let numbers = |list: ArrayRef| list.as_primitive::<Int32Type>().values().to_vec();
            lists
                .map(|list| Some(Value::List(numbers(list?))))
                .collect()
        }
        _ => {
            let numbers = cast(column, &DataType::Int64).unwrap();
            let numbers = numbers.as_primitive::<Int64Type>().iter();
            numbers.map(|number| Some(Value::Number(number?))).collect()
        }
    }
}

/// What a reader gives, and into how many parts it split the slice.
fn read(read: SliceRead) -> (Vec<OutRow>, u64) {
    let batch_rows = read.batch_rows;
    let reader = SliceReader::new(read).unwrap();
    let stats = reader.stats();
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        assert!(batch.num_rows() <= batch_rows, "{} rows", batch.num_rows());
        rows.extend(out_rows(&batch));
    }
    (rows, stats.spilled_parts.load(Ordering::Relaxed))
}

proptest! {
    #[test]
    fn a_slice_has_the_rows_of_a_plain_map(files in files(), ways in vec(way(), 1..4)) {
        let folder = tempfile::tempdir().unwrap();
        let store = files.write(&folder);
        let all = files.rows();
        for way in ways {
            let (rows, spilled_parts) = read(files.read(&store, &way));
            prop_assert_eq!(way.passing(rows), way.expected(&all), "{:?}", way);
            if way.memory_limit == Some(1) {
                prop_assert_eq!(spilled_parts > 0, files.log_keys() > 1, "{:?}", way);
            }
        }
    }

    #[test]
    fn a_lookup_has_the_rows_of_its_keys(
        files in files(),
        ways in vec((way(), btree_set(KEYS, 1..4)), 1..4),
    ) {
        let files = Files { incoming: None, ..files };
        let folder = tempfile::tempdir().unwrap();
        let store = files.write(&folder);
        let all = files.rows();
        let cache = Arc::new(LookupCache::new(1 << 20));
        for (way, keys) in ways {
            let texts: Vec<String> = keys.iter().map(|key| key_text(*key)).collect();
            let lookup = Lookup::new(&cache, 0, texts.iter().map(String::as_str));
            let whole = files.read(&store, &way);
            let filters = whole.filters.clone();
            let (mut rows, _) = read(whole.looking_up(lookup, filters));
            // Rows of other keys may come, too.
            rows.retain(|row| matches!(row.last(), Some(Some(Value::Text(key))) if texts.contains(key)));
            let mut expected = all.clone();
            expected.retain(|(key, _)| keys.contains(key));
            prop_assert_eq!(way.passing(rows), way.expected(&expected), "{:?} {:?}", way, keys);
        }
    }
}
