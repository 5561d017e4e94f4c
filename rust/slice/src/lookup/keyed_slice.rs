//! A file slice whose rows are looked up again and again.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{RecordBatch, StringArray};

use super::Lookup;
use super::in_memory::InMemory;
use crate::RECORD_KEY;
use crate::error::Result;
use crate::prune::{Comparison, Filter};
use crate::read::SliceReader;
use crate::request::SliceRead;

/// A file slice whose rows are looked up by their keys.
pub struct KeyedSlice {
    read: Mutex<SliceRead>,
    /// None if each look-up takes a reader.
    in_memory: Option<InMemory>,
}

impl KeyedSlice {
    /// Of a read of all rows, which has the record keys among its columns.
    pub fn new(read: SliceRead) -> Self {
        Self {
            in_memory: InMemory::new(&read),
            read: Mutex::new(read),
        }
    }

    /// The rows that have one of the keys, and perhaps others. lookup: of these keys.
    ///
    /// # Errors
    /// Those of [`SliceReader`].
    pub fn rows(&self, lookup: &Lookup, keys: &[String]) -> Result<Vec<RecordBatch>> {
        match self.rows_in_memory(lookup, keys) {
            Some(batches) => Ok(batches),
            None => self.read_rows(lookup, keys),
        }
    }

    /// The same rows, if all that they are made of is in memory, and needs no reader.
    pub fn rows_in_memory(&self, lookup: &Lookup, keys: &[String]) -> Option<Vec<RecordBatch>> {
        self.in_memory.as_ref()?.rows(lookup, keys)
    }

    /// The same rows by a reader, which leaves in memory what it reads.
    ///
    /// # Errors
    /// Those of [`SliceReader`].
    pub fn read_rows(&self, lookup: &Lookup, keys: &[String]) -> Result<Vec<RecordBatch>> {
        let filter = Filter {
            column: RECORD_KEY.to_owned(),
            comparison: Comparison::In,
            literals: Arc::new(StringArray::from_iter_values(keys)),
        };
        let read = {
            let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            read.looking_up(lookup.clone(), vec![filter])
        };
        SliceReader::new(read)?.collect()
    }
}
