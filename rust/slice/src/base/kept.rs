//! Row groups of a base file that its rewrite takes over: as they stand if none of their keys is
//! rewritten, or without the rows that are replaced or deleted (`splice/`). Their bytes are copied,
//! but for the column that has the file's own name.
//!
//! A file that grows by a few rows at a time would get a row group each time. So a row group stays
//! only while it has more rows than all that are rewritten, smaller ones are among those: sizes
//! at least double from one to the next, and a row is written once for each doubling.

use std::collections::HashSet;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use arrow::array::{BooleanArray, BooleanBufferBuilder, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Schema, SchemaRef};
use bytes::{Buf, Bytes};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, TypePtr};
use pyhudi_format::ReadAt;
use pyhudi_merge::{BaseOutcome, Keys};
use pyhudi_store::StoreFile;

use super::calendar;
use super::damage::locate;
use super::parquet::{Groups, ParquetReader, value_of};
use super::splice::{Chunk, Spliced, is_spliceable};
use super::{BaseRead, Merging, Opening};
use crate::FILE_NAME;
use crate::adapt::adapt;
use crate::base::open::key_roots;
use crate::base_options::Codec;
use crate::changes::Batches;
use crate::error::{Result, SliceError};
use crate::leaf_writers::Helped;
use crate::log_map::LogMap;
use crate::names::select;
use crate::request::SliceRead;
use crate::row_test::SharedMap;

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
    /// Of the new file.
    pub(crate) codec: Codec,
}

/// The row groups of a base file that are kept.
pub(crate) struct Kept {
    path: String,
    groups: Groups,
    batch_rows: usize,
    two_threads: bool,
    /// Takes rows away from them.
    passing: Option<Passing>,
}

/// What rows of a kept row group are passed by.
struct Passing {
    merging: Arc<Merging>,
    map: SharedMap,
    /// Columns of the keys and of what is compared.
    columns: SchemaRef,
}

impl Passing {
    /// None where rows are made of two sides, so that all columns are needed.
    fn of(read: &SliceRead, opening: Opening<'_>) -> Result<Option<Self>> {
        let Opening::Merged(merging, map) = opening else {
            return Ok(None);
        };
        if !matches!(&*locked(map), LogMap::Keys(..)) {
            return Ok(None);
        }
        let shape = &merging.shape;
        let mut names: Vec<String> = key_roots(&shape.columns.keys.fields, &read.schema).collect();
        if shape.spec.compares() {
            names.extend(key_roots(&shape.spec.ordering_fields, &read.schema));
        }
        names.sort();
        names.dedup();
        Ok(Some(Self {
            merging: Arc::clone(merging),
            map: Arc::clone(map),
            columns: select(&read.schema, &names)?,
        }))
    }

    /// Which rows of a batch stay.
    fn pass(&self, path: &str, batch: &RecordBatch) -> Result<BaseOutcome> {
        let shape = &self.merging.shape;
        let batch = adapt(batch, &self.columns).map_err(|error| error.of_rows(Some(path)))?;
        let keys = shape.base_keys(&batch);
        let keys = keys.map_err(|error| error.in_rows_of(path, None))?;
        let ordering = shape.ordering(&batch)?;
        match &mut *locked(&self.map) {
            LogMap::Keys(map, ..) => Ok(map.merge_base(keys, &ordering)?),
            LogMap::Fields(_) => Ok(BaseOutcome::KeepAll),
        }
    }
}

fn locked(map: &Mutex<LogMap>) -> std::sync::MutexGuard<'_, LogMap> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
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
        let passing = Passing::of(read, opening)?;
        let (mut large, mut anew) = (Vec::new(), new_rows(opening, keeping));
        for number in groups.numbers.iter().copied() {
            let rows = groups.rows(number);
            let kept = rows >= keeping.least_rows.max(1)
                && groups.is_within_file(number)
                && (passing.is_some() && groups.is_spliceable(number, keeping.codec)
                    || !is_met(read, path, &groups, number, opening)?);
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
        let mut kept: HashSet<usize> = large.iter().map(|(_, number)| *number).collect();
        if passing.is_some() {
            // A record is merged with the first row that has its key: rows pass in their order.
            let rewritten = groups.numbers.iter().find(|number| !kept.contains(number));
            let first = rewritten.copied().unwrap_or(usize::MAX);
            for number in groups.numbers.iter().filter(|number| **number > first) {
                if kept.contains(number) && is_met(read, path, &groups, *number, opening)? {
                    kept.remove(number);
                }
            }
        }
        if kept.is_empty() {
            return Ok((None, Some(groups)));
        }
        let (kept, rest) = groups.split(&kept);
        let kept = Self {
            path: path.clone(),
            groups: kept,
            batch_rows: read.batch_rows,
            two_threads: read.two_threads,
            passing,
        };
        Ok((Some(kept), Some(rest)))
    }

    /// Their numbers in the file.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.groups.numbers.iter().copied()
    }

    /// A string in the metadata of their file.
    pub(crate) fn value(&self, key: &str) -> Option<String> {
        value_of(&self.groups.metadata, key)
    }

    /// Rows of their file.
    pub(crate) fn file_rows(&self) -> u64 {
        let rows = self.groups.metadata.file_metadata().num_rows();
        u64::try_from(rows).unwrap_or(0)
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

    /// Passes one by the log side: which of its rows stay, none where all do. Calls `note` with the
    /// keys of those, in a batch that has the column `key`.
    pub(crate) fn pass(
        &self,
        number: usize,
        key: Option<&String>,
        note: &mut dyn FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<Option<BooleanBuffer>> {
        let mut columns: Vec<String> = key.into_iter().cloned().collect();
        if let Some(passing) = &self.passing {
            let fields = passing.columns.fields().iter();
            columns.extend(fields.map(|field| field.name().clone()));
        }
        if columns.is_empty() {
            return Ok(None);
        }
        let one = self.groups.only(number);
        let mut stay = BooleanBufferBuilder::new(self.groups.rows(number) as usize);
        for batch in ParquetReader::of(
            &self.path,
            one.clone(),
            only(&columns, one, self.batch_rows),
        )? {
            let batch = batch?;
            let outcome = match &self.passing {
                Some(passing) => passing.pass(&self.path, &batch)?,
                None => BaseOutcome::KeepAll,
            };
            match (outcome, key) {
                (BaseOutcome::KeepAll, key) => {
                    stay.append_n(batch.num_rows(), true);
                    if key.is_some() {
                        note(&batch)?;
                    }
                }
                (BaseOutcome::Keep(mask), key) => {
                    stay.append_buffer(mask.values());
                    if key.is_some() {
                        note(&filter_record_batch(&batch, &mask)?)?;
                    }
                }
            }
        }
        let stay = stay.finish();
        Ok((stay.count_set_bits() < stay.len()).then_some(stay))
    }

    /// One of them, to be copied, or those of its rows that stay.
    ///
    /// own: a column of the new file that is not taken over.
    pub(crate) fn group(
        &self,
        number: usize,
        stay: Option<BooleanBuffer>,
        to: &KeptForm<'_>,
    ) -> Result<KeptGroup> {
        match stay {
            None => KeptGroup::read(&self.groups, number),
            Some(stay) => self.spliced(number, &stay, to),
        }
    }

    fn spliced(&self, number: usize, stay: &BooleanBuffer, to: &KeptForm<'_>) -> Result<KeptGroup> {
        let rows = stay.count_set_bits() as u64;
        if rows == 0 {
            return Ok(KeptGroup {
                rows,
                columns: Vec::new(),
                decoded: Vec::new(),
            });
        }
        let schema = self.groups.metadata.file_metadata().schema_descr();
        let leaves = self
            .groups
            .group(number)
            .map_or(&[][..], RowGroupMetaData::columns)
            .len();
        let taken = (0..leaves).filter(|leaf| Some(schema.get_column_root_idx(*leaf)) != to.own);
        let spliced = self.splice_all(number, taken.collect(), stay, to.codec)?;
        let mut columns: Vec<KeptColumn> = (0..leaves).map(|_| KeptColumn::Written).collect();
        let mut roots = Vec::new();
        for (leaf, spliced) in spliced {
            let root = schema.get_column_root_idx(leaf);
            match (spliced, columns.get_mut(leaf)) {
                (Some((pages, closed)), Some(column)) => {
                    *column = KeptColumn::Spliced(pages, Box::new(closed));
                }
                _ => roots.push(root),
            }
        }
        roots.sort_unstable();
        roots.dedup();
        for leaf in 0..leaves {
            if roots.contains(&schema.get_column_root_idx(leaf))
                && let Some(column) = columns.get_mut(leaf)
            {
                *column = KeptColumn::Written;
            }
        }
        let decoded = roots.into_iter().map(|root| {
            let field = schema.root_schema().get_fields().get(root);
            let name = field.map_or("", |field| field.name());
            Ok((root, self.decoded(number, name, stay, to.schema)?))
        });
        Ok(KeptGroup {
            rows,
            columns,
            decoded: decoded.collect::<Result<_>>()?,
        })
    }

    /// Its leaves without the rows that do not stay; none for those that must be decoded.
    fn splice_all(
        &self,
        number: usize,
        leaves: Vec<usize>,
        stay: &BooleanBuffer,
        codec: Codec,
    ) -> Result<Vec<(usize, Option<Spliced>)>> {
        let two = self.two_threads && Helped::has_room();
        let done = Mutex::new(Vec::with_capacity(leaves.len()));
        let left = Mutex::new(leaves);
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let work = || {
            while let Some(leaf) = next() {
                let spliced = self.splice(number, leaf, stay, codec)?;
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push((leaf, spliced));
            }
            Ok(())
        };
        if two {
            thread::scope(|scope| {
                // If the system gives no thread, this one does all.
                let second = thread::Builder::new().spawn_scoped(scope, work);
                let first = work();
                let second = second.map_or(Ok(Ok(())), thread::ScopedJoinHandle::join);
                let what = "a column cannot be decoded".to_owned();
                first.and(second.unwrap_or_else(|_| Err(self.corrupt(what))))
            })?;
        } else {
            work()?;
        }
        Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn corrupt(&self, what: String) -> SliceError {
        SliceError::parquet(&self.path, None, ParquetError::General(what))
    }

    fn splice(
        &self,
        number: usize,
        leaf: usize,
        stay: &BooleanBuffer,
        codec: Codec,
    ) -> Result<Option<Spliced>> {
        let columns = self.groups.group(number).map(RowGroupMetaData::columns);
        let Some(metadata) = columns.and_then(|columns| columns.get(leaf)) else {
            return Ok(None);
        };
        let indexes = self.groups.metadata.page_index_for_row_group(number);
        let Some(offsets) = indexes.offset_index(leaf) else {
            return Ok(None);
        };
        let (begin, length) = metadata.byte_range();
        let chunk = Chunk {
            metadata,
            pages: self.groups.file.read_range(begin..begin + length)?,
            offsets,
            index: indexes.column_index(leaf),
        };
        let spliced = chunk.splice(stay, codec);
        spliced.map_err(|error| {
            let error = SliceError::parquet(&self.path, None, error);
            locate(error, &self.groups.file, &self.groups.metadata, &|read| {
                read == leaf
            })
        })
    }

    /// The rows of one column that stay.
    fn decoded(
        &self,
        number: usize,
        name: &str,
        stay: &BooleanBuffer,
        schema: &Schema,
    ) -> Result<Batches> {
        let (columns, one) = ([name.to_owned()], self.groups.only(number));
        let field = schema.field_with_name(name)?.clone();
        let schema = Arc::new(Schema::new(vec![field]));
        let read = only(&columns, one.clone(), self.batch_rows);
        let (mut row, stay) = (0, stay.clone());
        Ok(Box::new(ParquetReader::of(&self.path, one, read)?.map(
            move |batch| {
                let batch = batch?;
                let rows = batch.num_rows().min(stay.len() - row);
                let mask = BooleanArray::new(stay.slice(row, rows), None);
                row += rows;
                adapt(&filter_record_batch(&batch, &mask)?, &schema)
            },
        )))
    }
}

/// The file that a row group is taken over to.
pub(crate) struct KeptForm<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) codec: Codec,
    /// A column that gets other values.
    pub(crate) own: Option<usize>,
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

    /// Whether rows can be taken out of most of a row group without decoding it.
    fn is_spliceable(&self, number: usize, codec: Codec) -> bool {
        let columns = self
            .group(number)
            .map_or(&[][..], RowGroupMetaData::columns);
        let indexes = self.metadata.page_index_for_row_group(number);
        let size = |(leaf, chunk): (usize, &ColumnChunkMetaData)| {
            let spliced = indexes.offset_index(leaf).is_some() && is_spliceable(chunk, codec);
            let bytes = chunk.compressed_size();
            (bytes, if spliced { bytes } else { 0 })
        };
        let sizes = columns.iter().enumerate().map(size);
        let (all, spliced) = sizes.fold((0_i64, 0_i64), |sum, size| {
            (sum.0.saturating_add(size.0), sum.1.saturating_add(size.1))
        });
        spliced > all / 2
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

/// A row group to be written: for each of its columns the pages, and what the footer says of them.
pub(crate) struct KeptGroup {
    /// Rows.
    pub(crate) rows: u64,
    pub(crate) columns: Vec<KeptColumn>,
    /// Top-level columns by number that are encoded again.
    pub(crate) decoded: Vec<(usize, Batches)>,
}

/// A column of a row group.
pub(crate) enum KeptColumn {
    Copied(KeptPages, Box<ColumnCloseResult>),
    Spliced(Bytes, Box<ColumnCloseResult>),
    /// Its values are given otherwise.
    Written,
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
            KeptColumn::Copied(pages, Box::new(closed))
        });
        Ok(Self {
            rows,
            columns: columns.collect(),
            decoded: Vec::new(),
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
