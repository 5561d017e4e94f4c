//! The content of log blocks: data records as batches, deletes as keys with ordering values.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use bytes::Bytes;
use pyhudi_avro::{AvroError, DatumDecoder, field_names};
use pyhudi_format::hfile::HFile;
use pyhudi_format::log::{
    AvroStream, BlockType, DeleteBody, DeleteRecord, LogBlock, OrderingValue, avro_records,
    delete_body, delete_list,
};
use pyhudi_store::Store;

use crate::RECORD_KEY;
use crate::base::{BATCH_BYTES, read_parquet_block};
use crate::blocks::{BlockFilter, LogSource, choose_blocks};
use crate::error::{Result, SliceError, guarded};
use crate::evolve::{Evolution, evolve, stored_names};
use crate::meta::with_column;

/// Bytes before the first record of an Avro block, and before each record.
const AVRO_HEAD: u64 = 8;
const AVRO_LENGTH: u64 = 4;

/// What a block holds.
pub(crate) enum LogRecords<'a> {
    /// Data records with the block's own types; wanted columns that are not in the block are left out.
    Rows(RecordBatch),
    /// Deletes.
    Deletes {
        keys: StringArray,
        ordering: Vec<OrderingValue<'a>>,
    },
}

impl LogRecords<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Rows(batch) => batch.num_rows(),
            Self::Deletes { keys, .. } => keys.len(),
        }
    }
}

/// How blocks are decoded.
pub(crate) struct Decode<'a> {
    /// Top-level columns wanted.
    pub(crate) columns: &'a [String],
    pub(crate) batch_rows: usize,
    /// Leave delete blocks out.
    pub(crate) only_rows: bool,
    /// How blocks name the columns, where they name them otherwise than the table.
    pub(crate) evolution: Option<&'a Evolution>,
    /// Only these records of an Avro block.
    pub(crate) parts: Option<&'a [RecordPart]>,
}

/// Where a record is in the content of an Avro block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordPart {
    start: u32,
    pub(crate) len: u32,
}

impl RecordPart {
    /// The places of all records of an Avro block; fewer where it is too large for them.
    pub(crate) fn all(source: &LogSource, block: &LogBlock) -> Result<Vec<Self>> {
        let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
        let mut stream = AvroStream::open(&source.file, block).map_err(damaged)?;
        let (mut parts, mut end) = (Vec::new(), AVRO_HEAD);
        while let Some(record) = stream.next_record().map_err(damaged)? {
            let start = end + AVRO_LENGTH;
            end = start + record.len() as u64;
            if let (Ok(start), Ok(len)) = (u32::try_from(start), u32::try_from(record.len())) {
                parts.push(Self { start, len });
            }
        }
        Ok(parts)
    }
}

impl Decode<'_> {
    /// Hands the records of a data or delete block to `sink`, in block order, under the table's
    /// names.
    pub(crate) fn block(
        &self,
        source: &LogSource,
        block: &LogBlock,
        sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
    ) -> Result<()> {
        let instant = block.instant_time().unwrap_or_default();
        let Some(map) = self.evolution.and_then(|evolution| evolution.at(instant)) else {
            return self.stored_block(source, block, sink);
        };
        let decode = Decode {
            columns: &stored_names(self.columns, &map),
            ..*self
        };
        decode.stored_block(source, block, &mut |records| match records {
            LogRecords::Rows(batch) => sink(LogRecords::Rows(evolve(&batch, &map)?)),
            deletes @ LogRecords::Deletes { .. } => sink(deletes),
        })
    }

    fn stored_block(
        &self,
        source: &LogSource,
        block: &LogBlock,
        sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
    ) -> Result<()> {
        if block.block_type == BlockType::Delete && self.only_rows {
            return Ok(());
        }
        let content = || {
            let content = block.content(&source.file);
            content.map_err(|error| SliceError::format(&source.path, 0, error))
        };
        match block.block_type {
            BlockType::AvroData if block.format_version == 0 => {
                self.old_avro(source, block, &content()?, sink)
            }
            BlockType::AvroData => match self.parts {
                Some(parts) => self.avro_parts(source, block, parts, sink),
                None => self.avro(source, block, sink),
            },
            BlockType::ParquetData => self.parquet(source, block, content()?, sink),
            BlockType::HfileData => self.hfile(source, block, content()?, sink),
            BlockType::Delete => deletes(source, block, &content()?, sink),
            other => Err(SliceError::Unsupported {
                feature: format!("log block type {} ({})", other.name(), source.path),
            }),
        }
    }

    fn avro(
        &self,
        source: &LogSource,
        block: &LogBlock,
        sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
    ) -> Result<()> {
        let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
        let failed = |error| avro_error(source, block, error);
        let schema = schema_of(source, block)?;
        let mut stream = AvroStream::open(&source.file, block).map_err(damaged)?;
        let rows = self.batch_rows.min(stream.records());
        let mut decoder = self.decoder(schema, rows).map_err(failed)?;
        let mut bytes = 0;
        while let Some(record) = stream.next_record().map_err(damaged)? {
            decoder.push(record).map_err(failed)?;
            bytes += record.len();
            if decoder.is_full() || bytes >= BATCH_BYTES {
                flush(&mut decoder, source, block, sink)?;
                bytes = 0;
            }
        }
        flush(&mut decoder, source, block, sink)
    }

    fn avro_parts(
        &self,
        source: &LogSource,
        block: &LogBlock,
        parts: &[RecordPart],
        sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
    ) -> Result<()> {
        let failed = |error| avro_error(source, block, error);
        let rows = self.batch_rows.min(parts.len());
        let mut decoder = self
            .decoder(schema_of(source, block)?, rows)
            .map_err(failed)?;
        let range = |part: &RecordPart| {
            let start = block.content_offset + u64::from(part.start);
            start..start + u64::from(part.len)
        };
        let ranges: Vec<_> = parts.iter().map(range).collect();
        for record in source.file.read_ranges(&ranges)? {
            decoder.push(&record).map_err(failed)?;
            if decoder.is_full() {
                flush(&mut decoder, source, block, sink)?;
            }
        }
        flush(&mut decoder, source, block, sink)
    }

    /// Blocks of before Hudi 0.4, which contain their schema.
    fn old_avro(
        &self,
        source: &LogSource,
        block: &LogBlock,
        content: &Bytes,
        sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
    ) -> Result<()> {
        let records = avro_records(content, block.format_version)
            .map_err(|error| SliceError::format(&source.path, block.content_offset, error))?;
        let schema = match records.schema.as_deref() {
            Some(inside) => inside,
            None => schema_of(source, block)?,
        };
        let mut decoder = self
            .decoder(schema, self.batch_rows)
            .map_err(|error| avro_error(source, block, error))?;
        for record in records.iter() {
            decoder
                .push(record)
                .map_err(|error| avro_error(source, block, error))?;
            if decoder.is_full() {
                flush(&mut decoder, source, block, sink)?;
            }
        }
        flush(&mut decoder, source, block, sink)
    }

    /// A decoder whose batches have so many rows.
    fn decoder(&self, schema: &str, rows: usize) -> Result<DatumDecoder, AvroError> {
        let present: HashSet<String> = field_names(schema)?.into_iter().collect();
        let wanted: Vec<&str> = self
            .columns
            .iter()
            .map(String::as_str)
            .filter(|name| present.contains(*name))
            .collect();
        DatumDecoder::new(schema, Some(&wanted), rows)
    }

    fn parquet(
        &self,
        source: &LogSource,
        block: &LogBlock,
        content: Bytes,
        sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
    ) -> Result<()> {
        let (path, start) = (&source.path, block.content_offset);
        let mut batches = guarded(path, Some(start), || {
            read_parquet_block(path, start, content, self.columns, self.batch_rows)
        })?;
        while let Some(batch) = guarded(path, Some(start), || batches.next().transpose())? {
            sink(LogRecords::Rows(batch))?;
        }
        Ok(())
    }

    /// The records of an HFile block. Their key field is empty: the key is the HFile's.
    fn hfile(
        &self,
        source: &LogSource,
        block: &LogBlock,
        content: Bytes,
        sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
    ) -> Result<()> {
        let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
        let file = HFile::open(content).map_err(damaged)?;
        let mut decoder = self
            .decoder(schema_of(source, block)?, self.batch_rows)
            .map_err(|error| avro_error(source, block, error))?;
        let mut keys: Vec<Bytes> = Vec::new();
        let mut flush = |decoder: &mut DatumDecoder, keys: &mut Vec<Bytes>| -> Result<()> {
            let batch = decoder
                .flush()
                .map_err(|error| avro_error(source, block, error))?;
            let keys = std::mem::take(keys);
            match batch {
                Some(batch) => sink(LogRecords::Rows(with_keys(batch, &keys, source)?)),
                None => Ok(()),
            }
        };
        for entry in file.scan() {
            let (key, value) = entry.map_err(damaged)?;
            decoder
                .push(&value)
                .map_err(|error| avro_error(source, block, error))?;
            keys.push(key);
            if decoder.is_full() {
                flush(&mut decoder, &mut keys)?;
            }
        }
        flush(&mut decoder, &mut keys)
    }
}

/// Hands the data rows of a log file to `take`, deletes left out; of these columns those that a block
/// has.
///
/// # Errors
/// The file is missing or damaged, or what `take` complains of.
pub fn log_rows(
    store: &Store,
    path: &str,
    columns: &[String],
    batch_rows: usize,
    take: &mut dyn FnMut(&RecordBatch) -> Result<()>,
) -> Result<()> {
    let sources = [LogSource::open(store, path)?];
    let decode = Decode {
        columns,
        batch_rows,
        only_rows: true,
        evolution: None,
        parts: None,
    };
    for chosen in choose_blocks(&sources, &BlockFilter::default())?.0 {
        decode.block(chosen.source, &chosen.block, &mut |records| match records {
            LogRecords::Rows(batch) => take(&batch),
            LogRecords::Deletes { .. } => Ok(()),
        })?;
    }
    Ok(())
}

fn schema_of<'b>(source: &LogSource, block: &'b LogBlock) -> Result<&'b str> {
    block.schema().ok_or_else(|| SliceError::Corrupt {
        file: source.path.clone(),
        offset: Some(block.offset),
        what: "a data block without SCHEMA".to_owned(),
    })
}

fn avro_error(source: &LogSource, block: &LogBlock, error: AvroError) -> SliceError {
    SliceError::avro(&source.path, block.content_offset, error)
}

fn flush(
    decoder: &mut DatumDecoder,
    source: &LogSource,
    block: &LogBlock,
    sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
) -> Result<()> {
    match decoder
        .flush()
        .map_err(|error| avro_error(source, block, error))?
    {
        Some(batch) => sink(LogRecords::Rows(batch)),
        None => Ok(()),
    }
}

fn with_keys(batch: RecordBatch, keys: &[Bytes], source: &LogSource) -> Result<RecordBatch> {
    let Ok(at) = batch.schema().index_of(RECORD_KEY) else {
        return Ok(batch);
    };
    let stored = batch.column(at);
    let filled = *stored.data_type() == DataType::Utf8
        && (0..stored.len())
            .all(|row| stored.is_valid(row) && !stored.as_string::<i32>().value(row).is_empty());
    if filled {
        return Ok(batch);
    }
    let texts = keys
        .iter()
        .map(|key| std::str::from_utf8(key))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| SliceError::Corrupt {
            file: source.path.clone(),
            offset: None,
            what: format!("an HFile key is not UTF-8: {error}"),
        })?;
    with_column(&batch, at, Arc::new(StringArray::from(texts)))
}

fn deletes(
    source: &LogSource,
    block: &LogBlock,
    content: &Bytes,
    sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
) -> Result<()> {
    let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
    match delete_body(content).map_err(damaged)? {
        DeleteBody::Kryo(records) => hand_deletes(records.into_iter().map(Ok), sink),
        DeleteBody::Avro(list) => {
            let records = delete_list::decode(&list).map_err(damaged)?;
            hand_deletes(records.map(|record| record.map_err(damaged)), sink)
        }
    }
}

fn hand_deletes<'a>(
    records: impl Iterator<Item = Result<DeleteRecord<'a>>>,
    sink: &mut dyn FnMut(LogRecords<'_>) -> Result<()>,
) -> Result<()> {
    let mut keys = arrow::array::StringBuilder::new();
    let mut ordering = Vec::new();
    for record in records {
        let record = record?;
        keys.append_value(&record.record_key);
        ordering.push(record.ordering);
    }
    let keys = keys.finish();
    if keys.is_empty() {
        Ok(())
    } else {
        sink(LogRecords::Deletes { keys, ordering })
    }
}
