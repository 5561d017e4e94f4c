//! The rows of a Parquet base file that may have one of the keys.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowSelection};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{PageIndexPolicy, RowGroupMetaData};
use pyhudi_format::ReadAt;
use pyhudi_store::Store;

use super::{ByHash, Item, Lookup, key_hash};
use crate::RECORD_KEY;
use crate::base::{Fetched, Groups, Pages, check_ranges};
use crate::error::Result;

/// Numbers of footers, which name the pages of their files.
static FOOTERS: AtomicU64 = AtomicU64::new(0);

/// A footer with its page indexes, and the size of its file.
pub(super) struct Footer {
    pub(super) id: u64,
    arrow: ArrowReaderMetadata,
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
type KeyRows = ByHash<u32>;

impl Lookup {
    /// The row groups of a base file, whose footer is kept.
    pub(crate) fn groups(&self, store: &Store, path: &str) -> Result<Groups> {
        let footer = self.kept(&Item::Footer(path.to_owned()), || {
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
            let item = Item::Rows(path.to_owned(), *group);
            let rows = self.kept(&item, || {
                let rows = key_rows(path, pages, root, *group)?;
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

fn key_rows(path: &str, pages: &Pages, root: usize, group: usize) -> Result<KeyRows> {
    let mut pages = pages.of(&[root]);
    pages.groups = vec![group];
    check_ranges(
        path,
        &pages.file.0,
        pages.arrow.metadata(),
        &pages.mask,
        &pages.groups,
    )?;
    let mut entries = Vec::new();
    for batch in Fetched::open(path, pages, None)? {
        let batch = batch?;
        let keys = cast(batch.column(0), &DataType::Utf8)?;
        let first = entries.len() as u32;
        let numbered = keys.as_string::<i32>().iter().zip(first..);
        // A row without a key has a number, too, and no key that can be asked for.
        entries.extend(numbered.map(|(key, row)| (key.map_or(0, key_hash), row)));
    }
    Ok(KeyRows::new(entries))
}
