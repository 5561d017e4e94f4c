//! The records of an Avro data block, a window of bytes at a time: a block can have 256 MiB.

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::log::LogBlock;
use crate::log::avro_content::content_version;
use crate::log::seal::{SEAL, Seal};
use crate::{FormatError, ReadAt, Result};

/// Bytes read at once, unless a record is longer.
const WINDOW: u64 = 4 << 20;

/// Records of a block whose frame has a format version of 1 or more; see [`crate::log::AvroRecords`]
/// for the layout. Errors count from the start of the content.
pub struct AvroStream<R> {
    source: R,
    /// Where the content starts in the source, and its bytes.
    start: u64,
    len: u64,
    /// Where the window starts in the content.
    at: u64,
    window: Bytes,
    used: usize,
    records: usize,
    /// The checksum of the content, and how much of the window is in it.
    sum: crc32fast::Hasher,
    summed: usize,
}

impl<R: ReadAt> AvroStream<R> {
    /// Reads the first window.
    ///
    /// # Errors
    /// A content that does not fit its file, or does not start as a block of this type does.
    pub fn open(source: R, block: &LogBlock) -> Result<Self> {
        let end = block.content_offset.checked_add(block.content_len);
        if end.is_none_or(|end| end > source.size()) {
            return Err(FormatError::corrupt(0, "the content ends after the file"));
        }
        let mut stream = Self {
            source,
            start: block.content_offset,
            len: block.content_len,
            at: 0,
            window: Bytes::new(),
            used: 0,
            records: 0,
            sum: crc32fast::Hasher::new(),
            summed: 0,
        };
        let mut head = Cursor::new(stream.take(8)?);
        content_version(&mut head)?;
        let count = head.i32()?;
        let most = (stream.left() / 4).try_into().unwrap_or(usize::MAX);
        stream.records = usize::try_from(count)
            .ok()
            .filter(|count| *count <= most)
            .ok_or_else(|| FormatError::corrupt(4, format!("count {count}, room for {most}")))?;
        Ok(stream)
    }

    /// The next record, none at the end.
    ///
    /// # Errors
    /// A length that points out of the content, bytes after the last record, a failing source.
    pub fn next_record(&mut self) -> Result<Option<&[u8]>> {
        let Some(records) = self.records.checked_sub(1) else {
            return self.end().map(|()| None);
        };
        self.records = records;
        let length = Cursor::new(self.take(4)?).i32()?;
        match usize::try_from(length) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Err(self.corrupt(format!("length {length}"))),
        }
    }

    /// Records that were not given out yet, by the block's head.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Compares the content with its seal, if it has one.
    fn end(&mut self) -> Result<()> {
        if self.left() == SEAL as u64 {
            self.sum_used();
            let found = self.sum.clone().finalize();
            let seal = Seal::decode(self.take(SEAL)?);
            let what = match seal {
                Some(seal) if seal.content == found => return Ok(()),
                Some(_) => "the content of a log block does not have its checksum".to_owned(),
                None => format!("{SEAL} bytes too many"),
            };
            return Err(self.corrupt(what));
        }
        match self.left() {
            0 => Ok(()),
            left => Err(self.corrupt(format!("{left} bytes too many"))),
        }
    }

    /// Adds what was used of the window to the checksum.
    fn sum_used(&mut self) {
        let used = self.window.get(self.summed..self.used);
        self.sum.update(used.unwrap_or_default());
        self.summed = self.used;
    }

    fn offset(&self) -> u64 {
        self.at.saturating_add(self.used as u64)
    }

    fn left(&self) -> u64 {
        self.len.saturating_sub(self.offset())
    }

    fn corrupt(&self, what: String) -> FormatError {
        FormatError::corrupt(self.offset(), what)
    }

    fn take(&mut self, len: usize) -> Result<&[u8]> {
        if self.window.len().saturating_sub(self.used) < len {
            self.fill(len)?;
        }
        let start = self.used;
        self.used = start.saturating_add(len);
        let bytes = self.window.get(start..self.used);
        bytes.ok_or_else(|| FormatError::corrupt(self.at, "a window that is too short"))
    }

    /// Moves the window to what was not used, with at least `len` bytes.
    fn fill(&mut self, len: usize) -> Result<()> {
        let left = self.left();
        if len as u64 > left {
            return Err(self.corrupt(format!("{len} bytes wanted, {left} left")));
        }
        let size = WINDOW.max(len as u64).min(left);
        self.sum_used();
        self.at = self.offset();
        self.used = 0;
        self.summed = 0;
        let offset = self.start.saturating_add(self.at);
        self.window = self
            .source
            .read_at(offset, usize::try_from(size).unwrap_or(len))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{BlockType, Corruption, HeaderKey, LogScanner, avro_content, write_block};

    fn block(content: &[u8]) -> (Bytes, LogBlock) {
        let mut file = Vec::new();
        let header = [(HeaderKey::InstantTime, "1")];
        write_block(&mut file, BlockType::AvroData, &header, content);
        let file = Bytes::from(file);
        let block = LogScanner::new(file.clone(), Corruption::Check).next();
        (file, block.unwrap().unwrap())
    }

    fn records(content: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (file, block) = block(content);
        let mut stream = AvroStream::open(&file, &block)?;
        let mut all = Vec::new();
        while let Some(record) = stream.next_record()? {
            all.push(record.to_vec());
        }
        Ok(all)
    }

    #[test]
    fn records_come_back_across_windows() {
        let window = usize::try_from(WINDOW).unwrap();
        let long: Vec<Vec<u8>> = [0, 3, window, 5, 2 * window + 1, window / 2, window / 2, 1]
            .into_iter()
            .enumerate()
            .map(|(number, len)| vec![number as u8; len])
            .collect();
        let content = avro_content(long.iter().map(Vec::as_slice));
        assert_eq!(records(&content).unwrap(), long);
        assert!(records(&avro_content([])).unwrap().is_empty());
    }

    #[test]
    fn every_cut_and_every_wrong_length_is_an_error() {
        let whole = avro_content([b"ab".as_slice(), b"cde"]);
        for cut in 0..whole.len() {
            assert!(records(&whole[..cut]).is_err(), "cut at {cut}");
        }
        let longer = [whole.as_slice(), b"x"].concat();
        assert!(records(&longer).is_err());
        for at in [3, 4, 7, 8, 11, 14] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x81;
            assert!(records(&damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_content_beyond_the_file_is_an_error() {
        let (file, mut block) = block(&avro_content([b"ab".as_slice()]));
        block.content_len = u64::MAX;
        assert!(AvroStream::open(&file, &block).is_err());
    }
}
