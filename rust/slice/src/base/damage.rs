//! Flipped bits in Parquet base files: a search by checksums, without decoding a value.

use std::ops::Range;

use bytes::Bytes;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use pyhudi_format::{FileChecksums, PageHeader, ReadAt};
use pyhudi_store::{Store, StoreFile};

use super::parquet::{FOOTER_TAIL, Groups, footer_bytes, footer_bytes_of};
use super::{check_range, format_of};
use crate::error::{Result, SliceError};

/// Bytes that are read at once.
const WINDOW: u64 = 8 << 20;

/// What the checksums of a file cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Every byte.
    Whole,
    /// The contents of all pages, but neither their headers nor the footer.
    Pages,
    /// The contents of some pages, or nothing.
    Partial,
}

impl Coverage {
    /// Its name in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Pages => "pages",
            Self::Partial => "partial",
        }
    }
}

/// Compares a base file with its checksums: what these cover.
///
/// # Errors
/// The file is missing or damaged.
pub fn verify_base_file(store: &Store, path: &str) -> Result<Coverage> {
    if format_of(path).extension() != ".parquet" {
        format_of(path).schema(store, path)?;
        return Ok(Coverage::Partial);
    }
    let Groups { file, metadata, .. } = Groups::of(store, path, PageIndexPolicy::Optional)?;
    let footer = footer_bytes_of(path, &file)?;
    let sums = FileChecksums::of_footer(&footer).map_err(|what| corrupt(path, None, what))?;
    if let Some(sums) = sums {
        let end = end_of_data(&metadata, file.size() - 8 - footer.len() as u64);
        if checksum(&file, 0..end)? == sums.data && sums.head == 0 {
            return Ok(Coverage::Whole);
        }
    }
    let coverage = find_damaged_page(path, &file, &metadata, None)?;
    if sums.is_some() {
        let what = "the file does not have its checksum, but all pages have theirs";
        return Err(corrupt(path, None, what.to_owned()));
    }
    Ok(coverage)
}

/// Compares a Parquet file in memory, at `start` of a log file, with its checksums: that of the head of its
/// block, none without them.
pub(crate) fn verify_parquet_block(path: &str, start: u64, content: &Bytes) -> Result<Option<u32>> {
    let footer = footer_bytes(content);
    let damaged = |what| corrupt(path, Some(start), what);
    let Some(sums) = FileChecksums::of_footer(footer).map_err(damaged)? else {
        return Ok(None);
    };
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(content)
        .map_err(|error| SliceError::parquet(path, Some(start), error))?;
    let footer = (content.len() - FOOTER_TAIL).saturating_sub(footer.len());
    let data = end_of_data(&metadata, footer as u64) as usize;
    let sum = |range: Range<usize>| content.get(range).map(crc32fast::hash);
    if sum(0..data) != Some(sums.data) || sum(data..footer) != Some(sums.indexes) {
        let what = "a Parquet file does not have its checksum".to_owned();
        return Err(corrupt(path, Some(start), what));
    }
    Ok(Some(sums.head))
}

/// The error for a file that cannot be decoded, with the first page that does not have its checksum.
///
/// leaves: those that are read.
pub(super) fn locate(
    error: SliceError,
    file: &StoreFile,
    metadata: &ParquetMetaData,
    is_read: &dyn Fn(usize) -> bool,
) -> SliceError {
    match error {
        SliceError::Corrupt { offset: None, .. } => {
            match find_damaged_page(file.path(), file, metadata, Some(is_read)) {
                Err(damage @ SliceError::Corrupt { .. }) => damage,
                _ => error,
            }
        }
        other => other,
    }
}

/// Where the page indexes begin, or the footer.
fn end_of_data(metadata: &ParquetMetaData, footer: u64) -> u64 {
    let groups = metadata.row_groups().iter();
    let chunks = groups.flat_map(RowGroupMetaData::columns);
    let indexes =
        chunks.flat_map(|chunk| [chunk.column_index_offset(), chunk.offset_index_offset()]);
    let first = indexes
        .flatten()
        .filter_map(|at| u64::try_from(at).ok())
        .min();
    first.map_or(footer, |first| first.min(footer))
}

/// The checksum of some bytes of a file.
pub(crate) fn checksum(file: &StoreFile, range: Range<u64>) -> Result<u32> {
    let mut sum = crc32fast::Hasher::new();
    let Range { mut start, end } = range;
    while start < end {
        let next = end.min(start + WINDOW);
        sum.update(&file.read_range(start..next)?);
        start = next;
    }
    Ok(sum.finalize())
}

/// Compares the pages with their checksums.
fn find_damaged_page(
    path: &str,
    file: &StoreFile,
    metadata: &ParquetMetaData,
    is_read: Option<&dyn Fn(usize) -> bool>,
) -> Result<Coverage> {
    let mut all = true;
    for (group, columns) in metadata.row_groups().iter().enumerate() {
        for (leaf, chunk) in columns.columns().iter().enumerate() {
            if is_read.is_none_or(|is_read| is_read(leaf)) {
                let pages = Pages::of(path, file, chunk, group)?;
                all &= pages.verify()?;
            }
        }
    }
    Ok(if all {
        Coverage::Pages
    } else {
        Coverage::Partial
    })
}

/// The pages of a column of a row group.
struct Pages<'a> {
    path: &'a str,
    file: &'a StoreFile,
    /// For errors.
    place: String,
    at: u64,
    end: u64,
    /// Bytes of the file from `begin` on.
    window: Bytes,
    begin: u64,
}

impl<'a> Pages<'a> {
    fn of(
        path: &'a str,
        file: &'a StoreFile,
        chunk: &ColumnChunkMetaData,
        group: usize,
    ) -> Result<Self> {
        let data = chunk.data_page_offset();
        let first = chunk.dictionary_page_offset().unwrap_or(data);
        // Negative numbers become greater than any size.
        let (at, length) = (first as u64, chunk.compressed_size() as u64);
        let end = at.saturating_add(length);
        check_range(path, file, &(at..end))?;
        Ok(Self {
            path,
            file,
            place: format!("column {} of row group {group}", chunk.column_path()),
            at,
            end,
            window: Bytes::new(),
            begin: at,
        })
    }

    /// Whether all pages have checksums.
    fn verify(mut self) -> Result<bool> {
        let mut all = true;
        while self.at < self.end {
            let left = self.end - self.at;
            let Some(header) = self.header(left)? else {
                let what = format!("no page header in {}", self.place);
                return Err(corrupt(self.path, Some(self.at), what));
            };
            let size = header.length as u64 + header.size as u64;
            if size > left {
                let what = format!(
                    "a page of {size} bytes in the last {left} of {}",
                    self.place
                );
                return Err(corrupt(self.path, Some(self.at), what));
            }
            let bytes = self.bytes(size)?;
            let content = bytes.get(header.length..size as usize).unwrap_or_default();
            match header.checksum {
                Some(stored) if stored != crc32fast::hash(content) => {
                    let what = format!("a page of {} does not have its checksum", self.place);
                    return Err(corrupt(self.path, Some(self.at), what));
                }
                stored => all &= stored.is_some(),
            }
            self.at += size;
        }
        Ok(all)
    }

    /// The header that is next.
    fn header(&mut self, left: u64) -> Result<Option<PageHeader>> {
        // Statistics of long texts make long headers.
        for length in [1 << 10, WINDOW] {
            let header = PageHeader::decode(&self.bytes(left.min(length))?);
            if header.is_some() || left <= length {
                return Ok(header);
            }
        }
        Ok(None)
    }

    /// The next bytes, not beyond the column.
    fn bytes(&mut self, count: u64) -> Result<Bytes> {
        let start = self.at - self.begin;
        let end = start + count;
        if end > self.window.len() as u64 {
            let to = self.end.min(self.at + count.max(WINDOW));
            self.window = self.file.read_range(self.at..to)?;
            self.begin = self.at;
            return Ok(self.window.slice(..self.window.len().min(count as usize)));
        }
        Ok(self.window.slice(start as usize..end as usize))
    }
}

fn corrupt(path: &str, offset: Option<u64>, what: String) -> SliceError {
    SliceError::Corrupt {
        file: path.to_owned(),
        offset,
        what,
    }
}
