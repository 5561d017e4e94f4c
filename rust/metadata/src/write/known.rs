//! Statistics of files as `column_stats` has them, for the statistics of their partition.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::datatypes::{DataType, SchemaRef};
use pyhudi_avro::Datum;
use pyhudi_format::hash::column_key;
use pyhudi_slice::{Result, is_of_both_calendars};

use super::bounds::{Bound, ONLY_NULLS, wrapper};
use super::column_bounds::{Stats, decimal_info, file_name};
use crate::MetadataPartition;
use crate::records::{Keep, Records, Wanted};
use crate::stats::{has_no_values, may_lack_values};

/// Statistics of files, by their paths. A file of which a column has none, or has them in another form
/// than that of its type, is not there. In index version 1 only bytes have one of theirs.
#[derive(Debug, Clone, Default)]
pub struct KnownStats {
    of_files: HashMap<String, Arc<Vec<Stats>>>,
    kept: Option<Arc<KeptStats>>,
}

impl KnownStats {
    /// The statistics of each column.
    pub(super) fn get(&self, path: &str) -> Option<&Vec<Stats>> {
        self.of_files.get(path).map(Arc::as_ref)
    }

    /// Keeps the statistics of a file for later commits.
    pub(super) fn keep(&self, path: &str, stats: &[Stats]) {
        if let Some(kept) = &self.kept {
            let stats = Arc::new(stats.to_vec());
            kept.extend(std::iter::once((path.to_owned(), stats)));
        }
    }
}

/// Statistics of the same columns of files, from one commit to the next. A file never changes, so what
/// is known of it stays right, whoever writes.
#[derive(Debug, Default)]
pub struct KeptStats(Mutex<HashMap<String, Arc<Vec<Stats>>>>);

/// Columns of files in memory at most, some 15 MB.
const MAX_KEPT: usize = 1 << 17;

impl KeptStats {
    /// Number of files.
    pub fn len(&self) -> usize {
        self.locked().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Arc<Vec<Stats>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn extend(&self, stats: impl ExactSizeIterator<Item = (String, Arc<Vec<Stats>>)>) {
        let mut kept = self.locked();
        let mut stats = stats.peekable();
        let width = stats.peek().map_or(1, |(_, stats)| stats.len().max(1));
        if (kept.len() + stats.len()) * width > MAX_KEPT {
            kept.clear();
        }
        kept.extend(stats.take(MAX_KEPT / width));
    }

    /// Takes what is kept of files out of a request.
    fn take(&self, files: &mut Vec<(String, String)>) -> HashMap<String, Arc<Vec<Stats>>> {
        let kept = self.locked();
        let mut known = HashMap::with_capacity(files.len());
        files.retain(|(_, path)| match kept.get(path) {
            Some(stats) => {
                known.insert(path.clone(), Arc::clone(stats));
                false
            }
            None => true,
        });
        known
    }
}

/// What `column_stats` has of the columns of files, given as data partition and path. Reads each file
/// of the index once, so ask for all files together. kept: of these columns, in memory.
///
/// # Errors
/// Damaged files of the index, failing storage.
pub fn known_stats(
    index: &MetadataPartition,
    mut files: Vec<(String, String)>,
    columns: &SchemaRef,
    kept: Option<Arc<KeptStats>>,
) -> Result<KnownStats> {
    let mut of_files = HashMap::new();
    if let Some(kept) = &kept {
        of_files = kept.take(&mut files);
    }
    let read = stored_stats(index, &files, columns)?;
    if let Some(kept) = kept.as_ref().filter(|_| !read.is_empty()) {
        let read = read.iter();
        kept.extend(read.map(|(path, stats)| (path.clone(), Arc::clone(stats))));
    }
    of_files.extend(read);
    Ok(KnownStats { of_files, kept })
}

fn stored_stats(
    index: &MetadataPartition,
    files: &[(String, String)],
    columns: &SchemaRef,
) -> Result<HashMap<String, Arc<Vec<Stats>>>> {
    let width = columns.fields().len();
    if index.groups.is_empty() || width == 0 || files.is_empty() {
        return Ok(HashMap::new());
    }
    let keys = files.iter().flat_map(|(partition, path)| {
        let name = file_name(path);
        let key = move |column: &str| column_key(column, partition, Some(name));
        columns.fields().iter().map(move |field| key(field.name()))
    });
    let keys: Vec<String> = keys.collect();
    let mut found: Vec<Option<Stats>> = vec![None; keys.len()];
    let groups = index.by_group(keys.iter().map(|key| (key.as_str(), key.clone())))?;
    for (slice, group) in index.groups.iter().zip(groups) {
        let texts: Vec<&str> = group.iter().map(|(key, _)| key.as_str()).collect();
        if texts.is_empty() {
            continue;
        }
        let records = Records::read(index, slice, &Wanted::Keys(&texts), Keep::All)?;
        for (key, place) in &group {
            let versions = records.get(key)?;
            let field = columns.fields().get(place % width);
            if let (Some(stats), Some(field), [only]) =
                (found.get_mut(*place), field, versions.as_slice())
            {
                *stats = decoded(only.field("ColumnStatsMetadata"), field.data_type());
            }
        }
    }
    let by_file = files.iter().zip(found.chunks(width));
    let whole = by_file.filter_map(|((_, path), stats)| {
        let stats = stats.iter().cloned().collect::<Option<_>>()?;
        Some((path.clone(), Arc::new(stats)))
    });
    Ok(whole.collect())
}

fn decoded(stored: &Datum<'_>, ty: &DataType) -> Option<Stats> {
    if stored == &Datum::Null || stored.field("isDeleted").is_true() {
        return None;
    }
    let kind = stored.field("valueType");
    let (min, max) = (stored.field("minValue"), stored.field("maxValue"));
    let expected = wrapper(ty, true)?;
    let without = has_no_values(stored, ty);
    let is_known = match kind.field("typeOrdinal").number() {
        Some(ONLY_NULLS) if without => true,
        Some(ordinal) => {
            ordinal == expected.kind
                && kind.field("additionalInfo").text() == decimal_info(ty).as_deref()
        }
        // Nothing else has the wrapper of bytes there.
        None => *ty == DataType::Binary,
    };
    if !is_known {
        return None;
    }
    let bound = |stored| {
        Bound::unwrapped(stored, expected, ty).filter(|bound| match bound {
            Bound::Whole(value) => is_of_both_calendars(ty, i128::from(*value)),
            _ => true,
        })
    };
    let number = |name| stored.field(name).number();
    let stats = Stats {
        min: bound(min),
        max: bound(max),
        nulls: number("nullCount")?,
        values: number("valueCount")?,
        size: number("totalSize")?,
        uncompressed: number("totalUncompressedSize")?,
        may_lack: may_lack_values(stored, ty),
    };
    let has_bounds = stats.min.is_some() && stats.max.is_some();
    let needs_bounds = !without || stats.nulls < stats.values;
    (has_bounds || !needs_bounds).then_some(stats)
}
