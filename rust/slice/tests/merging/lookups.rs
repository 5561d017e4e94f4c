//! Reads of few keys: no other records are decoded, and the rows of the keys are those of a whole read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use pyhudi_merge::MergeMode;
use pyhudi_slice::{KeyedSlice, Lookup, LookupCache, SliceRead};

use crate::support::{Slice, rows_of};

const FIELDS: &str = r#"
  {"name":"_hoodie_record_key","type":["null","string"],"default":null},
  {"name":"n","type":["null","long"],"default":null}"#;

fn batch(slice: &Slice, rows: &[(&str, i64)]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(row.0)).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int64Array>()),
    ];
    RecordBatch::try_new(Arc::clone(&slice.schema), columns).unwrap()
}

/// Keys in no order; logs with an update that wins, one that loses by its value, and deletes.
fn slice() -> Slice {
    let slice = Slice::new(FIELDS);
    slice.write_base(vec![
        batch(&slice, &[("d", 4), ("a", 1)]),
        batch(&slice, &[("f", 6), ("b", 2)]),
        batch(&slice, &[("e", 5), ("c", 3)]),
    ]);
    slice.write_log(
        ".1",
        vec![batch(&slice, &[("a", 10), ("f", 0), ("g", 7)])],
        &["e"],
    );
    slice.write_log(".2", vec![batch(&slice, &[("a", 11), ("h", 8)])], &["b"]);
    slice
}

fn read(slice: &Slice, mode: MergeMode) -> SliceRead {
    let mut read = slice.read(&[".1", ".2"]);
    read.merge.mode = mode;
    if mode == MergeMode::EventTime {
        read.merge.ordering_fields = vec!["n".to_owned()];
    }
    read
}

fn with_key(rows: Vec<String>, key: &str) -> Vec<String> {
    let is_of_key = |row: &String| row.contains(key);
    rows.into_iter().filter(is_of_key).collect()
}

#[test]
fn rows_of_a_key_are_those_of_a_whole_read() {
    let slice = slice();
    for mode in [MergeMode::CommitTime, MergeMode::EventTime] {
        let (all, _) = rows_of(read(&slice, mode));
        let cache = Arc::new(LookupCache::new(1 << 20));
        for _ in 0..2 {
            for key in ["a", "b", "c", "d", "e", "f", "g", "h", "x"] {
                let lookup = Lookup::new(&cache, 0, [key]);
                let (rows, _) = rows_of(read(&slice, mode).looking_up(lookup, Vec::new()));
                assert_eq!(
                    with_key(rows, key),
                    with_key(all.clone(), key),
                    "{key} {mode:?}"
                );
            }
        }
    }
}

#[test]
fn records_of_other_keys_are_not_decoded() {
    let slice = slice();
    let cache = Arc::new(LookupCache::new(1 << 20));
    let counts = |key: &str| {
        let lookup = Lookup::new(&cache, 0, [key]);
        let read = read(&slice, MergeMode::CommitTime).looking_up(lookup, Vec::new());
        let (_, stats) = rows_of(read);
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        (count(&stats.base_rows), count(&stats.log_records))
    };
    for _ in 0..2 {
        assert_eq!(counts("c"), (1, 0));
        assert_eq!(counts("a"), (1, 2));
        assert_eq!(counts("h"), (0, 1));
        assert_eq!(counts("x"), (0, 0));
    }
    assert!(cache.bytes() > 0);
}

#[test]
fn rows_without_log_records_are_taken_out_of_memory() {
    let slice = slice();
    let cache = Arc::new(LookupCache::new(1 << 20));
    let keyed = KeyedSlice::new(read(&slice, MergeMode::CommitTime));
    for (key, is_in_memory) in [
        ("c", true),
        ("d", true),
        ("x", true),
        ("a", false),
        ("b", false),
        ("e", false),
        ("h", false),
    ] {
        let lookup = Lookup::new(&cache, 0, [key]);
        let keys = [key.to_owned()];
        let rows = keyed.read_rows(&lookup, &keys).unwrap();
        let found = keyed.rows_in_memory(&lookup, &keys);
        assert_eq!(found, is_in_memory.then_some(rows), "{key}");
    }
    let keys = ["c".to_owned()];
    let later = Lookup::new(&cache, 1, ["c"]);
    let found = keyed.rows_in_memory(&later, &keys);
    assert_eq!(found, None, "log blocks of another snapshot");
}
