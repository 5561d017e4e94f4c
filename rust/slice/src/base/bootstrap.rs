//! The base file of a slice, which may lie in two places.
//!
//! Bootstrapping a table in the mode METADATA_ONLY leaves the rows where they are, in Parquet files
//! that something else wrote. The table gets a skeleton for each: a base file of the same rows in
//! the same order that holds Hudi's own columns alone (`HoodieBootstrapHandle`, Hudi 0.15). Row
//! groups and pages of the two differ. Which source belongs to which skeleton is Python's to say, and
//! the values that the name of the source's directory gives its rows.

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{FieldRef, Schema};
use pyhudi_store::Store;
use std::sync::Arc;

use super::{BaseRead, BaseRows, format_of};
use crate::error::{Result, SliceError};

/// The Parquet file with the rows of a skeleton.
#[derive(Debug, Clone)]
pub struct BootstrapSource {
    /// Where it lies, as a rule outside the table.
    pub store: Store,
    /// Its path in that store.
    pub path: String,
    /// Columns that have one value in all of its rows, unless the file has them: one row.
    pub values: Option<RecordBatch>,
}

impl BootstrapSource {
    /// The value of a column that is not in the file.
    pub fn value(&self, column: &str) -> Option<(FieldRef, ArrayRef)> {
        let values = self.values.as_ref()?;
        let (index, field) = values.schema_ref().fields().find(column)?;
        Some((Arc::clone(field), Arc::clone(values.columns().get(index)?)))
    }
}

/// Batches of a base file.
pub(crate) enum BaseReader {
    /// One file with all columns.
    Whole(Box<dyn BaseRows>),
    /// A skeleton and its source.
    Pair(Box<PairReader>),
}

impl BaseReader {
    pub(crate) fn open(
        store: &Store,
        path: &str,
        source: Option<&BootstrapSource>,
        read: BaseRead<'_>,
    ) -> Result<Self> {
        match source {
            None => Ok(Self::Whole(format_of(path).open(store, path, read)?)),
            Some(source) => {
                let pair = PairReader::open(store, path, source, &read)?;
                Ok(Self::Pair(Box::new(pair)))
            }
        }
    }

    pub(crate) fn pruned_row_groups(&self) -> u64 {
        match self {
            Self::Whole(file) => file.pruned_row_groups(),
            Self::Pair(_) => 0,
        }
    }
}

impl Iterator for BaseReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Whole(file) => file.next(),
            Self::Pair(pair) => pair.next_batch().transpose(),
        }
    }
}

/// A skeleton and its source, zipped row by row.
pub(crate) struct PairReader {
    skeleton: Side,
    source: Side,
    /// Columns that neither of them has, with their one value.
    values: Vec<(FieldRef, ArrayRef)>,
}

impl PairReader {
    /// Row groups are not pruned: those of one file say nothing about those of the other.
    fn open(
        store: &Store,
        path: &str,
        source: &BootstrapSource,
        read: &BaseRead<'_>,
    ) -> Result<Self> {
        let open = |store: &Store, path: &str, columns: &[String], row_numbers: bool| {
            let read = BaseRead {
                row_numbers,
                map: read.map.clone(),
                ..BaseRead::all(columns, read.batch_rows)
            };
            format_of(path).open(store, path, read)
        };
        let skeleton = open(store, path, read.columns, read.row_numbers)?;
        let own = skeleton.columns();
        let others: Vec<String> = read
            .columns
            .iter()
            .filter(|name| !own.contains(name))
            .cloned()
            .collect();
        let rows = open(&source.store, &source.path, &others, false)?;
        if skeleton.rows() != rows.rows() {
            return Err(SliceError::Corrupt {
                file: path.to_owned(),
                offset: None,
                what: format!(
                    "{} rows, where its bootstrap source {} has {}",
                    skeleton.rows(),
                    source.path,
                    rows.rows()
                ),
            });
        }
        let stored = rows.columns();
        let lacking = others.iter().filter(|name| !stored.contains(name));
        Ok(Self {
            values: lacking.filter_map(|name| source.value(name)).collect(),
            skeleton: Side::new(skeleton),
            source: Side::new(rows),
        })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let rows = match (self.skeleton.fill()?, self.source.fill()?) {
            (Some(mine), Some(theirs)) => mine.min(theirs),
            (None, None) => return Ok(None),
            _ => {
                return Err(SliceError::Corrupt {
                    file: self.source.file.path().to_owned(),
                    offset: None,
                    what: "it and its skeleton end at different rows".to_owned(),
                });
            }
        };
        let (mine, theirs) = (self.skeleton.take(rows), self.source.take(rows));
        let (Some(mine), Some(theirs)) = (mine, theirs) else {
            return Ok(None);
        };
        let mut fields: Vec<_> = [&mine, &theirs]
            .iter()
            .flat_map(|batch| batch.schema_ref().fields().iter().cloned())
            .collect();
        let mut columns = [mine.columns(), theirs.columns()].concat();
        let first = UInt32Array::from(vec![0; rows]);
        for (field, value) in &self.values {
            fields.push(Arc::clone(field));
            columns.push(take(value, &first, None)?);
        }
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::new(Schema::new(fields));
        Ok(Some(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?))
    }
}

/// One of the two files, and what is left of the batch it stands in.
struct Side {
    file: Box<dyn BaseRows>,
    batch: Option<RecordBatch>,
}

impl Side {
    fn new(file: Box<dyn BaseRows>) -> Self {
        Self { file, batch: None }
    }

    /// How many rows are at hand; none at the file's end.
    fn fill(&mut self) -> Result<Option<usize>> {
        while self
            .batch
            .as_ref()
            .is_none_or(|batch| batch.num_rows() == 0)
        {
            match self.file.next().transpose()? {
                Some(batch) => self.batch = Some(batch),
                None => return Ok(None),
            }
        }
        Ok(self.batch.as_ref().map(RecordBatch::num_rows))
    }

    /// The next rows of the batch at hand, which has as many.
    fn take(&mut self, rows: usize) -> Option<RecordBatch> {
        let batch = self.batch.take()?;
        self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
        Some(batch.slice(0, rows))
    }
}
