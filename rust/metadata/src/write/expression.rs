//! Records of an `expr_index_…` partition: statistics, or bloom filters, of an expression's values.
//!
//! The values are made elsewhere.

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use pyhudi_format::bloom::BloomFilter;
use pyhudi_format::hash::{column_key, text_hash64};
use pyhudi_slice::{Result, SliceError};

use super::bounds::Bound;
use super::column_bounds::{KIND_COLUMN_STATS, KIND_PARTITION_STATS, Shape, Stats};
use super::recorder::Recorder;
use super::stats::put_filter;

/// What stands before a partition in the keys of its statistics.
const PARTITION_PREFIX: &str = "__partition_stat__";

/// What an expression index with statistics is of, and in which form.
#[derive(Debug, Clone)]
pub struct ExpressionStats {
    /// The index's partition of the metadata table.
    pub index: String,
    /// The source column.
    pub column: String,
    /// The data partition.
    pub partition: String,
    /// Statistics name the type of their values (index version 2).
    pub value_types: bool,
    /// The files are all that the partition holds. Else readers widen by them what they knew.
    pub tight: bool,
}

/// Records of files of one data partition, and of the partition: its bounds are those of the files
/// given.
///
/// files: columns name, size (bytes), nulls, values (those that are not null), min and max; one row
/// a file with rows.
///
/// # Errors
/// The metadata table has no such partition; a column is missing; bounds of a type that has none.
pub fn expression_stats(
    recorder: &Recorder,
    what: &ExpressionStats,
    files: &RecordBatch,
) -> Result<RecordBatch> {
    let names = field(files, "name")?.as_string_opt::<i32>();
    let names = names.ok_or_else(|| wrong("name"))?;
    let (sizes, nulls, values) = (
        numbers(files, "size")?,
        numbers(files, "nulls")?,
        numbers(files, "values")?,
    );
    let (mins, maxes) = (field(files, "min")?, field(files, "max")?);
    let mut rows = recorder.rows(&what.index)?;
    let mut whole = Stats::default();
    let shape = Shape::of(KIND_COLUMN_STATS, mins.data_type(), what.value_types);
    for (row, name) in names.iter().flatten().enumerate() {
        let stats = Stats {
            min: Bound::at(mins, row),
            max: Bound::at(maxes, row),
            nulls: nulls.value(row),
            values: values.value(row),
            size: sizes.value(row),
            // As Hudi reckons.
            uncompressed: sizes.value(row).saturating_mul(2),
            ..Stats::default()
        };
        let key = column_key(&what.column, &what.partition, Some(name));
        stats.put(&mut rows, &key, name, &what.column, shape)?;
        whole = whole.with(stats);
    }
    if files.num_rows() > 0 {
        let shape = Shape {
            kind: KIND_PARTITION_STATS,
            tight: what.tight,
            ..shape
        };
        let key = text_hash64(&what.column) + &text_hash64(PARTITION_PREFIX) + &owner(what);
        whole.put(&mut rows, &key, &what.partition, &what.column, shape)?;
    }
    rows.finish()
}

fn owner(what: &ExpressionStats) -> String {
    let path = what.partition.as_str();
    text_hash64(if path.is_empty() { "." } else { path })
}

/// A bloom filter over an expression's values in one file.
#[derive(Debug, Clone)]
pub struct ExpressionFilter {
    /// The index's partition of the metadata table.
    pub index: String,
    /// The data partition.
    pub partition: String,
    /// The name of the file in it.
    pub name: String,
    /// The instant of the index's commit.
    pub instant: String,
    /// `SIMPLE`, else `DYNAMIC_V0`.
    pub simple: bool,
    /// Keys that a row of the filter is made for.
    pub entries: u32,
    /// Its error rate.
    pub fpp: f64,
    /// How many keys a `DYNAMIC_V0` filter grows for.
    pub max_entries: u32,
    /// Some values could not be computed: the filter matches everything.
    pub passes_all: bool,
}

/// The record of a filter over values; nulls are in none.
///
/// # Errors
/// The metadata table has no such partition.
pub fn expression_filter(
    recorder: &Recorder,
    what: &ExpressionFilter,
    values: &StringArray,
) -> Result<RecordBatch> {
    let mut filter = if what.simple {
        BloomFilter::simple(what.entries, what.fpp)
    } else {
        BloomFilter::dynamic(what.entries, what.fpp, what.max_entries)
    };
    filter.add_all(values.iter().flatten().map(str::as_bytes));
    if what.passes_all {
        filter.fill();
    }
    let mut rows = recorder.rows(&what.index)?;
    put_filter(
        &mut rows,
        (&what.partition, &what.name),
        filter.type_code(),
        &what.instant,
        &filter.to_base64(),
    )?;
    rows.finish()
}

fn numbers(files: &RecordBatch, name: &str) -> Result<Int64Array> {
    let found = field(files, name)?.as_primitive_opt::<Int64Type>().cloned();
    found.ok_or_else(|| wrong(name))
}

fn field<'b>(files: &'b RecordBatch, name: &str) -> Result<&'b ArrayRef> {
    files.column_by_name(name).ok_or_else(|| wrong(name))
}

fn wrong(column: &str) -> SliceError {
    SliceError::Schema(format!("statistics of an expression without {column}"))
}
