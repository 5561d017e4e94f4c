//! A local file for positioned reads, opened when it is first read or before.

use std::fs::File;
use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::{LocalBase, read};
use crate::{Result, StoreError};

/// A file and, once it was needed, its open handle.
#[derive(Debug)]
pub(crate) struct LocalFile {
    base: LocalBase,
    path: String,
    size: u64,
    file: OnceLock<File>,
    stays_open: bool,
}

impl LocalFile {
    pub(crate) fn open(base: &LocalBase, path: &str) -> Result<Self> {
        let (file, size) = open(base, path)?;
        Ok(Self::new(base, path, size, OnceLock::from(file)))
    }

    pub(crate) fn unopened(base: &LocalBase, path: &str, size: u64) -> Self {
        Self::new(base, path, size, OnceLock::new())
    }

    /// One of very many files: each read opens it, so that the process may have fewer files open. It
    /// is opened once now, for its size.
    pub(crate) fn reopened(base: &LocalBase, path: &str) -> Result<Self> {
        let (_, size) = open(base, path)?;
        Ok(Self {
            stays_open: false,
            ..Self::unopened(base, path, size)
        })
    }

    fn new(base: &LocalBase, path: &str, size: u64, file: OnceLock<File>) -> Self {
        Self {
            base: base.clone(),
            path: path.to_owned(),
            size,
            file,
            stays_open: true,
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The bytes of `range`; an error unless the file holds all of them.
    pub(crate) fn range(&self, range: &Range<u64>) -> Result<Bytes> {
        let bytes = if self.stays_open {
            read::range(self.handle()?, self.size, range)
        } else {
            read::range(&open(&self.base, &self.path)?.0, self.size, range)
        };
        bytes.map_err(|source| StoreError::around(&self.base.root().join(&self.path), source))
    }

    /// As `ReadAt::next_data`. Reads have positions of their own, so the handle's may move.
    pub(crate) fn next_data(&self, offset: u64) -> u64 {
        // Only large files have holes, and a slice has few of those.
        if !self.stays_open {
            return offset;
        }
        let Ok(handle) = self.handle() else {
            return offset;
        };
        match seek(handle, SeekFrom::Data(offset)) {
            Ok(data) => data,
            // There are but zeros left.
            Err(Errno::NXIO) => self.size,
            Err(_) => offset,
        }
    }

    fn handle(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let (file, _) = open(&self.base, &self.path)?;
        Ok(self.file.get_or_init(|| file))
    }
}

fn open(base: &LocalBase, path: &str) -> Result<(File, u64)> {
    let full = base.locate(path)?;
    read::open(&full).map_err(|source| StoreError::on_open(&full, source))
}
