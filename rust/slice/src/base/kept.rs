//! Row groups of a base file that its rewrite takes over as they stand, since none of their keys is
//! rewritten. Their bytes are copied, but for the column that has the file's own name.
//!
//! A file that grows by a few rows at a time would get a row group each time. So a row group stays
//! only while it has more rows than all that are rewritten, smaller ones are among those: sizes
//! at least double from one to the next, and a row is written once for each doubling.

use std::collections::HashSet;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::PoisonError;

use arrow::array::RecordBatch;
use bytes::{Buf, Bytes};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, TypePtr};
use pyhudi_format::ReadAt;
use pyhudi_merge::Keys;
use pyhudi_store::StoreFile;

use super::calendar;
use super::parquet::{Groups, ParquetReader};
use super::{BaseRead, Opening};
use crate::FILE_NAME;
use crate::adapt::adapt;
use crate::base::open::key_roots;
use crate::error::{Result, SliceError};
use crate::names::select;
use crate::request::SliceRead;

/// Programs whose footers are believed to say where pages are, and how they are compressed.
const WRITERS: [&str; 2] = ["pyhudi version ", "parquet-mr version 1.1"];

/// Bytes of a row group that are read at once, and of a column where there are more.
const WINDOW: u64 = 8 << 20;

/// What a rewrite asks of row groups that it may keep.
pub(crate) struct Keeping {
    /// Schema of the new file.
    pub(crate) schema: SchemaDescPtr,
    /// Rows that come to those that are read.
    pub(crate) new_rows: u64,
    /// Fewer rows are not worth a row group of their own.
    pub(crate) least_rows: u64,
}

/// The row groups of a base file that are kept.
pub(crate) struct Kept {
    path: String,
    groups: Groups,
    batch_rows: usize,
}

impl Kept {
    /// The row groups to keep, none where there is no such thing; and those to be read, none where
    /// nothing was checked.
    pub(crate) fn find(
        read: &SliceRead,
        opening: Opening<'_>,
        keeping: &Keeping,
    ) -> Result<(Option<Self>, Option<Groups>)> {
        let Some(path) = read.base.as_ref().filter(|_| whole(read, opening)) else {
            return Ok((None, None));
        };
        let groups = Groups::of(&read.store, path, PageIndexPolicy::Optional)?;
        if !groups.fits(&keeping.schema) {
            return Ok((None, Some(groups)));
        }
        let (mut large, mut anew) = (Vec::new(), new_rows(opening, keeping));
        for number in groups.numbers.iter().copied() {
            let rows = groups.rows(number);
            let kept = rows >= keeping.least_rows.max(1)
                && groups.is_within_file(number)
                && !is_met(read, path, &groups, number, opening)?;
            if kept {
                large.push((rows, number));
            } else {
                anew += rows;
            }
        }
        large.sort_unstable();
        large.retain(|(rows, _)| {
            let kept = *rows > anew;
            anew += if kept { 0 } else { *rows };
            kept
        });
        if large.is_empty() {
            return Ok((None, Some(groups)));
        }
        let kept: HashSet<usize> = large.iter().map(|(_, number)| *number).collect();
        let (kept, rest) = groups.split(&kept);
        let kept = Self {
            path: path.clone(),
            groups: kept,
            batch_rows: read.batch_rows,
        };
        Ok((Some(kept), Some(rest)))
    }

    /// Their numbers in the file.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.groups.numbers.iter().copied()
    }

    /// Rows of all of them.
    pub(crate) fn rows(&self) -> u64 {
        self.numbers().map(|number| self.groups.rows(number)).sum()
    }

    /// Bytes of the pages of one.
    pub(crate) fn bytes(&self, number: usize) -> u64 {
        let group = self.groups.group(number);
        let bytes = group.map_or(0, RowGroupMetaData::compressed_size);
        u64::try_from(bytes).unwrap_or(0)
    }

    /// Its rows' values of one column.
    pub(crate) fn column(
        &self,
        number: usize,
        name: &str,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        let columns = [name.to_owned()];
        let one = self.groups.only(number);
        let read = only(&columns, one.clone(), self.batch_rows);
        ParquetReader::of(&self.path, one, read)
    }

    /// One of them, to be copied.
    pub(crate) fn group(&self, number: usize) -> Result<KeptGroup> {
        KeptGroup::read(&self.groups, number)
    }
}

/// Whether the rows of a base file are given out as they are in it, row group after row group.
fn whole(read: &SliceRead, opening: Opening<'_>) -> bool {
    let plain = read.bootstrap.is_none()
        && read.evolution.is_none()
        && read.filters.is_empty()
        && read.base_part.is_none();
    let in_memory = !matches!(opening, Opening::Spilled(_));
    let missing = |name: &String| name != FILE_NAME && !read.columns.contains(name);
    let all = !read
        .schema
        .fields()
        .iter()
        .any(|field| missing(field.name()));
    let is_parquet = read
        .base
        .as_ref()
        .is_some_and(|path| super::format_of(path).keeps_groups());
    plain && in_memory && all && is_parquet && !opening.by_position()
}

fn new_rows(opening: Opening<'_>, keeping: &Keeping) -> u64 {
    let met = match opening {
        Opening::Merged(_, map) => map.lock().unwrap_or_else(PoisonError::into_inner).len(),
        Opening::Plain | Opening::Spilled(_) => 0,
    };
    keeping.new_rows + met as u64
}

/// Whether a log record has a key of the row group.
fn is_met(
    read: &SliceRead,
    path: &str,
    groups: &Groups,
    number: usize,
    opening: Opening<'_>,
) -> Result<bool> {
    let Opening::Merged(merging, map) = opening else {
        return Ok(false);
    };
    let keys = &merging.shape.columns.keys;
    let names: Vec<String> = key_roots(&keys.fields, &read.schema).collect();
    let columns = select(&read.schema, &names)?;
    let one = groups.only(number);
    let asked = only(&names, one.clone(), read.batch_rows);
    for batch in ParquetReader::of(path, one, asked)? {
        let keys = Keys::Text(keys.of(&adapt(&batch?, &columns)?)?);
        let map = map.lock().unwrap_or_else(PoisonError::into_inner);
        if map.contains(&keys)?.count_set_bits() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn only(columns: &[String], groups: Groups, batch_rows: usize) -> BaseRead<'_> {
    BaseRead {
        groups: Some(groups),
        ..BaseRead::all(columns, batch_rows)
    }
}

impl Groups {
    fn only(&self, number: usize) -> Self {
        Self {
            numbers: vec![number],
            ..self.clone()
        }
    }

    fn group(&self, number: usize) -> Option<&RowGroupMetaData> {
        self.metadata.row_groups().get(number)
    }

    fn rows(&self, number: usize) -> u64 {
        let rows = self.group(number).map_or(0, RowGroupMetaData::num_rows);
        u64::try_from(rows).unwrap_or(0)
    }

    /// Whether its row groups can stand in a file of that schema.
    fn fits(&self, schema: &SchemaDescriptor) -> bool {
        let file = self.metadata.file_metadata();
        let written_by = file.created_by().unwrap_or_default();
        let own = file.schema_descr().root_schema().get_fields();
        !calendar::has_old_calendar(&self.metadata)
            && WRITERS.iter().any(|known| written_by.starts_with(known))
            && same_fields(own, schema.root_schema().get_fields())
    }

    /// Whether the pages of a row group are where pages can be; errors of others are reported
    /// when they are read.
    fn is_within_file(&self, number: usize) -> bool {
        let size = self.file.size();
        let chunks = self
            .group(number)
            .map_or(&[][..], RowGroupMetaData::columns);
        chunks.iter().all(|chunk| {
            let (data, length) = (chunk.data_page_offset(), chunk.compressed_size());
            let begin = chunk.dictionary_page_offset().unwrap_or(data);
            let end = begin
                .checked_add(length)
                .and_then(|end| u64::try_from(end).ok());
            (1..=data).contains(&begin) && length >= 0 && end.is_some_and(|end| end <= size)
        })
    }

    fn split(self, kept: &HashSet<usize>) -> (Self, Self) {
        let numbers = self.numbers.iter().copied();
        let (mine, rest) = numbers.partition(|number| kept.contains(number));
        let kept = Self {
            numbers: mine,
            ..self.clone()
        };
        let rest = Self {
            numbers: rest,
            ..self
        };
        (kept, rest)
    }
}

/// Whether columns are laid out alike. parquet-mr names lists and maps in two ways, of which the
/// older one says all.
fn same_fields(one: &[TypePtr], other: &[TypePtr]) -> bool {
    let same = |(a, b): (&TypePtr, &TypePtr)| {
        let (first, second) = (a.get_basic_info(), b.get_basic_info());
        if a.is_primitive() || b.is_primitive() {
            return a == b;
        }
        first.name() == second.name()
            && first.repetition() == second.repetition()
            && first.converted_type() == second.converted_type()
            && same_fields(a.get_fields(), b.get_fields())
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// A row group to be copied: for each of its columns the pages, and what the footer says of them.
pub(crate) struct KeptGroup {
    /// Rows.
    pub(crate) rows: u64,
    pub(crate) columns: Vec<(KeptPages, ColumnCloseResult)>,
}

impl KeptGroup {
    fn read(groups: &Groups, number: usize) -> Result<Self> {
        let chunks = groups
            .group(number)
            .map_or(&[][..], RowGroupMetaData::columns);
        let ranges: Vec<Range<u64>> = chunks
            .iter()
            .map(|chunk| {
                let (begin, length) = chunk.byte_range();
                begin..begin + length
            })
            .collect();
        let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let read = if bytes <= WINDOW {
            groups
                .file
                .read_ranges(&ranges)
                .map_err(SliceError::Store)?
        } else {
            vec![Bytes::new(); ranges.len()]
        };
        let rows = groups.rows(number);
        let indexes = groups.metadata.page_index_for_row_group(number);
        let columns = chunks.iter().zip(ranges).zip(read).enumerate();
        let columns = columns.map(|(leaf, ((chunk, range), read))| {
            let closed = ColumnCloseResult {
                bytes_written: range.end - range.start,
                rows_written: rows,
                metadata: chunk.clone(),
                bloom_filter: None,
                column_index: indexes.column_index(leaf).cloned(),
                offset_index: indexes.offset_index(leaf).cloned(),
            };
            let pages = KeptPages {
                file: groups.file.clone(),
                range,
                read,
            };
            (pages, closed)
        });
        Ok(Self {
            rows,
            columns: columns.collect(),
        })
    }
}

/// The pages of one column of a row group.
#[derive(Clone)]
pub(crate) struct KeptPages {
    file: StoreFile,
    /// Bytes of the file that were not given out.
    range: Range<u64>,
    /// The first of them, as far as they were read.
    read: Bytes,
}

impl Length for KeptPages {
    fn len(&self) -> u64 {
        self.range.end
    }
}

impl ChunkReader for KeptPages {
    type T = Self;

    fn get_read(&self, start: u64) -> Result<Self, ParquetError> {
        if start == self.range.start {
            return Ok(self.clone());
        }
        Err(ParquetError::General(format!(
            "byte {start} begins no column"
        )))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = vec![0; length];
        self.get_read(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl Read for KeptPages {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read.is_empty() {
            let end = self.range.end.min(self.range.start.saturating_add(WINDOW));
            let next = self.file.read_range(self.range.start..end);
            self.read = next.map_err(io::Error::other)?;
        }
        let count = buffer.len().min(self.read.len());
        let (into, _) = buffer.split_at_mut(count);
        self.read.copy_to_slice(into);
        self.range.start += count as u64;
        Ok(count)
    }
}
