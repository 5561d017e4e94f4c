//! A file for positioned reads, with a size that is known.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pyhudi_format::{FormatError, ReadAt};

use crate::bucket::RemoteFile;
use crate::hdfs::HdfsFile;
use crate::interruption::check_interruption;
use crate::local::LocalFile;
use crate::{RequestKind, Result};

/// A file to read at any offset, from any thread. Clones share one open file.
///
/// Reads are bounded by the size it was made with. Once opened on a local file system it stays
/// readable, also if the cleaner deletes it in between; elsewhere, what was not fetched by then
/// is not found.
#[derive(Debug, Clone)]
pub struct StoreFile(Arc<Back>);

#[derive(Debug)]
enum Back {
    Local(LocalFile),
    Bucket(RemoteFile),
    Hdfs(HdfsFile),
}

impl StoreFile {
    pub(crate) fn local(file: LocalFile) -> Self {
        Self(Arc::new(Back::Local(file)))
    }

    pub(crate) fn bucket(file: RemoteFile) -> Self {
        Self(Arc::new(Back::Bucket(file)))
    }

    pub(crate) fn hdfs(file: HdfsFile) -> Self {
        Self(Arc::new(Back::Hdfs(file)))
    }

    /// The path relative to the store's base.
    pub fn path(&self) -> &str {
        match &*self.0 {
            Back::Local(file) => file.path(),
            Back::Bucket(file) => file.path(),
            Back::Hdfs(file) => file.path(),
        }
    }

    /// The bytes of `range`; an error unless the file holds all of them.
    pub fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes = match &*self.0 {
            Back::Local(file) => file.range(&range),
            Back::Bucket(file) => return file.range(&range),
            Back::Hdfs(file) => file.range(&range),
        }?;
        count_read(&bytes);
        Ok(bytes)
    }

    /// The bytes of each range, in the order given. In a bucket, ranges that are near each other are
    /// fetched together, and several at a time.
    pub fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let all = match &*self.0 {
            Back::Local(file) => ranges.iter().map(|range| file.range(range)).collect(),
            Back::Bucket(file) => return file.ranges(ranges),
            Back::Hdfs(file) => file.ranges(ranges),
        };
        let all: Vec<Bytes> = all?;
        all.iter().for_each(count_read);
        Ok(all)
    }
}

fn count_read(bytes: &Bytes) {
    RequestKind::Read.sent(0);
    RequestKind::Read.received(bytes.len() as u64);
}

impl ReadAt for StoreFile {
    fn size(&self) -> u64 {
        match &*self.0 {
            Back::Local(file) => file.size(),
            Back::Bucket(file) => file.size(),
            Back::Hdfs(file) => file.size(),
        }
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, FormatError> {
        // Saturation is beyond any size, hence refused as such.
        let end = offset.saturating_add(len as u64);
        Ok(self.read_range(offset..end)?)
    }

    fn next_data(&self, offset: u64) -> u64 {
        match &*self.0 {
            Back::Local(file) => file.next_data(offset),
            Back::Bucket(_) | Back::Hdfs(_) => offset,
        }
    }

    fn check(&self) -> Result<(), FormatError> {
        check_interruption()
    }
}
