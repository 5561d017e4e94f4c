//! Writing a log file: Avro data blocks, then a delete block, as `HoodieAppendHandle` (Hudi 1.2.0)
//! orders them.

use std::io::Write;

use arrow::array::{Array, AsArray, RecordBatch};
use pyhudi_avro::EncodedRows;
use pyhudi_format::log::{
    BlockType, DeleteRecord, HeaderKey, OrderingValue, avro_content, delete_content, delete_list,
    write_block,
};
use pyhudi_store::{Store, StoreWriter};

use crate::error::{Result, SliceError};

/// How a log file is written.
#[derive(Debug, Clone)]
pub struct LogFileOptions {
    /// The instant that writes it.
    pub instant: String,
    /// Avro schema of the rows as JSON, meta fields included.
    pub avro_schema: String,
    /// Bytes of records after which a block ends.
    pub block_bytes: usize,
}

/// What was written.
#[derive(Debug, Clone)]
pub struct LogFile {
    /// Where.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Records in data blocks.
    pub records: u64,
    /// Records in the delete block.
    pub deletes: u64,
}

/// Writes one new log file. `deletes` are batches of record key and partition path; each delete
/// carries the ordering value Integer 0, which beats every record. A failure leaves no file.
///
/// # Errors
/// Rows that do not fit the schema, the file exists, failing storage.
pub fn write_log_file(
    store: &Store,
    path: &str,
    rows: impl Iterator<Item = Result<RecordBatch>>,
    deletes: impl Iterator<Item = Result<RecordBatch>>,
    options: &LogFileOptions,
) -> Result<LogFile> {
    let mut out = store.create(path)?;
    let records = write_rows(&mut out, path, rows, options)?;
    let deletes = write_deletes(&mut out, path, deletes, options)?;
    let size = out.finish()?;
    Ok(LogFile {
        path: path.to_owned(),
        size,
        records,
        deletes,
    })
}

fn write_rows(
    out: &mut StoreWriter,
    path: &str,
    rows: impl Iterator<Item = Result<RecordBatch>>,
    options: &LogFileOptions,
) -> Result<u64> {
    let mut waiting = Vec::new();
    let (mut bytes, mut records) = (0, 0);
    for batch in rows {
        let encoded = pyhudi_avro::encode(&batch?, &options.avro_schema)
            .map_err(|error| SliceError::Schema(error.to_string()))?;
        bytes += encoded.bytes().len();
        records += encoded.len() as u64;
        waiting.push(encoded);
        if bytes >= options.block_bytes {
            let content = avro_content(waiting.iter().flat_map(EncodedRows::iter));
            append(out, path, BlockType::AvroData, options, &content)?;
            waiting.clear();
            bytes = 0;
        }
    }
    if bytes > 0 {
        let content = avro_content(waiting.iter().flat_map(EncodedRows::iter));
        append(out, path, BlockType::AvroData, options, &content)?;
    }
    Ok(records)
}

fn write_deletes(
    out: &mut StoreWriter,
    path: &str,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &LogFileOptions,
) -> Result<u64> {
    let batches = batches.collect::<Result<Vec<_>>>()?;
    let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if count == 0 {
        return Ok(0);
    }
    let mut columns = Vec::with_capacity(batches.len());
    for batch in &batches {
        let text = |at: usize| {
            (at < batch.num_columns())
                .then(|| batch.column(at).as_string_opt::<i32>())
                .flatten()
                .filter(|column| column.null_count() == 0)
                .ok_or_else(|| SliceError::Schema("a delete needs a key and a partition".into()))
        };
        columns.push((text(0)?, text(1)?));
    }
    let records = columns.iter().flat_map(|(keys, paths)| {
        keys.iter()
            .flatten()
            .zip(paths.iter().flatten())
            .map(|(key, path)| DeleteRecord {
                record_key: key.into(),
                partition_path: Some(path.into()),
                ordering: OrderingValue::Int(0),
            })
    });
    let content = delete_content(&delete_list::encode(records));
    append(out, path, BlockType::Delete, options, &content)?;
    Ok(count as u64)
}

fn append(
    out: &mut StoreWriter,
    path: &str,
    block_type: BlockType,
    options: &LogFileOptions,
    content: &[u8],
) -> Result<()> {
    let header = [
        (HeaderKey::InstantTime, options.instant.as_str()),
        (HeaderKey::Schema, options.avro_schema.as_str()),
    ];
    let mut block = Vec::with_capacity(content.len() + options.avro_schema.len() + 128);
    write_block(&mut block, block_type, &header, content);
    out.write_all(&block).map_err(|source| {
        SliceError::Store(pyhudi_store::StoreError::Io {
            path: path.to_owned(),
            source,
        })
    })
}
