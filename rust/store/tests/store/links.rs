//! Symbolic links inside a table: read through, never changed behind.

use std::fs;
use std::os::unix::fs::symlink;

use bytes::Bytes;
use pyhudi_store::{Store, StoreError};

use crate::helpers::TempDir;

/// A table with a folder `link` that is a link to a folder outside, which holds `d/f`.
fn linked() -> TempDir {
    let dir = TempDir::new();
    dir.write("outside/d/f", "others'");
    dir.write("outside/d/.f.crc", "others'");
    dir.write("t/own/f", "ours");
    symlink(dir.join("outside"), dir.join("t/link")).unwrap();
    dir
}

fn table(dir: &TempDir) -> Store {
    Store::open(dir.join("t").to_str().unwrap(), &[]).unwrap()
}

fn assert_refused<T: std::fmt::Debug>(result: Result<T, StoreError>, link: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().contains(link), "{error}");
}

#[test]
fn nothing_is_changed_behind_a_link() {
    let dir = linked();
    let store = table(&dir);
    let bytes = || Bytes::from_static(b"new");
    assert_eq!(store.read("link/d/f").unwrap(), "others'");
    for path in ["link/d/f", "link/d/new", "link/new/f", "link/new"] {
        assert_refused(store.put(path, bytes()), "t/link");
        assert_refused(store.put_if_absent(path, bytes()), "t/link");
        assert_refused(store.create(path), "t/link");
    }
    assert_refused(store.delete("link/d/f"), "t/link");
    assert_refused(store.delete_dir("link/d"), "t/link");
    assert_eq!(dir.names("outside"), ["d"]);
    assert_eq!(dir.names("outside/d"), [".f.crc", "f"]);
    assert_eq!(fs::read(dir.join("outside/d/f")).unwrap(), b"others'");
}

#[test]
fn what_is_not_there_behind_a_link_is_deleted_already() {
    let dir = linked();
    fs::remove_file(dir.join("outside/d/f")).unwrap();
    let store = table(&dir);
    assert!(!store.delete("link/d/f").unwrap());
    store.delete_dir("link/none").unwrap();
    assert_eq!(dir.names("outside/d"), [".f.crc"]);
}

#[test]
fn a_link_itself_is_the_tables_own() {
    let dir = linked();
    symlink(dir.join("outside/d/f"), dir.join("t/own/g")).unwrap();
    let store = table(&dir);
    assert!(!store.put_if_absent("own/g", Bytes::new()).unwrap());
    store.put("own/g", Bytes::from_static(b"new")).unwrap();
    assert_eq!(store.read("own/g").unwrap(), "new");
    store.delete_dir("link").unwrap();
    assert_eq!(dir.names("t"), ["own"]);
    assert_eq!(fs::read(dir.join("outside/d/f")).unwrap(), b"others'");
}

#[test]
fn a_folder_as_a_store_knows_where_its_table_begins() {
    let dir = linked();
    let store = table(&dir);
    let below = store.below("link").unwrap().below("d").unwrap();
    assert_eq!(below.uri(), dir.join("t/link/d").to_str().unwrap());
    assert_eq!(below.read("f").unwrap(), "others'");
    assert_refused(below.delete("f"), "t/link");
    assert_refused(below.put("new", Bytes::new()), "t/link");
    let own = store.below("own").unwrap();
    own.put("new", Bytes::new()).unwrap();
    assert!(own.delete("f").unwrap());
    assert_eq!(dir.names("t/own"), ["new"]);
    assert!(matches!(
        store.below("../outside").unwrap_err(),
        StoreError::InvalidPath { .. }
    ));
}

#[test]
fn the_base_and_what_is_above_it_may_be_links() {
    let dir = linked();
    symlink(dir.join("t"), dir.join("base")).unwrap();
    let store = Store::open(dir.join("base").to_str().unwrap(), &[]).unwrap();
    store.put("own/new", Bytes::new()).unwrap();
    assert!(store.delete("own/f").unwrap());
    store.below("own").unwrap().put("g", Bytes::new()).unwrap();
    assert_refused(store.delete("link/d/f"), "base/link");
    assert_eq!(dir.names("t/own"), ["g", "new"]);
}
