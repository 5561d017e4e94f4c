//! The `files` partition: files that come, grow and go, in any order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use pyhudi_metadata::{FileEntry, KeptRecords, Recorder, file_listing};
use pyhudi_store::Store;

use crate::groups::{Groups, SCHEMA};

const ALL_PARTITIONS: &str = "__all_partitions__";

/// Sizes of files that a commit adds by key and name; none of a file that it deletes.
type Commit = BTreeMap<(String, String), Option<i64>>;

/// Sizes and whether it is only known as deleted, by key and name.
type Listing = BTreeMap<(String, String), (i64, bool)>;

fn commit() -> impl Strategy<Value = Commit> {
    let key = prop::sample::select(vec![".", "p", "p/q=1", ALL_PARTITIONS]);
    let name = prop_oneof![8 => "[a-d]", 1 => "\\PC{1,4}"];
    let size =
        prop_oneof![2 => (0..100_i64).prop_map(Some), 1 => Just(None), 1 => Just(Some(i64::MAX))];
    btree_map((key.prop_map(str::to_owned), name), size, 0..8)
}

fn rows(recorder: &Recorder, commit: &Commit) -> RecordBatch {
    let entries = commit.iter().map(|((key, name), size)| FileEntry {
        key: key.clone(),
        name: name.clone(),
        size: size.unwrap_or(0),
        deleted: size.is_none(),
    });
    recorder.files(&entries.collect::<Vec<_>>(), &[]).unwrap()
}

/// The commits one after the other over a plain map.
fn expected(commits: &[Commit]) -> Listing {
    let mut listing = Listing::new();
    for (file, size) in commits.iter().flatten() {
        let known = listing.get(file).copied();
        match (known, size) {
            // A deletion of what is there leaves nothing, and else stays until the file comes.
            (Some((_, false)), None) => {
                listing.remove(file);
            }
            (_, None) => {
                listing.insert(file.clone(), (0, true));
            }
            (Some((known, false)), Some(size)) => {
                listing.insert(file.clone(), (known.max(*size), false));
            }
            (_, Some(size)) => {
                listing.insert(file.clone(), (*size, false));
            }
        }
    }
    listing
}

fn listing_of(rows: &RecordBatch) -> Listing {
    let text =
        |column: usize, row: usize| rows.column(column).as_string::<i32>().value(row).to_owned();
    let entry = |row: usize| {
        let size = rows.column(2).as_primitive::<Int64Type>().value(row);
        let is_deleted = rows.column(3).as_boolean().value(row);
        ((text(0, row), text(1, row)), (size, is_deleted))
    };
    (0..rows.num_rows()).map(entry).collect()
}

proptest! {
    #[test]
    fn a_listing_is_that_of_a_plain_map(
        commits in vec(commit(), 1..8),
        compactions in btree_set(0..8_usize, 0..4),
        count in 1..3_u32,
        keys in btree_set(prop::sample::select(vec![".", "p", "p/q=1", ALL_PARTITIONS, "none"]), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().to_str().unwrap(), &[]).unwrap();
        let counts = HashMap::from([("files".to_owned(), count)]);
        let recorder = Recorder::new(SCHEMA, counts).unwrap();
        let groups = Groups { store: &store, partition: "files", count, schema: SCHEMA };
        let rows: Vec<_> = commits.iter().map(|commit| rows(&recorder, commit)).collect();
        let mut partition = groups.write(&rows, &compactions);
        let expected = expected(&commits);
        let listing = file_listing(&partition, None).unwrap();
        prop_assert_eq!(listing.num_rows(), expected.len());
        prop_assert_eq!(listing_of(&listing), expected.clone());

        let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
        let asked: BTreeSet<&String> = keys.iter().collect();
        let mut of_keys = expected;
        of_keys.retain(|(key, _), _| asked.contains(key));
        partition.kept = Some(Arc::new(KeptRecords::new(1 << 20)));
        for _ in 0..2 {
            let listing = file_listing(&partition, Some(&keys)).unwrap();
            prop_assert_eq!(listing_of(&listing), of_keys.clone());
        }
    }
}
