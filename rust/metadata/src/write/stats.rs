//! Records of `column_stats`, `partition_stats` and `bloom_filters`, out of the files themselves.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use pyhudi_avro::Value;
use pyhudi_format::hash::{column_key, text_hash64, text_md5};
use pyhudi_slice::{BootstrapSource, Result, base_values, log_rows};
use pyhudi_store::Store;

use super::column_bounds::{
    BATCH_ROWS, KIND_COLUMN_STATS, KIND_PARTITION_STATS, Shape, Stats, file_name, roots,
};
use super::footers::{base_stats, skeleton_stats, value_stats};
use super::known::KnownStats;
use super::recorder::{RecordRows, Recorder, record_rows_schema};

const COLUMN_STATS: &str = "column_stats";
const PARTITION_STATS: &str = "partition_stats";
const BLOOM_FILTERS: &str = "bloom_filters";
/// Kind of its records (`MetadataPartitionType`).
const KIND_BLOOM_FILTER: i64 = 4;

/// Which facts of files are wanted.
#[derive(Debug, Clone)]
pub struct FileFacts {
    /// Columns with statistics and their types in the table; none for none.
    pub columns: SchemaRef,
    /// Statistics name the type of their values (index version 2).
    pub value_types: bool,
    /// Statistics of the whole partition as well.
    pub partition_stats: bool,
    /// The partition's files other than those of the commit: then its statistics are tight.
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
    /// What `column_stats` had of them before the commit. A file that is not in it is read.
    pub known: Arc<KnownStats>,
}

/// A file of a commit.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    /// Where.
    pub path: String,
    /// A log file, else a base file.
    pub log: bool,
    /// Where the rows are, if the base file is a skeleton of a bootstrapped table.
    pub source: Option<BootstrapSource>,
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
        // A base file of this name may be written again, by the next attempt of its service.
        if let Some(rest) = facts.rest.as_ref().filter(|_| file.log) {
            rest.known.keep(&file.path, &found);
        }
        let name = file_name(&file.path);
        for (field, stats) in facts.columns.fields().iter().zip(found.iter().cloned()) {
            // Hudi finds nothing in a base file without row groups.
            if facts.value_types && stats.values == 0 && !file.log {
                continue;
            }
            let key = column_key(field.name(), partition, Some(name));
            let shape = Shape::of(KIND_COLUMN_STATS, field.data_type(), facts.value_types);
            let stats = stats.marked(shape.ty);
            stats.put(&mut rows, &key, name, field.name(), shape)?;
        }
        add_up(&mut whole, found);
    }
    let mut batches = vec![rows.finish()?];
    if facts.partition_stats {
        if let Some(rest) = &facts.rest {
            add_rest(&mut whole, store, rest, &facts.columns)?;
        }
        let mut rows = recorder.rows(PARTITION_STATS)?;
        for (field, stats) in facts.columns.fields().iter().zip(whole) {
            // Files without rows widen nothing.
            if stats.values == 0 {
                continue;
            }
            let key = column_key(field.name(), partition, None);
            let shape = Shape {
                tight: facts.rest.is_some(),
                ..Shape::of(KIND_PARTITION_STATS, field.data_type(), facts.value_types)
            };
            let stats = stats.marked(shape.ty);
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
    rest: &RestOfPartition,
    columns: &SchemaRef,
) -> Result<()> {
    for file in &rest.files {
        let found = match rest.known.get(&file.path) {
            Some(stats) => stats.clone(),
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
    match &file.source {
        _ if file.log => log_stats(store, &file.path, columns),
        None => base_stats(store, &file.path, columns),
        Some(source) => skeleton_stats(store, &file.path, source, columns),
    }
}

/// The same, by the values of a base file: a footer's bounds may be wider.
pub(super) fn exact_stats(
    store: &Store,
    file: &WrittenFile,
    columns: &SchemaRef,
) -> Result<Vec<Stats>> {
    if file.log || file.source.is_some() {
        return stats_of(store, file, columns);
    }
    value_stats(store, &file.path, columns)
}

// --- files that are gone ----------------------------------------------------------------------------

/// Removes the records of deleted files.
///
/// index: a partition of the metadata table, with statistics of columns, or with filters. partition:
/// of the data, names: of its files.
///
/// # Errors
/// The metadata table has no such partition.
pub fn forget_files(
    recorder: &Recorder,
    index: &str,
    partition: &str,
    names: &[String],
    columns: &[String],
    filters: bool,
) -> Result<RecordBatch> {
    let mut rows = recorder.rows(index)?;
    for name in names {
        for column in columns {
            rows.delete(&column_key(column, partition, Some(name)));
        }
        if filters {
            rows.delete(&filter_key(partition, name));
        }
    }
    rows.finish()
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
    let names = [
        "org.apache.hudi.bloomfilter",
        "hoodie_bloom_filter_type_code",
    ];
    let mut values = base_values(store, path, &names)?.into_iter();
    let mut next = || values.next().flatten();
    let filter = next().unwrap_or_default();
    let code = next().unwrap_or_else(|| "SIMPLE".to_owned());
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
    let key = filter_key(partition, name);
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

fn filter_key(partition: &str, name: &str) -> String {
    let owner = if partition.is_empty() { "." } else { partition };
    text_hash64(owner) + &text_md5(name)
}
