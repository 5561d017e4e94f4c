//! A new local file, written as a stream.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process;

use super::{checksum, dirs};
use crate::{Result, StoreError};

/// Enough for the small fields around a block; larger writes go past the buffer.
const BUFFER: usize = 64 * 1024;

/// A new file being written; dropped before it is finished, it is removed.
#[derive(Debug)]
pub(crate) struct LocalWriter {
    path: PathBuf,
    /// None once finished.
    out: Option<BufWriter<File>>,
    written: u64,
    owner: u32,
}

impl LocalWriter {
    pub(crate) fn create(path: PathBuf) -> Result<Self> {
        let file = dirs::with_parent(&path, || File::create_new(&path))?;
        let writer = Self {
            path,
            out: Some(BufWriter::with_capacity(BUFFER, file)),
            written: 0,
            owner: process::id(),
        };
        checksum::forget(&writer.path)?;
        Ok(writer)
    }

    /// Completes the file, makes its content durable, and returns its length in bytes.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.complete()
            .map_err(|source| StoreError::around(&self.path, source))?;
        self.out = None;
        Ok(self.written)
    }

    fn complete(&mut self) -> io::Result<()> {
        let out = self.out()?;
        out.flush()?;
        out.get_ref().sync_data()
    }

    fn out(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.out
            .as_mut()
            .ok_or_else(|| io::Error::other("the file is finished"))
    }

    fn at_path(&self, source: io::Error) -> io::Error {
        StoreError::around(&self.path, source).into()
    }
}

impl Write for LocalWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self
            .out()
            .and_then(|out| out.write(buf))
            .map_err(|source| self.at_path(source))?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out()
            .and_then(Write::flush)
            .map_err(|source| self.at_path(source))
    }
}

impl Drop for LocalWriter {
    fn drop(&mut self) {
        let Some(out) = self.out.take() else { return };
        // Taken apart, not dropped: a dropped buffer is flushed, in a forked child into the file
        // that the parent is still writing.
        let (file, _unwritten) = out.into_parts();
        drop(file);
        if self.owner == process::id() {
            // Best effort: the marker of the write names the file, too.
            let _ = fs::remove_file(&self.path);
        }
    }
}
