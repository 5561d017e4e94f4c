//! The log blocks of a slice that may have one of the keys, and which of their records.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use pyhudi_format::ReadAt;
use pyhudi_format::log::{BlockType, LogBlock};
use pyhudi_store::Store;

use super::{ByHash, Item, Lookup, key_hash};
use crate::RECORD_KEY;
use crate::blocks::{BlockCounts, BlockFilter, LogSource, choose_blocks};
use crate::error::Result;
use crate::records::{Decode, LogRecords, RecordPart};

/// A part of a block is not worth more ranged reads than this.
const MAX_PARTS: usize = 64;
const BATCH_ROWS: usize = 8192;
/// Bytes of a block's header in memory, at a guess.
const BLOCK_BYTES: usize = 8192;

/// The blocks of a slice that count, oldest first, each with the number of its file.
pub(crate) struct Logs {
    sizes: Vec<u64>,
    pub(super) blocks: Vec<(usize, LogBlock)>,
    pub(crate) counts: BlockCounts,
}

/// Which records of a block may have one of the keys.
pub(crate) enum Wanted {
    None,
    Parts(Vec<RecordPart>),
    All,
}

/// The records of each key; none in a block without record keys.
pub(super) type BlockKeys = Option<ByHash<RecordPart>>;

impl Lookup {
    /// The blocks of a slice's log files, whose headers are kept.
    pub(crate) fn logs(
        &self,
        store: &Store,
        paths: &[String],
        filter: &BlockFilter,
    ) -> Result<Arc<Logs>> {
        let item = Item::Logs(paths.into(), self.snapshot);
        self.kept(&item, || {
            let sources = LogSource::open_all(store, paths)?;
            let (chosen, counts) = choose_blocks(&sources, filter)?;
            let number = |path: &str| paths.iter().position(|known| known == path);
            let blocks = chosen
                .into_iter()
                .filter_map(|chosen| Some((number(&chosen.source.path)?, chosen.block)));
            let logs = Logs {
                sizes: sources.iter().map(|source| source.file.size()).collect(),
                blocks: blocks.collect(),
                counts,
            };
            let bytes = logs.blocks.len() * BLOCK_BYTES;
            Ok((logs, bytes))
        })
    }

    /// What is to be decoded of a block.
    pub(crate) fn wanted(&self, source: &LogSource, block: &LogBlock) -> Result<Wanted> {
        let item = Item::Block(source.path.clone(), block.content_offset);
        let keys = self.kept(&item, || {
            let keys = block_keys(source, block)?;
            let bytes = keys.as_ref().map_or(0, ByHash::bytes);
            Ok((keys, bytes))
        })?;
        let Some(keys) = keys.as_ref() else {
            return Ok(Wanted::All);
        };
        let parts = keys.of(&self.hashes);
        Ok(match parts.first() {
            None => Wanted::None,
            Some(part) if part.len == 0 || parts.len() > MAX_PARTS => Wanted::All,
            Some(_) => Wanted::Parts(parts),
        })
    }
}

impl Logs {
    /// The files, which are opened when they are read.
    pub(crate) fn sources(&self, store: &Store, paths: &[String]) -> Vec<LogSource> {
        let files = paths.iter().zip(&self.sizes);
        let source = |(path, size): (&String, &u64)| LogSource {
            path: path.clone(),
            file: store.file_with_size(path, *size),
        };
        files.map(source).collect()
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = (usize, LogBlock)> + '_ {
        self.blocks.iter().cloned()
    }
}

/// The records of each key in a block. A record of an Avro block has a place of its own.
fn block_keys(source: &LogSource, block: &LogBlock) -> Result<BlockKeys> {
    let columns = [RECORD_KEY.to_owned()];
    let decode = Decode {
        columns: &columns,
        batch_rows: BATCH_ROWS,
        only_rows: false,
        evolution: None,
        parts: None,
    };
    let parts = if block.block_type == BlockType::AvroData && block.format_version > 0 {
        RecordPart::all(source, block)?
    } else {
        Vec::new()
    };
    let mut parts = parts.into_iter();
    let (mut entries, mut has_keys) = (Vec::new(), true);
    decode.block(source, block, &mut |records| {
        let keys = match records {
            LogRecords::Rows(batch) => {
                let Some(keys) = key_column(&batch)? else {
                    has_keys = false;
                    return Ok(());
                };
                keys
            }
            LogRecords::Deletes { keys, .. } => keys,
        };
        for key in &keys {
            let part = parts.next().unwrap_or_default();
            entries.push((key.map_or(0, key_hash), part));
        }
        Ok(())
    })?;
    Ok(has_keys.then(|| ByHash::new(&entries)))
}

fn key_column(batch: &RecordBatch) -> Result<Option<arrow::array::StringArray>> {
    let Some(keys) = batch.column_by_name(RECORD_KEY) else {
        return Ok(None);
    };
    let keys = cast(keys, &DataType::Utf8)?;
    Ok(keys.as_string_opt::<i32>().cloned())
}
