//! A new file, written as a stream.

use std::io::{self, Write};

use crate::bucket::Upload;
use crate::hdfs::HdfsUpload;
use crate::local::LocalWriter;
use crate::{RequestKind, Result};

/// A new file being written. Only [`StoreWriter::finish`] completes it: dropped before that, the
/// file is removed.
#[derive(Debug)]
pub struct StoreWriter(Back);

#[derive(Debug)]
enum Back {
    Local(LocalWriter),
    Bucket(Box<Upload>),
    Hdfs(Box<HdfsUpload>),
}

impl StoreWriter {
    pub(crate) fn local(writer: LocalWriter) -> Self {
        Self(Back::Local(writer))
    }

    pub(crate) fn bucket(upload: Upload) -> Self {
        Self(Back::Bucket(Box::new(upload)))
    }

    pub(crate) fn hdfs(upload: HdfsUpload) -> Self {
        Self(Back::Hdfs(Box::new(upload)))
    }

    /// Completes the file, makes its content durable, and returns its length in bytes. On a local
    /// file system [`crate::Store::sync_directories`] makes its name durable.
    pub fn finish(self) -> Result<u64> {
        let length = match self.0 {
            Back::Local(writer) => writer.finish(),
            Back::Bucket(upload) => return upload.finish(),
            Back::Hdfs(upload) => upload.finish(),
        }?;
        RequestKind::Write.sent(length as usize);
        Ok(length)
    }
}

impl Write for StoreWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Back::Local(writer) => writer.write(buf),
            Back::Bucket(upload) => Ok(upload.write(buf)?),
            Back::Hdfs(upload) => Ok(upload.write(buf)?),
        }
    }

    /// On a local file system, lets others read what was written. Elsewhere nothing: a file is
    /// read when it is finished.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Back::Local(writer) => writer.flush(),
            Back::Bucket(_) | Back::Hdfs(_) => Ok(()),
        }
    }
}
