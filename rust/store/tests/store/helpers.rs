use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process};

use pyhudi_store::Store;

/// A directory of its own for one test, removed at the end.
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = env::temp_dir().join(format!("pyhudi-store-{}-{number}", process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn store(&self) -> Store {
        Store::open(self.0.to_str().unwrap(), &[]).unwrap()
    }

    /// Writes with `std::fs`, parents included.
    pub fn write(&self, name: &str, content: &str) {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The names directly in `dir` as `std::fs` sees them, sorted.
    pub fn names(&self, dir: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.join(dir))
            .unwrap()
            .map(|item| item.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn paths(entries: &[pyhudi_store::Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.path.as_str()).collect()
}
