//! The records of a change log, decoded.

use std::collections::VecDeque;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use pyhudi_avro::DatumDecoder;
use pyhudi_format::log::{AvroStream, BlockType, LogBlock, LogScanner};
use pyhudi_store::{Store, StoreFile};

use crate::base::BATCH_BYTES;
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

/// The records of change logs, which hold nothing but change blocks, a batch in memory at a time.
pub(super) struct LoggedFiles {
    store: Store,
    paths: VecDeque<String>,
    file: Option<(LogSource, LogScanner<StoreFile>)>,
    block: Option<OpenBlock>,
}

/// A block whose records are being decoded.
struct OpenBlock {
    offset: u64,
    records: AvroStream<StoreFile>,
    decoder: DatumDecoder,
}

impl LoggedFiles {
    pub(super) fn new(store: &Store, paths: &[String]) -> Self {
        Self {
            store: store.clone(),
            paths: paths.iter().cloned().collect(),
            file: None,
            block: None,
        }
    }

    fn next_records(&mut self) -> Result<Option<Logged>> {
        loop {
            if let (Some((source, _)), Some(block)) = (&self.file, &mut self.block) {
                if let Some(records) = block.next_batch(&source.path)? {
                    return Ok(Some(Logged {
                        path: source.path.clone(),
                        offset: block.offset,
                        records,
                    }));
                }
                self.block = None;
            }
            if let Some((source, blocks)) = &mut self.file {
                self.block = blocks
                    .next()
                    .transpose()
                    .map_err(|error| SliceError::format(&source.path, 0, error))?
                    .map(|block| OpenBlock::open(source, &block))
                    .transpose()?;
                if self.block.is_some() {
                    continue;
                }
            }
            let Some(path) = self.paths.pop_front() else {
                self.file = None;
                return Ok(None);
            };
            let source = LogSource::open(&self.store, &path)?;
            let blocks = source.scan();
            self.file = Some((source, blocks));
        }
    }
}

impl Iterator for LoggedFiles {
    type Item = Result<Logged>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_records().transpose()
    }
}

impl OpenBlock {
    fn open(source: &LogSource, block: &LogBlock) -> Result<Self> {
        let corrupt = |what: String| SliceError::Corrupt {
            file: source.path.clone(),
            offset: Some(block.offset),
            what,
        };
        if block.block_type != BlockType::CdcData {
            let name = block.block_type.name();
            return Err(corrupt(format!("a block {name} in a change log")));
        }
        let schema = block
            .schema()
            .ok_or_else(|| corrupt("a data block without SCHEMA".to_owned()))?;
        let offset = block.content_offset;
        Ok(Self {
            offset,
            records: AvroStream::open(source.file.clone(), block)
                .map_err(|error| SliceError::format(&source.path, offset, error))?,
            decoder: DatumDecoder::new(schema, None, BATCH_ROWS)
                .map_err(|error| SliceError::avro(&source.path, offset, error))?,
        })
    }

    /// The next records, none at the end.
    fn next_batch(&mut self, path: &str) -> Result<Option<RecordBatch>> {
        let damaged = |error| SliceError::avro(path, self.offset, error);
        let mut bytes = 0;
        while let Some(record) = self
            .records
            .next_record()
            .map_err(|error| SliceError::format(path, self.offset, error))?
        {
            self.decoder.push(record).map_err(damaged)?;
            bytes += record.len();
            if self.decoder.is_full() || bytes >= BATCH_BYTES {
                break;
            }
        }
        self.decoder.flush().map_err(damaged)
    }
}
