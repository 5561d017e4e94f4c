//! A new file, written as a stream under its own name, as Hudi's writers do: the marker of the write
//! names it, and a rollback deletes it, be it closed or not.

use std::fmt;
use std::mem;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hdfs_native::file::FileWriter;

use super::retry::Call;
use super::{Hdfs, put};
use crate::{Result, StoreError};

/// Bytes that are sent together.
const PART: usize = 1 << 20;

/// A new file. Only [`HdfsUpload::finish`] closes it: dropped before that, it is removed.
pub(crate) struct HdfsUpload {
    hdfs: Arc<Hdfs>,
    path: String,
    buffer: BytesMut,
    /// None once finished.
    file: Option<FileWriter>,
    written: u64,
}

impl HdfsUpload {
    /// Begins the file; missing folders are made.
    pub(crate) fn create(hdfs: &Arc<Hdfs>, path: &str) -> Result<Self> {
        let full = hdfs.locate_file(path)?;
        let modes = hdfs.modes(path)?;
        let file = hdfs.run(path, Call::Changing, async |client| {
            modes.create(client, &full, false).await
        })?;
        Ok(Self {
            hdfs: Arc::clone(hdfs),
            path: path.to_owned(),
            buffer: BytesMut::new(),
            file: Some(file),
            written: 0,
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PART {
            self.send()?;
        }
        self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    /// Closes the file, and returns its length.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.send()?;
        self.with_file(async |file: &mut FileWriter| Box::pin(file.close()).await)?;
        self.file = None;
        Ok(self.written)
    }

    fn send(&mut self) -> Result<()> {
        let part: Bytes = mem::take(&mut self.buffer).freeze();
        self.with_file(async |file: &mut FileWriter| {
            Box::pin(file.write_bytes(part)).await.map(|_| ())
        })
    }

    /// In the process that began the file alone.
    fn with_file(
        &mut self,
        call: impl AsyncFnOnce(&mut FileWriter) -> hdfs_native::Result<()>,
    ) -> Result<()> {
        let Some(file) = self.file.as_mut().filter(|_| self.hdfs.is_own()) else {
            return Err(StoreError::Unsupported {
                what: format!("{}: a file that another process writes", self.path),
            });
        };
        let done = self.hdfs.block_on(&self.path, call(file))?;
        done.map_err(|cause| self.hdfs.error(&self.path, cause))
    }
}

impl Drop for HdfsUpload {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else {
            return;
        };
        if !self.hdfs.is_own() {
            // In a forked child: the file is the parent's.
            mem::forget(file);
            return;
        }
        drop(file);
        // Best effort: the marker of the write names the file, too.
        let _ = put::delete(&self.hdfs, &self.path);
    }
}

impl fmt::Debug for HdfsUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.hdfs.url(&self.path);
        f.debug_tuple("HdfsUpload").field(&url).finish()
    }
}
