//! A file slice written and read back: what is written, merged, pruned, and how damage shows.
#![cfg(test)]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow::array::{ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use pyhudi_merge::MergeMode;
use pyhudi_slice::{
    BaseFileOptions, BloomOptions, Codec, Comparison, Evolution, Filter, Incoming, LogFileOptions,
    MergeSpec, Result, SliceError, SliceKeys, SliceRead, SliceReader, Source, base_schema,
    list_blocks, write_base_file, write_log_file,
};
use pyhudi_store::Store;

const AVRO: &str = r#"{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[
  {"name":"_hoodie_record_key","type":["null","string"],"default":null},
  {"name":"id","type":["null","string"],"default":null},
  {"name":"ts","type":["null","long"],"default":null},
  {"name":"tags","type":["null",{"type":"array","items":["null","string"]}],"default":null},
  {"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pyhudi-slice-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> Store {
        Store::open(self.0.to_str().unwrap(), &[]).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn schema() -> Arc<Schema> {
    Arc::new(pyhudi_avro::arrow_schema(AVRO).unwrap())
}

fn rows(rows: &[(&str, i64)]) -> RecordBatch {
    let keys = StringArray::from(rows.iter().map(|(key, _)| *key).collect::<Vec<_>>());
    let times = Int64Array::from(rows.iter().map(|(_, ts)| *ts).collect::<Vec<_>>());
    let mut tags = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
    for (key, _) in rows {
        tags.append_value([Some(*key), Some("x")]);
    }
    let deleted = arrow::array::new_null_array(&DataType::Boolean, rows.len());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(keys.clone()),
        Arc::new(keys),
        Arc::new(times),
        Arc::new(tags.finish()),
        deleted,
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn base_options() -> BaseFileOptions {
    BaseFileOptions {
        avro_schema: AVRO.to_owned(),
        file_name: None,
        key_column: Some("_hoodie_record_key".to_owned()),
        codec: Codec::Gzip,
        row_group_bytes: 1 << 20,
        page_bytes: 1 << 20,
        old_lists: true,
        two_threads: true,
        dictionary: true,
        bloom: Some(BloomOptions {
            entries: 100,
            by_keys: false,
            fpp: 0.01,
            max_entries: Some(1000),
        }),
    }
}

fn write_base(store: &Store, path: &str, batch: RecordBatch) {
    write_base_file(store, path, std::iter::once(Ok(batch)), &base_options()).unwrap();
}

fn write_log(store: &Store, path: &str, instant: &str, batch: Option<RecordBatch>, gone: &[&str]) {
    let deletes = (!gone.is_empty()).then(|| {
        let keys: ArrayRef = Arc::new(StringArray::from(gone.to_vec()));
        let paths: ArrayRef = Arc::new(StringArray::from(vec![""; gone.len()]));
        RecordBatch::try_from_iter([("key", keys), ("path", paths)]).unwrap()
    });
    let options = LogFileOptions {
        instant: instant.to_owned(),
        avro_schema: AVRO.to_owned(),
        block_bytes: 1 << 20,
        ..LogFileOptions::default()
    };
    let rows = batch.into_iter().map(Ok);
    write_log_file(store, path, rows, deletes.into_iter().map(Ok), &options).unwrap();
}

fn request(store: &Store, base: Option<&str>, logs: &[&str]) -> SliceRead {
    SliceRead {
        base: base.map(str::to_owned),
        logs: logs.iter().map(|log| (*log).to_owned()).collect(),
        columns: vec!["id".to_owned(), "ts".to_owned()],
        merge: MergeSpec {
            mode: MergeMode::EventTime,
            ordering_fields: vec!["ts".to_owned()],
            ..MergeSpec::default()
        },
        batch_rows: 3,
        ..SliceRead::new(store.clone(), schema())
    }
}

fn read(request: SliceRead) -> Result<Vec<(String, i64)>> {
    given(SliceReader::new(request)?)
}

fn given(reader: SliceReader) -> Result<Vec<(String, i64)>> {
    let mut found = Vec::new();
    for batch in reader {
        let batch = batch?;
        let ids = batch.column(0).as_string::<i32>();
        let times = batch.column(1).as_primitive::<Int64Type>();
        let pairs = ids.iter().zip(times.iter());
        found.extend(pairs.map(|(id, ts)| (id.unwrap_or("").to_owned(), ts.unwrap_or(0))));
    }
    found.sort();
    Ok(found)
}

fn pairs(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
    pairs
        .iter()
        .map(|(id, ts)| ((*id).to_owned(), *ts))
        .collect()
}

#[test]
fn a_base_file_reads_back_with_hudis_footer_and_lists() {
    let folder = Folder::new();
    let store = folder.store();
    write_base(&store, "p/b.parquet", rows(&[("a", 1), ("b", 2)]));
    assert_eq!(
        read(request(&store, Some("p/b.parquet"), &[])).unwrap(),
        pairs(&[("a", 1), ("b", 2)])
    );
    let found = base_schema(&store, "p/b.parquet").unwrap();
    assert_eq!(found.avro.as_deref(), Some(AVRO));
    let mut all = request(&store, Some("p/b.parquet"), &[]);
    all.columns = vec!["tags".to_owned()];
    let batch = SliceReader::new(all).unwrap().next().unwrap().unwrap();
    let tags: &ListArray = batch.column(0).as_list();
    assert_eq!(tags.value(1).as_string::<i32>().value(0), "b");
}

#[test]
fn null_list_elements_are_refused_as_hudi_refuses_them() {
    let folder = Folder::new();
    let mut tags = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
    tags.append_value([Some("a"), None]);
    let mut columns = rows(&[("a", 1)]).columns().to_vec();
    columns[3] = Arc::new(tags.finish());
    let batch = RecordBatch::try_new(schema(), columns).unwrap();
    let batches = std::iter::once(Ok(batch));
    let error = write_base_file(&folder.store(), "b.parquet", batches, &base_options());
    assert!(error.unwrap_err().to_string().contains("null elements"));
    assert!(!folder.path("b.parquet").exists());
}

#[test]
fn updates_deletes_and_inserts_of_the_log_are_merged() {
    let folder = Folder::new();
    let store = folder.store();
    write_base(
        &store,
        "b.parquet",
        rows(&[("a", 5), ("b", 5), ("c", 5), ("d", 5)]),
    );
    write_log(
        &store,
        ".f_1.log.1",
        "1",
        Some(rows(&[("a", 9), ("b", 1), ("e", 1)])),
        &["c"],
    );
    write_log(&store, ".f_2.log.1", "2", Some(rows(&[("e", 2)])), &[]);
    let read_it = request(&store, Some("b.parquet"), &[".f_1.log.1", ".f_2.log.1"]);
    let reader = SliceReader::new(request(
        &store,
        Some("b.parquet"),
        &[".f_1.log.1", ".f_2.log.1"],
    ))
    .unwrap();
    let stats = reader.stats();
    assert_eq!(
        reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(),
        4
    );
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    assert_eq!(
        (
            count(&stats.updated),
            count(&stats.deleted),
            count(&stats.inserted)
        ),
        (1, 1, 1)
    );
    assert_eq!((count(&stats.base_rows), count(&stats.log_records)), (4, 5));
    assert_eq!(
        read(read_it).unwrap(),
        pairs(&[("a", 9), ("b", 5), ("d", 5), ("e", 2)])
    );
}

#[test]
fn a_slice_of_log_files_alone_reads() {
    let folder = Folder::new();
    let store = folder.store();
    write_log(
        &store,
        ".f_1.log.1",
        "1",
        Some(rows(&[("a", 1), ("b", 1)])),
        &["b"],
    );
    assert_eq!(
        read(request(&store, None, &[".f_1.log.1"])).unwrap(),
        pairs(&[("a", 1)])
    );
}

#[test]
fn change_log_operations_count_though_the_table_does_not_have_the_column() {
    let folder = Folder::new();
    let store = folder.store();
    let field = r#"{"name":"_hoodie_operation","type":["null","string"],"default":null},"#;
    let schema = AVRO.replacen("{\"name\":\"id\"", &format!("{field}{{\"name\":\"id\""), 1);
    let batch = rows(&[("a", 1), ("b", 1), ("c", 1)]);
    let mut fields = batch.schema().fields().to_vec();
    fields.push(Arc::new(Field::new(
        "_hoodie_operation",
        DataType::Utf8,
        true,
    )));
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(StringArray::from(vec![
        Some("D"),
        Some("I"),
        None,
    ])));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let options = LogFileOptions {
        instant: "1".to_owned(),
        avro_schema: schema,
        block_bytes: 1 << 20,
        ..LogFileOptions::default()
    };
    let path = ".f_1.log.1";
    write_log_file(
        &store,
        path,
        std::iter::once(Ok(batch)),
        std::iter::empty(),
        &options,
    )
    .unwrap();
    let found = read(request(&store, None, &[path])).unwrap();
    assert_eq!(found, pairs(&[("b", 1), ("c", 1)]));
}

#[test]
fn blocks_of_later_and_of_uncommitted_instants_are_passed_over() {
    let folder = Folder::new();
    let store = folder.store();
    for (instant, ts) in [("3", 1), ("5", 2), ("7", 3)] {
        let path = format!(".f_{instant}.log.1");
        write_log(&store, &path, instant, Some(rows(&[("a", ts)])), &[]);
    }
    let logs = [".f_3.log.1", ".f_5.log.1", ".f_7.log.1"];
    let mut until = request(&store, None, &logs);
    until.filter.max_instant = Some("5".to_owned());
    assert_eq!(read(until).unwrap(), pairs(&[("a", 2)]));
    let mut committed = request(&store, None, &logs);
    committed.filter.valid_instants = Some(HashSet::from(["7".to_owned()]));
    committed.filter.timeline_start = Some("4".to_owned());
    let reader = SliceReader::new(committed).unwrap();
    let stats = reader.stats();
    assert_eq!(reader.count(), 1);
    assert_eq!(stats.log_records.load(Ordering::Relaxed), 2);
}

#[test]
fn a_rollback_block_takes_away_what_came_before_it() {
    let folder = Folder::new();
    let store = folder.store();
    write_log(&store, ".f_0.log.1", "1", Some(rows(&[("a", 1)])), &[]);
    write_log(&store, ".f_0.log.2", "2", Some(rows(&[("a", 2)])), &[]);
    let mut block = Vec::new();
    pyhudi_format::log::rollback_block(&mut block, "3", "2");
    std::fs::write(folder.path(".f_0.log.3"), block).unwrap();
    let logs = [".f_0.log.1", ".f_0.log.2", ".f_0.log.3"];
    assert_eq!(
        read(request(&store, None, &logs)).unwrap(),
        pairs(&[("a", 1)])
    );
}

#[test]
fn incoming_records_are_the_newest() {
    let folder = Folder::new();
    let store = folder.store();
    write_base(&store, "b.parquet", rows(&[("a", 1), ("b", 1), ("c", 9)]));
    let batch = rows(&[("a", 2), ("c", 3), ("d", 1)]);
    let mut merged = request(&store, Some("b.parquet"), &[]);
    merged.incoming = Incoming {
        rows: Some(Box::new(std::iter::once(Ok(batch)))),
        delete_keys: Some(StringArray::from(vec!["b"])),
    };
    assert_eq!(
        read(merged).unwrap(),
        pairs(&[("a", 2), ("c", 9), ("d", 1)])
    );
}

#[test]
fn row_groups_are_left_out_only_when_nothing_is_merged() {
    let folder = Folder::new();
    let store = folder.store();
    let many: Vec<(String, i64)> = (0..20_000).map(|n| (format!("key-{n:06}"), n)).collect();
    let many: Vec<(&str, i64)> = many.iter().map(|(key, n)| (key.as_str(), *n)).collect();
    let batches: Vec<_> = many.chunks(1000).map(|chunk| Ok(rows(chunk))).collect();
    let options = BaseFileOptions {
        row_group_bytes: 64 << 10,
        codec: Codec::Uncompressed,
        ..base_options()
    };
    write_base_file(&store, "b.parquet", batches.into_iter(), &options).unwrap();
    write_log(
        &store,
        ".f_1.log.1",
        "1",
        Some(rows(&[("key-000001", 0)])),
        &[],
    );
    let filter = Filter {
        column: "ts".to_owned(),
        comparison: Comparison::GreaterOrEqual,
        literals: Arc::new(Int64Array::from(vec![19_999])),
    };
    let count = |logs: &[&str]| {
        let mut read = request(&store, Some("b.parquet"), logs);
        read.filters = vec![filter.clone()];
        let reader = SliceReader::new(read).unwrap();
        let stats = reader.stats();
        let rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
        (rows, stats.pruned_row_groups.load(Ordering::Relaxed))
    };
    let (rows_read, pruned) = count(&[]);
    assert!(
        pruned > 0 && rows_read < 20_000,
        "{pruned} pruned, {rows_read} read"
    );
    // With something to merge: the row that matches and the one that a log record could replace.
    assert_eq!(count(&[".f_1.log.1"]), (2, 0));
}

#[test]
fn parts_of_a_base_file_hold_each_row_once() {
    let folder = Folder::new();
    let store = folder.store();
    let many: Vec<(String, i64)> = (0..20_000).map(|n| (format!("key-{n:06}"), n)).collect();
    let many: Vec<(&str, i64)> = many.iter().map(|(key, n)| (key.as_str(), *n)).collect();
    let options = BaseFileOptions {
        row_group_bytes: 64 << 10,
        codec: Codec::Uncompressed,
        ..base_options()
    };
    let batches: Vec<_> = many.chunks(1000).map(|chunk| Ok(rows(chunk))).collect();
    write_base_file(&store, "b.parquet", batches.into_iter(), &options).unwrap();
    let of = |part| {
        let mut request = request(&store, Some("b.parquet"), &[]);
        request.base_part = Some(part);
        read(request).unwrap()
    };
    let (first, second) = (of(0..200_000), of(200_000..u64::MAX));
    assert!(!first.is_empty() && !second.is_empty());
    let whole = read(request(&store, Some("b.parquet"), &[])).unwrap();
    assert_eq!([first, second].concat(), whole);

    let mut merged = request(&store, Some("b.parquet"), &[".f_1.log.1"]);
    merged.base_part = Some(0..200_000);
    assert!(SliceReader::new(merged).is_err());
}

#[test]
fn the_keys_of_a_slice_hold_deleted_ones_too() {
    let folder = Folder::new();
    let store = folder.store();
    write_base(&store, "b.parquet", rows(&[("a", 1), ("b", 1)]));
    write_log(&store, ".f_1.log.1", "1", Some(rows(&[("c", 1)])), &["a"]);
    let keys = SliceKeys::new(request(&store, Some("b.parquet"), &[".f_1.log.1"])).unwrap();
    let mut found = HashSet::new();
    for batch in keys {
        let batch = batch.unwrap();
        found.extend(
            batch
                .column(0)
                .as_string::<i32>()
                .iter()
                .flatten()
                .map(str::to_owned),
        );
    }
    assert_eq!(found, HashSet::from(["a", "b", "c"].map(str::to_owned)));
}

#[test]
fn blocks_are_listed_with_their_headers() {
    let folder = Folder::new();
    let store = folder.store();
    write_log(&store, ".f_1.log.1", "1", Some(rows(&[("a", 1)])), &["b"]);
    let blocks = list_blocks(&store, ".f_1.log.1").unwrap();
    let types: Vec<&str> = blocks.iter().map(|block| block.block_type).collect();
    assert_eq!(types.len(), 2);
    let header = &blocks[0].header;
    assert!(
        header.contains(&("INSTANT_TIME".to_owned(), "1".to_owned())),
        "{header:?}"
    );
}

/// Every way to cut the file off, and a flipped bit at every byte: an answer or a typed error.
fn damaged(folder: &Folder, name: &str, read_it: &dyn Fn() -> Result<Vec<(String, i64)>>) {
    let path: &Path = &folder.path(name);
    let whole = std::fs::read(path).unwrap();
    let step = (whole.len() / 400).max(1);
    for at in (0..whole.len()).step_by(step) {
        std::fs::write(path, &whole[..at]).unwrap();
        check(read_it(), name, at);
        let mut flipped = whole.clone();
        flipped[at] ^= 0x41;
        std::fs::write(path, flipped).unwrap();
        check(read_it(), name, at);
    }
    std::fs::write(path, whole).unwrap();
}

fn check(result: Result<Vec<(String, i64)>>, name: &str, at: usize) {
    if let Err(SliceError::Corrupt { file, .. }) = result {
        assert!(file.contains(name), "{file} at {at}");
    }
}

#[test]
fn a_damaged_log_file_is_an_error_or_skipped_never_a_panic() {
    let folder = Folder::new();
    let store = folder.store();
    write_log(
        &store,
        ".f_1.log.1",
        "1",
        Some(rows(&[("a", 1), ("b", 2)])),
        &["c"],
    );
    damaged(&folder, ".f_1.log.1", &|| {
        read(request(&store, None, &[".f_1.log.1"]))
    });
}

#[test]
fn a_torn_last_block_is_counted_and_skipped() {
    let folder = Folder::new();
    let store = folder.store();
    write_log(&store, ".f_1.log.1", "1", Some(rows(&[("a", 1)])), &["a"]);
    let whole = std::fs::read(folder.path(".f_1.log.1")).unwrap();
    std::fs::write(folder.path(".f_1.log.1"), &whole[..whole.len() - 3]).unwrap();
    let reader = SliceReader::new(request(&store, None, &[".f_1.log.1"])).unwrap();
    let stats = reader.stats();
    assert_eq!(
        reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(),
        1
    );
    assert_eq!(stats.corrupt_blocks.load(Ordering::Relaxed), 1);
}

#[test]
fn a_base_file_cut_off_is_an_error_that_names_it() {
    let folder = Folder::new();
    let store = folder.store();
    write_base(&store, "b.parquet", rows(&[("a", 1)]));
    let whole = std::fs::read(folder.path("b.parquet")).unwrap();
    for at in [0, 3, 7, whole.len() / 2, whole.len() - 1] {
        std::fs::write(folder.path("b.parquet"), &whole[..at]).unwrap();
        let error = read(request(&store, Some("b.parquet"), &[])).unwrap_err();
        let named = matches!(&error, SliceError::Corrupt { file, .. } if file == "b.parquet");
        assert!(named, "cut at {at}: {error}");
    }
}

#[test]
fn a_column_that_the_table_lacks_is_named() {
    let folder = Folder::new();
    let mut read = request(&folder.store(), None, &[]);
    read.columns = vec!["nope".to_owned()];
    let error = SliceReader::new(read).err().unwrap().to_string();
    assert!(error.contains("nope"));
}

/// A table in which `ts` was renamed to `at`, and another column then was called `ts`.
fn renamed(store: &Store, base: Option<&str>, logs: &[&str], column: &str) -> SliceRead {
    let old = schema();
    let mut fields: Vec<_> = old.fields().iter().take(2).cloned().collect();
    let long = |name| Arc::new(Field::new(name, DataType::Int64, true));
    fields.extend([long("at"), long("ts")]);
    let source = |name: &str, stored: Option<&str>| Source {
        name: name.to_owned(),
        stored: stored.map(str::to_owned),
        parts: Vec::new(),
    };
    let map = [
        source("_hoodie_record_key", Some("_hoodie_record_key")),
        source("id", Some("id")),
        source("at", Some("ts")),
        source("ts", None),
    ];
    SliceRead {
        schema: Arc::new(Schema::new(fields)),
        columns: vec!["id".to_owned(), column.to_owned()],
        merge: MergeSpec {
            mode: MergeMode::EventTime,
            ordering_fields: vec!["at".to_owned()],
            ..MergeSpec::default()
        },
        evolution: Some(Evolution {
            maps: vec![Arc::from(map)],
            versions: vec![(String::new(), Some(0)), ("3".to_owned(), None)],
            base: "1".to_owned(),
        }),
        ..request(store, base, logs)
    }
}

#[test]
fn a_renamed_column_is_read_and_merged_under_its_old_name() {
    let folder = Folder::new();
    let store = folder.store();
    write_base(
        &store,
        "base.parquet",
        rows(&[("a", 1), ("b", 2), ("c", 3)]),
    );
    write_log(
        &store,
        ".f_1.log.1",
        "2",
        Some(rows(&[("a", 5), ("b", 0)])),
        &[],
    );
    let files = (Some("base.parquet"), [".f_1.log.1"]);
    let wanted = pairs(&[("a", 5), ("b", 2), ("c", 3)]);
    assert_eq!(
        read(renamed(&store, files.0, &files.1, "at")).unwrap(),
        wanted
    );
    let nulls = pairs(&[("a", 0), ("b", 0), ("c", 0)]);
    assert_eq!(
        read(renamed(&store, files.0, &files.1, "ts")).unwrap(),
        nulls
    );
}

#[test]
fn filters_look_at_the_column_under_its_old_name() {
    let folder = Folder::new();
    let store = folder.store();
    write_base(&store, "base.parquet", rows(&[("a", 1), ("b", 2)]));
    let kept = |column: &str, literal: i64| {
        let mut request = renamed(&store, Some("base.parquet"), &[], "at");
        request.filters = vec![Filter {
            column: column.to_owned(),
            comparison: Comparison::In,
            literals: Arc::new(Int64Array::from(vec![literal])),
        }];
        read(request).unwrap().len()
    };
    assert_eq!((kept("at", 1), kept("at", 9)), (1, 0));
    // The new column has no values there, whatever the old one of that name has.
    assert_eq!((kept("ts", 1), kept("ts", 9)), (0, 0));
}

#[test]
fn a_filter_on_the_key_spares_other_base_rows_whoever_wins() {
    let folder = Folder::new();
    let store = folder.store();
    let others: Vec<String> = (0..3000).map(|row| format!("x{row:04}")).collect();
    let mut base = vec![("a", 5), ("b", 2), ("c", 3)];
    base.extend(others.iter().map(|key| (key.as_str(), 4)));
    write_base(&store, "base.parquet", rows(&base));
    // "a" has an older ordering value; what becomes of it depends on the base row.
    let late = rows(&[("a", 1), ("b", 7), ("n", 1)]);
    write_log(&store, ".f_1.log.1", "2", Some(late), &[]);
    let looked_up = |column: &str, key: &str| {
        let mut request = request(&store, Some("base.parquet"), &[".f_1.log.1"]);
        request.merge.plain_key = Some("id".to_owned());
        request.filters = vec![Filter {
            column: column.to_owned(),
            comparison: Comparison::In,
            literals: Arc::new(StringArray::from(vec![key])),
        }];
        let reader = SliceReader::new(request).unwrap();
        let stats = reader.stats();
        let mut found = given(reader).unwrap();
        found.retain(|(id, _)| id == key);
        // A few neighbours are decoded along with a row.
        assert!(stats.base_rows.load(Ordering::Relaxed) < 100, "{column}");
        found
    };
    for column in ["id", "_hoodie_record_key"] {
        assert_eq!(looked_up(column, "a"), pairs(&[("a", 5)]));
        assert_eq!(looked_up(column, "b"), pairs(&[("b", 7)]));
        assert_eq!(looked_up(column, "c"), pairs(&[("c", 3)]));
        assert_eq!(looked_up(column, "n"), pairs(&[("n", 1)]));
    }
}

/// As Hudi 1.2.0 leaves a row that its `MERGE INTO` updated without naming the key column.
fn without_id(rows: &RecordBatch, gone: &str) -> RecordBatch {
    let ids = rows.column(1).as_string::<i32>().iter();
    let ids: StringArray = ids.map(|id| id.filter(|id| *id != gone)).collect();
    let mut columns = rows.columns().to_vec();
    columns[1] = Arc::new(ids);
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

#[test]
fn records_are_merged_by_the_stored_key_where_the_key_column_is_null() {
    let folder = Folder::new();
    let store = folder.store();
    let base = rows(&[("a", 5), ("b", 5), ("c", 5)]);
    write_base(&store, "base.parquet", without_id(&base, "a"));
    let late = rows(&[("a", 1), ("b", 7)]);
    write_log(&store, ".f_1.log.1", "2", Some(late), &[]);
    let last = without_id(&rows(&[("c", 9)]), "c");
    write_log(&store, ".f_1.log.2", "3", Some(last), &[]);
    let asked = |column: Option<&str>| {
        let mut request = request(&store, Some("base.parquet"), &[".f_1.log.1", ".f_1.log.2"]);
        request.merge.plain_key = Some("id".to_owned());
        request.filters = column
            .map(|column| Filter {
                column: column.to_owned(),
                comparison: Comparison::In,
                literals: Arc::new(StringArray::from(vec!["a"])),
            })
            .into_iter()
            .collect();
        read(request).unwrap()
    };
    assert_eq!(asked(None), pairs(&[("", 5), ("", 9), ("b", 7)]));
    // The late record of "a" lost, whichever column the filter names.
    for column in ["id", "_hoodie_record_key"] {
        assert!(!asked(Some(column)).contains(&("a".to_owned(), 1)));
    }
}

#[test]
fn a_row_without_stored_key_is_damage_of_its_file() {
    let folder = Folder::new();
    let store = folder.store();
    let mut columns = rows(&[("a", 5)]).columns().to_vec();
    columns[0] = arrow::array::new_null_array(&DataType::Utf8, 1);
    let keyless = RecordBatch::try_new(schema(), columns).unwrap();
    write_base(&store, "base.parquet", rows(&[("a", 1)]));
    write_log(&store, ".f_1.log.1", "2", Some(keyless), &[]);
    let request = request(&store, Some("base.parquet"), &[".f_1.log.1"]);
    let error = read(request).unwrap_err();
    let SliceError::Corrupt { file, offset, .. } = &error else {
        panic!("{error}");
    };
    assert!(file.ends_with(".f_1.log.1") && offset.is_some(), "{error}");
    assert!(error.to_string().contains("no record key"), "{error}");
}
