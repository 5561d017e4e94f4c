//! Parquet base files to record batches: projection, row-group pruning. Bytes are fetched page by page, or a
//! row group at a time where rows are tested before all their columns are decoded.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use bytes::{Buf, Bytes};
use parquet::DecodeResult;
use parquet::arrow::arrow_reader::{
    ArrowPredicate, ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions,
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder};
use parquet::arrow::{ProjectionMask, RowNumber};
use parquet::basic::{ConvertedType, Repetition};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder, ParquetMetaDataReader,
    RowGroupMetaData,
};
use parquet::schema::types::Type;
use pyhudi_format::{FileChecksums, ReadAt, nests_deeper};
use pyhudi_store::{Store, StoreFile};

use super::calendar::Old;
use super::damage::locate;
use super::halves::{Halves, Pages};
use super::int96::int96_as_micros;
use super::page_file::PageFile;
use super::parquet_out::ParquetOut;
use super::portions::Portions;
use super::{BaseFormat, BaseOut, BaseRead, BaseRows, BaseSchema, format_of};
use crate::base_options::BaseFileOptions;
use crate::error::{Result, SliceError};
use crate::evolve::{Source, evolve, stored_filters, stored_names};
use crate::log_side::ROW_NUMBER;
use crate::names::names_of;
use crate::prune::{Filter, keep_row_groups};
use crate::row_test::RowTest;

/// Approximate maximum bytes of a batch of wide rows: they must fit in memory several times.
pub(crate) const BATCH_BYTES: usize = 8 << 20;

/// Row groups of more bytes are not fetched whole where rows are tested: theirs is read twice, page
/// by page.
const MAX_GROUP_BYTES: i64 = 16 << 20;

/// Levels of a Parquet schema: three for one of Avro's, where 64 is the limit.
const MAX_LEVELS: usize = 256;

/// The length of a Parquet footer and the magic bytes, at the end of a file.
pub(super) const FOOTER_TAIL: usize = 8;

/// Row groups of a Parquet file whose footer was read.
#[derive(Clone)]
pub(crate) struct Groups {
    pub(crate) file: StoreFile,
    pub(crate) metadata: Arc<ParquetMetaData>,
    pub(crate) numbers: Vec<usize>,
    /// The types that the footer gives, if they are known.
    pub(crate) arrow: Option<ArrowReaderMetadata>,
}

impl Groups {
    /// All of a file.
    pub(crate) fn of(store: &Store, path: &str, pages: PageIndexPolicy) -> Result<Self> {
        let file = store.file(path)?;
        let metadata = footer(path, &file, pages)?;
        Ok(Self {
            file,
            numbers: (0..metadata.num_row_groups()).collect(),
            metadata: Arc::new(metadata),
            arrow: None,
        })
    }

    /// The Arrow types of the file's columns.
    pub(crate) fn arrow(&self, path: &str) -> Result<ArrowReaderMetadata> {
        let arrow = arrow_metadata(Arc::clone(&self.metadata), false);
        arrow.map_err(|error| SliceError::parquet(path, None, error))
    }
}

/// Batches of one Parquet file, in file order, with the file's own types and the table's names.
pub(super) struct ParquetReader {
    path: String,
    file: StoreFile,
    metadata: Arc<ParquetMetaData>,
    /// Leaves that are read.
    mask: ProjectionMask,
    map: Option<Arc<[Source]>>,
    decoder: Decoder,
    schema: SchemaRef,
    rows: i64,
    pruned_row_groups: u64,
    old: Option<Old>,
}

/// Parquet, which nearly all base files are.
pub(super) struct Parquet;

impl BaseFormat for Parquet {
    fn extension(&self) -> &'static str {
        ".parquet"
    }

    fn keeps_groups(&self) -> bool {
        true
    }

    fn open(&self, store: &Store, path: &str, read: BaseRead<'_>) -> Result<Box<dyn BaseRows>> {
        let groups = match &read.groups {
            Some(groups) => groups.clone(),
            None => Groups::of(store, path, PageIndexPolicy::Skip)?,
        };
        Ok(Box::new(ParquetReader::of(path, groups, read)?))
    }

    fn create(
        &self,
        store: &Store,
        path: &str,
        options: &BaseFileOptions,
    ) -> Result<Box<dyn BaseOut>> {
        Ok(Box::new(ParquetOut::create(store, path, options)?))
    }

    fn schema(&self, store: &Store, path: &str) -> Result<BaseSchema> {
        let metadata = Groups::of(store, path, PageIndexPolicy::Skip)?.metadata;
        Ok(BaseSchema {
            avro: value_of(&metadata, "parquet.avro.schema"),
            arrow: arrow_schema(path, &metadata)?,
            rows: metadata.file_metadata().num_rows(),
        })
    }

    fn values(&self, store: &Store, path: &str, keys: &[&str]) -> Result<Vec<Option<String>>> {
        let metadata = Groups::of(store, path, PageIndexPolicy::Skip)?.metadata;
        Ok(keys.iter().map(|key| value_of(&metadata, key)).collect())
    }
}

/// The schema that a file's own types give.
pub(super) fn arrow_schema(path: &str, metadata: &Arc<ParquetMetaData>) -> Result<SchemaRef> {
    let arrow = arrow_metadata(Arc::clone(metadata), false)
        .map_err(|error| SliceError::parquet(path, None, error))?;
    Ok(Arc::clone(arrow.schema()))
}

pub(super) fn value_of(metadata: &ParquetMetaData, key: &str) -> Option<String> {
    let mut pairs = metadata.file_metadata().key_value_metadata()?.iter();
    pairs.find(|pair| pair.key == key)?.value.clone()
}

impl BaseRows for ParquetReader {
    fn path(&self) -> &str {
        &self.path
    }

    fn columns(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn rows(&self) -> i64 {
        self.rows
    }

    fn pruned_row_groups(&self) -> u64 {
        self.pruned_row_groups
    }
}

enum Decoder {
    Pages(Box<ParquetRecordBatchReader>),
    Halves(Box<Halves>),
    Portions(Box<Portions>),
    /// Keeps the columns of the test, so that they are decoded once.
    RowGroups(Box<Fetched>),
    /// The test is made when the first batch is asked for.
    Tested(Option<(Pages, RowFilter)>),
}

impl ParquetReader {
    /// Those row groups of a file.
    pub(super) fn of(path: &str, known: Groups, mut read: BaseRead<'_>) -> Result<Self> {
        let file = known.file;
        let old = Old::of(&known.metadata);
        if old.is_some() {
            // They are of other days than those that the file has.
            (read.filters, read.end_filters, read.test) = (&[], &[], None);
        }
        if read.lookup.is_some() && known.metadata.num_row_groups() == 1 {
            // The rows of the keys decide.
            (read.filters, read.end_filters) = (&[], &[]);
        }
        let damaged = |error| SliceError::parquet(path, None, error);
        let arrow = match known.arrow.filter(|_| !read.row_numbers) {
            Some(arrow) => arrow,
            None => arrow_metadata(known.metadata, read.row_numbers).map_err(damaged)?,
        };
        let mask = match &read.map {
            None => projection(&arrow, read.columns),
            Some(map) => projection(&arrow, &stored_names(read.columns, map)),
        };
        let matching = |filters: &[Filter]| match &read.map {
            None => keep_row_groups(&arrow, filters),
            Some(map) => keep_row_groups(&arrow, &stored_filters(filters, map)),
        };
        let mut groups = matching(read.filters)?;
        if !read.end_filters.is_empty() {
            let last = matching(read.end_filters)?.last().copied();
            groups.retain(|group| Some(*group) <= last);
        }
        let mut all = known.numbers.len();
        groups.retain(|group| known.numbers.contains(group));
        if let Some(part) = &read.part {
            let within = |group: &usize| begins_in(arrow.metadata(), *group, part);
            all = known.numbers.iter().filter(|group| within(group)).count();
            groups.retain(within);
        }
        let pruned_row_groups = (all - groups.len()) as u64;
        let schema = Arc::clone(arrow.schema());
        let rows = arrow.metadata().file_metadata().num_rows();
        let test = read
            .test
            .map(|test| row_predicate(&arrow, test, read.map.clone()));
        let batch_rows = fitting_rows(arrow.metadata(), &mask, read.batch_rows);
        check_ranges(path, &file, arrow.metadata(), &mask, &groups)?;
        let mut pages = Pages {
            file: PageFile(file.clone()),
            arrow,
            mask,
            groups,
            batch_rows,
            rows: None,
        };
        let mut test = test;
        if let Some(lookup) = read.lookup.filter(|_| !read.row_numbers)
            && let Some((groups, rows)) = lookup.select(path, &pages)?
        {
            (pages.groups, pages.rows, test) = (groups, Some(rows), None);
        }
        // A column of row numbers belongs to no leaf: it cannot be given to some columns.
        let (file, mask) = (pages.file.0.clone(), pages.mask.clone());
        let metadata = Arc::clone(pages.arrow.metadata());
        let decoder = match test {
            test if !read.row_numbers && pages.rows.is_none() && Portions::fit(&pages) => {
                Decoder::Portions(Box::new(Portions::open(&pages, test)))
            }
            None if pages.rows.is_some() => {
                let kept = read.lookup.map(|lookup| lookup.rows(path, &pages));
                match kept.transpose()?.flatten() {
                    Some(rows) => Decoder::Pages(Box::new(rows)),
                    None => Decoder::RowGroups(Box::new(Fetched::open(path, pages, None)?)),
                }
            }
            None => {
                let halves = if read.two_threads && !read.row_numbers && pages.rows.is_none() {
                    Halves::open(&pages).map_err(damaged)?
                } else {
                    None
                };
                match halves {
                    Some(halves) => Decoder::Halves(Box::new(halves)),
                    None => Decoder::Pages(Box::new(pages.reader().map_err(damaged)?)),
                }
            }
            Some(test) if pages.largest_group() > MAX_GROUP_BYTES => {
                Decoder::Tested(Some((pages, RowFilter::new(vec![test]))))
            }
            Some(test) => {
                let test = RowFilter::new(vec![test]);
                Decoder::RowGroups(Box::new(Fetched::open(path, pages, Some(test))?))
            }
        };
        Ok(Self {
            path: path.to_owned(),
            file,
            metadata,
            mask,
            map: read.map.clone(),
            decoder,
            schema,
            rows,
            pruned_row_groups,
            old,
        })
    }

    fn damaged(&self, error: ParquetError) -> SliceError {
        SliceError::parquet(&self.path, None, error)
    }

    fn next_stored(&mut self) -> Option<Result<RecordBatch>> {
        if let Decoder::Tested(tested) = &mut self.decoder {
            let (pages, filter) = tested.take()?;
            match pages.tested(filter) {
                Ok(pages) => self.decoder = Decoder::Pages(Box::new(pages)),
                Err(error) => return Some(Err(self.damaged(error))),
            }
        }
        match &mut self.decoder {
            Decoder::Pages(pages) => {
                let batch = pages.next()?;
                Some(batch.map_err(|error| self.damaged(error.into())))
            }
            Decoder::Halves(halves) => {
                let batch = halves.next()?;
                Some(batch.map_err(|error| self.damaged(error)))
            }
            Decoder::Portions(portions) => {
                let batch = portions.next()?;
                Some(batch.map_err(|error| self.damaged(error)))
            }
            Decoder::RowGroups(fetched) => fetched.next(),
            Decoder::Tested(_) => None,
        }
    }
}

/// Batches of a file whose pages are fetched together: a row group at a time, or the chosen rows of one.
pub(crate) struct Fetched {
    file: StoreFile,
    decoder: ParquetPushDecoder,
}

impl Fetched {
    pub(crate) fn open(path: &str, pages: Pages, test: Option<RowFilter>) -> Result<Self> {
        let file = pages.file.0;
        let mut builder = ParquetPushDecoderBuilder::new_with_metadata(pages.arrow)
            .with_projection(pages.mask)
            .with_row_groups(pages.groups)
            .with_batch_size(pages.batch_rows);
        if let Some(rows) = pages.rows {
            builder = builder.with_row_selection(rows);
        }
        if let Some(test) = test {
            builder = builder.with_row_filter(test);
        }
        let decoder = builder.build();
        let decoder = decoder.map_err(|error| SliceError::parquet(path, None, error))?;
        Ok(Self { file, decoder })
    }
}

impl Iterator for Fetched {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let decoder = &mut self.decoder;
        loop {
            let fetched = match decoder.try_decode() {
                Ok(DecodeResult::Data(batch)) => return Some(Ok(batch)),
                Ok(DecodeResult::Finished) => return None,
                Ok(DecodeResult::NeedsData(ranges)) => fetch(&self.file, decoder, ranges),
                Err(error) => Err(SliceError::parquet(self.file.path(), None, error)),
            };
            if let Err(error) = fetched {
                return Some(Err(error));
            }
        }
    }
}

fn fetch(
    file: &StoreFile,
    decoder: &mut ParquetPushDecoder,
    ranges: Vec<Range<u64>>,
) -> Result<()> {
    for range in &ranges {
        check_range(file.path(), file, range)?;
    }
    let data = file.read_ranges(&ranges)?;
    decoder
        .push_ranges(ranges, data)
        .map_err(|error| SliceError::parquet(file.path(), None, error))
}

/// Before pages are read: their lengths are believed as far as their column chunk goes.
pub(crate) fn check_ranges(
    path: &str,
    file: &StoreFile,
    metadata: &ParquetMetaData,
    mask: &ProjectionMask,
    groups: &[usize],
) -> Result<()> {
    let groups = groups
        .iter()
        .filter_map(|group| metadata.row_groups().get(*group));
    let chunks = groups.flat_map(|group| group.columns().iter().enumerate());
    for (_, chunk) in chunks.filter(|(leaf, _)| mask.leaf_included(*leaf)) {
        let offset = chunk
            .dictionary_page_offset()
            .unwrap_or(chunk.data_page_offset());
        // Negative numbers become greater than any size.
        let (start, length) = (offset as u64, chunk.compressed_size() as u64);
        check_range(path, file, &(start..start.saturating_add(length)))?;
    }
    Ok(())
}

/// Whether a row group begins in a range of the file's bytes. Each begins in one part of several.
fn begins_in(metadata: &ParquetMetaData, group: usize, part: &Range<u64>) -> bool {
    let columns = metadata
        .row_groups()
        .get(group)
        .map(RowGroupMetaData::columns);
    let first = columns.and_then(|columns| columns.first());
    let begin = first.map_or(0, |chunk| {
        let page = chunk.dictionary_page_offset();
        page.unwrap_or(chunk.data_page_offset()) as u64
    });
    // Damaged offsets, which are beyond every end, are in the last part: there they are noticed.
    part.start <= begin && (begin < part.end || part.end == u64::MAX)
}

pub(crate) fn check_range(path: &str, file: &StoreFile, range: &Range<u64>) -> Result<()> {
    if range.end <= file.size() && range.start <= range.end {
        return Ok(());
    }
    Err(SliceError::Corrupt {
        file: path.to_owned(),
        offset: Some(range.start),
        what: format!(
            "the footer points to bytes {}..{} of {}",
            range.start,
            range.end,
            file.size()
        ),
    })
}

impl Iterator for ParquetReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_stored()?;
        let is_read = |leaf| self.mask.leaf_included(leaf);
        let mut batch = batch.map_err(|error| locate(error, &self.file, &self.metadata, &is_read));
        if let Some(old) = self.old {
            batch = batch.and_then(|batch| old.renewed(&self.path, &batch));
        }
        Some(batch.and_then(|batch| match &self.map {
            None => Ok(batch),
            Some(map) => evolve(&batch, map),
        }))
    }
}

/// The batches of a Parquet file that is in memory: a Parquet data block at `start` of `path`.
pub(crate) fn read_parquet_block(
    path: &str,
    start: u64,
    content: Bytes,
    columns: &[String],
    batch_rows: usize,
) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
    let damaged = move |error| SliceError::parquet(path, Some(start), error);
    check_levels(path, footer_bytes(&content))?;
    checksums(path, footer_bytes(&content)).map_err(|error| error.at(start))?;
    let footer = ParquetMetaDataReader::new().parse_and_finish(&content);
    let footer = footer.map_err(damaged)?;
    let old = Old::of(&footer);
    let arrow = arrow_metadata(Arc::new(footer), false).map_err(damaged)?;
    let mask = projection(&arrow, columns);
    let batch_rows = fitting_rows(arrow.metadata(), &mask, batch_rows);
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(content, arrow)
        .with_projection(mask)
        .with_batch_size(batch_rows)
        .build()
        .map_err(damaged)?;
    Ok(reader.map(move |batch| {
        let batch = batch.map_err(|error| damaged(error.into()))?;
        old.map_or(Ok(batch.clone()), |old| old.renewed(path, &batch))
    }))
}

/// At most `most` rows, fewer where they are wide.
fn fitting_rows(metadata: &ParquetMetaData, mask: &ProjectionMask, most: usize) -> usize {
    let width = |group: &RowGroupMetaData| {
        let columns = group.columns().iter().enumerate();
        let read = columns.filter(|(leaf, _)| mask.leaf_included(*leaf));
        // A text that a dictionary holds once can come often.
        let bytes = read.map(|(_, column)| {
            let texts = column.unencoded_byte_array_data_bytes().unwrap_or(0);
            texts.max(column.uncompressed_size())
        });
        bytes.sum::<i64>() / group.num_rows().max(1)
    };
    let widest = metadata.row_groups().iter().map(width).max();
    let widest = usize::try_from(widest.unwrap_or(0)).unwrap_or(0).max(1);
    (BATCH_BYTES / widest).clamp(1, most.max(1))
}

/// The footer of a Parquet base file with the Arrow types that it gives; none of another format.
///
/// # Errors
/// The file is missing or damaged.
pub fn parquet_footer(store: &Store, path: &str) -> Result<Option<ArrowReaderMetadata>> {
    if format_of(path).extension() != Parquet.extension() {
        return Ok(None);
    }
    let metadata = Groups::of(store, path, PageIndexPolicy::Skip)?.metadata;
    let arrow = arrow_metadata(metadata, false);
    arrow
        .map(Some)
        .map_err(|error| SliceError::parquet(path, None, error))
}

fn reader_options() -> ArrowReaderOptions {
    // A schema that some Arrow writer embedded would add its own types.
    ArrowReaderOptions::new().with_skip_arrow_metadata(true)
}

fn arrow_metadata(
    metadata: Arc<ParquetMetaData>,
    row_numbers: bool,
) -> Result<ArrowReaderMetadata, ParquetError> {
    if let Some(column) = column_of_repeated_maps(&metadata) {
        return Err(ParquetError::NYI(format!(
            "list of maps in column {column}, as a Parquet list of two levels"
        )));
    }
    let mut options = reader_options();
    if row_numbers {
        let number = Field::new(ROW_NUMBER, DataType::Int64, false).with_extension_type(RowNumber);
        options = options.with_virtual_columns(vec![Arc::new(number)])?;
    }
    let arrow = ArrowReaderMetadata::try_new(metadata, options.clone())?;
    match int96_as_micros(&arrow) {
        None => Ok(arrow),
        Some(schema) => {
            let metadata = Arc::clone(arrow.metadata());
            ArrowReaderMetadata::try_new(metadata, options.with_schema(schema))
        }
    }
}

/// The first column with a map that is the element of a list of two levels, as Hudi writes lists of maps.
/// The Parquet crate has no Arrow type for one and would take the file for damaged.
fn column_of_repeated_maps(metadata: &ParquetMetaData) -> Option<&str> {
    let root = metadata.file_metadata().schema_descr().root_schema();
    let column = root.get_fields().iter().find(|ty| has_repeated_map(ty))?;
    Some(column.name())
}

fn has_repeated_map(ty: &Type) -> bool {
    if !ty.is_group() {
        return false;
    }
    let info = ty.get_basic_info();
    let is_map = info.converted_type() == ConvertedType::MAP;
    let is_repeated = info.has_repetition() && info.repetition() == Repetition::REPEATED;
    is_map && is_repeated || ty.get_fields().iter().any(|ty| has_repeated_map(ty))
}

fn row_predicate(
    arrow: &ArrowReaderMetadata,
    test: RowTest,
    map: Option<Arc<[Source]>>,
) -> Box<dyn ArrowPredicate> {
    let mut names = names_of(&test.columns);
    if let Some(map) = &map {
        names = stored_names(&names, map);
    }
    let needed = move |batch: RecordBatch| match &map {
        None => test.needed(&batch),
        Some(map) => test.needed(&evolve(&batch, map)?),
    };
    let predicate = ArrowPredicateFn::new(projection(arrow, &names), move |batch| {
        needed(batch).map_err(|error| ArrowError::ExternalError(Box::new(error)))
    });
    Box::new(predicate)
}

/// Top-level columns by name. Not [`ProjectionMask::columns`], which takes a dot for nesting.
fn projection(arrow: &ArrowReaderMetadata, columns: &[String]) -> ProjectionMask {
    let fields: &Schema = arrow.schema();
    let roots = fields
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| columns.contains(field.name()))
        .map(|(index, _)| index);
    ProjectionMask::roots(arrow.parquet_schema(), roots)
}

/// An error for a footer that the Parquet crate would not survive.
fn check_levels(path: &str, footer: &[u8]) -> Result<()> {
    if nests_deeper(footer, MAX_LEVELS) {
        return Err(SliceError::Unsupported {
            feature: format!("a Parquet schema of more than {MAX_LEVELS} levels ({path})"),
        });
    }
    Ok(())
}

/// The footer of a Parquet file in memory; empty for other data.
pub(super) fn footer_bytes(content: &[u8]) -> &[u8] {
    let Some((rest, tail)) = content.split_last_chunk::<FOOTER_TAIL>() else {
        return &[];
    };
    let length = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]) as usize;
    let start = rest.len().saturating_sub(length);
    rest.get(start..).unwrap_or_default()
}

/// The footer of a Parquet file, without its last eight bytes.
pub(super) fn footer_bytes_of(path: &str, file: &StoreFile) -> Result<Bytes> {
    let damaged = |error| SliceError::format(path, 0, error);
    let tail = file.size().saturating_sub(FOOTER_TAIL as u64);
    let length = file.read_at(tail, FOOTER_TAIL).map_err(damaged)?;
    let length = u64::from(length.clone().get_u32_le());
    let start = tail.saturating_sub(length);
    file.read_at(start, (tail - start) as usize)
        .map_err(damaged)
}

/// The checksums in a footer, which has its own.
fn checksums(path: &str, footer: &[u8]) -> Result<Option<FileChecksums>> {
    FileChecksums::of_footer(footer).map_err(|what| SliceError::Corrupt {
        file: path.to_owned(),
        offset: None,
        what,
    })
}

/// The page indexes are those that the footer was written with.
fn check_indexes(
    path: &str,
    start: u64,
    indexes: &[u8],
    sums: Option<FileChecksums>,
) -> Result<()> {
    if sums.is_none_or(|sums| sums.indexes == crc32fast::hash(indexes)) {
        return Ok(());
    }
    Err(SliceError::Corrupt {
        file: path.to_owned(),
        offset: Some(start),
        what: "the page indexes do not have their checksum".to_owned(),
    })
}

fn footer(path: &str, file: &StoreFile, pages: PageIndexPolicy) -> Result<ParquetMetaData> {
    let damaged = |error| SliceError::parquet(path, None, error);
    let (mut sums, mut footer_start) = (None, None);
    let mut decoder = ParquetMetaDataPushDecoder::try_new(file.size())
        .map_err(damaged)?
        .with_page_index_policy(pages);
    loop {
        match decoder.try_decode().map_err(damaged)? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                let mut data = Vec::with_capacity(ranges.len());
                for range in &ranges {
                    let len = range.end.saturating_sub(range.start) as usize;
                    let bytes = file
                        .read_at(range.start, len)
                        .map_err(|error| SliceError::format(path, 0, error))?;
                    if range.end.checked_add(FOOTER_TAIL as u64) == Some(file.size()) {
                        check_levels(path, &bytes)?;
                        sums = checksums(path, &bytes)?;
                        footer_start = Some(range.start);
                    } else if footer_start == Some(range.end) {
                        check_indexes(path, range.start, &bytes, sums)?;
                    }
                    data.push(bytes);
                }
                decoder.push_ranges(ranges, data).map_err(damaged)?;
            }
            DecodeResult::Finished => {
                return Err(SliceError::Corrupt {
                    file: path.to_owned(),
                    offset: None,
                    what: "the Parquet footer ended early".to_owned(),
                });
            }
        }
    }
}
