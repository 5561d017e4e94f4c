//! A file for positioned reads, with a size that is known.

use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pyhudi_format::{FormatError, ReadAt};

use crate::{Result, Store, StoreError, local};

/// A file to read at any offset, from any thread. Clones share one open file.
///
/// Reads are bounded by the size it was made with. Once opened it stays readable, also when the
/// cleaner deletes it meanwhile.
#[derive(Debug, Clone)]
pub struct StoreFile {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    path: String,
    size: u64,
    file: OnceLock<File>,
}

impl StoreFile {
    pub(crate) fn open(store: Store, path: &str) -> Result<Self> {
        let (file, size) = open(&store, path)?;
        Ok(Self::new(store, path, size, OnceLock::from(file)))
    }

    pub(crate) fn unopened(store: Store, path: &str, size: u64) -> Self {
        Self::new(store, path, size, OnceLock::new())
    }

    fn new(store: Store, path: &str, size: u64, file: OnceLock<File>) -> Self {
        let path = path.to_owned();
        Self {
            inner: Arc::new(Inner {
                store,
                path,
                size,
                file,
            }),
        }
    }

    /// The path relative to the store's base.
    pub fn path(&self) -> &str {
        &self.inner.path
    }

    /// The bytes of `range`; an error unless the file holds all of them.
    pub fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let inner = &*self.inner;
        local::read::range(self.handle()?, inner.size, &range)
            .map_err(|source| StoreError::around(&inner.store.root().join(&inner.path), source))
    }

    fn handle(&self) -> Result<&File> {
        let inner = &*self.inner;
        if let Some(file) = inner.file.get() {
            return Ok(file);
        }
        let (file, _) = open(&inner.store, &inner.path)?;
        Ok(inner.file.get_or_init(|| file))
    }
}

fn open(store: &Store, path: &str) -> Result<(File, u64)> {
    let full = store.locate(path)?;
    local::read::open(&full).map_err(|source| StoreError::on_open(&full, source))
}

impl ReadAt for StoreFile {
    fn size(&self) -> u64 {
        self.inner.size
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, FormatError> {
        // Saturation is beyond any size, hence refused as such.
        let end = offset.saturating_add(len as u64);
        Ok(self.read_range(offset..end)?)
    }
}
