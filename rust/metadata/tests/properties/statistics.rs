//! Statistics of columns: bounds contain all values, whatever is merged and compacted.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
    new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::cmp;
use arrow::compute::{cast, concat, concat_batches};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use pyhudi_metadata::{
    FileFacts, KeptStats, KnownStats, MetadataPartition, Recorder, RestOfPartition, StatsSource,
    WrittenFile, column_stats, column_stats_scan, file_facts, forget_files, known_stats,
};
use pyhudi_slice::{
    BaseFileOptions, Codec, DataBlocks, LogFileOptions, write_base_file, write_log_file,
};
use pyhudi_store::Store;

use crate::groups::{Groups, SCHEMA, SCHEMA_V8};

const COLUMN_STATS: &str = "column_stats";
const PARTITION_STATS: &str = "partition_stats";
const PARTITION: &str = "p=1";
const GROUPS: u32 = 2;

/// Names and Avro types of columns. The last two are the fields of a struct.
const COLUMNS: [(&str, &str); 16] = [
    ("flag", r#""boolean""#),
    ("int", r#""int""#),
    ("long", r#""long""#),
    ("float", r#""float""#),
    ("double", r#""double""#),
    ("text", r#""string""#),
    ("raw", r#""bytes""#),
    ("day", r#"{"type":"int","logicalType":"date"}"#),
    ("at", r#"{"type":"long","logicalType":"timestamp-micros"}"#),
    (
        "local",
        r#"{"type":"long","logicalType":"local-timestamp-micros"}"#,
    ),
    (
        "millis",
        r#"{"type":"long","logicalType":"timestamp-millis"}"#,
    ),
    (
        "small",
        r#"{"type":"fixed","name":"small","size":3,"logicalType":"decimal","precision":5,"scale":2}"#,
    ),
    (
        "medium",
        r#"{"type":"fixed","name":"medium","size":8,"logicalType":"decimal","precision":18,"scale":4}"#,
    ),
    (
        "wide",
        r#"{"type":"fixed","name":"wide","size":16,"logicalType":"decimal","precision":38,"scale":10}"#,
    ),
    ("x", r#""double""#),
    ("s", r#""string""#),
];
/// Columns of the table itself; the others are fields of its column `inner`.
const PLAIN: usize = 14;

/// A number for each value of a row, and whether its struct is null.
type Row = (Vec<Option<usize>>, bool);

#[derive(Debug, Clone)]
struct File {
    rows: Vec<Row>,
    /// Columns that the file does not have.
    without: Vec<usize>,
    batch_rows: usize,
    /// A log file with blocks of this kind, else a base file.
    blocks: Option<DataBlocks>,
}

#[derive(Debug, Clone)]
struct Commit {
    files: Vec<File>,
    /// Earlier files that it deletes.
    deletes: Vec<Index>,
    /// Statistics of the partition are those of all its files.
    is_tight: bool,
    /// Those of earlier files are taken from the index.
    reads_index: bool,
}

fn file() -> impl Strategy<Value = File> {
    let row = (
        vec(option::weighted(0.8, 0..VALUES), COLUMNS.len()),
        prop::bool::weighted(0.2),
    );
    let without = subsequence((0..PLAIN).collect::<Vec<_>>(), 0..4);
    let blocks = prop_oneof![
        Just(DataBlocks::Avro),
        Just(DataBlocks::Parquet {
            codec: Codec::Snappy,
            old_lists: true
        }),
    ];
    (
        vec(row, 0..6),
        prop_oneof![Just(Vec::new()), without],
        1..4_usize,
        option::weighted(0.3, blocks),
    )
        .prop_map(|(rows, without, batch_rows, blocks)| File {
            rows,
            without,
            batch_rows,
            blocks,
        })
}

fn commit() -> impl Strategy<Value = Commit> {
    let deletes = prop_oneof![3 => Just(Vec::new()), 1 => vec(any::<Index>(), 1..3)];
    (vec(file(), 0..3), deletes, any::<bool>(), any::<bool>()).prop_map(
        |(files, deletes, is_tight, reads_index)| Commit {
            files,
            deletes,
            is_tight,
            reads_index,
        },
    )
}

// --- values -------------------------------------------------------------------------------------------------

/// Values of each type.
const VALUES: usize = 12;

const LONGS: [i64; VALUES] = [
    0,
    1,
    -1,
    127,
    -128,
    300,
    i64::MAX,
    i64::MIN,
    253_402_300_799_999,
    253_402_300_800_000,
    -253_402_300_800_000,
    86_400_000_000,
];
const INTS: [i32; VALUES] = [
    0,
    1,
    -1,
    127,
    -128,
    300,
    i32::MAX,
    i32::MIN,
    -719_162,
    -141_427,
    -141_428,
    19_000,
];
const DOUBLES: [f64; VALUES] = [
    0.0,
    -0.0,
    1.5,
    -1.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MIN_POSITIVE,
    f64::MAX,
    0.1,
    16_777_217.0,
    -5e-324,
];
const DECIMALS: [i128; VALUES] = [
    0,
    1,
    -1,
    5,
    127,
    128,
    -128,
    -129,
    300,
    -300,
    i128::MAX,
    i128::MIN,
];

fn texts() -> [String; VALUES] {
    let short = [
        "",
        "a",
        "b",
        "\u{e9}",
        "\u{d7ff}",
        "\u{e000}",
        "\u{ffff}",
        "\u{10000}",
        "\0",
    ];
    let long = ["a".repeat(3000), "b".repeat(1500), "\u{10ffff}".repeat(40)];
    let texts: Vec<String> = short.into_iter().map(str::to_owned).chain(long).collect();
    texts.try_into().unwrap()
}

fn bytes() -> [Vec<u8>; VALUES] {
    let short: [&[u8]; 9] = [
        &[],
        &[0],
        &[0x7f],
        &[0x80],
        &[0xff],
        &[0xff, 0],
        &[1, 2],
        &[0xff; 70],
        &[0xc3, 0x28],
    ];
    let long = [vec![1; 3000], vec![0xff; 1500], vec![0x80; 40]];
    let all: Vec<Vec<u8>> = short.into_iter().map(<[u8]>::to_vec).chain(long).collect();
    all.try_into().unwrap()
}

fn array(numbers: &[Option<usize>], kind: &DataType) -> ArrayRef {
    let numbers = || numbers.iter().copied();
    match kind {
        DataType::Boolean => Arc::new(
            numbers()
                .map(|n| n.map(|n| n % 2 == 0))
                .collect::<BooleanArray>(),
        ),
        DataType::Int32 => Arc::new(
            numbers()
                .map(|n| n.map(|n| INTS[n]))
                .collect::<Int32Array>(),
        ),
        DataType::Date32 => Arc::new(
            numbers()
                .map(|n| n.map(|n| INTS[n]))
                .collect::<Date32Array>(),
        ),
        DataType::Float32 => Arc::new(
            numbers()
                .map(|n| n.map(|n| DOUBLES[n] as f32))
                .collect::<Float32Array>(),
        ),
        DataType::Float64 => Arc::new(
            numbers()
                .map(|n| n.map(|n| DOUBLES[n]))
                .collect::<Float64Array>(),
        ),
        DataType::Utf8 => {
            let texts = texts();
            Arc::new(
                numbers()
                    .map(|n| n.map(|n| texts[n].clone()))
                    .collect::<StringArray>(),
            )
        }
        DataType::Binary => {
            let bytes = bytes();
            Arc::new(
                numbers()
                    .map(|n| n.map(|n| bytes[n].clone()))
                    .collect::<BinaryArray>(),
            )
        }
        DataType::Decimal128(precision, scale) => {
            let limit = 10_i128.pow(u32::from(*precision)) - 1;
            let values = numbers().map(|n| n.map(|n| DECIMALS[n].clamp(-limit, limit)));
            let values: Decimal128Array = values.collect();
            Arc::new(values.with_precision_and_scale(*precision, *scale).unwrap())
        }
        _ => {
            let longs: Int64Array = numbers().map(|n| n.map(|n| LONGS[n])).collect();
            cast(&longs, kind).unwrap()
        }
    }
}

// --- files --------------------------------------------------------------------------------------------------

fn nullable(name: &str, kind: &str) -> String {
    format!(r#"{{"name":"{name}","type":["null",{kind}],"default":null}}"#)
}

/// A schema of columns, without some of them.
fn avro_of(columns: &[usize], without: &[usize]) -> String {
    let fields = |columns: &mut dyn Iterator<Item = usize>| {
        let fields: Vec<String> = columns
            .map(|at| nullable(COLUMNS[at].0, COLUMNS[at].1))
            .collect();
        fields.join(",")
    };
    let (plain, inner): (Vec<usize>, Vec<usize>) = columns.iter().partition(|at| **at < PLAIN);
    let plain = fields(&mut plain.into_iter().filter(|at| !without.contains(at)));
    let inner = fields(&mut inner.into_iter());
    let mut all = vec![nullable("id", r#""int""#)];
    all.extend((!plain.is_empty()).then_some(plain));
    if !inner.is_empty() {
        let inner = format!(r#"{{"type":"record","name":"i","fields":[{inner}]}}"#);
        all.push(nullable("inner", &inner));
    }
    format!(
        r#"{{"type":"record","name":"r","fields":[{}]}}"#,
        all.join(",")
    )
}

fn arrow_of(avro: &str) -> Schema {
    pyhudi_avro::arrow_schema(avro).unwrap()
}

/// The columns with statistics.
fn with_statistics(columns: &[usize]) -> SchemaRef {
    let field = |at: &usize| {
        let (name, _) = COLUMNS[*at];
        let schema = arrow_of(&avro_of(&[*at], &[]));
        match schema.field(1).data_type() {
            DataType::Struct(inner) => {
                Field::new(format!("inner.{name}"), inner[0].data_type().clone(), true)
            }
            kind => Field::new(name, kind.clone(), true),
        }
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The values of a column in rows.
fn values(rows: &[Row], at: usize, kind: &DataType, without: &[usize]) -> ArrayRef {
    let value = |(values, is_null): &Row| {
        let is_missing = without.contains(&at) || (at >= PLAIN && *is_null);
        values[at].filter(|_| !is_missing)
    };
    array(&rows.iter().map(value).collect::<Vec<_>>(), kind)
}

fn batch(rows: &[Row], avro: &str) -> RecordBatch {
    let schema = Arc::new(arrow_of(avro));
    let of_name = |name: &str, kind: &DataType| -> ArrayRef {
        match COLUMNS.iter().position(|(known, _)| *known == name) {
            Some(at) => values(rows, at, kind, &[]),
            None => new_null_array(kind, rows.len()),
        }
    };
    let column = |field: &Arc<Field>| -> ArrayRef {
        let DataType::Struct(inner) = field.data_type() else {
            return of_name(field.name(), field.data_type());
        };
        let children = inner.iter();
        let children = children.map(|field| of_name(field.name(), field.data_type()));
        let valid: NullBuffer = rows.iter().map(|(_, is_null)| !is_null).collect();
        let children = children.collect();
        Arc::new(StructArray::new(inner.clone(), children, Some(valid)))
    };
    let columns = schema.fields().iter().map(column).collect();
    RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
}

impl File {
    fn write(&self, store: &Store, path: &str, columns: &[usize]) {
        let avro_schema = avro_of(columns, &self.without);
        let batches = self.rows.chunks(self.batch_rows);
        let batches = batches.map(|rows| Ok(batch(rows, &avro_schema)));
        let batches: Vec<_> = batches.collect();
        if let Some(blocks) = self.blocks {
            let options = LogFileOptions {
                instant: "1".to_owned(),
                avro_schema,
                block_bytes: 1,
                blocks,
                ..LogFileOptions::default()
            };
            write_log_file(
                store,
                path,
                batches.into_iter(),
                std::iter::empty(),
                &options,
            )
            .unwrap();
            return;
        }
        let options = BaseFileOptions {
            avro_schema,
            file_name: None,
            key_column: None,
            codec: Codec::Snappy,
            row_group_bytes: 1,
            page_bytes: 1 << 20,
            old_lists: true,
            two_threads: false,
            dictionary: true,
            bloom: None,
        };
        write_base_file(store, path, batches.into_iter(), &options).unwrap();
    }

    fn values(&self, at: usize, kind: &DataType) -> ArrayRef {
        values(&self.rows, at, kind, &self.without)
    }
}

/// A file of the table and where it is.
struct Stored<'f> {
    file: &'f File,
    written: WrittenFile,
    is_deleted: bool,
}

impl Stored<'_> {
    fn name(&self) -> &str {
        self.written.path.rsplit('/').next().unwrap()
    }
}

/// A table of one partition with its statistics.
struct Table<'f> {
    columns: &'f [usize],
    store: Store,
    recorder: Recorder,
    has_value_types: bool,
    files: Vec<Stored<'f>>,
    commits: Vec<RecordBatch>,
}

impl<'f> Table<'f> {
    fn new(folder: &tempfile::TempDir, columns: &'f [usize], has_value_types: bool) -> Self {
        let counts = [COLUMN_STATS, PARTITION_STATS].map(|name| (name.to_owned(), GROUPS));
        std::fs::create_dir(folder.path().join(PARTITION)).unwrap();
        let schema = if has_value_types { SCHEMA } else { SCHEMA_V8 };
        Self {
            columns,
            store: Store::open(folder.path().to_str().unwrap(), &[]).unwrap(),
            recorder: Recorder::new(schema, HashMap::from(counts)).unwrap(),
            has_value_types,
            files: Vec::new(),
            commits: Vec::new(),
        }
    }

    fn commit(&mut self, commit: &'f Commit) {
        let mut batches = Vec::new();
        let deletes = commit.deletes.iter().filter(|_| !self.files.is_empty());
        let deletes: BTreeSet<usize> = deletes.map(|index| index.index(self.files.len())).collect();
        for number in deletes {
            let file = &mut self.files[number];
            file.is_deleted = true;
            let names = [file.name().to_owned()];
            let columns: Vec<String> = self
                .schema()
                .fields()
                .iter()
                .map(|field| field.name().clone())
                .collect();
            batches.push(
                forget_files(
                    &self.recorder,
                    COLUMN_STATS,
                    PARTITION,
                    &names,
                    &columns,
                    false,
                )
                .unwrap(),
            );
        }
        let rest = commit.is_tight.then(|| self.rest(commit.reads_index));
        let first = self.files.len();
        for file in &commit.files {
            let number = self.files.len();
            let name = match file.blocks {
                Some(_) => format!("{PARTITION}/.f_0.log.{number}"),
                None => format!("{PARTITION}/{number}.parquet"),
            };
            file.write(&self.store, &name, self.columns);
            let written = WrittenFile {
                path: name,
                log: file.blocks.is_some(),
                source: None,
            };
            self.files.push(Stored {
                file,
                written,
                is_deleted: false,
            });
        }
        let facts = FileFacts {
            columns: self.schema(),
            value_types: self.has_value_types,
            partition_stats: true,
            rest,
            bloom_filters: false,
            instant: "1".to_owned(),
        };
        let written: Vec<_> = self.files[first..]
            .iter()
            .map(|file| file.written.clone())
            .collect();
        batches.push(file_facts(&self.recorder, &self.store, PARTITION, &written, &facts).unwrap());
        self.commits
            .push(concat_batches(&batches[0].schema(), &batches).unwrap());
    }

    /// Other files than those that a commit writes.
    fn rest(&self, reads_index: bool) -> RestOfPartition {
        let live: Vec<WrittenFile> = self.live().map(|file| file.written.clone()).collect();
        let paths = live
            .iter()
            .map(|file| (PARTITION.to_owned(), file.path.clone()));
        let known = if reads_index {
            let kept = Some(Arc::new(KeptStats::default()));
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path().to_str().unwrap(), &[]).unwrap();
            let index = self.partition(&store, COLUMN_STATS, &BTreeSet::new());
            known_stats(&index, paths.collect(), &self.schema(), kept).unwrap()
        } else {
            KnownStats::default()
        };
        RestOfPartition {
            files: live,
            known: Arc::new(known),
        }
    }

    fn schema(&self) -> SchemaRef {
        with_statistics(self.columns)
    }

    fn live(&self) -> impl Iterator<Item = &Stored<'f>> {
        self.files.iter().filter(|file| !file.is_deleted)
    }

    fn partition(
        &self,
        store: &Store,
        partition: &str,
        compactions: &BTreeSet<usize>,
    ) -> MetadataPartition {
        let schema = if self.has_value_types {
            SCHEMA
        } else {
            SCHEMA_V8
        };
        let groups = Groups {
            store,
            partition,
            count: GROUPS,
            schema,
        };
        groups.write(&self.commits, compactions)
    }
}

// --- what holds ---------------------------------------------------------------------------------------------

/// A row of statistics.
struct Found<'r> {
    rows: &'r RecordBatch,
    row: usize,
}

impl Found<'_> {
    fn bound(&self, name: &str) -> Option<ArrayRef> {
        let column = self.rows.column_by_name(name).unwrap();
        column.is_valid(self.row).then(|| column.slice(self.row, 1))
    }

    fn count(&self, name: &str) -> Option<usize> {
        let column = self
            .rows
            .column_by_name(name)
            .unwrap()
            .as_primitive::<Int64Type>();
        column
            .is_valid(self.row)
            .then(|| column.value(self.row) as usize)
    }

    /// Asserts that what is said of a column holds for values.
    fn holds_for(&self, values: &ArrayRef, what: &str) -> Result<(), TestCaseError> {
        let present = values.len() - values.logical_null_count();
        for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
            let value = values.slice(row, 1);
            let is_within = |min: &ArrayRef, max: &ArrayRef| is_ordered(min, max);
            if let Some(min) = self.bound("min") {
                prop_assert!(
                    is_within(&min, &value),
                    "{}: {:?} below {:?}",
                    what,
                    value,
                    min
                );
            }
            if let Some(max) = self.bound("max") {
                prop_assert!(
                    is_within(&value, &max),
                    "{}: {:?} above {:?}",
                    what,
                    value,
                    max
                );
            }
        }
        let only_nulls = self.rows.column_by_name("only_nulls").unwrap().as_boolean();
        if only_nulls.value(self.row) {
            prop_assert_eq!(present, 0, "{}: not only nulls", what);
        }
        if self.count("null_count") == Some(0) {
            prop_assert_eq!(present, values.len(), "{}: nulls", what);
        }
        if let (Some(nulls), Some(rows)) = (self.count("null_count"), self.count("value_count"))
            && nulls == rows
        {
            prop_assert_eq!(present, 0, "{}: values", what);
        }
        Ok(())
    }
}

/// Whether the first of two values is not greater; zeros are equal, and NaN is greatest.
fn is_ordered(a: &ArrayRef, b: &ArrayRef) -> bool {
    if a.data_type().is_floating() {
        let double = |array: &ArrayRef| {
            let array = cast(array, &DataType::Float64).unwrap();
            array.as_primitive::<Float64Type>().value(0)
        };
        let (a, b) = (double(a), double(b));
        return b.is_nan() || a <= b;
    }
    cmp::lt_eq(a, b).unwrap().value(0)
}

proptest! {
    #[test]
    fn bounds_contain_all_values(
        columns in subsequence((0..COLUMNS.len()).collect::<Vec<_>>(), 1..4),
        commits in vec(commit(), 1..5),
        compactions in btree_set(0..5_usize, 0..3),
        has_value_types in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut table = Table::new(&folder, &columns, has_value_types);
        for commit in &commits {
            table.commit(commit);
        }
        let of_files = table.partition(&table.store, COLUMN_STATS, &compactions);
        let of_partition = table.partition(&table.store, PARTITION_STATS, &compactions);
        let live: Vec<&Stored> = table.live().collect();
        let names: StringArray = live.iter().map(|file| Some(file.name())).collect();
        let partitions = StringArray::from(vec![PARTITION; names.len()]);
        let whole = StringArray::from(vec![PARTITION]);
        let source = StatsSource::Footers;
        for (at, field) in columns.iter().zip(table.schema().fields()) {
            let at = *at;
            let (name, kind) = (field.name(), field.data_type());
            let rows = column_stats(&of_files, name, kind, &partitions, Some(&names), source).unwrap();
            for (row, file) in live.iter().enumerate() {
                let found = Found { rows: &rows, row };
                found.holds_for(&file.file.values(at, kind), name)?;
                if let Some(nulls) = found.count("null_count") {
                    prop_assert_eq!(nulls, file.file.values(at, kind).logical_null_count(), "{}", name);
                }
            }
            let scan = column_stats_scan(&of_files, name, kind).unwrap();
            let scanned = scan.column(0).as_string::<i32>();
            for (row, scanned) in scanned.iter().enumerate() {
                let file = live.iter().find(|file| Some(file.name()) == scanned);
                prop_assert!(file.is_some(), "{scanned:?} is deleted");
                let found = Found { rows: &scan, row };
                found.holds_for(&file.unwrap().file.values(at, kind), name)?;
            }
            let rows = column_stats(&of_partition, name, kind, &whole, None, source).unwrap();
            let all: Vec<ArrayRef> = live.iter().map(|file| file.file.values(at, kind)).collect();
            let all: Vec<&dyn Array> = all.iter().map(AsRef::as_ref).collect();
            if !all.is_empty() {
                Found { rows: &rows, row: 0 }.holds_for(&concat(&all).unwrap(), &format!("{name} of the partition"))?;
            }
        }
    }
}
