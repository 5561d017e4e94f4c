use std::io::Write;

use pyhudi_store::StoreError;

use crate::helpers::TempDir;

#[test]
fn a_stream_is_complete_when_finished() {
    let dir = TempDir::new();
    let store = dir.store();
    let mut writer = store.create("p/q/f").unwrap();
    let mut expected = Vec::new();
    for n in 0..100u8 {
        let piece = vec![n; usize::from(n) * 100];
        writer.write_all(&piece).unwrap();
        expected.extend(piece);
    }
    assert_eq!(writer.finish().unwrap(), expected.len() as u64);
    assert_eq!(store.read("p/q/f").unwrap(), expected);
    assert_eq!(dir.names("p/q"), ["f"]);
}

#[test]
fn flushed_bytes_can_be_read() {
    let dir = TempDir::new();
    let store = dir.store();
    let mut writer = store.create("f").unwrap();
    writer.write_all(b"12").unwrap();
    writer.flush().unwrap();
    assert_eq!(store.read("f").unwrap(), "12");
    assert_eq!(writer.finish().unwrap(), 2);
}

#[test]
fn a_dropped_writer_removes_its_file() {
    let dir = TempDir::new();
    let store = dir.store();
    let mut writer = store.create("p/f").unwrap();
    writer.write_all(b"partial").unwrap();
    assert_eq!(dir.names("p"), ["f"]);
    drop(writer);
    assert_eq!(dir.names("p"), [""; 0]);
    store.create("p/f").unwrap().finish().unwrap();
}

#[test]
fn create_never_touches_a_file_that_is_there() {
    let dir = TempDir::new();
    dir.write("f", "kept");
    let store = dir.store();
    let error = store.create("f").unwrap_err();
    assert!(
        matches!(error, StoreError::AlreadyExists { .. }),
        "{error:?}"
    );
    assert_eq!(store.read("f").unwrap(), "kept");
    let error = store.create("f/below").unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
}
