use std::error::Error;
use std::io;

use pyhudi_format::{FormatError, ReadAt};
use pyhudi_store::StoreError;

use crate::helpers::TempDir;

fn ten_bytes() -> TempDir {
    let dir = TempDir::new();
    dir.write("d/f", "0123456789");
    dir
}

fn io_kind(error: &StoreError) -> io::ErrorKind {
    match error {
        StoreError::Io { source, .. } => source.kind(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn whole_files_and_ranges() {
    let dir = ten_bytes();
    let store = dir.store();
    assert_eq!(store.read("d/f").unwrap(), "0123456789");
    assert_eq!(store.read_range("d/f", 2..5).unwrap(), "234");
    assert_eq!(store.read_range("d/f", 10..10).unwrap(), "");
    let ranges = [8..10, 0..1, 4..4, 0..10];
    assert_eq!(
        store.read_ranges("d/f", &ranges).unwrap(),
        ["89", "0", "", "0123456789"]
    );
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
fn a_range_that_is_not_all_there_is_an_error() {
    let dir = ten_bytes();
    let store = dir.store();
    for range in [9..11, 10..11, 11..11, 0..u64::MAX, u64::MAX..u64::MAX] {
        let error = store.read_range("d/f", range).unwrap_err();
        assert_eq!(io_kind(&error), io::ErrorKind::UnexpectedEof);
        assert!(error.to_string().contains("d/f"), "{error}");
    }
    let error = store.read_range("d/f", 5..4).unwrap_err();
    assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
    store.read_ranges("d/f", &[0..1, 9..11]).unwrap_err();
}

#[test]
fn a_missing_file_is_not_found_and_a_directory_is_an_error() {
    let dir = ten_bytes();
    let store = dir.store();
    for path in ["d/none", "none/f", "d/f/below"] {
        let not_found = |error: StoreError| {
            assert!(matches!(error, StoreError::NotFound { .. }), "{error:?}");
            assert!(error.to_string().contains(path), "{error}");
        };
        not_found(store.read(path).unwrap_err());
        not_found(store.read_range(path, 0..1).unwrap_err());
        not_found(store.file(path).unwrap_err());
        not_found(store.file_with_size(path, 9).read_range(0..1).unwrap_err());
        assert_eq!(store.head(path).unwrap(), None);
        assert!(!store.delete(path).unwrap());
    }
    store.read("d").unwrap_err();
    store.file("d").unwrap_err();
    store.delete("d").unwrap_err();
    assert_eq!(store.head("d").unwrap(), None);
}

#[test]
fn a_file_is_a_source_for_decoders() {
    let dir = ten_bytes();
    let file = dir.store().file("d/f").unwrap();
    assert_eq!((file.path(), file.size()), ("d/f", 10));
    assert_eq!(file.read_at(3, 4).unwrap(), "3456");

    let error = file.read_at(3, 8).unwrap_err();
    assert!(matches!(error, FormatError::Read(_)));
    let store_error = error.source().unwrap().downcast_ref().unwrap();
    assert_eq!(io_kind(store_error), io::ErrorKind::UnexpectedEof);
    file.read_at(u64::MAX, usize::MAX).unwrap_err();
}

#[test]
fn a_file_with_size_reads_no_further_than_told() {
    let dir = ten_bytes();
    let store = dir.store();
    let shorter = store.file_with_size("d/f", 4);
    assert_eq!(shorter.size(), 4);
    assert_eq!(shorter.read_at(0, 4).unwrap(), "0123");
    shorter.read_at(0, 5).unwrap_err();

    let longer = store.file_with_size("d/f", 11);
    let error = longer.read_range(0..11).unwrap_err();
    assert_eq!(io_kind(&error), io::ErrorKind::UnexpectedEof);
}

#[test]
fn an_open_file_outlives_its_deletion_and_is_shared_by_clones() {
    let dir = ten_bytes();
    let store = dir.store();
    let file = store.file("d/f").unwrap();
    assert!(store.delete("d/f").unwrap());
    std::thread::scope(|scope| {
        for start in 0..8 {
            let file = file.clone();
            scope.spawn(move || {
                let expected = start.to_string() + &(start + 1).to_string();
                assert_eq!(file.read_at(start, 2).unwrap(), expected);
            });
        }
    });
}

#[test]
fn errors_keep_their_kind_as_io_errors() {
    let dir = ten_bytes();
    let store = dir.store();
    let error = io::Error::from(store.read("none").unwrap_err());
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let error = io::Error::from(store.read_range("d/f", 0..11).unwrap_err());
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[cfg(target_os = "linux")]
#[test]
fn holes_of_a_sparse_file_are_known() {
    use std::os::unix::fs::FileExt;

    let dir = TempDir::new();
    let store = dir.store();
    let file = std::fs::File::create(dir.join("f")).unwrap();
    file.write_all_at(b"x", 0).unwrap();
    file.set_len(1 << 33).unwrap();
    let sparse = store.file("f").unwrap();
    assert_eq!(sparse.next_data(0), 0);
    assert_eq!(sparse.next_data(1 << 20), 1 << 33);
    file.write_all_at(b"y", 1 << 32).unwrap();
    assert_eq!(sparse.next_data(1 << 20), 1 << 32);
    assert_eq!(sparse.read_at(0, 1).unwrap(), "x");
}
