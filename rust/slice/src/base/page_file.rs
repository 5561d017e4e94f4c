//! A file as the Parquet crate reads it page by page, so that no whole row group is in memory.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use pyhudi_format::ReadAt;
use pyhudi_store::StoreFile;

/// Bytes asked for at once: most pages with their headers.
const WINDOW: u64 = 128 << 10;

/// A base file. Clones share one open file.
#[derive(Clone)]
pub(crate) struct PageFile(pub(crate) StoreFile);

impl PageFile {
    fn rest(&self, start: u64) -> Result<u64> {
        let size = self.0.size();
        size.checked_sub(start).ok_or_else(|| {
            ParquetError::EOF(format!("byte {start} asked for of a file of {size} bytes"))
        })
    }
}

impl Length for PageFile {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for PageFile {
    type T = PageRead;

    fn get_read(&self, start: u64) -> Result<PageRead> {
        self.rest(start)?;
        Ok(PageRead {
            file: self.0.clone(),
            at: start,
            window: Bytes::new(),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if length as u64 > self.rest(start)? {
            return Err(ParquetError::EOF(format!(
                "{length} bytes asked for at byte {start} of a file of {} bytes",
                self.0.size()
            )));
        }
        let read = self.0.read_range(start..start + length as u64);
        read.map_err(|error| ParquetError::External(Box::new(error)))
    }
}

/// The bytes of a file from some place on.
pub(crate) struct PageRead {
    file: StoreFile,
    at: u64,
    window: Bytes,
}

impl Read for PageRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.window.is_empty() {
            let end = self.file.size().min(self.at.saturating_add(WINDOW));
            self.window = self
                .file
                .read_range(self.at..end)
                .map_err(io::Error::other)?;
            self.at = end;
        }
        let count = buffer.len().min(self.window.len());
        let (read, _) = buffer.split_at_mut(count);
        self.window.copy_to_slice(read);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyhudi_store::Store;

    fn page_file(content: &[u8]) -> (tempfile::TempDir, PageFile) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), content).expect("a file");
        let store = Store::open(&folder.path().to_string_lossy(), &[]).expect("a store");
        let file = store.file("file").expect("the file");
        (folder, PageFile(file))
    }

    #[test]
    fn reads_from_any_place_to_the_end() {
        let content: Vec<u8> = (0..400_000_u32).map(|byte| byte as u8).collect();
        let (_folder, file) = page_file(&content);
        for start in [0, 1, WINDOW as usize, content.len() - 1, content.len()] {
            let mut found = Vec::new();
            let mut read = file.get_read(start as u64).expect("within the file");
            read.read_to_end(&mut found).expect("readable");
            assert!(found == content[start..], "from {start}");
        }
    }

    #[test]
    fn nothing_is_beyond_the_end() {
        let (_folder, file) = page_file(b"abc");
        assert!(file.get_read(4).is_err());
        assert!(file.get_bytes(1, 3).is_err());
        assert!(file.get_bytes(u64::MAX, 1).is_err());
        assert_eq!(file.get_bytes(1, 2).expect("within"), "bc".as_bytes());
    }
}
