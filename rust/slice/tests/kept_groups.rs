//! Row groups that a rewrite takes over as they stand.
#![cfg(test)]

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use pyhudi_slice::{
    BaseFileOptions, BloomOptions, Codec, Incoming, RECORD_KEY, Result, Rewrite, SliceError,
    SliceRead, SliceReader, base_values, rewrite_base_file, write_base_file,
};
use pyhudi_store::Store;

const AVRO: &str = r#"{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[
  {"name":"_hoodie_record_key","type":["null","string"],"default":null},
  {"name":"_hoodie_file_name","type":["null","string"],"default":null},
  {"name":"n","type":["null","long"],"default":null},
  {"name":"text","type":["null","string"],"default":null}]}"#;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pyhudi-kept-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> Store {
        Store::open(self.0.to_str().unwrap(), &[]).unwrap()
    }

    fn footer(&self, name: &str) -> ParquetMetaData {
        let policy = PageIndexPolicy::Optional;
        let mut reader = ParquetMetaDataReader::new().with_page_index_policy(policy);
        reader
            .try_parse(&File::open(self.0.join(name)).unwrap())
            .unwrap();
        reader.finish().unwrap()
    }

    fn groups(&self, name: &str) -> Vec<i64> {
        let footer = self.footer(name);
        footer
            .row_groups()
            .iter()
            .map(RowGroupMetaData::num_rows)
            .collect()
    }

    /// The pages of one column of a row group.
    fn pages(&self, name: &str, group: usize, column: usize) -> Vec<u8> {
        let footer = self.footer(name);
        let (begin, length) = footer.row_group(group).column(column).byte_range();
        let bytes = std::fs::read(self.0.join(name)).unwrap();
        bytes[begin as usize..(begin + length) as usize].to_vec()
    }

    /// Rows as key, file name and number, by key.
    fn rows(&self, name: &str) -> Vec<(String, String, i64)> {
        let read = slice(self, Some(name), None, None);
        let mut rows = Vec::new();
        for batch in SliceReader::new(read).unwrap() {
            let batch = batch.unwrap();
            let text = |at: usize| batch.column(at).as_string::<i32>().clone();
            let numbers = batch.column(2).as_primitive::<Int64Type>().clone();
            for row in 0..batch.num_rows() {
                let (key, file) = (text(0).value(row).to_owned(), text(1).value(row).to_owned());
                rows.push((key, file, numbers.value(row)));
            }
        }
        rows.sort();
        rows
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let number = Field::new("n", DataType::Int64, true);
    let fields = vec![
        text(RECORD_KEY),
        text("_hoodie_file_name"),
        number,
        text("text"),
    ];
    Arc::new(Schema::new(fields))
}

fn options(name: &str, codec: Codec) -> BaseFileOptions {
    BaseFileOptions {
        avro_schema: AVRO.into(),
        file_name: Some(name.into()),
        key_column: Some(RECORD_KEY.into()),
        codec,
        row_group_bytes: 100 << 20,
        page_bytes: 1 << 20,
        old_lists: true,
        two_threads: true,
        dictionary: true,
        bloom: Some(BloomOptions {
            entries: 10_000,
            by_keys: false,
            fpp: 0.001,
            max_entries: None,
        }),
    }
}

fn key(row: i64) -> String {
    format!("k{row:07}")
}

fn batch(rows: Range<i64>, number: i64, text: &str) -> RecordBatch {
    let keys: ArrayRef = Arc::new(
        rows.clone()
            .map(|row| Some(key(row)))
            .collect::<StringArray>(),
    );
    let names: ArrayRef = Arc::new(StringArray::new_null(keys.len()));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![number; keys.len()]));
    let texts = rows.map(|row| Some(format!("{text} {}", row * 2_654_435_761)));
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    RecordBatch::try_new(schema(), vec![keys, names, numbers, texts]).unwrap()
}

fn slice(
    folder: &Folder,
    base: Option<&str>,
    rows: Option<RecordBatch>,
    deletes: Option<Range<i64>>,
) -> SliceRead {
    SliceRead {
        base: base.map(str::to_owned),
        incoming: Incoming {
            rows: rows.map(|rows| Box::new(std::iter::once(Ok(rows))) as _),
            delete_keys: deletes.map(|rows| rows.map(|row| Some(key(row))).collect()),
        },
        batch_rows: 512,
        ..SliceRead::new(folder.store(), schema())
    }
}

fn write(folder: &Folder, name: &str, rows: RecordBatch, codec: Codec) {
    let rows = std::iter::once(Ok(rows));
    write_base_file(&folder.store(), name, rows, &options(name, codec)).unwrap();
}

fn upsert(folder: &Folder, from: &str, to: &str, rows: RecordBatch) {
    let read = slice(folder, Some(from), Some(rows), None);
    rewrite_base_file(to, read, Rewrite::default(), &options(to, Codec::Zstd)).unwrap();
}

#[test]
fn what_is_not_met_is_copied_and_has_the_new_name() {
    let folder = Folder::new("copied");
    write(&folder, "a.parquet", batch(0..5000, 1, "a"), Codec::Snappy);
    upsert(&folder, "a.parquet", "b.parquet", batch(5000..5300, 2, "b"));
    assert_eq!(folder.groups("b.parquet"), [5000, 300]);
    for column in [0, 2, 3] {
        let same = folder.pages("a.parquet", 0, column) == folder.pages("b.parquet", 0, column);
        assert!(same, "column {column}");
    }
    let expected = (0..5300).map(|row| {
        let number = if row < 5000 { 1 } else { 2 };
        (key(row), "b.parquet".to_owned(), number)
    });
    assert_eq!(folder.rows("b.parquet"), expected.collect::<Vec<_>>());
}

#[test]
fn rows_that_are_met_are_taken_out() {
    let folder = Folder::new("met");
    write(&folder, "a.parquet", batch(0..5000, 1, "a"), Codec::Zstd);
    upsert(&folder, "a.parquet", "b.parquet", batch(5000..6000, 2, "b"));
    upsert(&folder, "b.parquet", "c.parquet", batch(5100..5101, 3, "c"));
    assert_eq!(folder.groups("c.parquet"), [5000, 999, 1]);
    let read = slice(&folder, Some("c.parquet"), None, Some(10..11));
    let written = rewrite_base_file(
        "d.parquet",
        read,
        Rewrite::default(),
        &options("d.parquet", Codec::Zstd),
    );
    let (file, stats) = written.unwrap();
    // A row group that is no larger than what is rewritten is rewritten.
    assert_eq!(folder.groups("d.parquet"), [4999, 999, 1]);
    assert_eq!((file.rows, file.keys), (5999, Some((key(0), key(5999)))));
    assert_eq!(stats.deleted.load(std::sync::atomic::Ordering::Relaxed), 1);
    let expected = (0..6000).filter(|row| *row != 10).map(|row| {
        let number = match row {
            5100 => 3,
            5000.. => 2,
            _ => 1,
        };
        (key(row), "d.parquet".to_owned(), number)
    });
    assert_eq!(folder.rows("d.parquet"), expected.collect::<Vec<_>>());
}

#[test]
fn rows_of_other_codecs_are_written_anew() {
    let folder = Folder::new("codec");
    write(&folder, "a.parquet", batch(0..5000, 1, "a"), Codec::Snappy);
    upsert(&folder, "a.parquet", "b.parquet", batch(10..12, 2, "b"));
    assert_eq!(folder.groups("b.parquet"), [5000]);
    let numbers: Vec<i64> = folder.rows("b.parquet").iter().map(|row| row.2).collect();
    assert_eq!(numbers.iter().filter(|number| **number == 2).count(), 2);
}

/// A record replaces the first row that has its key, also where row groups are taken over.
#[test]
fn the_first_row_of_a_key_is_replaced() {
    let folder = Folder::new("twice");
    write(&folder, "a.parquet", batch(0..5000, 1, "a"), Codec::Zstd);
    let append = |from: &str, to: &str, rows: RecordBatch| {
        let rewrite = Rewrite {
            new_rows: rows.num_rows() as u64,
            appended: Some(Box::new(std::iter::once(Ok(rows)))),
            least_rows: 1000,
        };
        let read = slice(&folder, Some(from), None, None);
        rewrite_base_file(to, read, rewrite, &options(to, Codec::Zstd)).unwrap();
    };
    append("a.parquet", "b.parquet", batch(0..3000, 2, "b"));
    assert_eq!(folder.groups("b.parquet"), [5000, 3000]);
    upsert(&folder, "b.parquet", "c.parquet", batch(7..8, 3, "c"));
    assert_eq!(folder.groups("c.parquet"), [4999, 3000, 1]);
    let found = folder.rows("c.parquet");
    let of_key: Vec<i64> = found
        .iter()
        .filter(|row| row.0 == key(7))
        .map(|row| row.2)
        .collect();
    assert_eq!(of_key, [2, 3]);
}

#[test]
fn row_groups_stay_few() {
    let folder = Folder::new("few");
    write(&folder, "0.parquet", batch(0..100, 0, "a"), Codec::Zstd);
    let mut copied = 0;
    for commit in 1..=100_i64 {
        let (from, to) = (
            format!("{}.parquet", commit - 1),
            format!("{commit}.parquet"),
        );
        upsert(
            &folder,
            &from,
            &to,
            batch(commit * 100..commit * 100 + 100, commit, "b"),
        );
        let groups = folder.groups(&to);
        assert!(groups.len() <= 8, "{groups:?}");
        assert_eq!(groups.iter().sum::<i64>(), commit * 100 + 100);
        copied += i64::from(groups.len() > 1);
        std::fs::remove_file(folder.0.join(from)).unwrap();
    }
    assert!(copied > 50);
    let numbers: Vec<i64> = folder.rows("100.parquet").iter().map(|row| row.2).collect();
    assert_eq!(
        numbers,
        (0..10_100).map(|row| row / 100).collect::<Vec<_>>()
    );
}

#[test]
fn footers_say_of_copied_rows_what_they_said() {
    let folder = Folder::new("footers");
    write(&folder, "a.parquet", batch(0..5000, 1, "a"), Codec::Zstd);
    upsert(&folder, "a.parquet", "b.parquet", batch(9000..9001, 2, "b"));
    let (before, after) = (folder.footer("a.parquet"), folder.footer("b.parquet"));
    for column in [0, 2, 3] {
        let (old, new) = (
            before.row_group(0).column(column),
            after.row_group(0).column(column),
        );
        assert_eq!(old.statistics(), new.statistics());
        assert_eq!(old.uncompressed_size(), new.uncompressed_size());
        assert_eq!(old.encodings_mask(), new.encodings_mask());
        let index = |footer: &ParquetMetaData| {
            let found = footer.page_index_for_row_group(0);
            found.column_index(column).cloned()
        };
        assert!(index(&before).is_some());
        assert_eq!(index(&before), index(&after));
        let indexes = after.page_index_for_row_group(0);
        let first = indexes.offset_index(column).unwrap().page_locations[0].offset;
        assert_eq!(first, new.data_page_offset());
    }
    let keys = ["hoodie_min_record_key", "hoodie_max_record_key"];
    let known = base_values(&folder.store(), "b.parquet", &keys).unwrap();
    assert_eq!(known, [Some(key(0)), Some(key(9000))]);
    // The filter is the one of a file with the same keys that was written at once.
    let at_once = arrow::compute::concat_batches(
        &schema(),
        &[batch(0..5000, 1, "a"), batch(9000..9001, 2, "b")],
    );
    write(&folder, "c.parquet", at_once.unwrap(), Codec::Zstd);
    let filter =
        |name: &str| base_values(&folder.store(), name, &["org.apache.hudi.bloomfilter"]).unwrap();
    assert_eq!(filter("b.parquet"), filter("c.parquet"));
}

#[test]
fn rows_can_be_appended_without_a_look_at_their_keys() {
    let folder = Folder::new("appended");
    write(&folder, "a.parquet", batch(0..3000, 1, "a"), Codec::Zstd);
    let rewrite = Rewrite {
        appended: Some(Box::new(std::iter::once(Ok(batch(0..10, 2, "b"))))),
        new_rows: 10,
        least_rows: 1000,
    };
    let read = slice(&folder, Some("a.parquet"), None, None);
    let options = options("b.parquet", Codec::Zstd);
    rewrite_base_file("b.parquet", read, rewrite, &options).unwrap();
    assert_eq!(folder.groups("b.parquet"), [3000, 10]);
    assert_eq!(folder.rows("b.parquet").len(), 3010);
}

#[test]
fn few_rows_are_written_anew() {
    let folder = Folder::new("least");
    write(&folder, "a.parquet", batch(0..999, 1, "a"), Codec::Zstd);
    let rewrite = Rewrite {
        least_rows: 1000,
        ..Rewrite::default()
    };
    let read = slice(
        &folder,
        Some("a.parquet"),
        Some(batch(5000..5001, 1, "a")),
        None,
    );
    rewrite_base_file(
        "b.parquet",
        read,
        rewrite,
        &options("b.parquet", Codec::Zstd),
    )
    .unwrap();
    assert_eq!(folder.groups("b.parquet"), [1000]);
}

#[test]
fn large_row_groups_are_copied_in_parts() {
    let folder = Folder::new("large");
    let filler = "x".repeat(40);
    let rows = batch(0..300_000, 1, &filler);
    write(&folder, "a.parquet", rows, Codec::Uncompressed);
    assert!(folder.footer("a.parquet").row_group(0).compressed_size() > 16 << 20);
    upsert(
        &folder,
        "a.parquet",
        "b.parquet",
        batch(400_000..400_001, 2, "b"),
    );
    assert_eq!(folder.groups("b.parquet"), [300_000, 1]);
    assert!(folder.pages("a.parquet", 0, 3) == folder.pages("b.parquet", 0, 3));
    assert_eq!(folder.rows("b.parquet").len(), 300_001);
}

#[test]
fn files_of_another_schema_are_written_anew() {
    let folder = Folder::new("schema");
    let narrow = AVRO.replace(r#""long""#, r#""int""#);
    let mut form = options("a.parquet", Codec::Zstd);
    form.avro_schema = narrow;
    let rows = batch(0..3000, 7, "a");
    let fields = schema().fields().iter().cloned().collect::<Vec<_>>();
    let int: ArrayRef = arrow::compute::cast(rows.column(2), &DataType::Int32).unwrap();
    let mut columns = rows.columns().to_vec();
    columns[2] = int;
    let mut fields: Vec<Field> = fields.iter().map(|field| field.as_ref().clone()).collect();
    fields[2] = Field::new("n", DataType::Int32, true);
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let rows: [Result<RecordBatch>; 1] = [Ok(rows)];
    write_base_file(&folder.store(), "a.parquet", rows.into_iter(), &form).unwrap();
    upsert(&folder, "a.parquet", "b.parquet", batch(5000..5001, 2, "b"));
    assert_eq!(folder.groups("b.parquet"), [3001]);
    assert_eq!(
        folder
            .rows("b.parquet")
            .iter()
            .map(|row| row.2)
            .sum::<i64>(),
        21_002
    );
}

#[test]
fn offsets_out_of_the_file_are_damage() {
    let folder = Folder::new("damage");
    write(&folder, "a.parquet", batch(0..3000, 1, "a"), Codec::Zstd);
    let path = folder.0.join("a.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    // The pages go, and the footer stays as it is.
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize;
    bytes.drain(4..bytes.len() - 8 - footer - 100);
    std::fs::write(&path, bytes).unwrap();
    let read = slice(
        &folder,
        Some("a.parquet"),
        Some(batch(5000..5001, 2, "b")),
        None,
    );
    let form = options("b.parquet", Codec::Zstd);
    let written = rewrite_base_file("b.parquet", read, Rewrite::default(), &form);
    assert!(
        matches!(written, Err(SliceError::Corrupt { .. })),
        "{written:?}"
    );
    assert!(!folder.0.join("b.parquet").exists());
}
