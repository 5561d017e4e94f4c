//! Rows of keys out of what is in memory: those that a reader gives, for each type, encoding, share of
//! nulls and size of pages and row groups; and a reader for the rest.
#![cfg(test)]

use std::fs::File;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, Time32MillisecondArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, UInt32Array,
};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use pyhudi_slice::{KeyedSlice, Lookup, LookupCache, RECORD_KEY, SliceRead};
use pyhudi_store::Store;

const ROWS: usize = 90;

/// Which rows have no value.
type IsNull = fn(usize) -> bool;

/// Never, always, in runs, and here and there.
const NULLS: [IsNull; 4] = [
    |_| false,
    |_| true,
    |row| row / 20 % 2 == 1,
    |row| row * 7919 % 5 < 2,
];

fn key(row: usize) -> String {
    // In no order, so that bounds of row groups overlap.
    format!("k{:05}", row * 37 % 1000)
}

fn some<T>(is_null: IsNull, value: impl Fn(usize) -> T) -> Vec<Option<T>> {
    let rows = 0..ROWS;
    rows.map(|row| (!is_null(row)).then(|| value(row)))
        .collect()
}

/// A number with all of its bytes, of either sign.
fn spread(row: usize) -> i64 {
    (row as i64 % 11).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)
}

/// A column of each type that needs no reader.
fn plain_columns(is_null: IsNull) -> Vec<(&'static str, ArrayRef)> {
    let texts = || some(is_null, |row| "é".repeat(row % 7));
    let longs = || some(is_null, spread);
    let ints = || some(is_null, |row| spread(row) as i32);
    let decimal = |precision, scale| {
        let limit = 10_i128.pow(u32::from(precision));
        let values = some(is_null, |row| i128::from(spread(row)) * 0xFFFF_FFFF % limit);
        let array = Decimal128Array::from(values);
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap()) as ArrayRef
    };
    let bytes = texts().into_iter();
    let bytes: BinaryArray = bytes.map(|text| text.map(String::into_bytes)).collect();
    let fixed = some(is_null, |row| spread(row).to_be_bytes()).into_iter();
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 8).unwrap();
    let micros = TimestampMicrosecondArray::from(longs());
    vec![
        ("text", Arc::new(StringArray::from(texts()))),
        ("bytes", Arc::new(bytes)),
        ("fixed", Arc::new(fixed)),
        ("int", Arc::new(Int32Array::from(ints()))),
        (
            "unsigned",
            Arc::new(
                some(is_null, |row| spread(row) as u32)
                    .into_iter()
                    .collect::<UInt32Array>(),
            ),
        ),
        ("long", Arc::new(Int64Array::from(longs()))),
        (
            "float",
            Arc::new(Float32Array::from(some(is_null, |row| spread(row) as f32))),
        ),
        (
            "double",
            Arc::new(Float64Array::from(some(is_null, |row| {
                spread(row) as f64 / 3.0
            }))),
        ),
        (
            "bool",
            Arc::new(BooleanArray::from(some(is_null, |row| row % 3 == 0))),
        ),
        ("date", Arc::new(Date32Array::from(ints()))),
        (
            "time_ms",
            Arc::new(Time32MillisecondArray::from(some(is_null, |row| {
                row as i32
            }))),
        ),
        (
            "time_us",
            Arc::new(Time64MicrosecondArray::from(some(is_null, |row| {
                row as i64
            }))),
        ),
        (
            "millis",
            Arc::new(TimestampMillisecondArray::from(longs()).with_timezone("UTC")),
        ),
        ("micros", Arc::new(micros.clone().with_timezone("UTC"))),
        ("local", Arc::new(micros)),
        ("decimal_4", decimal(7, 2)),
        ("decimal_8", decimal(17, 3)),
        ("decimal_12", decimal(26, 0)),
        ("decimal_16", decimal(38, 10)),
    ]
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let keys: StringArray = (0..ROWS).map(|row| Some(key(row))).collect();
    let key = (RECORD_KEY, Arc::new(keys) as ArrayRef, false);
    let columns = columns.into_iter();
    let columns = columns.map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable([key].into_iter().chain(columns)).unwrap()
}

fn pages_of(rows: usize) -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_data_page_row_count_limit(rows)
        .set_write_batch_size(rows)
}

struct Files {
    folder: tempfile::TempDir,
    cache: Arc<LookupCache>,
}

impl Files {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            cache: Arc::new(LookupCache::new(64 << 20)),
        }
    }

    fn write(&self, rows: &RecordBatch, properties: WriterPropertiesBuilder) {
        let file = File::create(self.folder.path().join("b.parquet")).unwrap();
        let properties = Some(properties.build());
        let mut writer = ArrowWriter::try_new(file, rows.schema(), properties).unwrap();
        writer.write(rows).unwrap();
        writer.close().unwrap();
    }

    fn slice(&self, schema: &SchemaRef) -> KeyedSlice {
        let store = Store::open(self.folder.path().to_str().unwrap(), &[]).unwrap();
        KeyedSlice::new(SliceRead {
            base: Some("b.parquet".to_owned()),
            batch_rows: 4,
            ..SliceRead::new(store, Arc::clone(schema))
        })
    }

    fn lookup(&self, keys: &[String]) -> Lookup {
        Lookup::new(&self.cache, 0, keys.iter().map(String::as_str))
    }

    /// Whether the rows of keys need no reader. Those of either way must be the written ones.
    fn is_in_memory(&self, slice: &KeyedSlice, rows: &RecordBatch, what: &str) -> bool {
        let all: Vec<usize> = (0..ROWS).collect();
        let choices = all.iter().map(|row| vec![*row]);
        let choices = choices.chain([vec![0, 1, 2], vec![5, 41, 88], all.clone()]);
        let mut in_memory = Vec::new();
        for chosen in choices {
            let keys: Vec<String> = chosen.iter().map(|row| key(*row)).collect();
            let lookup = self.lookup(&keys);
            let at = chosen
                .iter()
                .map(|row| *row as u32)
                .collect::<UInt32Array>();
            let expected = take_record_batch(rows, &at).unwrap();
            let read = slice.read_rows(&lookup, &keys).unwrap();
            let schema = rows.schema();
            assert_eq!(
                concat_batches(&schema, &read).unwrap(),
                expected,
                "{what} {chosen:?}"
            );
            let found = slice.rows_in_memory(&lookup, &keys);
            in_memory.push(found.is_some());
            if let Some(found) = found {
                assert_eq!(found, [expected], "{what} {chosen:?}");
            }
        }
        let first = in_memory[0];
        assert!(in_memory.iter().all(|each| *each == first), "{what}");
        first
    }
}

#[test]
fn rows_of_plain_columns_need_no_reader() {
    for (number, is_null) in NULLS.into_iter().enumerate() {
        let rows = batch(plain_columns(is_null));
        for dictionary in [false, true] {
            for (page_rows, group_rows) in [(1, ROWS), (7, 40), (ROWS, ROWS)] {
                let what = format!("nulls {number}, {dictionary}, {page_rows}, {group_rows}");
                let files = Files::new();
                let properties = pages_of(page_rows).set_dictionary_enabled(dictionary);
                files.write(
                    &rows,
                    properties.set_max_row_group_row_count(Some(group_rows)),
                );
                let slice = files.slice(&rows.schema());
                let keys = [key(3)];
                let first = slice.rows_in_memory(&files.lookup(&keys), &keys);
                assert_eq!(first, None, "{what}");
                assert!(files.is_in_memory(&slice, &rows, &what), "{what}");
            }
        }
    }
}

#[test]
fn other_columns_and_pages_take_a_reader() {
    let longs: ArrayRef = Arc::new((0..ROWS as i64).collect::<Int64Array>());
    let field = Arc::new(Field::new("a", DataType::Int64, true));
    let structs: ArrayRef = Arc::new(StructArray::from(vec![(field, Arc::clone(&longs))]));
    let items = (0..ROWS).map(|row| Some((0..row as i32 % 4).map(Some)));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(items));
    let texts: ArrayRef = Arc::new((0..ROWS).map(|row| Some(key(row))).collect::<StringArray>());
    let plain = || pages_of(7).set_dictionary_enabled(false);
    let version_2 = plain().set_writer_version(WriterVersion::PARQUET_2_0);
    let delta = plain().set_encoding(Encoding::DELTA_BINARY_PACKED);
    let split = plain().set_column_encoding("v".into(), Encoding::BYTE_STREAM_SPLIT);
    let delta_texts = plain().set_column_encoding("v".into(), Encoding::DELTA_BYTE_ARRAY);
    for (what, column, properties) in [
        ("a struct", structs, plain()),
        ("a list", lists, plain()),
        ("pages of version 2", Arc::clone(&longs), version_2),
        (
            "delta encoding",
            Arc::clone(&longs),
            delta.set_column_encoding(RECORD_KEY.into(), Encoding::PLAIN),
        ),
        ("split bytes", Arc::clone(&longs), split),
        ("delta encoding of texts", texts, delta_texts),
        (
            "no place of pages",
            longs,
            plain()
                .set_offset_index_disabled(true)
                .set_statistics_enabled(EnabledStatistics::None),
        ),
    ] {
        let rows = batch(vec![("v", column)]);
        let files = Files::new();
        files.write(&rows, properties);
        assert!(
            !files.is_in_memory(&files.slice(&rows.schema()), &rows, what),
            "{what}"
        );
    }
}

#[test]
fn columns_are_those_of_the_table() {
    let files = Files::new();
    let ints = some(NULLS[3], |row| row as i32);
    let longs = some(NULLS[3], |row| row as i64);
    let stored = batch(vec![
        ("b", Arc::new(Int32Array::from(ints))),
        ("other", Arc::new(StringArray::from(vec!["x"; ROWS]))),
    ]);
    files.write(&stored, pages_of(7));
    let rows = batch(vec![
        ("a", Arc::new(StringArray::from(vec![None::<&str>; ROWS]))),
        ("b", Arc::new(Int64Array::from(longs))),
    ]);
    let required = Field::new("b", DataType::Int64, false);
    let mut fields = rows.schema().fields().to_vec();
    fields[2] = Arc::new(required);
    for schema in [rows.schema(), Arc::new(Schema::new(fields))] {
        let slice = files.slice(&schema);
        for row in 0..ROWS {
            let keys = [key(row)];
            let lookup = files.lookup(&keys);
            let read = slice.read_rows(&lookup, &keys).unwrap();
            assert_eq!(read[0].columns(), rows.slice(row, 1).columns());
            assert_eq!(slice.rows_in_memory(&lookup, &keys), Some(read));
        }
    }
}

#[test]
fn row_groups_without_the_key_need_not_be_known() {
    let files = Files::new();
    let keys: StringArray = (0..ROWS).map(|row| Some(format!("k{row:05}"))).collect();
    let keys = Arc::new(keys) as ArrayRef;
    let rows = RecordBatch::try_from_iter_with_nullable([(RECORD_KEY, keys, false)]).unwrap();
    files.write(&rows, pages_of(7).set_max_row_group_row_count(Some(30)));
    let slice = files.slice(&rows.schema());
    let is_found = |key: &str| {
        let keys = [key.to_owned()];
        let found = slice.rows_in_memory(&files.lookup(&keys), &keys)?;
        Some(found.iter().map(RecordBatch::num_rows).sum::<usize>())
    };
    let read = |key: &str| {
        let keys = [key.to_owned()];
        slice.read_rows(&files.lookup(&keys), &keys).unwrap()
    };
    assert_eq!(is_found("k00035"), None);
    assert_eq!(read("k00035").len(), 1);
    assert_eq!(is_found("k00035"), Some(1));
    assert_eq!(is_found("k00035x"), Some(0));
    assert_eq!(is_found("k00065"), None, "another row group");
    assert_eq!(is_found("k00099"), Some(0), "a key behind all others");
}

#[test]
fn damaged_texts_are_an_error_of_the_reader() {
    let files = Files::new();
    let texts: StringArray = (0..ROWS)
        .map(|row| Some(format!("text-{row:03}")))
        .collect();
    let rows = batch(vec![("v", Arc::new(texts))]);
    let properties = pages_of(ROWS).set_dictionary_enabled(false);
    files.write(&rows, properties.set_compression(Compression::UNCOMPRESSED));
    let path = files.folder.path().join("b.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes
        .windows(8)
        .position(|bytes| bytes == b"text-050")
        .unwrap();
    bytes[at] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    let slice = files.slice(&rows.schema());
    let (good, bad) = ([key(49)], [key(50)]);
    slice.read_rows(&files.lookup(&good), &good).unwrap();
    assert!(slice.rows_in_memory(&files.lookup(&good), &good).is_some());
    assert!(slice.rows_in_memory(&files.lookup(&bad), &bad).is_none());
    assert!(slice.rows(&files.lookup(&bad), &bad).is_err());
}
