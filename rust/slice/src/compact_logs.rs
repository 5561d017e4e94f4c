//! Log compaction: what the log files of a slice come to by themselves, as one new log file.
//!
//! Of each key that record or delete stays that would meet the base file, as it is stored; of a table
//! whose columns have rules, the record that its records come to, after the delete before it. Readers
//! take the new blocks in place of those whose instants their headers list (`LogCompaction` in
//! `BaseHoodieLogRecordReader`, Hudi 0.13 and later). All log records are in memory.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{filter, filter_record_batch, not, take_record_batch};
use pyhudi_format::log::{DeleteRecord, OrderingValue};
use pyhudi_merge::{KeyMap, Keys, Records};

use crate::blocks::{ChosenBlock, LogSource, choose_blocks};
use crate::columns::{Columns, OPERATION};
use crate::error::{Result, SliceError};
use crate::log_map::{LogMap, MapKind};
use crate::log_side::{Collected, LogSide, Shape, deleted_by_operation};
use crate::names::names_of;
use crate::records::{Decode, LogRecords};
use crate::request::SliceRead;
use crate::write_log::{LogFile, LogFileOptions, write_compacted};

/// Writes the log file. None, and no file, where no block of the log files counts.
///
/// read: the slice, its base file aside, with all stored columns. partition: path of its partition.
/// options: the blocks that are replaced are added to them.
///
/// # Errors
/// Damaged files, failing storage, a file that exists; records that are made of several, column by
/// column.
pub fn compact_logs(
    read: &SliceRead,
    path: &str,
    partition: &str,
    options: &LogFileOptions,
) -> Result<Option<LogFile>> {
    let sources = LogSource::open_all(&read.store, &read.logs)?;
    let (blocks, _) = choose_blocks(&sources, &read.filter)?;
    if blocks.is_empty() {
        return Ok(None);
    }
    let columns = Columns::of(read, false)?;
    let partial = blocks.iter().any(|chosen| chosen.block.is_partial());
    let kind = read.merge.kind(&columns.log, &columns.merged, partial)?;
    if matches!(kind, MapKind::Fields(..)) && read.merge.column_rules.is_empty() {
        return Err(SliceError::Unsupported {
            feature: "log compaction of records that are merged column by column".to_owned(),
        });
    }
    let shape = Shape {
        columns,
        by_position: false,
        spec: read.merge.clone(),
    };
    let (rows, deletes) = standing(read, &blocks, &shape, &kind)?;
    let options = LogFileOptions {
        compacted: Some(instants(&blocks)),
        ..options.clone()
    };
    let deletes = deletes.iter().flat_map(|found| found.records(partition));
    write_compacted(&read.store, path, rows, deletes.collect(), &options).map(Some)
}

/// The instants of the blocks, oldest first.
fn instants(blocks: &[ChosenBlock<'_>]) -> String {
    let mut found: Vec<&str> = Vec::new();
    for instant in blocks
        .iter()
        .filter_map(|chosen| chosen.block.instant_time())
    {
        if !found.contains(&instant) {
            found.push(instant);
        }
    }
    found.join(",")
}

/// Deletes of one block that stand for their keys.
struct Deletes {
    keys: StringArray,
    ordering: Vec<OrderingValue<'static>>,
}

impl Deletes {
    fn records(&self, partition: &str) -> impl Iterator<Item = DeleteRecord<'_>> {
        let path: String = partition.to_owned();
        self.keys
            .iter()
            .flatten()
            .zip(&self.ordering)
            .map(move |(key, ordering)| DeleteRecord {
                record_key: key.into(),
                partition_path: Some(path.clone().into()),
                ordering: ordering.clone(),
            })
    }
}

/// The rows and deletes that stand, block by block.
fn standing(
    read: &SliceRead,
    blocks: &[ChosenBlock<'_>],
    shape: &Shape,
    kind: &MapKind,
) -> Result<(Vec<RecordBatch>, Vec<Deletes>)> {
    let mut side = LogSide::new(shape, kind, None, 1, 0, read.batch_rows)?;
    let columns = names_of(&shape.columns.log);
    let decode = Decode {
        columns: &columns,
        batch_rows: read.batch_rows,
        only_rows: false,
        evolution: read.evolution.as_ref(),
        parts: None,
    };
    // By the number of the batch in the map, which takes them in this order.
    let mut ordering_of: HashMap<usize, Vec<OrderingValue<'static>>> = HashMap::new();
    let mut batches = 0;
    for chosen in blocks {
        decode.block(chosen.source, &chosen.block, &mut |records| {
            match records {
                LogRecords::Rows(batch) => {
                    check_operation(read, &batch)?;
                    side.add_rows(&batch, None, false)?;
                }
                LogRecords::Deletes { keys, ordering } => {
                    side.add_deletes(keys, None, &ordering)?;
                    let own = ordering.into_iter().map(OrderingValue::into_owned);
                    ordering_of.insert(batches, own.collect());
                }
            }
            batches += 1;
            Ok(())
        })?;
    }
    match side.finish() {
        Collected::InMemory(map) => match *map {
            LogMap::Keys(map, rows, _) => taken(&map, &rows.into_iter().collect(), &ordering_of),
            map @ LogMap::Fields(_) => made(map, read),
        },
        Collected::OnDisk(_) => Ok((Vec::new(), Vec::new())),
    }
}

/// The operation of a change log is no column of the table's: a row that it deletes would live.
fn check_operation(read: &SliceRead, batch: &RecordBatch) -> Result<()> {
    let is_kept = read.schema.index_of(OPERATION).is_ok();
    let gone = deleted_by_operation(batch).map_or(0, |gone| gone.true_count());
    if is_kept || gone == 0 {
        return Ok(());
    }
    Err(SliceError::Unsupported {
        feature: format!("log compaction of rows that {OPERATION} deletes"),
    })
}

/// Rows made of several, and deletes, whose ordering values count for nothing then.
fn made(map: LogMap, read: &SliceRead) -> Result<(Vec<RecordBatch>, Vec<Deletes>)> {
    let (mut live, mut deletes) = (Vec::new(), Vec::new());
    for part in map.into_standing(read.batch_rows)?.0 {
        let Records { keys, deleted, .. } = part.records;
        let gone = deleted.unwrap_or_else(|| vec![false; keys.len()].into());
        if let Some(rows) = part.rows {
            live.push(filter_record_batch(&rows, &not(&gone)?)?);
        }
        if let Keys::Text(keys) = keys {
            let keys = filter(&keys, &gone)?;
            deletes.push(Deletes {
                ordering: vec![OrderingValue::Int(0); keys.len()],
                keys: keys.as_string().clone(),
            });
        }
    }
    Ok((live, deletes))
}

fn taken(
    map: &KeyMap,
    rows: &HashMap<usize, RecordBatch>,
    ordering_of: &HashMap<usize, Vec<OrderingValue<'static>>>,
) -> Result<(Vec<RecordBatch>, Vec<Deletes>)> {
    let (mut live, mut deletes) = (Vec::new(), Vec::new());
    for standing in map.standing() {
        if let Some(batch) = rows.get(&standing.batch) {
            let at: UInt32Array = standing.rows.iter().map(|row| Some(*row as u32)).collect();
            live.push(take_record_batch(batch, &at)?);
        } else if let (Keys::Text(keys), Some(all)) =
            (standing.records.keys, ordering_of.get(&standing.batch))
        {
            let own = standing
                .rows
                .iter()
                .filter_map(|row| all.get(*row).cloned());
            deletes.push(Deletes {
                keys,
                ordering: own.collect(),
            });
        }
    }
    Ok((live, deletes))
}
