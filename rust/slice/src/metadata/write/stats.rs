//! Records of `column_stats`, `partition_stats` and `bloom_filters`, out of the files themselves.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, SchemaRef};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::RowGroupMetaData;
use pyhudi_avro::Value;
use pyhudi_format::hash::{column_key, text_hash64, text_md5};
use pyhudi_store::Store;

use super::bounds::{Bound, ONLY_NULLS, Wrapper, wrapper};
use super::known::known_stats;
use super::{RecordRows, Recorder, record_rows_schema};
use crate::adapt::adapt_column;
use crate::base::{ParquetRead, ParquetReader, base_metadata};
use crate::blocks::{BlockFilter, LogSource, choose_blocks};
use crate::error::{Result, SliceError};
use crate::metadata::MetadataPartition;
use crate::records::{Decode, LogRecords};

const COLUMN_STATS: &str = "column_stats";
const PARTITION_STATS: &str = "partition_stats";
const BLOOM_FILTERS: &str = "bloom_filters";
/// Kinds of records (`MetadataPartitionType`).
pub(super) const KIND_COLUMN_STATS: i64 = 3;
const KIND_BLOOM_FILTER: i64 = 4;
pub(super) const KIND_PARTITION_STATS: i64 = 6;
const BATCH_ROWS: usize = 8192;

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

    /// A column that the batch lacks is null in all of its rows.
    fn add_batch(&mut self, batch: &RecordBatch, field: &Field) -> Result<()> {
        if let Some(column) = batch.column_by_name(field.name()) {
            self.add_values(&adapt_column(column, field)?);
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

// --- log files ------------------------------------------------------------------------------------

/// Over the data blocks' records; deletes have no values.
fn log_stats(store: &Store, path: &str, columns: &SchemaRef) -> Result<Vec<Stats>> {
    let mut found = vec![Stats::default(); columns.fields().len()];
    let names: Vec<String> = columns.fields().iter().map(|f| f.name().clone()).collect();
    let sources = [LogSource::open(store, path)?];
    let decode = Decode {
        columns: &names,
        batch_rows: BATCH_ROWS,
        only_rows: true,
        evolution: None,
    };
    for chosen in choose_blocks(&sources, &BlockFilter::default())?.0 {
        decode.block(&sources[0], &chosen.block, &mut |records| {
            let LogRecords::Rows(batch) = records else {
                return Ok(());
            };
            for (field, stats) in columns.fields().iter().zip(&mut found) {
                stats.add_batch(&batch, field)?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}

// --- base files -----------------------------------------------------------------------------------

/// By the footer where it says enough, else by the values. Floating numbers are always looked at:
/// the bounds of a footer leave NaN out.
fn base_stats(store: &Store, path: &str, columns: &SchemaRef) -> Result<Vec<Stats>> {
    let arrow = base_metadata(store, path)?;
    let mut found = Vec::with_capacity(columns.fields().len());
    let mut unknown = Vec::new();
    for field in columns.fields() {
        let stats = sizes(&arrow, field.name());
        let footer = footer_bounds(&arrow, path, field)?;
        if footer.is_none() {
            unknown.push(field.name().clone());
        }
        let (min, max, nulls) = footer.unwrap_or_default();
        found.push(Stats {
            min,
            max,
            nulls,
            ..stats
        });
    }
    if !unknown.is_empty() {
        look_at_values(store, path, columns, &unknown, &mut found)?;
    }
    Ok(found)
}

/// Rows and bytes of a column.
fn sizes(arrow: &ArrowReaderMetadata, column: &str) -> Stats {
    let metadata = arrow.metadata();
    let mut stats = Stats {
        values: metadata.file_metadata().num_rows(),
        ..Stats::default()
    };
    for chunk in metadata
        .row_groups()
        .iter()
        .flat_map(RowGroupMetaData::columns)
    {
        if chunk
            .column_path()
            .parts()
            .first()
            .is_some_and(|name| name == column)
        {
            stats.size += chunk.compressed_size();
            stats.uncompressed += chunk.uncompressed_size();
        }
    }
    stats
}

type FooterBounds = Option<(Option<Bound>, Option<Bound>, i64)>;

fn footer_bounds(arrow: &ArrowReaderMetadata, path: &str, field: &Field) -> Result<FooterBounds> {
    let name = field.name();
    if field.data_type().is_floating() || arrow.schema().index_of(name).is_err() {
        return Ok(None);
    }
    let damaged = |error| SliceError::parquet(path, None, error);
    let statistics = StatisticsConverter::try_new(name, arrow.schema(), arrow.parquet_schema())
        .map_err(damaged)?
        .with_missing_null_counts_as_zero(false);
    let groups = arrow.metadata().row_groups();
    let mins = statistics.row_group_mins(groups).map_err(damaged)?;
    let maxes = statistics.row_group_maxes(groups).map_err(damaged)?;
    let nulls = statistics.row_group_null_counts(groups).map_err(damaged)?;
    let nullable = Field::new(name, field.data_type().clone(), true);
    let (mins, maxes) = (
        adapt_column(&mins, &nullable)?,
        adapt_column(&maxes, &nullable)?,
    );
    let (mut min, mut max, mut all_nulls) = (None, None, 0);
    for (row, group) in groups.iter().enumerate() {
        if !nulls.is_valid(row) {
            return Ok(None);
        }
        let (low, high) = (Bound::at(&mins, row), Bound::at(&maxes, row));
        let has_values = (nulls.value(row) as i64) < group.num_rows();
        if has_values && (low.is_none() || high.is_none()) {
            return Ok(None);
        }
        all_nulls += nulls.value(row) as i64;
        min = Bound::least(min, low);
        max = Bound::greatest(max, high);
    }
    Ok(Some((min, max, all_nulls)))
}

fn look_at_values(
    store: &Store,
    path: &str,
    columns: &SchemaRef,
    unknown: &[String],
    found: &mut [Stats],
) -> Result<()> {
    for stats in found.iter_mut().zip(columns.fields()) {
        if unknown.contains(stats.1.name()) {
            stats.0.values = 0;
        }
    }
    let read = ParquetRead {
        columns: unknown,
        filters: &[],
        batch_rows: BATCH_ROWS,
        row_numbers: false,
        two_threads: false,
        part: None,
        test: None,
        map: None,
    };
    for batch in ParquetReader::open(store, path, read)? {
        let batch = batch?;
        for (field, stats) in columns.fields().iter().zip(found.iter_mut()) {
            if !unknown.contains(field.name()) {
                continue;
            }
            stats.add_batch(&batch, field)?;
        }
    }
    Ok(())
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
