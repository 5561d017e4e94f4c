//! The record index: keys that come and leave, file ids of every form.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow::array::{AsArray, RecordBatch, StringArray};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use pyhudi_metadata::{
    Location, MetadataPartition, Recorder, locations, possible_locations, record_locations,
};
use pyhudi_store::Store;

use crate::groups::{Groups, SCHEMA};

const GROUPS: u32 = 2;

/// What a commit does: keys that come to a file group, and keys that leave the table.
#[derive(Debug, Clone)]
struct Commit {
    partition: String,
    file_id: String,
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
}

fn file_id() -> impl Strategy<Value = String> {
    let uuid = || "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
    prop_oneof![
        uuid().prop_map(String::from),
        (uuid(), 0..20_u64).prop_map(|(uuid, number)| format!("{uuid}-{number}")),
        (uuid(), "[-+]?[0-9]{1,11}").prop_map(|(uuid, number)| format!("{uuid}-{number}")),
        "[A-Za-z0-9-]{1,40}",
    ]
}

fn commit() -> impl Strategy<Value = Commit> {
    let key = || prop_oneof![4 => "k[0-9]", 1 => "\\PC{1,5}"];
    (
        "[a-z=/]{0,8}",
        file_id(),
        btree_set(key(), 0..6),
        btree_set(key(), 0..3),
    )
        .prop_map(|(partition, file_id, added, removed)| Commit {
            partition,
            file_id,
            added,
            removed,
        })
}

fn texts(keys: &BTreeSet<String>) -> StringArray {
    keys.iter().map(Some).collect()
}

/// The partition with these commits.
fn written(store: &Store, commits: &[Commit], compactions: &BTreeSet<usize>) -> MetadataPartition {
    let counts = HashMap::from([("record_index".to_owned(), GROUPS)]);
    let recorder = Recorder::new(SCHEMA, counts).unwrap();
    let rows = commits.iter().enumerate().map(|(number, commit)| {
        let location = Location {
            partition: commit.partition.clone(),
            file_id: commit.file_id.clone(),
            instant_ms: number as i64,
            groups: None,
        };
        let (added, removed) = (texts(&commit.added), texts(&commit.removed));
        locations(&recorder, &location, &added, &removed).unwrap()
    });
    let groups = Groups {
        store,
        partition: "record_index",
        count: GROUPS,
        schema: SCHEMA,
    };
    groups.write(&rows.collect::<Vec<_>>(), compactions)
}

fn found(rows: &RecordBatch) -> BTreeMap<String, (String, String)> {
    let text = |name: &str, row: usize| {
        rows.column_by_name(name)
            .unwrap()
            .as_string::<i32>()
            .value(row)
            .to_owned()
    };
    (0..rows.num_rows())
        .map(|row| {
            (
                text("key", row),
                (text("partition", row), text("file_id", row)),
            )
        })
        .collect()
}

proptest! {
    #[test]
    fn an_index_has_the_last_location_of_each_key(
        commits in vec(commit(), 1..5),
        compactions in btree_set(0..5_usize, 0..3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().to_str().unwrap(), &[]).unwrap();
        let partition = written(&store, &commits, &compactions);
        let mut expected = BTreeMap::new();
        for commit in &commits {
            for key in &commit.removed {
                expected.remove(key);
            }
            // A record beats a deletion of the same commit: the key came from one file to another.
            for key in &commit.added {
                expected.insert(
                    key.clone(),
                    (commit.partition.clone(), commit.file_id.clone()),
                );
            }
        }
        prop_assert_eq!(
            found(&record_locations(&partition, None).unwrap()),
            expected.clone()
        );
        let asked: BTreeSet<String> = commits
            .iter()
            .flat_map(|commit| commit.added.union(&commit.removed))
            .cloned()
            .collect();
        let asked: Vec<String> = asked.into_iter().chain(["absent".to_owned()]).collect();
        prop_assert_eq!(
            found(&record_locations(&partition, Some(&asked)).unwrap()),
            expected.clone()
        );
        let possible = possible_locations(&partition, &asked).unwrap();
        for location in expected.values() {
            prop_assert!(possible.contains(location), "{location:?}");
        }
    }
}
