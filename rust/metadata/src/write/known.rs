//! Statistics of files as `column_stats` has them, for the statistics of their partition.

use std::collections::HashMap;

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
pub struct KnownStats(HashMap<String, Vec<Stats>>);

impl KnownStats {
    /// The statistics of each column.
    pub(super) fn get(&self, path: &str) -> Option<&Vec<Stats>> {
        self.0.get(path)
    }
}

/// What `column_stats` has of the columns of files, given as data partition and path. Reads each file
/// of the index once, so ask for all files together.
///
/// # Errors
/// Damaged files of the index, failing storage.
pub fn known_stats(
    index: &MetadataPartition,
    files: &[(String, String)],
    columns: &SchemaRef,
) -> Result<KnownStats> {
    let width = columns.fields().len();
    if index.groups.is_empty() || width == 0 {
        return Ok(KnownStats::default());
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
        Some((path.clone(), stats))
    });
    Ok(KnownStats(whole.collect()))
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
