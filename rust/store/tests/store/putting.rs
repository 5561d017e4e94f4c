use std::fs;
use std::sync::Barrier;
use std::thread;

use bytes::Bytes;

use crate::helpers::TempDir;

#[test]
fn put_makes_parents_replaces_and_leaves_nothing_else() {
    let dir = TempDir::new();
    let store = dir.store();
    store.put("a/b/c", Bytes::from_static(b"first")).unwrap();
    store.put("a/b/c", Bytes::from_static(b"2")).unwrap();
    store.put("a/b/empty", Bytes::new()).unwrap();
    assert_eq!(store.read("a/b/c").unwrap(), "2");
    assert_eq!(dir.names("a/b"), ["c", "empty"]);
}

#[test]
fn the_base_itself_is_made() {
    let dir = TempDir::new();
    let base = dir.join("new/table");
    let store = pyhudi_store::Store::open(base.to_str().unwrap(), &[]).unwrap();
    assert!(store.put_if_absent("f", Bytes::from_static(b"1")).unwrap());
    assert_eq!(fs::read(base.join("f")).unwrap(), b"1");
}

#[test]
fn put_if_absent_tells_who_was_first() {
    let dir = TempDir::new();
    let store = dir.store();
    assert!(
        store
            .put_if_absent("t/i", Bytes::from_static(b"1"))
            .unwrap()
    );
    assert!(
        !store
            .put_if_absent("t/i", Bytes::from_static(b"2"))
            .unwrap()
    );
    assert_eq!(store.read("t/i").unwrap(), "1");
    assert_eq!(dir.names("t"), ["i"]);
    assert!(store.delete("t/i").unwrap());
    assert!(!store.delete("t/i").unwrap());
    assert!(store.put_if_absent("t/i", Bytes::new()).unwrap());
    assert_eq!(store.read("t/i").unwrap(), "");
}

#[test]
fn put_if_absent_raced_has_one_winner_whose_bytes_stay() {
    let dir = TempDir::new();
    let store = dir.store();
    for round in 0..50 {
        let path = format!("timeline/{round}.commit");
        let start = Barrier::new(8);
        let won: Vec<bool> = thread::scope(|scope| {
            let runs: Vec<_> = (0..8u8)
                .map(|writer| {
                    let (store, path, start) = (&store, &path, &start);
                    scope.spawn(move || {
                        start.wait();
                        store.put_if_absent(path, content(writer)).unwrap()
                    })
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let winner = won.iter().position(|won| *won).unwrap();
        assert_eq!(store.read(&path).unwrap(), content(winner as u8));
    }
    assert_eq!(dir.names("timeline").len(), 50);
}

#[test]
fn readers_of_a_replaced_file_see_one_version_or_the_other() {
    let dir = TempDir::new();
    let store = dir.store();
    store.put("f", content(0)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (0..100u8).for_each(|n| store.put("f", content(n)).unwrap()));
        for _ in 0..500 {
            let seen = store.read("f").unwrap();
            assert_eq!(seen, content(seen[0]));
        }
    });
}

#[test]
fn failed_puts_leave_nothing() {
    let dir = TempDir::new();
    dir.write("taken/by", "a directory");
    dir.write("file", "");
    let store = dir.store();
    store.put("taken", Bytes::from_static(b"1")).unwrap_err();
    store.put("file/below", Bytes::new()).unwrap_err();
    store.put_if_absent("file/below", Bytes::new()).unwrap_err();
    assert!(!store.put_if_absent("taken", Bytes::new()).unwrap());
    assert_eq!(dir.names(""), ["file", "taken"]);
}

#[test]
fn a_leftover_with_the_staged_name_is_stepped_over() {
    let dir = TempDir::new();
    let pid = std::process::id();
    // The counter is shared by all tests of this process: cover what it may reach.
    for number in 0..2000 {
        dir.write(&format!("f.{pid}-{number}.tmp"), "left");
    }
    dir.store().put("f", Bytes::from_static(b"1")).unwrap();
    assert_eq!(fs::read(dir.join("f")).unwrap(), b"1");
    assert_eq!(dir.names("").len(), 2001);
    let last = fs::read(dir.join(&format!("f.{pid}-1999.tmp"))).unwrap();
    assert_eq!(last, b"left");
}

#[test]
fn hadoop_checksums_go_with_the_content_they_were_for() {
    let dir = TempDir::new();
    let store = dir.store();
    for name in ["replaced", "deleted", "gone", "streamed", "kept"] {
        dir.write(&format!("d/.{name}.crc"), "crc");
    }
    for name in ["replaced", "deleted", "kept"] {
        dir.write(&format!("d/{name}"), "java");
    }
    store.put("d/replaced", Bytes::from_static(b"1")).unwrap();
    assert!(store.delete("d/deleted").unwrap());
    assert!(
        store
            .put_if_absent("d/gone", Bytes::from_static(b"1"))
            .unwrap()
    );
    store.create("d/streamed").unwrap().finish().unwrap();
    assert!(!store.put_if_absent("d/kept", Bytes::new()).unwrap());
    store.create("d/kept").unwrap_err();
    assert_eq!(
        dir.names("d"),
        [".kept.crc", "gone", "kept", "replaced", "streamed"]
    );
}

/// Long enough to be torn, and all of one byte.
fn content(writer: u8) -> Bytes {
    vec![writer; 20_000].into()
}
