use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::{Duration, UNIX_EPOCH};

use pyhudi_store::{Listing, Store};

use crate::helpers::{TempDir, paths};

#[test]
fn recursive_listing_has_all_files_sorted_by_path() {
    let dir = TempDir::new();
    for name in ["b/2", "b/1", "a.x", "a/z/deep/f", "a/y", ".hoodie/t/c"] {
        dir.write(name, name);
    }
    fs::create_dir(dir.join("empty")).unwrap();
    let store = dir.store();
    let all = store.list("").unwrap();
    assert_eq!(
        paths(&all),
        [".hoodie/t/c", "a.x", "a/y", "a/z/deep/f", "b/1", "b/2"]
    );
    assert!(
        all.iter()
            .all(|entry| entry.size == entry.path.len() as u64)
    );
    assert_eq!(paths(&store.list("a").unwrap()), ["a/y", "a/z/deep/f"]);
}

#[test]
fn one_level_has_directories_and_files_apart() {
    let dir = TempDir::new();
    for name in ["p/b/1", "p/a/2", "p/z", "p/y", "other"] {
        dir.write(name, "");
    }
    fs::create_dir(dir.join("p/empty")).unwrap();
    let level = dir.store().list_dir("p").unwrap();
    assert_eq!(level.dirs, ["p/a", "p/b", "p/empty"]);
    assert_eq!(paths(&level.files), ["p/y", "p/z"]);
}

#[test]
fn a_missing_prefix_is_empty() {
    let dir = TempDir::new();
    dir.write("file", "");
    dir.write("prefixed/x", "");
    let store = dir.store();
    for prefix in ["none", "none/deeper", "file", "file/below", "pre"] {
        assert_eq!(store.list(prefix).unwrap(), []);
        assert_eq!(store.list_dir(prefix).unwrap(), Listing::default());
    }
    let nowhere = Store::open(dir.join("none").to_str().unwrap(), &[]).unwrap();
    assert_eq!(nowhere.list("").unwrap(), []);
}

#[test]
fn head_tells_what_a_listing_tells() {
    let dir = TempDir::new();
    dir.write("d/f", "12345");
    let changed = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
    let file = File::options().write(true).open(dir.join("d/f")).unwrap();
    file.set_modified(changed).unwrap();
    let store = dir.store();
    let entry = store.head("d/f").unwrap().unwrap();
    assert_eq!((entry.size, entry.modified_ms), (5, 1_700_000_000_123));
    let expected = std::slice::from_ref(&entry);
    assert_eq!(store.list("").unwrap(), expected);
    assert_eq!(store.list_dir("d").unwrap().files, expected);
}

#[test]
fn a_file_counts_as_changed_when_it_is_said_to() {
    let dir = TempDir::new();
    dir.write("d/f", "12345");
    let store = dir.store();
    assert!(store.set_modified("d/f", 1_700_000_000_123).unwrap());
    let entry = store.head("d/f").unwrap().unwrap();
    assert_eq!((entry.size, entry.modified_ms), (5, 1_700_000_000_123));
    assert!(store.set_modified("d/none", 1).is_err());
}

#[test]
fn links_are_followed_and_links_to_nothing_are_nothing() {
    let dir = TempDir::new();
    dir.write("outside/f", "123");
    dir.write("t/own", "1");
    symlink(dir.join("outside"), dir.join("t/dir")).unwrap();
    symlink(dir.join("outside/f"), dir.join("t/file")).unwrap();
    symlink(dir.join("gone"), dir.join("t/dangling")).unwrap();
    let store = dir.store();
    let found = store.list("t").unwrap();
    assert_eq!(paths(&found), ["t/dir/f", "t/file", "t/own"]);
    assert_eq!(found[1].size, 3);
    assert_eq!(store.head("t/dangling").unwrap(), None);

    store.delete_dir("t").unwrap();
    assert_eq!(dir.names("outside"), ["f"]);
}

#[test]
fn a_cycle_of_links_is_an_error() {
    let dir = TempDir::new();
    dir.write("a/f", "");
    symlink(dir.join("a"), dir.join("a/again")).unwrap();
    dir.store().list("").unwrap_err();
}

#[test]
fn a_name_that_is_not_text_is_an_error() {
    let dir = TempDir::new();
    fs::write(dir.path().join(OsStr::from_bytes(b"\xff")), "").unwrap();
    let error = dir.store().list("").unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

#[test]
fn deleting_a_directory_takes_it_away() {
    let dir = TempDir::new();
    dir.write("p/a/b/f", "");
    dir.write("p2/f", "");
    let store = dir.store();
    store.delete_dir("p").unwrap();
    store.delete_dir("p").unwrap();
    assert_eq!(dir.names(""), ["p2"]);
    store.delete_dir("p2/f").unwrap_err();
}
