//! Reading: whole files, and ranges of one with reading ahead.
//!
//! To open a file is to ask the name node where its blocks are. Bytes come from data nodes, which
//! check sums go with.

use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use hdfs_native::HdfsError;
use hdfs_native::file::FileReader;

use super::Hdfs;
use super::retry::Call;
use crate::range::{MAX_WHOLE, check_came, check_range, too_large};
use crate::windows::{MOST, Plan, Windows, joined};
use crate::{Result, StoreError};

/// Bytes fetched with the first of them that is read: a footer with its bloom filter.
const TAIL: u64 = 512 << 10;

/// Ranges of one file that are fetched at once.
const AT_ONCE: usize = 8;

/// All bytes of the file.
pub(crate) fn whole(hdfs: &Hdfs, path: &str) -> Result<Bytes> {
    let full = hdfs.locate_file(path)?;
    let reader = open(hdfs, path, &full)?;
    let size = reader.file_length();
    if size as u64 > MAX_WHOLE {
        return Err(too_large(&hdfs.url(path), size as u64));
    }
    match hdfs.block_on(path, reader.read_range(0, size))? {
        Ok(bytes) if bytes.len() == size => Ok(bytes),
        // Replaced or deleted in between: it is looked up again, once.
        _ => {
            let reader = open(hdfs, path, &full)?;
            let size = reader.file_length();
            let read = hdfs.block_on(path, reader.read_range(0, size))?;
            let bytes = read.map_err(|cause| hdfs.error(path, cause))?;
            check_came(&(0..size as u64), &bytes).map_err(|source| StoreError::Io {
                path: hdfs.url(path),
                source,
            })?;
            Ok(bytes)
        }
    }
}

fn open(hdfs: &Hdfs, path: &str, full: &str) -> Result<FileReader> {
    hdfs.run(path, Call::Harmless, async |client| client.read(full).await)
}

/// A file to read ranges of. Its bytes are those of the blocks that it had when it was opened.
pub(crate) struct HdfsFile {
    hdfs: Arc<Hdfs>,
    path: String,
    size: u64,
    /// Where the blocks are, once they have been asked for.
    reader: Mutex<Option<Arc<FileReader>>>,
    windows: Mutex<Windows>,
}

impl HdfsFile {
    pub(crate) fn open(hdfs: &Arc<Hdfs>, path: &str) -> Result<Self> {
        let reader = open(hdfs, path, &hdfs.locate_file(path)?)?;
        let size = reader.file_length() as u64;
        let file = Self::unopened(hdfs, path, size);
        *file.reader() = Some(Arc::new(reader));
        Ok(file)
    }

    /// A file whose size is known. Nothing is asked.
    pub(crate) fn unopened(hdfs: &Arc<Hdfs>, path: &str, size: u64) -> Self {
        Self {
            hdfs: Arc::clone(hdfs),
            path: path.to_owned(),
            size,
            reader: Mutex::new(None),
            windows: Mutex::new(Windows::default()),
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Exactly the bytes of `range`.
    pub(crate) fn range(&self, range: &Range<u64>) -> Result<Bytes> {
        self.check(range)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let (known, ahead) = match self.windows().plan(range) {
            Plan::Known(bytes) => return Ok(bytes),
            Plan::Fetch { known, ahead } => (known, ahead),
        };
        let tail = self.size.saturating_sub(TAIL);
        if known.is_empty() && range.start >= tail {
            let fetched = self.fetch(&(tail..self.size))?;
            self.windows().add(tail, fetched.clone());
            let skip = (range.start - tail) as usize;
            return Ok(fetched.slice(skip..skip + (range.end - range.start) as usize));
        }
        let start = range.start + known.len() as u64;
        let end = range.end.max(start.saturating_add(ahead)).min(self.size);
        let fetched = self.fetch(&(start..end))?;
        let bytes = joined(&known, &fetched, range);
        if end - start <= MOST {
            self.windows().add(start, fetched);
        }
        Ok(bytes)
    }

    /// The bytes of each range, several at a time.
    pub(crate) fn ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().try_for_each(|range| self.check(range))?;
        self.twice(|| {
            let reader = self.opened()?;
            let fetches = ranges.iter().map(|range| part(&reader, range));
            let all = stream::iter(fetches).buffered(AT_ONCE).try_collect();
            let all: Vec<Bytes> = self.run(all)?;
            for (range, bytes) in ranges.iter().zip(&all) {
                check_came(range, bytes).map_err(|source| self.io(source))?;
            }
            Ok(all)
        })
    }

    /// A length from a damaged file never becomes a request.
    fn check(&self, range: &Range<u64>) -> Result<()> {
        check_range(self.size, range).map_err(|source| self.io(source))
    }

    fn fetch(&self, range: &Range<u64>) -> Result<Bytes> {
        self.twice(|| {
            let reader = self.opened()?;
            let bytes = self.run(part(&reader, range))?;
            check_came(range, &bytes).map_err(|source| self.io(source))?;
            Ok(bytes)
        })
    }

    /// Does it once more with blocks that are looked up again: they move, and files are deleted,
    /// which only the name node tells.
    fn twice<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        match read() {
            Err(StoreError::Io { .. }) => {
                *self.reader() = None;
                read()
            }
            other => other,
        }
    }

    fn run<T>(&self, read: impl Future<Output = hdfs_native::Result<T>>) -> Result<T> {
        let done = self.hdfs.block_on(&self.path, read)?;
        done.map_err(|cause| self.hdfs.error(&self.path, cause))
    }

    fn opened(&self) -> Result<Arc<FileReader>> {
        if let Some(reader) = &*self.reader() {
            return Ok(Arc::clone(reader));
        }
        let full = self.hdfs.locate_file(&self.path)?;
        let reader = Arc::new(open(&self.hdfs, &self.path, &full)?);
        *self.reader() = Some(Arc::clone(&reader));
        Ok(reader)
    }

    fn io(&self, source: io::Error) -> StoreError {
        StoreError::Io {
            path: self.hdfs.url(&self.path),
            source,
        }
    }

    fn reader(&self) -> MutexGuard<'_, Option<Arc<FileReader>>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of a range, as far as the file goes: it may be shorter than was known.
async fn part(reader: &FileReader, range: &Range<u64>) -> hdfs_native::Result<Bytes> {
    let size = reader.file_length() as u64;
    let (start, end) = (range.start.min(size), range.end.min(size));
    if start >= end {
        return Ok::<_, HdfsError>(Bytes::new());
    }
    reader
        .read_range(start as usize, (end - start) as usize)
        .await
}

impl Drop for HdfsFile {
    fn drop(&mut self) {
        if !self.hdfs.is_own() {
            mem::forget(self.reader().take());
        }
    }
}

impl fmt::Debug for HdfsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.hdfs.url(&self.path);
        f.debug_tuple("HdfsFile").field(&url).finish()
    }
}
