//! A name on storage and a path in the API are the same characters.

use std::fs;
use std::io::Write;

use bytes::Bytes;

use crate::helpers::{TempDir, paths};

const NAMES: &[&str] = &[
    "plain.parquet",
    ".f1_20240101.log.1_0-1-2",
    "with space",
    " leading and trailing ",
    "a%2Fb",
    "a%252Fb",
    "100%",
    "%",
    "day=2024-01-01",
    "a#b",
    "file.parquet#123",
    "#1",
    "[t]^{u}\"\\",
    "back\\slash",
    "q?s&t+u,v;w:x@y!$'()*~|<>`",
    "tab\tnewline\nbell\u{7}",
    "größe-日本-🦀",
    "e\u{301}",
    "...",
    "..a",
    "~",
    "NUL",
];

#[test]
fn a_file_made_by_the_system_is_listed_read_and_deleted_under_its_name() {
    for name in NAMES {
        let dir = TempDir::new();
        let store = dir.store();
        let path = format!("{name}/{name}");
        dir.write(&path, name);

        assert_eq!(paths(&store.list("").unwrap()), [&path]);
        assert_eq!(store.list_dir("").unwrap().dirs, [*name]);
        assert_eq!(paths(&store.list_dir(name).unwrap().files), [&path]);
        assert_eq!(store.head(&path).unwrap().unwrap().path, path);
        assert_eq!(store.read(&path).unwrap(), name.as_bytes());
        assert!(store.delete(&path).unwrap());
        assert_eq!(dir.names(name), [""; 0]);
        store.delete_dir(name).unwrap();
        assert_eq!(dir.names(""), [""; 0]);
    }
}

#[test]
fn a_file_made_by_the_store_has_its_name_for_the_system() {
    for name in NAMES {
        let dir = TempDir::new();
        let store = dir.store();

        store
            .put(&format!("p/{name}"), Bytes::from_static(b"put"))
            .unwrap();
        assert!(
            store
                .put_if_absent(&format!("a/{name}"), Bytes::from_static(b"absent"))
                .unwrap()
        );
        let mut writer = store.create(&format!("{name}/{name}")).unwrap();
        writer.write_all(b"stream").unwrap();
        writer.finish().unwrap();

        assert_eq!(fs::read(dir.join("p").join(name)).unwrap(), b"put");
        assert_eq!(fs::read(dir.join("a").join(name)).unwrap(), b"absent");
        assert_eq!(fs::read(dir.join(name).join(name)).unwrap(), b"stream");
        assert_eq!(store.list("").unwrap().len(), 3);
    }
}

#[test]
fn an_encoded_name_and_its_decoded_form_are_two_files() {
    let dir = TempDir::new();
    let store = dir.store();
    store.put("a b", Bytes::from_static(b"1")).unwrap();
    assert_eq!(store.head("a%20b").unwrap(), None);
    store.put("a%20b", Bytes::from_static(b"2")).unwrap();
    assert_eq!(store.read("a b").unwrap(), "1");
    assert_eq!(paths(&store.list("").unwrap()), ["a b", "a%20b"]);
}

#[test]
fn malformed_paths_are_refused_and_leave_the_base_alone() {
    let dir = TempDir::new();
    dir.write("in/kept", "x");
    let store = pyhudi_store::Store::open(dir.join("in").to_str().unwrap(), &[]).unwrap();
    for path in [
        "",
        "/",
        "/kept",
        "kept/",
        "a//b",
        ".",
        "./kept",
        "../in/kept",
        "a/../b",
        "a\0b",
    ] {
        let error = store.read(path).unwrap_err();
        assert!(
            matches!(error, pyhudi_store::StoreError::InvalidPath { .. }),
            "{error:?}"
        );
        store.head(path).unwrap_err();
        store.put(path, Bytes::new()).unwrap_err();
        store.put_if_absent(path, Bytes::new()).unwrap_err();
        store.create(path).unwrap_err();
        store.delete(path).unwrap_err();
        store.delete_dir(path).unwrap_err();
        store.file(path).unwrap_err();
        store.file_with_size(path, 1).read_range(0..1).unwrap_err();
        if !path.is_empty() {
            store.list(path).unwrap_err();
            store.list_dir(path).unwrap_err();
        }
    }
    assert_eq!(dir.names("in"), ["kept"]);
}
