//! Reading: whole files, and ranges of one with reading ahead.
//!
//! A request costs as much time as some hundred kilobytes. A file is therefore opened with its
//! last bytes, where Parquet and HFiles have their indexes; and a read that goes on where an
//! earlier one ended fetches more, and more each time.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, OBJECT_STORE_COALESCE_DEFAULT, ObjectStoreExt, coalesce_ranges,
};

use super::Remote;
use crate::range::{MAX_WHOLE, check_came, check_range, too_large};
use crate::windows::{MOST, Plan, Windows, joined};
use crate::{Result, StoreError};

/// Bytes fetched when a file is opened: a footer with its bloom filter, or all of a small file.
pub(super) const TAIL: u64 = 512 << 10;

/// Bytes fetched to learn the size, where a file's end cannot be had without it: all of a small file.
const HEAD: u64 = 64 << 10;

/// All bytes of the file.
pub(crate) fn whole(remote: &Remote, path: &str) -> Result<Bytes> {
    let key = remote.file_key(path)?;
    let found = remote.run(path, async |client| client.get(&key).await)?;
    if found.meta.size > MAX_WHOLE {
        return Err(too_large(&remote.url(path), found.meta.size));
    }
    remote.run(path, async |_| found.bytes().await)
}

/// A file to read ranges of. Its bytes are those of one version: should it be replaced in between,
/// reading fails.
pub(crate) struct RemoteFile {
    remote: Arc<Remote>,
    path: String,
    size: u64,
    /// The version; empty if the storage reported none, or none was requested.
    e_tag: Option<String>,
    windows: Mutex<Windows>,
}

impl RemoteFile {
    /// Opens the file and fetches its end.
    pub(crate) fn open(remote: &Arc<Remote>, path: &str) -> Result<Self> {
        let key = remote.file_key(path)?;
        if let Some(end) = remote.client(path)?.ends.get(&key) {
            let start = end.size - end.bytes.len() as u64;
            let windows = Windows::of(start, end.bytes);
            return Ok(Self::new(remote, path, end.size, Some(end.e_tag), windows));
        }
        let found = remote.try_run(path, async |client| {
            let range = if client.kind.has_suffixes {
                GetRange::Suffix(TAIL)
            } else {
                GetRange::Bounded(0..HEAD)
            };
            let options = GetOptions {
                range: Some(range),
                ..GetOptions::default()
            };
            let found = client.get_opts(&key, options).await?;
            let (meta, start) = (found.meta.clone(), found.range.start);
            let bytes = found.bytes().await?;
            if start + bytes.len() as u64 == meta.size {
                let e_tag = meta.e_tag.clone();
                client.ends.keep(&key, bytes.clone(), meta.size, e_tag);
            }
            Ok((meta, start, bytes))
        })?;
        match found {
            Ok((meta, start, bytes)) => {
                let fetched = start + bytes.len() as u64;
                let windows = Windows::of(start, bytes);
                let file = Self::new(remote, path, meta.size, meta.e_tag, windows);
                if fetched < meta.size {
                    let tail = fetched.max(meta.size.saturating_sub(TAIL));
                    let bytes = file.fetch(tail..meta.size)?;
                    file.windows().add(tail, bytes);
                }
                Ok(file)
            }
            Err(cause) => Self::without_tail(remote, path, &key, &cause),
        }
    }

    /// No bytes of an empty file can be had: servers differ in how they say so.
    fn without_tail(
        remote: &Arc<Remote>,
        path: &str,
        key: &Path,
        cause: &object_store::Error,
    ) -> Result<Self> {
        let error = super::error::store_error(&remote.url(path), cause);
        if matches!(error, StoreError::NotFound { .. }) {
            return Err(error);
        }
        let meta = remote.run(path, async |client| client.head(key).await)?;
        if meta.size > 0 {
            return Err(error);
        }
        let windows = Windows::default();
        Ok(Self::new(remote, path, 0, meta.e_tag, windows))
    }

    /// A file whose size is known. No request is made.
    pub(crate) fn unopened(remote: &Arc<Remote>, path: &str, size: u64) -> Self {
        Self::new(remote, path, size, None, Windows::default())
    }

    fn new(
        remote: &Arc<Remote>,
        path: &str,
        size: u64,
        e_tag: Option<String>,
        windows: Windows,
    ) -> Self {
        Self {
            remote: Arc::clone(remote),
            path: path.to_owned(),
            size,
            e_tag,
            windows: Mutex::new(windows),
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn url(&self) -> String {
        self.remote.url(&self.path)
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
        let start = range.start + known.len() as u64;
        let end = range.end.max(start.saturating_add(ahead)).min(self.size);
        let fetched = self.fetch(start..end)?;
        let bytes = joined(&known, &fetched, range);
        if end - start <= MOST {
            self.windows().add(start, fetched);
        }
        Ok(bytes)
    }

    /// The bytes of each range, near ones fetched together, and several at a time.
    pub(crate) fn ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().try_for_each(|range| self.check(range))?;
        if let Some(known) = self.known(ranges) {
            return Ok(known);
        }
        let key = self.remote.file_key(&self.path)?;
        if ranges.iter().any(Range::is_empty) {
            return ranges.iter().map(|range| self.range(range)).collect();
        }
        self.remote.run(&self.path, async |client| {
            let fetch = async |range: Range<u64>| {
                let options = self.of_version(range);
                client.get_opts(&key, options).await?.bytes().await
            };
            coalesce_ranges(ranges, fetch, OBJECT_STORE_COALESCE_DEFAULT).await
        })
    }

    /// The bytes of each range, none unless all were fetched already: small files are at once.
    fn known(&self, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        let windows = self.windows();
        ranges.iter().map(|range| windows.known(range)).collect()
    }

    /// A length from a damaged file never becomes a request.
    fn check(&self, range: &Range<u64>) -> Result<()> {
        check_range(self.size, range).map_err(|source| self.io(source))
    }

    fn io(&self, source: std::io::Error) -> StoreError {
        StoreError::Io {
            path: self.url(),
            source,
        }
    }

    fn fetch(&self, range: Range<u64>) -> Result<Bytes> {
        let key = self.remote.file_key(&self.path)?;
        let options = self.of_version(range.clone());
        let bytes = self.remote.run(&self.path, async |client| {
            client.get_opts(&key, options).await?.bytes().await
        })?;
        check_came(&range, &bytes).map_err(|source| self.io(source))?;
        Ok(bytes)
    }

    fn of_version(&self, range: Range<u64>) -> GetOptions {
        GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: self.e_tag.clone(),
            ..GetOptions::default()
        }
    }

    fn windows(&self) -> std::sync::MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteFile").field(&self.url()).finish()
    }
}
