//! The records of a change log, decoded.

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use pyhudi_avro::DatumDecoder;
use pyhudi_format::log::{BlockType, LogBlock, avro_records};
use pyhudi_store::Store;

use crate::blocks::LogSource;
use crate::error::{Result, SliceError};

const BATCH_ROWS: usize = 8192;

/// Decoded records of a change log.
pub(super) struct Logged {
    path: String,
    offset: u64,
    records: RecordBatch,
}

impl Logged {
    pub(super) fn column(&self, name: &str) -> Option<&ArrayRef> {
        self.records.column_by_name(name)
    }

    pub(super) fn text(&self, name: &str) -> Result<StringArray> {
        let column = self
            .column(name)
            .ok_or_else(|| self.damaged(format!("its records have no {name}")))?;
        let text = cast(column, &DataType::Utf8)?;
        Ok(text.as_string::<i32>().clone())
    }

    pub(super) fn damaged(&self, what: String) -> SliceError {
        SliceError::Corrupt {
            file: self.path.clone(),
            offset: Some(self.offset),
            what,
        }
    }
}

/// Every record of a change log, which holds nothing but change blocks.
pub(super) fn read_file(store: &Store, path: &str, into: &mut Vec<Logged>) -> Result<()> {
    let source = LogSource::open(store, path)?;
    for block in source.scan() {
        let block = block.map_err(|error| SliceError::format(path, 0, error))?;
        if block.block_type != BlockType::CdcData {
            return Err(SliceError::Corrupt {
                file: path.to_owned(),
                offset: Some(block.offset),
                what: format!("a block {} in a change log", block.block_type.name()),
            });
        }
        read_block(&source, &block, into)?;
    }
    Ok(())
}

fn read_block(source: &LogSource, block: &LogBlock, into: &mut Vec<Logged>) -> Result<()> {
    let path = &source.path;
    let content = block
        .content(&source.file)
        .map_err(|error| SliceError::format(path, 0, error))?;
    let schema = block.schema().ok_or_else(|| SliceError::Corrupt {
        file: path.clone(),
        offset: Some(block.offset),
        what: "a data block without SCHEMA".to_owned(),
    })?;
    let start = block.content_offset;
    let damaged = |error| SliceError::avro(path, start, error);
    let records = avro_records(&content, block.format_version)
        .map_err(|error| SliceError::format(path, start, error))?;
    let mut decoder = DatumDecoder::new(schema, None, BATCH_ROWS).map_err(damaged)?;
    let mut flush = |decoder: &mut DatumDecoder| -> Result<()> {
        if let Some(records) = decoder.flush().map_err(damaged)? {
            into.push(Logged {
                path: path.clone(),
                offset: start,
                records,
            });
        }
        Ok(())
    };
    for record in records.iter() {
        decoder.push(record).map_err(damaged)?;
        if decoder.is_full() {
            flush(&mut decoder)?;
        }
    }
    flush(&mut decoder)
}
