//! A new file, written as a stream.

use std::io::{self, Write};

use crate::Result;
use crate::local::LocalWriter;
use crate::s3::Upload;

/// A new file being written. Only [`StoreWriter::finish`] completes it: dropped before that, the
/// file is removed.
#[derive(Debug)]
pub struct StoreWriter(Back);

#[derive(Debug)]
enum Back {
    Local(LocalWriter),
    S3(Box<Upload>),
}

impl StoreWriter {
    pub(crate) fn local(writer: LocalWriter) -> Self {
        Self(Back::Local(writer))
    }

    pub(crate) fn s3(upload: Upload) -> Self {
        Self(Back::S3(Box::new(upload)))
    }

    /// Completes the file, makes it durable, and returns its length in bytes.
    pub fn finish(self) -> Result<u64> {
        match self.0 {
            Back::Local(writer) => writer.finish(),
            Back::S3(upload) => upload.finish(),
        }
    }
}

impl Write for StoreWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Back::Local(writer) => writer.write(buf),
            Back::S3(upload) => Ok(upload.write(buf)?),
        }
    }

    /// On a local file system, lets others read what was written. On a bucket nothing: a file
    /// appears when it is finished.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Back::Local(writer) => writer.flush(),
            Back::S3(_) => Ok(()),
        }
    }
}
