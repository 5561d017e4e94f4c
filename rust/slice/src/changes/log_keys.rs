//! Every record key that log files speak of, deleted ones too, whether or not their blocks count.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use pyhudi_store::Store;

use crate::RECORD_KEY;
use crate::blocks::{BlockFilter, LogSource, choose_blocks};
use crate::error::Result;
use crate::records::{Decode, LogRecords};
use pyhudi_keys::{RecordKeys, text_field};

const BATCH_ROWS: usize = 8192;

/// Batches of one column, `_hoodie_record_key`. Keys can come more than once.
pub struct LogKeys {
    store: Store,
    logs: Vec<String>,
    keys: RecordKeys,
    batches: Option<VecDeque<RecordBatch>>,
}

impl LogKeys {
    /// The keys in all data and delete blocks of `logs`.
    pub fn new(store: Store, logs: Vec<String>, keys: RecordKeys) -> Self {
        Self {
            store,
            logs,
            keys,
            batches: None,
        }
    }

    /// Schema of the batches.
    pub fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![text_field(RECORD_KEY)]))
    }

    fn read(&self) -> Result<VecDeque<RecordBatch>> {
        let sources = self
            .logs
            .iter()
            .map(|path| LogSource::open(&self.store, path))
            .collect::<Result<Vec<_>>>()?;
        // A nested field comes with the column around it.
        let mut columns = self.keys.fields.clone();
        for path in &self.keys.fields {
            let root = path.split('.').next().unwrap_or(path);
            if !columns.iter().any(|column| column == root) {
                columns.push(root.to_owned());
            }
        }
        let decode = Decode {
            columns: &columns,
            batch_rows: BATCH_ROWS,
            only_rows: false,
            evolution: None,
            parts: None,
        };
        let mut batches = VecDeque::new();
        for chosen in choose_blocks(&sources, &BlockFilter::default())?.0 {
            decode.block(chosen.source, &chosen.block, &mut |records| {
                let keys = match records {
                    LogRecords::Rows(batch) => self.keys.of(&batch)?,
                    LogRecords::Deletes { keys, .. } => keys,
                };
                let batch = RecordBatch::try_new(Self::schema(), vec![Arc::new(keys)])?;
                batches.push_back(batch);
                Ok(())
            })?;
        }
        Ok(batches)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut batches = match self.batches.take() {
            Some(batches) => batches,
            None => self.read()?,
        };
        let next = batches.pop_front();
        self.batches = Some(batches);
        Ok(next)
    }
}

impl Iterator for LogKeys {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
