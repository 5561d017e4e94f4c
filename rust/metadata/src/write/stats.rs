//! Records of `column_stats`, `partition_stats` and `bloom_filters`, out of the files themselves.

use std::collections::BTreeSet;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, SchemaRef};
use pyhudi_avro::Value;
use pyhudi_format::hash::{column_key, text_hash64, text_md5};
use pyhudi_keys::column;
use pyhudi_slice::{Result, adapt_column, base_metadata, log_rows, nested};
use pyhudi_store::Store;

use super::bounds::{Bound, ONLY_NULLS, Wrapper, wrapper};
use super::footers::base_stats;
use super::known::known_stats;
use super::{RecordRows, Recorder, record_rows_schema};
use crate::MetadataPartition;

const COLUMN_STATS: &str = "column_stats";
const PARTITION_STATS: &str = "partition_stats";
const BLOOM_FILTERS: &str = "bloom_filters";
/// Kinds of records (`MetadataPartitionType`).
pub(super) const KIND_COLUMN_STATS: i64 = 3;
const KIND_BLOOM_FILTER: i64 = 4;
pub(super) const KIND_PARTITION_STATS: i64 = 6;
pub(super) const BATCH_ROWS: usize = 8192;

/// Which facts of files are wanted.
#[derive(Debug, Clone)]
pub struct FileFacts {
    /// Columns with statistics and their types in the table; none for none.
    pub columns: SchemaRef,
    /// Statistics name the type of their values (index version 2).
    pub value_types: bool,
    /// Statistics of the whole partition as well.
    pub partition_stats: bool,
    /// What the partition holds besides the files of the commit: then its statistics are tight.
    pub rest: Option<RestOfPartition>,
    /// Bloom filters of base files.
    pub bloom_filters: bool,
    /// The instant that wrote the files.
    pub instant: String,
}

/// The files of a partition that a commit leaves as they are.
#[derive(Debug, Clone)]
pub struct RestOfPartition {
    /// Where they are.
    pub files: Vec<WrittenFile>,
    /// `column_stats` before the commit. A file that it does not know is looked at.
    pub index: MetadataPartition,
}

/// A file of a commit.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    /// Where.
    pub path: String,
    /// A log file, else a base file.
    pub log: bool,
}

/// Records of the files that a commit wrote into one partition. Without the rest of it, bounds of a
/// partition are those of the files given: readers widen by them what they knew.
///
/// # Errors
/// Damaged files, failing storage.
pub fn file_facts(
    recorder: &Recorder,
    store: &Store,
    partition: &str,
    files: &[WrittenFile],
    facts: &FileFacts,
) -> Result<RecordBatch> {
    let mut batches = Vec::new();
    if !facts.columns.fields().is_empty() {
        batches.extend(statistics(recorder, store, partition, files, facts)?);
    }
    if facts.bloom_filters {
        let mut rows = recorder.rows(BLOOM_FILTERS)?;
        for file in files.iter().filter(|file| !file.log) {
            put_bloom(&mut rows, store, partition, &file.path, &facts.instant)?;
        }
        batches.push(rows.finish()?);
    }
    Ok(concat_batches(&record_rows_schema(), &batches)?)
}

fn statistics(
    recorder: &Recorder,
    store: &Store,
    partition: &str,
    files: &[WrittenFile],
    facts: &FileFacts,
) -> Result<Vec<RecordBatch>> {
    let mut rows = recorder.rows(COLUMN_STATS)?;
    let mut whole = vec![Stats::default(); facts.columns.fields().len()];
    for file in files {
        let found = stats_of(store, file, &facts.columns)?;
        let name = file_name(&file.path);
        for (field, stats) in facts.columns.fields().iter().zip(&found) {
            // Hudi finds nothing in a base file without row groups.
            if facts.value_types && stats.values == 0 && !file.log {
                continue;
            }
            let key = column_key(field.name(), partition, Some(name));
            let shape = Shape::of(KIND_COLUMN_STATS, field.data_type(), facts.value_types);
            stats.put(&mut rows, &key, name, field.name(), shape)?;
        }
        add_up(&mut whole, found);
    }
    let mut batches = vec![rows.finish()?];
    if facts.partition_stats {
        if let Some(rest) = &facts.rest {
            add_rest(&mut whole, store, partition, rest, &facts.columns)?;
        }
        let mut rows = recorder.rows(PARTITION_STATS)?;
        for (field, stats) in facts.columns.fields().iter().zip(&whole) {
            // Files without rows widen nothing.
            if stats.values == 0 {
                continue;
            }
            let key = column_key(field.name(), partition, None);
            let shape = Shape {
                tight: facts.rest.is_some(),
                ..Shape::of(KIND_PARTITION_STATS, field.data_type(), facts.value_types)
            };
            stats.put(&mut rows, &key, partition, field.name(), shape)?;
        }
        batches.push(rows.finish()?);
    }
    Ok(batches)
}

fn add_up(whole: &mut [Stats], found: Vec<Stats>) {
    for (known, stats) in whole.iter_mut().zip(found) {
        *known = std::mem::take(known).with(stats);
    }
}

fn add_rest(
    whole: &mut [Stats],
    store: &Store,
    partition: &str,
    rest: &RestOfPartition,
    columns: &SchemaRef,
) -> Result<()> {
    let paths: Vec<&str> = rest.files.iter().map(|file| file.path.as_str()).collect();
    let known = known_stats(&rest.index, partition, &paths, columns)?;
    for (file, stats) in rest.files.iter().zip(known) {
        let found = match stats {
            Some(stats) => stats,
            None => stats_of(store, file, columns)?,
        };
        add_up(whole, found);
    }
    Ok(())
}

/// What the values of the columns are in a file.
pub(super) fn stats_of(
    store: &Store,
    file: &WrittenFile,
    columns: &SchemaRef,
) -> Result<Vec<Stats>> {
    if file.log {
        log_stats(store, &file.path, columns)
    } else {
        base_stats(store, &file.path, columns)
    }
}

/// What a record of statistics is of.
#[derive(Clone, Copy)]
pub(super) struct Shape<'t> {
    pub(super) kind: i64,
    pub(super) ty: &'t DataType,
    pub(super) value_types: bool,
    /// Readers forget what they knew.
    pub(super) tight: bool,
}

impl<'t> Shape<'t> {
    pub(super) fn of(kind: i64, ty: &'t DataType, value_types: bool) -> Self {
        Self {
            kind,
            ty,
            value_types,
            tight: false,
        }
    }
}

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What is known of a column's values in one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stats {
    pub(super) min: Option<Bound>,
    pub(super) max: Option<Bound>,
    pub(super) nulls: i64,
    pub(super) values: i64,
    pub(super) size: i64,
    pub(super) uncompressed: i64,
}

impl Stats {
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            min: Bound::least(self.min, other.min),
            max: Bound::greatest(self.max, other.max),
            nulls: self.nulls + other.nulls,
            values: self.values + other.values,
            size: self.size + other.size,
            uncompressed: self.uncompressed + other.uncompressed,
        }
    }

    /// A column that the batch lacks is null in all of its rows. So is a field where its struct is.
    pub(super) fn add_batch(&mut self, batch: &RecordBatch, field: &Field) -> Result<()> {
        if nested(&batch.schema(), field.name()).is_ok() {
            self.add_values(&adapt_column(&column(batch, field.name())?, field)?);
        } else {
            self.nulls += batch.num_rows() as i64;
            self.values += batch.num_rows() as i64;
        }
        Ok(())
    }

    fn add_values(&mut self, column: &ArrayRef) {
        for row in 0..column.len() {
            let value = Bound::at(column, row);
            self.min = Bound::least(self.min.take(), value.clone());
            self.max = Bound::greatest(self.max.take(), value);
        }
        self.nulls += column.logical_null_count() as i64;
        self.values += column.len() as i64;
    }

    /// Puts the record, unless the column's type has no statistics.
    pub(super) fn put(
        &self,
        rows: &mut RecordRows<'_>,
        key: &str,
        name: &str,
        column: &str,
        shape: Shape<'_>,
    ) -> Result<()> {
        let Some(wrapper) = wrapper(shape.ty, shape.value_types) else {
            return Ok(());
        };
        let bytes = |bound: &Option<Bound>| bound.as_ref().map(|bound| bound.bytes(wrapper));
        let (min_bytes, max_bytes) = (bytes(&self.min), bytes(&self.max));
        let value = |bound: &Option<Bound>, bytes| match (bound, bytes) {
            (Some(bound), Some(bytes)) => bound.wrapped(wrapper, bytes),
            _ => Value::Null,
        };
        let decimal = decimal_info(shape.ty);
        let mut fields = vec![
            ("fileName", Value::Text(name)),
            ("columnName", Value::Text(column)),
            ("minValue", value(&self.min, min_bytes.as_ref())),
            ("maxValue", value(&self.max, max_bytes.as_ref())),
            ("nullCount", Value::Whole(self.nulls)),
            ("valueCount", Value::Whole(self.values)),
            ("totalSize", Value::Whole(self.size)),
            ("totalUncompressedSize", Value::Whole(self.uncompressed)),
        ];
        if shape.value_types {
            let named = self.value_type(wrapper, decimal.as_deref(), shape.kind);
            fields.push(("valueType", named));
        }
        if shape.tight {
            fields.push(("isTightBound", Value::Boolean(true)));
        }
        let fields = [
            ("type", Value::Whole(shape.kind)),
            ("ColumnStatsMetadata", Value::Record(fields)),
        ];
        rows.put(key, &fields)
    }

    /// The column's type, but for a log file without records: Hudi names none for that.
    fn value_type<'v>(&self, wrapper: Wrapper, decimal: Option<&'v str>, kind: i64) -> Value<'v> {
        let only_nulls = self.values == 0 && kind == KIND_COLUMN_STATS;
        let ordinal = if only_nulls { ONLY_NULLS } else { wrapper.kind };
        let mut fields = vec![("typeOrdinal", Value::Whole(ordinal))];
        if let (false, Some(info)) = (only_nulls, decimal) {
            fields.push(("additionalInfo", Value::Text(info)));
        }
        Value::Record(fields)
    }
}

pub(super) fn decimal_info(ty: &DataType) -> Option<String> {
    match ty {
        DataType::Decimal128(precision, scale) => Some(format!("{precision},{scale}")),
        _ => None,
    }
}

/// The columns that hold columns and fields of structs. A column's own name may have a dot in it.
pub(super) fn roots<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let roots: BTreeSet<&str> = names
        .flat_map(|name| [name, name.split('.').next().unwrap_or(name)])
        .collect();
    roots.into_iter().map(str::to_owned).collect()
}

// --- log files ------------------------------------------------------------------------------------

/// Over the data blocks' records; deletes have no values.
fn log_stats(store: &Store, path: &str, columns: &SchemaRef) -> Result<Vec<Stats>> {
    let mut found = vec![Stats::default(); columns.fields().len()];
    let names = columns.fields().iter().map(|field| field.name().as_str());
    log_rows(store, path, &roots(names), BATCH_ROWS, &mut |batch| {
        for (field, stats) in columns.fields().iter().zip(&mut found) {
            stats.add_batch(batch, field)?;
        }
        Ok(())
    })?;
    Ok(found)
}

// --- bloom filters --------------------------------------------------------------------------------

fn put_bloom(
    rows: &mut RecordRows<'_>,
    store: &Store,
    partition: &str,
    path: &str,
    instant: &str,
) -> Result<()> {
    let arrow = base_metadata(store, path)?;
    let pairs = arrow.metadata().file_metadata().key_value_metadata();
    let fact = |name: &str| {
        let pair = pairs?.iter().find(|pair| pair.key == name)?;
        pair.value.clone()
    };
    let filter = fact("org.apache.hudi.bloomfilter").unwrap_or_default();
    let code = fact("hoodie_bloom_filter_type_code").unwrap_or_else(|| "SIMPLE".to_owned());
    put_filter(rows, (partition, file_name(path)), &code, instant, &filter)
}

/// Puts the record of a filter, given as its Base64 text. file: its data partition and name.
pub(super) fn put_filter(
    rows: &mut RecordRows<'_>,
    (partition, name): (&str, &str),
    code: &str,
    instant: &str,
    filter: &str,
) -> Result<()> {
    let owner = if partition.is_empty() { "." } else { partition };
    let key = text_hash64(owner) + &text_md5(name);
    let fields = vec![
        ("type", Value::Text(code)),
        ("timestamp", Value::Text(instant)),
        ("bloomFilter", Value::Bytes(filter.as_bytes())),
    ];
    let fields = [
        ("type", Value::Whole(KIND_BLOOM_FILTER)),
        ("BloomFilterMetadata", Value::Record(fields)),
    ];
    rows.put(&key, &fields)
}
