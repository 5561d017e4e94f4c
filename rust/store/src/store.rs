//! The facade: a table's base and what can be done below it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::{Result, StoreError, StoreFile, StoreWriter, local, path, uri};

/// A file on storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path relative to the base.
    pub path: String,
    /// The length in bytes.
    pub size: u64,
    /// When the content last changed, in milliseconds since the epoch.
    pub modified_ms: i64,
}

/// One level of a directory, each part sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The directories, as paths relative to the base.
    pub dirs: Vec<String>,
    /// The files.
    pub files: Vec<Entry>,
}

/// The storage below a table's base. Cheap to clone; holds no connection, thread or open file.
///
/// All paths are relative to the base. An empty part, `.`, `..` and a leading or trailing slash
/// are an error.
#[derive(Debug, Clone)]
pub struct Store {
    base: Arc<str>,
}

impl Store {
    /// Opens `/absolute`, `relative` or `file:///absolute`. The base need not exist.
    ///
    /// No option is known for local storage. An unknown option and any other scheme are
    /// [`StoreError::Unsupported`].
    pub fn open(uri: &str, options: &[(String, String)]) -> Result<Self> {
        let base = uri::local_base(uri)?;
        if let Some((key, _)) = options.first() {
            return Err(StoreError::Unsupported {
                what: format!("storage option '{key}' for the local path {base}"),
            });
        }
        Ok(Self { base: base.into() })
    }

    /// The base: an absolute, normalised path, which [`Store::open`] takes back.
    pub fn uri(&self) -> &str {
        &self.base
    }

    /// The whole file.
    pub fn read(&self, path: &str) -> Result<Bytes> {
        local::read::whole(&self.locate(path)?)
    }

    /// The bytes of `range`; an error unless the file holds all of them.
    pub fn read_range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        self.file(path)?.read_range(range)
    }

    /// The bytes of each range, in the order given.
    pub fn read_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let file = self.file(path)?;
        ranges
            .iter()
            .map(|range| file.read_range(range.clone()))
            .collect()
    }

    /// The file's size and time; none when there is no such file, also when it is a directory.
    pub fn head(&self, path: &str) -> Result<Option<Entry>> {
        local::list::head(&self.locate(path)?, path)
    }

    /// All files below `prefix` at any depth, sorted by path. A missing prefix is an empty list.
    ///
    /// Files that come or go meanwhile may be in the list or not; all others are.
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        path::check_prefix(prefix)?;
        local::list::recursive(self.root(), prefix)
    }

    /// The directories and files directly in `prefix`. A missing prefix is empty.
    pub fn list_dir(&self, prefix: &str) -> Result<Listing> {
        path::check_prefix(prefix)?;
        local::list::one_level(self.root(), prefix)
    }

    /// Writes or replaces the file: readers see the old content or the new, and the new survives a
    /// crash of the machine once this returns. Parent directories are made.
    ///
    /// Not for Hudi's log files, nor is [`Store::put_if_absent`]: Java's pattern for them has no
    /// end anchor, so it takes a staged `<log file>.<pid>-<n>.tmp` for the log file. Use
    /// [`Store::create`].
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an object store takes the buffer over"
    )]
    pub fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        local::put::replace(&self.locate(path)?, &bytes)
    }

    /// Writes the file if there is none, else returns false; of several writers exactly one gets
    /// true. The file appears at once with all its bytes. Durable as in [`Store::put`].
    ///
    /// After an error the file may be there or not: the caller reads it to know.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "an object store takes the buffer over"
    )]
    pub fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool> {
        local::put::if_absent(&self.locate(path)?, &bytes)
    }

    /// Deletes the file; false when it was not there.
    pub fn delete(&self, path: &str) -> Result<bool> {
        local::delete::file(&self.locate(path)?)
    }

    /// Deletes the directory with all that is in it. A missing one is fine; the base is refused.
    pub fn delete_dir(&self, path: &str) -> Result<()> {
        local::delete::dir(&self.locate(path)?)
    }

    /// Opens the file for positioned reads.
    pub fn file(&self, path: &str) -> Result<StoreFile> {
        StoreFile::open(self.clone(), path)
    }

    /// The file for positioned reads, with the size that a listing or a commit told. Storage is not
    /// asked before the first read, which is where a missing file or a malformed path shows.
    pub fn file_with_size(&self, path: &str, size: u64) -> StoreFile {
        StoreFile::unopened(self.clone(), path, size)
    }

    /// Begins a new file; [`StoreError::AlreadyExists`] when there is one. Parent directories are
    /// made.
    pub fn create(&self, path: &str) -> Result<StoreWriter> {
        StoreWriter::create(self.locate(path)?)
    }

    pub(crate) fn root(&self) -> &Path {
        Path::new(&*self.base)
    }

    pub(crate) fn locate(&self, path: &str) -> Result<PathBuf> {
        path::check_file(path)?;
        Ok(self.root().join(path))
    }
}
