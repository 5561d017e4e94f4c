//! The keys of a slice, for an index that reads files.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};

use crate::RECORD_KEY;
use crate::adapt::adapt;
use crate::base::{BaseRead, BaseReader};
use crate::blocks::{LogSource, choose_blocks};
use crate::columns::Columns;
use crate::error::Result;
use crate::merge_spec::MergeSpec;
use crate::names::names_of;
use crate::records::{Decode, LogRecords};
use crate::request::SliceRead;
use pyhudi_keys::{RecordKeys, text_field};

/// Every record key that the base file and the log data blocks of a slice hold, deleted ones too,
/// as batches of one column, `_hoodie_record_key`. Keys can come more than once.
pub struct SliceKeys {
    keys: RecordKeys,
    base: Option<BaseReader>,
    columns: SchemaRef,
    log: VecDeque<RecordBatch>,
}

impl SliceKeys {
    /// Reads the log side; the base file is streamed.
    ///
    /// # Errors
    /// Damaged files, failing storage, a feature that is not supported.
    pub fn new(read: SliceRead) -> Result<Self> {
        let read = SliceRead {
            columns: Vec::new(),
            merge: MergeSpec::default(),
            ..read
        };
        let Columns {
            base: columns,
            keys,
            ..
        } = Columns::of(&read, false)?;
        let names = names_of(&columns);
        let sources = LogSource::open_all(&read.store, &read.logs)?;
        let decode = Decode {
            columns: &names,
            batch_rows: read.batch_rows,
            only_rows: true,
            evolution: read.evolution.as_ref(),
            parts: None,
        };
        let mut log = VecDeque::new();
        for chosen in choose_blocks(&sources, &read.filter)?.0 {
            decode.block(chosen.source, &chosen.block, &mut |records| {
                if let LogRecords::Rows(batch) = records {
                    log.push_back(batch);
                }
                Ok(())
            })?;
        }
        let asked = BaseRead {
            map: read.evolution.as_ref().and_then(|e| e.at(&e.base)),
            ..BaseRead::all(&names, read.batch_rows)
        };
        let base = read
            .base
            .map(|path| BaseReader::open(&read.store, &path, read.bootstrap.as_ref(), asked))
            .transpose()?;
        Ok(Self {
            keys,
            base,
            columns,
            log,
        })
    }

    /// Schema of the batches.
    pub fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![text_field(RECORD_KEY)]))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let batch = match self.base.as_mut().and_then(Iterator::next) {
            Some(batch) => Some(batch?),
            None => self.log.pop_front(),
        };
        let Some(batch) = batch else { return Ok(None) };
        let keys = self.keys.of(&adapt(&batch, &self.columns)?)?;
        Ok(Some(RecordBatch::try_new(
            Self::schema(),
            vec![Arc::new(keys)],
        )?))
    }
}

impl Iterator for SliceKeys {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
