//! The rows of a Parquet base file that may have one of the keys.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::PageType;
use parquet::column::page::Page;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{PageIndexPolicy, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use pyhudi_format::ReadAt;
use pyhudi_store::Store;

use super::pages::Parts;
use super::{ByHash, Item, Lookup, key_hash};
use crate::RECORD_KEY;
use crate::base::{Dictionary, Fetched, Groups, Pages, UnpackedPage, check_ranges};
use crate::error::Result;

/// Numbers of footers, which name the pages of their files.
static FOOTERS: AtomicU64 = AtomicU64::new(0);

/// A footer with its page indexes, and the size of its file.
pub(super) struct Footer {
    pub(super) id: u64,
    pub(super) arrow: ArrowReaderMetadata,
    size: u64,
    /// What readers of these columns are built of.
    levels: Mutex<Vec<(ProjectedLeaves, Arc<FieldLevels>)>>,
}

/// Which leaves of a schema are read.
type ProjectedLeaves = Vec<bool>;

/// Choices of columns that a footer keeps.
const MAX_CHOICES: usize = 8;

impl Footer {
    /// What a reader of columns is built of.
    pub(super) fn levels(&self, mask: &ProjectionMask) -> ParquetResult<Arc<FieldLevels>> {
        let schema = self.arrow.parquet_schema();
        let leaves = (0..schema.num_columns()).map(|leaf| mask.leaf_included(leaf));
        let leaves: ProjectedLeaves = leaves.collect();
        let mut kept = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, levels)) = kept.iter().find(|(known, _)| *known == leaves) {
            return Ok(Arc::clone(levels));
        }
        let hint = Some(self.arrow.schema().fields());
        let levels = Arc::new(parquet_to_arrow_field_levels(schema, mask.clone(), hint)?);
        if kept.len() < MAX_CHOICES {
            kept.push((leaves, Arc::clone(&levels)));
        }
        Ok(levels)
    }
}

/// Row numbers within a row group by the hash of their key.
pub(super) type KeyRows = ByHash<u32>;

impl Lookup {
    /// The row groups of a base file, whose footer is kept.
    pub(crate) fn groups(&self, store: &Store, path: &str) -> Result<Groups> {
        let footer = self.kept(&Item::Footer(path.into()), || {
            let groups = Groups::of(store, path, PageIndexPolicy::Optional)?;
            let bytes = groups.metadata.memory_size();
            let size = groups.file.size();
            let arrow = groups.arrow(path)?;
            let id = FOOTERS.fetch_add(1, Ordering::Relaxed);
            let levels = Mutex::default();
            let footer = Footer {
                id,
                arrow,
                size,
                levels,
            };
            Ok((footer, bytes))
        })?;
        let metadata = Arc::clone(footer.arrow.metadata());
        Ok(Groups {
            file: store.file_with_size(path, footer.size),
            numbers: (0..metadata.num_row_groups()).collect(),
            metadata,
            arrow: Some(footer.arrow.clone()),
        })
    }

    /// The row groups that may have rows with the keys, and these rows; none where the file has no
    /// record keys. pages: all columns, of the row groups that are read.
    pub(crate) fn select(
        &self,
        path: &str,
        pages: &Pages,
    ) -> Result<Option<(Vec<usize>, RowSelection)>> {
        let Some(root) = key_column(pages) else {
            return Ok(None);
        };
        let (mut groups, mut ranges, mut total) = (Vec::new(), Vec::new(), 0);
        for group in &pages.groups {
            let metadata = pages.arrow.metadata().row_groups().get(*group);
            let count = metadata.map_or(0, RowGroupMetaData::num_rows);
            let Ok(count) = u32::try_from(count) else {
                return Ok(None);
            };
            let item = Item::Rows(path.into(), *group);
            let rows = self.kept(&item, || {
                let keys = match keys_in_pages(path, pages, *group)? {
                    Some(keys) => keys,
                    None => decoded_keys(path, pages, root, *group)?,
                };
                let rows = KeyRows::new(&keys);
                let bytes = rows.bytes();
                Ok((rows, bytes))
            })?;
            let mut rows = rows.of(&self.hashes);
            rows.dedup();
            if !rows.is_empty() {
                groups.push(*group);
                ranges.extend(rows.iter().map(|row| row_range(total, *row)));
                total += count as usize;
            }
        }
        let selection = RowSelection::from_consecutive_ranges(ranges.into_iter(), total);
        Ok(Some((groups, selection)))
    }
}

fn row_range(before: usize, row: u32) -> Range<usize> {
    let start = before + row as usize;
    start..start + 1
}

fn key_column(pages: &Pages) -> Option<usize> {
    let schema = pages.arrow.parquet_schema().root_schema();
    let mut fields = schema.get_fields().iter();
    fields.position(|field| field.name() == RECORD_KEY)
}

/// The hash of each row's key, and the number of the row. A row without a key has a number, too, and no
/// key that can be asked for.
type HashedKeys = Vec<(u32, u32)>;

/// The keys of a row group out of its pages; none if they have an encoding that Hudi's writers do not
/// use, or are damaged.
fn keys_in_pages(path: &str, pages: &Pages, group: usize) -> Result<Option<HashedKeys>> {
    let schema = pages.arrow.parquet_schema();
    let is_key = |column: &ColumnDescPtr| column.path().parts() == [RECORD_KEY];
    let Some(leaf) = schema.columns().iter().position(is_key) else {
        return Ok(None);
    };
    let metadata = pages.arrow.metadata().row_groups().get(group);
    let Some((metadata, column)) =
        metadata.and_then(|group| Some((group, group.columns().get(leaf)?)))
    else {
        return Ok(None);
    };
    let (file, mask) = (&pages.file.0, ProjectionMask::leaves(schema, [leaf]));
    check_ranges(path, file, pages.arrow.metadata(), &mask, &[group])?;
    let (begin, length) = column.byte_range();
    let content = file.read_range(begin..begin + length)?;
    let parts = Arc::new(Parts(vec![(begin, content)]));
    let keys = usize::try_from(metadata.num_rows()).ok().and_then(|rows| {
        let pages = SerializedPageReader::new(parts, column, rows, None).ok()?;
        hashed_keys(pages, rows, &schema.column(leaf))
    });
    Ok(keys)
}

fn hashed_keys(
    pages: impl Iterator<Item = ParquetResult<Page>>,
    rows: usize,
    column: &ColumnDescriptor,
) -> Option<HashedKeys> {
    let (mut keys, mut dictionary) = (HashedKeys::new(), None);
    for page in pages {
        let page = page.ok()?;
        if page.page_type() == PageType::DICTIONARY_PAGE {
            dictionary = Some(Dictionary::of(page, column)?);
            continue;
        }
        let page = UnpackedPage::of(page, column)?;
        for (key, row) in page
            .texts(dictionary.as_ref())?
            .into_iter()
            .zip(keys.len() as u32..)
        {
            let key = key.map(str::from_utf8).transpose().ok()?;
            keys.push((key.map_or(0, key_hash), row));
        }
    }
    (keys.len() == rows).then_some(keys)
}

fn decoded_keys(path: &str, pages: &Pages, root: usize, group: usize) -> Result<HashedKeys> {
    let mut pages = pages.of(&[root]);
    pages.groups = vec![group];
    check_ranges(
        path,
        &pages.file.0,
        pages.arrow.metadata(),
        &pages.mask,
        &pages.groups,
    )?;
    let mut entries = HashedKeys::new();
    for batch in Fetched::open(path, pages, None)? {
        let batch = batch?;
        let keys = cast(batch.column(0), &DataType::Utf8)?;
        let first = entries.len() as u32;
        let numbered = keys.as_string::<i32>().iter().zip(first..);
        entries.extend(numbered.map(|(key, row)| (key.map_or(0, key_hash), row)));
    }
    Ok(entries)
}
