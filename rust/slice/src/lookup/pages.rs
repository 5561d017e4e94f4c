//! The pages of some rows of a Parquet base file. Dictionaries are kept: each is as large as hundreds
//! of the pages that need it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection};
use parquet::arrow::parquet_to_arrow_field_levels;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::{Item, Lookup};
use crate::base::{Dictionary, Pages, check_range};
use crate::error::{Result, SliceError};

/// Of more rows, whole column chunks are fetched a row group at a time.
const MAX_ROWS: usize = 64;

/// A column of a row group.
type Chunk = (usize, usize);

impl Lookup {
    /// The chosen rows of a file, whose pages are fetched together; none if they are many, or if the
    /// file does not record where its pages are.
    pub(crate) fn rows(
        &self,
        path: &str,
        pages: &Pages,
    ) -> Result<Option<ParquetRecordBatchReader>> {
        let few = |rows: &&RowSelection| (1..=MAX_ROWS).contains(&rows.row_count());
        let Some(rows) = pages.rows.as_ref().filter(few) else {
            return Ok(None);
        };
        let metadata = Arc::clone(pages.arrow.metadata());
        let Some(chunks) = chunks_of(&metadata, pages, rows) else {
            return Ok(None);
        };
        let damaged = |error| SliceError::parquet(path, None, error);
        let (mut ranges, mut dictionaries, mut missing) = (Vec::new(), HashMap::new(), Vec::new());
        for (chunk, wanted) in chunks {
            ranges.extend(wanted.pages);
            let Some(range) = wanted.dictionary else {
                continue;
            };
            if let Some(known) = self.cache.find::<Dictionary>(&item(path, chunk)) {
                dictionaries.insert(chunk, known);
            } else {
                ranges.push(range);
                missing.push(chunk);
            }
        }
        ranges.sort_unstable_by_key(|range| range.start);
        for range in &ranges {
            check_range(path, &pages.file.0, range)?;
        }
        let content = pages.file.0.read_ranges(&ranges)?;
        let parts = ranges.iter().map(|range| range.start).zip(content);
        let file = Arc::new(Parts(parts.collect()));
        for chunk in missing {
            let page = dictionary(&file, &metadata, chunk).map_err(damaged)?;
            let column = column_of(&metadata, chunk).map_err(damaged)?;
            let Some(known) = Dictionary::of(page, column.column_descr()) else {
                continue; // The reader decodes what was fetched.
            };
            let known = Arc::new(known);
            let kept = Arc::clone(&known);
            self.cache
                .put_shared(item(path, chunk), kept, known.bytes());
            dictionaries.insert(chunk, known);
        }
        let levels = parquet_to_arrow_field_levels(
            pages.arrow.parquet_schema(),
            pages.mask.clone(),
            Some(pages.arrow.schema().fields()),
        );
        let levels = levels.map_err(damaged)?;
        let chosen = Chosen {
            file,
            metadata,
            groups: pages.groups.clone(),
            dictionaries,
        };
        let reader = ParquetRecordBatchReader::try_new_with_row_groups(
            &levels,
            &chosen,
            pages.batch_rows,
            Some(rows.clone()),
        );
        reader.map(Some).map_err(damaged)
    }
}

fn item(path: &str, (group, leaf): Chunk) -> Item {
    Item::Dictionary(path.to_owned(), group, leaf)
}

/// What is read of a column chunk.
struct Wanted {
    pages: Vec<Range<u64>>,
    dictionary: Option<Range<u64>>,
}

/// What is read of each column chunk; none if a page's place is not recorded.
fn chunks_of(
    metadata: &ParquetMetaData,
    pages: &Pages,
    rows: &RowSelection,
) -> Option<Vec<(Chunk, Wanted)>> {
    let (mut chunks, mut rest) = (Vec::new(), rows.clone());
    for group in &pages.groups {
        let columns = metadata.row_groups().get(*group)?;
        let of_group = rest.split_off(usize::try_from(columns.num_rows()).ok()?);
        for (leaf, column) in columns.columns().iter().enumerate() {
            if !pages.mask.leaf_included(leaf) {
                continue;
            }
            let locations = locations(metadata, (*group, leaf))?;
            let first = u64::try_from(locations.first()?.offset).ok()?;
            let (start, _) = column.byte_range();
            if first < start {
                return None;
            }
            let wanted = Wanted {
                pages: of_group.scan_ranges(&locations),
                dictionary: (start < first).then_some(start..first),
            };
            chunks.push(((*group, leaf), wanted));
        }
    }
    Some(chunks)
}

fn locations(metadata: &ParquetMetaData, (group, leaf): Chunk) -> Option<Vec<PageLocation>> {
    let index = metadata.page_index_for_row_group(group);
    Some(index.offset_index(leaf)?.page_locations().clone())
}

/// The dictionary of a column chunk, decompressed.
fn dictionary(file: &Arc<Parts>, metadata: &ParquetMetaData, chunk: Chunk) -> ParquetResult<Page> {
    let page = pages_of(file, metadata, chunk)?.get_next_page()?;
    match page {
        Some(Page::DictionaryPage {
            buf,
            num_values,
            encoding,
            is_sorted,
        }) => Ok(Page::DictionaryPage {
            // Uncompressed, it is a part of what was fetched, which would be kept, too.
            buf: match column_of(metadata, chunk)?.compression() {
                Compression::UNCOMPRESSED => Bytes::copy_from_slice(&buf),
                _ => buf,
            },
            num_values,
            encoding,
            is_sorted,
        }),
        _ => Err(ParquetError::General(
            "no dictionary before the first page".to_owned(),
        )),
    }
}

fn column_of(
    metadata: &ParquetMetaData,
    (group, leaf): Chunk,
) -> ParquetResult<&ColumnChunkMetaData> {
    let group = metadata.row_groups().get(group);
    let column = group.and_then(|group| group.columns().get(leaf));
    column.ok_or_else(|| ParquetError::General("no such column".to_owned()))
}

fn pages_of(
    file: &Arc<Parts>,
    metadata: &ParquetMetaData,
    chunk: Chunk,
) -> ParquetResult<SerializedPageReader<Parts>> {
    let group = metadata.row_groups().get(chunk.0);
    let rows = group.map_or(0, RowGroupMetaData::num_rows);
    SerializedPageReader::new(
        Arc::clone(file),
        column_of(metadata, chunk)?,
        usize::try_from(rows)?,
        locations(metadata, chunk),
    )
}

/// The parts of a file that were fetched, by their place.
struct Parts(Vec<(u64, Bytes)>);

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

/// The row groups that have the rows.
struct Chosen {
    file: Arc<Parts>,
    metadata: Arc<ParquetMetaData>,
    groups: Vec<usize>,
    dictionaries: HashMap<Chunk, Arc<Dictionary>>,
}

impl Chosen {
    fn pages(&self, chunk: Chunk) -> ParquetResult<Box<dyn PageReader>> {
        let mut pages = pages_of(&self.file, &self.metadata, chunk)?;
        let Some(dictionary) = self.dictionaries.get(&chunk) else {
            return Ok(Box::new(pages));
        };
        pages.skip_next_page()?;
        Ok(Box::new(KnownDictionary {
            pages,
            dictionary: Arc::clone(dictionary),
            was_given: false,
        }))
    }
}

impl RowGroups for Chosen {
    fn num_rows(&self) -> usize {
        let rows = self.row_groups().map(RowGroupMetaData::num_rows);
        rows.map(|rows| usize::try_from(rows).unwrap_or(0)).sum()
    }

    fn column_chunks(&self, leaf: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let groups = self.groups.iter();
        let pages = groups.map(|group| self.pages((*group, leaf)));
        Ok(Box::new(Chunks(pages.collect::<Vec<_>>().into_iter())))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        let groups = self.groups.iter();
        Box::new(groups.filter_map(|group| self.metadata.row_groups().get(*group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

struct Chunks(std::vec::IntoIter<ParquetResult<Box<dyn PageReader>>>);

impl Iterator for Chunks {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl PageIterator for Chunks {}

/// The pages of a column chunk with values in place of indexes. The dictionary is given out only if
/// a page has so many values that they would take more space.
struct KnownDictionary {
    pages: SerializedPageReader<Parts>,
    dictionary: Arc<Dictionary>,
    was_given: bool,
}

impl Iterator for KnownDictionary {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for KnownDictionary {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.get_next_page()?;
        Ok(page.map(|page| self.dictionary.fill(page)))
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        true
    }

    fn take_deferred_dictionary(&mut self) -> ParquetResult<Option<Page>> {
        let is_first = !std::mem::replace(&mut self.was_given, true);
        Ok(is_first.then(|| self.dictionary.page()))
    }

    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        self.pages.at_record_boundary()
    }
}
