//! Rows of a Parquet base file out of unpacked pages. Pages and dictionaries are kept: most of the time
//! of a look-up is that of unpacking a page, which has thousands of rows.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection};
use parquet::basic::Compression;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use pyhudi_store::StoreFile;

use super::rows::Footer;
use super::{Item, Lookup};
use crate::base::{Dictionary, Pages, TakenRows, UnpackedPage, check_range};
use crate::error::{Result, SliceError};

/// Of more rows, whole column chunks are fetched a row group at a time.
pub(super) const MAX_ROWS: usize = 256;

/// A column of a row group.
type Chunk = (usize, usize);

impl Lookup {
    /// The chosen rows of a file; none if they are many, if the file does not record where its pages
    /// are, or if a page has an encoding that Hudi's writers do not use.
    pub(crate) fn rows(
        &self,
        path: &str,
        pages: &Pages,
    ) -> Result<Option<ParquetRecordBatchReader>> {
        let few = |rows: &&RowSelection| (1..=MAX_ROWS).contains(&rows.row_count());
        let Some(rows) = pages.rows.as_ref().filter(few) else {
            return Ok(None);
        };
        let Some(footer) = self.cache.find::<Footer>(&Item::Footer(path.into())) else {
            return Ok(None);
        };
        let Some(wanted) = wanted_of(pages, rows) else {
            return Ok(None);
        };
        let file = KeptFile {
            lookup: self,
            id: footer.id,
            path,
            file: &pages.file.0,
            metadata: pages.arrow.metadata(),
        };
        let Some(columns) = file.columns(&wanted)? else {
            return Ok(None);
        };
        let damaged = |error| SliceError::parquet(path, None, error);
        let levels = footer.levels(&pages.mask).map_err(damaged)?;
        let taken = Taken {
            metadata: pages.arrow.metadata(),
            groups: &pages.groups,
            rows: rows.row_count(),
            columns: RefCell::new(columns),
        };
        // Readers of columns have room for a whole batch.
        let batch_rows = pages.batch_rows.min(taken.rows);
        let reader =
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &taken, batch_rows, None);
        reader.map(Some).map_err(damaged)
    }
}

/// Rows of a page of a column.
struct Wanted {
    chunk: Chunk,
    page: usize,
    rows: Vec<usize>,
}

impl Wanted {
    fn location<'m>(&self, metadata: &'m ParquetMetaData) -> Option<&'m PageLocation> {
        locations(metadata, self.chunk)?.get(self.page)
    }
}

/// The chosen rows by column and page, in order; none if a page's place is not recorded.
fn wanted_of(pages: &Pages, rows: &RowSelection) -> Option<Vec<Wanted>> {
    let (mut chosen, mut at) = (Vec::new(), 0_usize);
    for run in rows.iter() {
        if !run.skip {
            chosen.extend(at..at + run.row_count);
        }
        at += run.row_count;
    }
    let metadata = pages.arrow.metadata();
    let mut wanted: Vec<Wanted> = Vec::new();
    for leaf in 0..pages.arrow.parquet_schema().num_columns() {
        if !pages.mask.leaf_included(leaf) {
            continue;
        }
        let (mut rest, mut before) = (chosen.as_slice(), 0);
        for group in &pages.groups {
            let rows = metadata.row_groups().get(*group)?.num_rows();
            let end = before + usize::try_from(rows).ok()?;
            let (rows, later) = rest.split_at(rest.partition_point(|row| *row < end));
            let locations = locations(metadata, (*group, leaf))?;
            for row in rows {
                let row = row - before;
                let (page, in_page) = page_of(locations, row)?;
                match wanted.last_mut() {
                    Some(last) if last.chunk == (*group, leaf) && last.page == page => {
                        last.rows.push(in_page);
                    }
                    _ => wanted.push(Wanted {
                        chunk: (*group, leaf),
                        page,
                        rows: vec![in_page],
                    }),
                }
            }
            (rest, before) = (later, end);
        }
    }
    Some(wanted)
}

/// The page that has a row of a row group, and the number of the row in the page.
pub(super) fn page_of(locations: &[PageLocation], row: usize) -> Option<(usize, usize)> {
    let first = |at: &PageLocation| usize::try_from(at.first_row_index).unwrap_or(0);
    let page = locations
        .partition_point(|at| first(at) <= row)
        .checked_sub(1)?;
    Some((page, row - first(locations.get(page)?)))
}

pub(super) fn locations(
    metadata: &ParquetMetaData,
    (group, leaf): Chunk,
) -> Option<&Vec<PageLocation>> {
    let index = metadata.page_index()?.offset_index(group, leaf);
    Some(index?.page_locations())
}

/// A file whose pages are kept.
struct KeptFile<'a> {
    lookup: &'a Lookup,
    id: u64,
    path: &'a str,
    file: &'a StoreFile,
    metadata: &'a ParquetMetaData,
}

impl KeptFile<'_> {
    /// A page of the rows of each column by its number; none where a page does not unpack.
    fn columns(&self, wanted: &[Wanted]) -> Result<Option<HashMap<usize, Page>>> {
        let Some(pages) = self.pages(wanted)? else {
            return Ok(None);
        };
        let dictionaries = self.dictionaries(wanted, &pages)?;
        let mut columns: HashMap<usize, TakenRows> = HashMap::new();
        for (wanted, page) in wanted.iter().zip(&pages) {
            let column = self.column(wanted.chunk)?.column_descr();
            let taken = columns.entry(wanted.chunk.1);
            let taken = taken.or_insert_with(|| TakenRows::new(column));
            let count = taken.rows() + wanted.rows.len();
            let dictionary = dictionaries.get(&wanted.chunk).map(Arc::as_ref);
            let is_taken = page.take(&wanted.rows, dictionary, taken);
            if is_taken.is_none() || taken.rows() != count {
                return Ok(None);
            }
        }
        let columns = columns.into_iter();
        Ok(Some(
            columns.map(|(leaf, taken)| (leaf, taken.page())).collect(),
        ))
    }

    /// The pages of rows, in their order. Those that are not kept are fetched together.
    fn pages(&self, wanted: &[Wanted]) -> Result<Option<Vec<Arc<UnpackedPage>>>> {
        let item = |wanted: &Wanted| Item::Page(self.id, wanted.chunk, wanted.page);
        let kept = wanted
            .iter()
            .map(|wanted| self.lookup.cache.find::<UnpackedPage>(&item(wanted)));
        let kept: Vec<Option<Arc<UnpackedPage>>> = kept.collect();
        let missing = wanted.iter().zip(&kept).filter(|(_, kept)| kept.is_none());
        let ranges = missing.filter_map(|(wanted, _)| {
            let location = wanted.location(self.metadata)?;
            let start = u64::try_from(location.offset).ok()?;
            let length = u64::try_from(location.compressed_page_size).ok()?;
            Some(start..start.saturating_add(length))
        });
        let parts = self.fetch(ranges.collect())?;
        let mut pages = Vec::with_capacity(wanted.len());
        for (wanted, kept) in wanted.iter().zip(kept) {
            let page = if let Some(page) = kept {
                page
            } else {
                let page = self.data_page(&parts, wanted);
                let page = page.map_err(|error| self.damaged(error))?;
                let column = self.column(wanted.chunk)?.column_descr();
                let Some(page) = page.and_then(|page| UnpackedPage::of(page, column)) else {
                    return Ok(None);
                };
                let (bytes, page) = (page.bytes(), Arc::new(page));
                let kept = Arc::clone(&page);
                self.lookup.cache.put_shared(item(wanted), kept, bytes);
                page
            };
            pages.push(page);
        }
        Ok(Some(pages))
    }

    /// The dictionaries of pages that have indexes. Those that are not kept are fetched together.
    fn dictionaries(
        &self,
        wanted: &[Wanted],
        pages: &[Arc<UnpackedPage>],
    ) -> Result<HashMap<Chunk, Arc<Dictionary>>> {
        let (mut dictionaries, mut missing) = (HashMap::new(), Vec::new());
        for (wanted, page) in wanted.iter().zip(pages) {
            let chunk = wanted.chunk;
            let is_known = dictionaries.contains_key(&chunk) || missing.contains(&chunk);
            if is_known || !page.has_indexes() {
                continue;
            }
            match self
                .lookup
                .cache
                .find::<Dictionary>(&self.dictionary_item(chunk))
            {
                Some(kept) => {
                    dictionaries.insert(chunk, kept);
                }
                None => missing.push(chunk),
            }
        }
        let ranges = missing
            .iter()
            .filter_map(|chunk| self.dictionary_range(*chunk));
        let parts = self.fetch(ranges.collect())?;
        for chunk in missing {
            let page = self
                .dictionary_page(&parts, chunk)
                .map_err(|error| self.damaged(error))?;
            let column = self.column(chunk)?.column_descr();
            let Some(dictionary) = page.and_then(|page| Dictionary::of(page, column)) else {
                continue; // Its pages give no rows, and the reader finds out why.
            };
            let (bytes, dictionary) = (dictionary.bytes(), Arc::new(dictionary));
            let kept = Arc::clone(&dictionary);
            self.lookup
                .cache
                .put_shared(self.dictionary_item(chunk), kept, bytes);
            dictionaries.insert(chunk, dictionary);
        }
        Ok(dictionaries)
    }

    fn dictionary_item(&self, chunk: Chunk) -> Item {
        Item::Dictionary(self.id, chunk)
    }

    fn fetch(&self, mut ranges: Vec<Range<u64>>) -> Result<Arc<Parts>> {
        if ranges.is_empty() {
            return Ok(Arc::default());
        }
        ranges.sort_unstable_by_key(|range| range.start);
        for range in &ranges {
            check_range(self.path, self.file, range)?;
        }
        let content = self.file.read_ranges(&ranges)?;
        let parts = ranges.iter().map(|range| range.start).zip(content);
        Ok(Arc::new(Parts(parts.collect())))
    }

    fn damaged(&self, error: ParquetError) -> SliceError {
        SliceError::parquet(self.path, None, error)
    }

    fn column(&self, (group, leaf): Chunk) -> Result<&ColumnChunkMetaData> {
        let group = self.metadata.row_groups().get(group);
        let column = group.and_then(|group| group.columns().get(leaf));
        column.ok_or_else(|| self.damaged(ParquetError::General("no such column".to_owned())))
    }

    /// Where a column begins, if its first page is not there but a dictionary.
    fn dictionary_range(&self, chunk: Chunk) -> Option<Range<u64>> {
        let (start, _) = self.column(chunk).ok()?.byte_range();
        let first = locations(self.metadata, chunk)?.first()?;
        let first = u64::try_from(first.offset).ok()?;
        (start < first).then_some(start..first)
    }

    fn data_page(&self, parts: &Arc<Parts>, wanted: &Wanted) -> ParquetResult<Option<Page>> {
        let Some(location) = wanted.location(self.metadata) else {
            return Ok(None);
        };
        let mut pages = self.reader(parts, wanted.chunk, location)?;
        if pages.peek_next_page()?.is_some_and(|page| page.is_dict) {
            pages.skip_next_page()?;
        }
        let page = pages.get_next_page()?;
        Ok(page.map(|page| match page {
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => Page::DataPage {
                buf: self.owned(wanted.chunk, buf),
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            },
            other => other,
        }))
    }

    fn dictionary_page(&self, parts: &Arc<Parts>, chunk: Chunk) -> ParquetResult<Option<Page>> {
        let first = locations(self.metadata, chunk).and_then(|locations| locations.first());
        let (Some(first), Some(_)) = (first, self.dictionary_range(chunk)) else {
            return Ok(None);
        };
        let page = self.reader(parts, chunk, first)?.get_next_page()?;
        Ok(page.map(|page| match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                is_sorted,
            } => Page::DictionaryPage {
                buf: self.owned(chunk, buf),
                num_values,
                encoding,
                is_sorted,
            },
            other => other,
        }))
    }

    /// The content of a page that is kept. Uncompressed, it is a part of what was fetched.
    fn owned(&self, chunk: Chunk, content: Bytes) -> Bytes {
        let column = self.column(chunk);
        match column.map(ColumnChunkMetaData::compression) {
            Ok(Compression::UNCOMPRESSED) => Bytes::copy_from_slice(&content),
            _ => content,
        }
    }

    /// The dictionary of a column, if it has one, and a page.
    fn reader(
        &self,
        parts: &Arc<Parts>,
        chunk: Chunk,
        page: &PageLocation,
    ) -> ParquetResult<SerializedPageReader<Parts>> {
        let group = self.metadata.row_groups().get(chunk.0);
        let rows = group.map_or(0, RowGroupMetaData::num_rows);
        let column = self.column(chunk);
        let column = column.map_err(|error| ParquetError::External(Box::new(error)))?;
        let (rows, page) = (usize::try_from(rows)?, vec![page.clone()]);
        SerializedPageReader::new(Arc::clone(parts), column, rows, Some(page))
    }
}

/// The parts of a file that were fetched, by their place.
#[derive(Default)]
pub(super) struct Parts(pub(super) Vec<(u64, Bytes)>);

impl Parts {
    /// The bytes from some place to the end of the part.
    fn rest(&self, start: u64) -> ParquetResult<Bytes> {
        let after = self.0.partition_point(|(at, _)| *at <= start);
        let part = after.checked_sub(1).and_then(|before| self.0.get(before));
        let rest = part.and_then(|(at, bytes)| {
            let skipped = usize::try_from(start - at).ok()?;
            (skipped <= bytes.len()).then(|| bytes.slice(skipped..))
        });
        rest.ok_or_else(|| ParquetError::EOF(format!("a page begins at byte {start}")))
    }
}

impl Length for Parts {
    fn len(&self) -> u64 {
        let last = self.0.last();
        last.map_or(0, |(at, bytes)| at + bytes.len() as u64)
    }
}

impl ChunkReader for Parts {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.rest(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let rest = self.rest(start)?;
        if rest.len() < length {
            let what = format!("{length} bytes at byte {start} are more than one page");
            return Err(ParquetError::EOF(what));
        }
        Ok(rest.slice(..length))
    }
}

/// Rows that were taken out of row groups: a page for each column.
struct Taken<'a> {
    metadata: &'a ParquetMetaData,
    groups: &'a [usize],
    rows: usize,
    columns: RefCell<HashMap<usize, Page>>,
}

impl RowGroups for Taken<'_> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(&self, leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let page = self.columns.borrow_mut().remove(&leaf);
        let reader: Box<dyn PageReader> = Box::new(OnePage(page));
        Ok(Box::new(OneChunk(Some(Ok(reader)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        let groups = self.groups.iter();
        Box::new(groups.filter_map(|group| self.metadata.row_groups().get(*group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata
    }
}

struct OneChunk(Option<ParquetResult<Box<dyn PageReader>>>);

impl Iterator for OneChunk {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take()
    }
}

impl PageIterator for OneChunk {}

struct OnePage(Option<Page>);

impl Iterator for OnePage {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageReader for OnePage {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        Ok(self.0.take())
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        Ok(self.0.as_ref().map(|page| PageMetadata {
            num_rows: None,
            num_levels: Some(page.num_values() as usize),
            is_dict: false,
        }))
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.0 = None;
        Ok(())
    }
}
