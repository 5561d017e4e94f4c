//! `column_stats`, `partition_stats` and the statistics of `expr_index_…`: bounds of values.

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use pyhudi_avro::Datum;
use pyhudi_format::hash::{column_key, text_hash64};
use pyhudi_slice::{Result, SliceError};

use super::MetadataPartition;
use super::records::{Keep, Wanted};
use super::stat_value::{Bound, bound, bounds_array};

/// Bytes of the shortest value that Parquet may keep no statistics of.
pub(super) const LONG_VALUE: i64 = 2048;

/// What statistics were made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsSource {
    /// Footers of files, as `column_stats` and `partition_stats`.
    Footers,
    /// All values, as those of an expression.
    Values,
}

/// What is known of the values of one column in one file or partition.
#[derive(Debug, Clone, Default)]
pub(super) struct Stats {
    pub(super) min: Option<Bound>,
    pub(super) max: Option<Bound>,
    /// There are records, and all of them have null.
    pub(super) only_nulls: bool,
    pub(super) null_count: Option<i64>,
    pub(super) value_count: Option<i64>,
    deleted: bool,
}

/// Statistics of a column, one row for each file (or, without `files`, each partition).
///
/// Columns: min and max in `value_type`, null where unknown; only_nulls (every value is null);
/// null_count and value_count (nulls among them), null where unknown. Bounds are given where they
/// surely hold: unknown are those of another type than the column's, those of floating numbers on
/// both sides of zero (where Hudi may have lost some), of text beyond U+D7FF (which Java orders
/// otherwise) or among long strings and nulls (where Hudi may have lost some), and times whose unit
/// nothing tells.
pub fn column_stats(
    partition: &MetadataPartition,
    column: &str,
    value_type: &DataType,
    partitions: &StringArray,
    files: Option<&StringArray>,
    source: StatsSource,
) -> Result<RecordBatch> {
    let found = stored_stats(partition, column, value_type, partitions, files, source)?;
    let columns = table_columns(&found, value_type)?;
    let schema = Schema::new(table_fields(value_type));
    RecordBatch::try_new(Arc::new(schema), columns).map_err(SliceError::Arrow)
}

/// As [`column_stats`], not yet a table.
pub(super) fn stored_stats(
    partition: &MetadataPartition,
    column: &str,
    value_type: &DataType,
    partitions: &StringArray,
    files: Option<&StringArray>,
    source: StatsSource,
) -> Result<Vec<Stats>> {
    let keys: Vec<String> = (0..partitions.len())
        .map(|row| {
            column_key(
                column,
                partitions.value(row),
                files.map(|files| files.value(row)),
            )
        })
        .collect();
    let mut found = vec![Stats::default(); keys.len()];
    let groups = partition.by_group(keys.iter().map(|key| (key.as_str(), key.clone())))?;
    let texts: Vec<Vec<&str>> = groups
        .iter()
        .map(|group| group.iter().map(|(key, _)| key.as_str()).collect())
        .collect();
    let jobs: Vec<_> = (partition.groups.iter().zip(&texts))
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(slice, texts)| (slice, Wanted::Keys(texts)))
        .collect();
    let mut asked = groups.iter().filter(|group| !group.is_empty());
    partition.each_slice(&jobs, Keep::All, |records| {
        for (key, place) in asked.next().into_iter().flatten() {
            if let Some(stats) = found.get_mut(*place) {
                *stats = merged(&records.get(key)?, value_type, source);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// All statistics of a column, in no particular order: column file_name (of partition statistics:
/// the partition), then those of [`column_stats`]. Rows of deleted files are left out.
pub fn column_stats_scan(
    partition: &MetadataPartition,
    column: &str,
    value_type: &DataType,
) -> Result<RecordBatch> {
    let prefixes = [text_hash64(column)];
    let (mut names, mut found) = (Vec::new(), Vec::new());
    let slices = partition.groups.iter();
    let jobs: Vec<_> = slices
        .map(|slice| (slice, Wanted::Prefixes(&prefixes)))
        .collect();
    partition.each_slice(&jobs, Keep::All, |records| {
        for record in records.iter() {
            let (_, versions) = record?;
            let stats = merged(&versions, value_type, StatsSource::Footers);
            let newest = versions
                .last()
                .map(|newest| newest.field("ColumnStatsMetadata"));
            if let (Some(newest), false) = (newest, stats.deleted) {
                names.push(newest.field("fileName").text().map(str::to_owned));
                found.push(stats);
            }
        }
        Ok(())
    })?;
    let mut columns = table_columns(&found, value_type)?;
    columns.insert(0, Arc::new(StringArray::from(names)));
    let mut fields = table_fields(value_type);
    fields.insert(0, Field::new("file_name", DataType::Utf8, true));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(SliceError::Arrow)
}

fn table_fields(value_type: &DataType) -> Vec<Field> {
    vec![
        Field::new("min", value_type.clone(), true),
        Field::new("max", value_type.clone(), true),
        Field::new("only_nulls", DataType::Boolean, false),
        Field::new("null_count", DataType::Int64, true),
        Field::new("value_count", DataType::Int64, true),
    ]
}

fn table_columns(found: &[Stats], value_type: &DataType) -> Result<Vec<Arc<dyn Array>>> {
    let only_nulls: BooleanArray = found.iter().map(|one| Some(one.only_nulls)).collect();
    let null_counts: Int64Array = found.iter().map(|one| one.null_count).collect();
    let value_counts: Int64Array = found.iter().map(|one| one.value_count).collect();
    Ok(vec![
        bounds_array(found.iter().map(|one| one.min.as_ref()), value_type)?,
        bounds_array(found.iter().map(|one| one.max.as_ref()), value_type)?,
        Arc::new(only_nulls),
        Arc::new(null_counts),
        Arc::new(value_counts),
    ])
}

/// One after the other: a deletion on either side or tight newer bounds put the newer one in
/// place of the older, else both hold together.
fn merged(versions: &[Datum<'_>], value_type: &DataType, source: StatsSource) -> Stats {
    let mut merged: Option<Stats> = None;
    for version in versions {
        let stored = version.field("ColumnStatsMetadata");
        let newer = decoded(stored, value_type, source);
        merged = Some(match merged {
            Some(older)
                if !older.deleted && !newer.deleted && !stored.field("isTightBound").is_true() =>
            {
                older.widened(&newer)
            }
            _ => newer,
        });
    }
    match merged {
        Some(stats) if stats.deleted => Stats {
            deleted: true,
            ..Stats::default()
        },
        Some(stats) => stats,
        None => Stats::default(),
    }
}

fn decoded(stored: &Datum<'_>, value_type: &DataType, source: StatsSource) -> Stats {
    if stored == &Datum::Null || stored.field("isDeleted").is_true() {
        return Stats {
            deleted: true,
            ..Stats::default()
        };
    }
    let kind = stored.field("valueType");
    let (min, max) = (stored.field("minValue"), stored.field("maxValue"));
    let null_count = stored.field("nullCount").number();
    let value_count = stored.field("valueCount").number();
    let without = has_no_values(stored, value_type);
    let (min, max) = (bound(min, kind, value_type), bound(max, kind, value_type));
    let may_lack = source == StatsSource::Footers && may_lack_values(stored, value_type);
    let sure =
        !may_lack && (min.as_ref().zip(max.as_ref())).is_none_or(|(min, max)| !min.may_hide(max));
    Stats {
        min: min.filter(|_| sure),
        max: max.filter(|_| sure),
        only_nulls: without && value_count.is_some_and(|n| n > 0) && null_count == value_count,
        null_count,
        value_count,
        deleted: false,
    }
}

/// Whether a record without bounds is of nulls alone.
///
/// Hudi takes text and bytes for nulls where Parquet keeps no statistics of them, since least and
/// greatest together have 4 KiB (`ParquetUtils.readColumnStatsFromMetadata`).
pub(super) fn has_no_values(stored: &Datum<'_>, value_type: &DataType) -> bool {
    let is_null = |side| stored.field(side) == &Datum::Null;
    is_null("minValue") && is_null("maxValue") && !may_have_long(stored, value_type)
}

/// Whether a record's bounds may be those of other values only than what it takes for nulls.
///
/// Row groups and files without bounds add nothing to those of others
/// (`HoodieColumnRangeMetadata.merge`).
pub(super) fn may_lack_values(stored: &Datum<'_>, value_type: &DataType) -> bool {
    stored.field("nullCount").number() != Some(0) && may_have_long(stored, value_type)
}

/// Whether values may be so long that Parquet keeps no statistics: not within fewer bytes.
fn may_have_long(stored: &Datum<'_>, value_type: &DataType) -> bool {
    let size = stored.field("totalUncompressedSize").number();
    is_text(value_type) && size.is_none_or(|size| size >= LONG_VALUE)
}

/// Whether values of a type can be long.
pub(super) fn is_text(value_type: &DataType) -> bool {
    matches!(value_type, DataType::Utf8 | DataType::Binary)
}

impl Stats {
    fn widened(&self, newer: &Self) -> Self {
        let sum = |a: Option<i64>, b: Option<i64>| Some(a?.saturating_add(b?));
        let (mut min, mut max) = (None, None);
        if self.only_nulls {
            (min, max) = (newer.min.clone(), newer.max.clone());
        } else if newer.only_nulls {
            (min, max) = (self.min.clone(), self.max.clone());
        } else if let (Some(a), Some(b)) = (&self.min, &newer.min)
            && let (Some(c), Some(d)) = (&self.max, &newer.max)
        {
            (min, max) = (Bound::least(a, b), Bound::greatest(c, d));
        }
        Self {
            min,
            max,
            only_nulls: self.only_nulls && newer.only_nulls,
            null_count: sum(self.null_count, newer.null_count),
            value_count: sum(self.value_count, newer.value_count),
            deleted: false,
        }
    }
}
