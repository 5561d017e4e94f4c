//! Compare and swap of a local file.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::helpers::TempDir;

const PATH: &str = ".hoodie/.locks/table_lock.json";

#[test]
fn a_version_is_replaced_once() {
    let folder = TempDir::new();
    let store = folder.store();
    assert_eq!(store.read_version(PATH).unwrap(), None);
    let first = store.replace_version(PATH, "a".into(), None, true).unwrap();
    let first = first.expect("there was no file");
    assert_eq!(
        store
            .replace_version(PATH, "b".into(), None, false)
            .unwrap(),
        None
    );
    let second = store
        .replace_version(PATH, "b".into(), Some(&first), true)
        .unwrap()
        .expect("nobody was faster");
    let late = store.replace_version(PATH, "c".into(), Some(&first), false);
    assert_eq!(late.unwrap(), None);
    let (content, version) = store.read_version(PATH).unwrap().unwrap();
    assert_eq!((&content[..], version), (&b"b"[..], second));
}

#[test]
fn of_many_writers_one_replaces_each_version() {
    let folder = TempDir::new();
    let won = AtomicU32::new(0);
    thread::scope(|scope| {
        for writer in 0..8 {
            let (store, won) = (folder.store(), &won);
            scope.spawn(move || {
                for turn in 0..50 {
                    let known = store.read_version(PATH).unwrap();
                    let expected = known.as_ref().map(|(_, version)| version.as_str());
                    let count: u32 = match &known {
                        Some((bytes, _)) => {
                            let text = std::str::from_utf8(bytes).unwrap();
                            text.split(' ').next().unwrap().parse().unwrap()
                        }
                        None => 0,
                    };
                    let content = format!("{} {writer} {turn}", count + 1);
                    let swapped = store.replace_version(PATH, content.into(), expected, false);
                    if swapped.unwrap().is_some() {
                        won.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (content, _) = folder.store().read_version(PATH).unwrap().unwrap();
    let text = std::str::from_utf8(&content).unwrap();
    let counted: u32 = text.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(counted, won.load(Ordering::Relaxed));
}
