//! The Avro records of a log file as JSON text, for log files that hold metadata and no rows: the
//! archived timelines up to table version 6, whose blocks have no header but their schema.
//!
//! Nothing is merged or left out here. Rows of a table are read by `records`.

use pyhudi_avro::records_to_json;
use pyhudi_format::log::{BlockType, LogBlock, avro_records};
use pyhudi_store::Store;

use crate::blocks::LogSource;
use crate::error::{Result, SliceError};

/// Every record of the Avro data blocks, in file order, each as one line of JSON text with unions
/// unwrapped. Corrupt blocks, which a writer that died leaves behind, are passed over.
///
/// # Errors
/// The file is missing or damaged, or holds blocks of another type.
pub fn log_records_json(store: &Store, path: &str) -> Result<Vec<String>> {
    let source = LogSource::open(store, path)?;
    let mut lines = Vec::new();
    for block in source.scan() {
        let block = block.map_err(|error| SliceError::format(path, 0, error))?;
        match block.block_type {
            BlockType::AvroData => lines.append(&mut block_lines(&source, &block)?),
            BlockType::Corrupt => {}
            other => {
                return Err(SliceError::Unsupported {
                    feature: format!("{} among archived instants ({path})", other.name()),
                });
            }
        }
    }
    Ok(lines)
}

fn block_lines(source: &LogSource, block: &LogBlock) -> Result<Vec<String>> {
    let content = block
        .content(&source.file)
        .map_err(|error| SliceError::format(&source.path, 0, error))?;
    let records = avro_records(&content, block.format_version)
        .map_err(|error| SliceError::format(&source.path, block.content_offset, error))?;
    let schema = records
        .schema
        .as_deref()
        .or_else(|| block.schema())
        .ok_or_else(|| SliceError::Corrupt {
            file: source.path.clone(),
            offset: Some(block.offset),
            what: "a data block without SCHEMA".to_owned(),
        })?;
    let values = records_to_json(schema, records.iter())
        .map_err(|error| SliceError::avro(&source.path, block.content_offset, error))?;
    Ok(values.iter().map(ToString::to_string).collect())
}
