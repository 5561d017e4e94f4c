//! Generated file slices, and their files.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Schema};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use proptest::{bool, option};
use pyhudi_format::log::{
    BlockType, DeleteRecord, HeaderKey, delete_content, delete_list, positions_text,
    rollback_block, write_block,
};
use pyhudi_merge::MergeRules;
use pyhudi_slice::{BASE_ROW, Codec, DataBlocks, LogFileOptions, write_log_file};
use pyhudi_store::Store;

use crate::records::{DeleteValue, Row, delete, delete_values, key_text, row, rules};
use crate::support::{KEY, avro_record, write_base};

pub const KEYS: Range<u8> = 0..9;
const IS_DELETED: &str = "_hoodie_is_deleted";
/// The columns with values of a row.
pub const COLUMNS: [&str; 4] = ["n", "s", "tags", "ts"];
/// The first ones, which a file may be without.
const OPTIONAL: usize = 3;
/// The key, after them.
pub const KEY_COLUMN: usize = COLUMNS.len();
pub const BASE_INSTANT: &str = "000";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Number(i64),
    Text(String),
    List(Vec<i32>),
}

/// Of the columns that a file may be without.
pub type Values = [Option<Value>; OPTIONAL];

/// What is stored under a key, and the columns that it was written with.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    pub values: [Option<Value>; COLUMNS.len()],
    pub is_written: [bool; COLUMNS.len()],
}

#[derive(Debug, Clone)]
pub enum Block {
    Rows {
        rows: Vec<Row<Values>>,
        blocks: DataBlocks,
        without: Vec<usize>,
        /// Columns that it is without keep their values, else they are null.
        is_partial: bool,
    },
    Deletes(Vec<(u8, DeleteValue)>),
    /// An earlier block is rolled back.
    Rollback(Index),
}

#[derive(Debug, Clone)]
pub struct Base {
    pub rows: Vec<Row<Values>>,
    pub without: Vec<usize>,
    pub group_rows: usize,
    pub is_orc: bool,
}

/// A file slice and its rules.
#[derive(Debug, Clone)]
pub struct Files {
    pub rules: MergeRules,
    /// Nulls are taken from the losing record.
    pub fills_nulls: bool,
    pub base: Option<Base>,
    /// Blocks of log files, and whether their instants are committed.
    pub logs: Vec<(Block, bool)>,
    pub incoming: Option<(Vec<Row<Values>>, Vec<u8>)>,
    pub has_positions: bool,
}

pub fn number() -> impl Strategy<Value = Value> {
    (-3..8_i64).prop_map(Value::Number)
}

pub fn text() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["", "a", "b", "bb", "\u{e9}"]).prop_map(|s| Value::Text(s.to_owned()))
}

fn values() -> impl Strategy<Value = Values> + Clone {
    let value = |value: BoxedStrategy<Value>| option::weighted(0.8, value);
    let list = vec(-2..3_i32, 0..3).prop_map(Value::List);
    let columns = (
        value(number().boxed()),
        value(text().boxed()),
        value(list.boxed()),
    );
    columns
        .prop_map(|(number, text, list)| [number, text, list])
        .boxed()
}

fn without() -> impl Strategy<Value = Vec<usize>> {
    let some = subsequence((0..OPTIONAL).collect::<Vec<_>>(), 0..=OPTIONAL);
    prop_oneof![2 => Just(Vec::new()), 1 => some]
}

fn block() -> impl Strategy<Value = Block> {
    let blocks = prop_oneof![
        3 => Just(DataBlocks::Avro),
        1 => Just(DataBlocks::Parquet { codec: Codec::Snappy, old_lists: true }),
        1 => Just(DataBlocks::Hfile),
    ];
    let rows = (
        vec(row(KEYS, values(), true), 1..9),
        blocks,
        without(),
        bool::weighted(0.2),
    );
    prop_oneof![
        6 => rows.prop_map(|(rows, blocks, without, is_partial)| Block::Rows {
            rows,
            blocks,
            without,
            is_partial,
        }),
        2 => vec(delete(KEYS), 1..5).prop_map(Block::Deletes),
        1 => any::<Index>().prop_map(Block::Rollback),
    ]
}

fn base() -> impl Strategy<Value = Base> {
    let rows = vec(row(KEYS, values(), false), 0..14);
    (rows, without(), 1..6_usize, bool::weighted(0.2)).prop_map(
        |(rows, without, group_rows, is_orc)| Base {
            rows,
            without,
            group_rows,
            is_orc,
        },
    )
}

pub fn files() -> impl Strategy<Value = Files> {
    let incoming = (
        vec(row(KEYS, values(), true), 0..6),
        vec(KEYS.clone(), 0..3),
    );
    (
        rules(),
        bool::weighted(0.2),
        option::weighted(0.9, base()),
        vec((block(), bool::weighted(0.9)), 0..6),
        option::weighted(0.2, incoming),
        bool::weighted(0.3),
    )
        .prop_map(
            |(rules, fills_nulls, mut base, logs, incoming, has_positions)| {
                let is_time = matches!(rules.ordering.first(), Some(DataType::Timestamp(..)));
                if let Some(base) = &mut base {
                    // No table in ORC has times.
                    base.is_orc &= !is_time;
                }
                let files = Files {
                    rules,
                    fills_nulls,
                    base,
                    logs,
                    incoming,
                    has_positions: false,
                };
                if has_positions {
                    files.with_positions()
                } else {
                    files
                }
            },
        )
}

pub fn name_of(column: usize) -> &'static str {
    COLUMNS.get(column).copied().unwrap_or(KEY)
}

pub fn avro_of(rules: &MergeRules, without: &[usize]) -> String {
    let ts = match rules.ordering.first() {
        Some(DataType::Int32) => r#""int""#,
        Some(DataType::Float64) => r#""double""#,
        Some(DataType::Timestamp(..)) => r#"{"type":"long","logicalType":"timestamp-micros"}"#,
        _ => r#""long""#,
    };
    let list = r#"{"type":"array","items":"int"}"#;
    let types = [r#""long""#, r#""string""#, list, ts];
    let columns = COLUMNS.iter().zip(types).enumerate();
    let present = columns.filter(|(at, _)| !without.contains(at));
    let fields = present.map(|(_, (name, kind))| (*name, kind));
    let fields = [(KEY, r#""string""#), (IS_DELETED, r#""boolean""#)]
        .into_iter()
        .chain(fields);
    let fields: Vec<String> = fields
        .map(|(name, kind)| format!(r#"{{"name":"{name}","type":["null",{kind}],"default":null}}"#))
        .collect();
    avro_record(&fields.join(","))
}

pub fn cells(row: &Row<Values>, without: &[usize], is_partial: bool) -> Cells {
    let [n, s, tags] = row.values.clone();
    let mut values = [n, s, tags, row.ts.map(Value::Number)];
    let mut is_written = [true; COLUMNS.len()];
    for at in without {
        values[*at] = None;
        is_written[*at] = !is_partial;
    }
    Cells { values, is_written }
}

pub fn array(values: &[Option<Value>], kind: &DataType) -> ArrayRef {
    let text = |value: &Option<Value>| match value {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let number = |value: &Option<Value>| match value {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    let list = |value: &Option<Value>| match value {
        Some(Value::List(numbers)) => Some(numbers.iter().copied().map(Some).collect::<Vec<_>>()),
        _ => None,
    };
    let values = values.iter();
    let array: ArrayRef = match kind {
        DataType::Utf8 => Arc::new(values.map(text).collect::<StringArray>()),
        DataType::List(_) => Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
            values.map(list),
        )),
        _ => Arc::new(values.map(number).collect::<Int64Array>()),
    };
    cast(&array, kind).unwrap()
}

pub fn batch(avro: &str, rows: &[Row<Values>]) -> RecordBatch {
    let schema: Arc<Schema> = Arc::new(pyhudi_avro::arrow_schema(avro).unwrap());
    let columns = schema.fields().iter().map(|field| -> ArrayRef {
        let column = COLUMNS.iter().position(|name| name == field.name());
        match (field.name().as_str(), column) {
            (KEY, _) => Arc::new(StringArray::from_iter_values(
                rows.iter().map(|row| key_text(row.key)),
            )),
            (_, Some(column)) => {
                let values: Vec<_> = rows
                    .iter()
                    .map(|row| cells(row, &[], false).values[column].clone())
                    .collect();
                array(&values, field.data_type())
            }
            _ => Arc::new(
                rows.iter()
                    .map(|row| row.is_deleted)
                    .collect::<BooleanArray>(),
            ),
        }
    });
    RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap()
}

pub fn instant(number: usize) -> String {
    format!("{:03}", number + 1)
}

pub fn log_name(number: usize) -> String {
    format!(".f_{BASE_INSTANT}.log.{}_0-0-0", number + 1)
}

impl Files {
    /// The same with a position for each record: only records of rows of the base file.
    fn with_positions(mut self) -> Self {
        let Some(base) = &mut self.base else {
            return self;
        };
        let mut keys = HashSet::new();
        base.rows.retain(|row| keys.insert(row.key));
        base.is_orc = false;
        let place = |key: u8| base.rows.iter().position(|row| row.key == key);
        for (block, _) in &mut self.logs {
            let mut keys = HashSet::new();
            match block {
                Block::Rows { rows, .. } => {
                    rows.retain(|row| place(row.key).is_some() && keys.insert(row.key));
                    rows.sort_by_key(|row| place(row.key));
                }
                Block::Deletes(deletes) => {
                    deletes.retain(|(key, _)| place(*key).is_some() && keys.insert(*key));
                    deletes.sort_by_key(|(key, _)| place(*key));
                }
                Block::Rollback(_) => {}
            }
        }
        self.logs.retain(|(block, _)| match block {
            Block::Rows { rows, .. } => !rows.is_empty(),
            Block::Deletes(deletes) => !deletes.is_empty(),
            Block::Rollback(_) => true,
        });
        self.has_positions = true;
        self
    }

    fn positions(&self, keys: impl Iterator<Item = u8>) -> Vec<i64> {
        let base = self.base.as_ref().unwrap();
        let place = |key: u8| base.rows.iter().position(|row| row.key == key).unwrap() as i64;
        keys.map(place).collect()
    }

    pub fn write(&self, folder: &tempfile::TempDir) -> Store {
        let store = Store::open(folder.path().to_str().unwrap(), &[]).unwrap();
        if let Some(base) = &self.base {
            let avro = avro_of(&self.rules, &base.without);
            let groups = base.rows.chunks(base.group_rows);
            let groups = groups.map(|rows| batch(&avro, rows)).collect();
            write_base(&store, base.name(), &avro, groups);
        }
        for (number, (block, _)) in self.logs.iter().enumerate() {
            let path = folder.path().join(log_name(number));
            match block {
                Block::Rows { .. } => self.write_rows(&store, number, block),
                Block::Deletes(deletes) => {
                    std::fs::write(path, self.delete_block(number, deletes)).unwrap();
                }
                Block::Rollback(target) => {
                    let mut bytes = Vec::new();
                    rollback_block(
                        &mut bytes,
                        &instant(number),
                        &instant(target.index(number + 1)),
                    );
                    std::fs::write(path, bytes).unwrap();
                }
            }
        }
        store
    }

    fn write_rows(&self, store: &Store, number: usize, block: &Block) {
        let Block::Rows {
            rows,
            blocks,
            without,
            is_partial,
        } = block
        else {
            unreachable!("only rows are written");
        };
        let options = LogFileOptions {
            instant: instant(number),
            avro_schema: avro_of(&self.rules, without),
            blocks: *blocks,
            partial: *is_partial,
            base_instant: self.has_positions.then(|| BASE_INSTANT.to_owned()),
            ..LogFileOptions::default()
        };
        let mut rows_of_block = batch(&options.avro_schema, rows);
        if self.has_positions {
            let positions = self.positions(rows.iter().map(|row| row.key));
            let columns = rows_of_block
                .schema()
                .fields()
                .iter()
                .zip(rows_of_block.columns())
                .map(|(field, column)| (field.name().clone(), Arc::clone(column), true))
                .chain([(
                    BASE_ROW.to_owned(),
                    Arc::new(Int64Array::from(positions)) as ArrayRef,
                    false,
                )])
                .collect::<Vec<_>>();
            rows_of_block = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        }
        let rows = std::iter::once(Ok(rows_of_block));
        write_log_file(store, &log_name(number), rows, std::iter::empty(), &options).unwrap();
    }

    fn delete_block(&self, number: usize, deletes: &[(u8, DeleteValue)]) -> Vec<u8> {
        let values = delete_values(&self.rules, deletes);
        let records = deletes
            .iter()
            .zip(values)
            .map(|((key, _), ordering)| DeleteRecord {
                record_key: key_text(*key).into(),
                partition_path: Some("".into()),
                ordering,
            });
        let (instant, avro) = (instant(number), avro_of(&self.rules, &[]));
        let mut header = vec![
            (HeaderKey::InstantTime, instant.as_str()),
            (HeaderKey::Schema, avro.as_str()),
        ];
        let positions = self.has_positions.then(|| {
            let rows = self.positions(deletes.iter().map(|(key, _)| *key));
            positions_text(&rows.iter().map(|row| *row as u64).collect::<Vec<_>>()).unwrap()
        });
        if let Some(positions) = &positions {
            header.push((HeaderKey::RecordPositions, positions));
            header.push((
                HeaderKey::BaseFileInstantTimeOfRecordPositions,
                BASE_INSTANT,
            ));
        }
        let content = delete_content(&delete_list::encode(records));
        let mut bytes = Vec::new();
        write_block(&mut bytes, BlockType::Delete, &header, &content);
        bytes
    }

    /// The blocks that count, oldest first.
    pub fn blocks(&self) -> Vec<&Block> {
        let mut blocks: BTreeMap<usize, &Block> = BTreeMap::new();
        for (number, (block, is_committed)) in self.logs.iter().enumerate() {
            match block {
                Block::Rollback(target) => {
                    blocks.remove(&target.index(number + 1));
                }
                _ if *is_committed => {
                    blocks.insert(number, block);
                }
                _ => {}
            }
        }
        blocks.into_values().collect()
    }
}

impl Base {
    pub fn name(&self) -> &'static str {
        if self.is_orc {
            "f_0-0-0_000.orc"
        } else {
            "f_0-0-0_000.parquet"
        }
    }
}
