//! What is neither file nor folder: an error at once, nothing that waits.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use bytes::Bytes;
use pyhudi_store::StoreError;

use crate::helpers::TempDir;

fn assert_unsupported<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error:?}");
    assert!(error.to_string().contains("d/odd: a pipe"), "{error}");
}

fn assert_refused(dir: &TempDir) {
    let store = dir.store();
    assert_unsupported(store.read("d/odd"));
    assert_unsupported(store.read_range("d/odd", 0..1));
    assert_unsupported(store.file("d/odd"));
    assert_unsupported(store.file_with_size("d/odd", 9).read_range(0..1));
    assert_unsupported(store.head("d/odd"));
    assert_unsupported(store.list(""));
    assert_unsupported(store.list_dir("d"));
    assert!(!store.put_if_absent("d/odd", Bytes::new()).unwrap());
    assert!(store.delete("d/odd").unwrap());
    assert_eq!(dir.names("d"), [""; 0]);
}

#[test]
fn a_pipe() {
    let dir = TempDir::new();
    std::fs::create_dir(dir.join("d")).unwrap();
    let made = Command::new("mkfifo").arg(dir.join("d/odd")).status();
    assert!(made.unwrap().success());
    assert_refused(&dir);
}

#[test]
fn a_device() {
    let dir = TempDir::new();
    std::fs::create_dir(dir.join("d")).unwrap();
    symlink("/dev/zero", dir.join("d/odd")).unwrap();
    assert_refused(&dir);
}

#[test]
fn a_socket() {
    let dir = TempDir::new();
    std::fs::create_dir(dir.join("d")).unwrap();
    let _bound = UnixListener::bind(dir.join("d/odd")).unwrap();
    assert_refused(&dir);
}

#[test]
fn a_file_too_large_to_be_read_whole_is_not() {
    let dir = TempDir::new();
    let file = File::create(dir.join("sparse")).unwrap();
    file.set_len((2 << 30) + 1).unwrap();
    let store = dir.store();
    let error = store.read("sparse").unwrap_err();
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error:?}");
    assert_eq!(store.read_range("sparse", 1..2).unwrap(), "\0");
}
