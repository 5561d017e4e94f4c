//! Rows of thousands of columns, some columns decoded at a time. A column that is being decoded holds
//! buffers and what its codec needs (95 KB for zstd), which together were many times the rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchReader};
use arrow::compute::{concat, concat_batches, filter_record_batch};
use arrow::datatypes::{FieldRef, Schema};
use parquet::arrow::arrow_reader::ArrowPredicate;
use parquet::errors::Result;

use super::halves::Pages;

/// More top-level columns than these are decoded some at a time.
const MANY_COLUMNS: usize = 256;

/// Top-level columns that are decoded at a time.
const COLUMNS: usize = 64;

/// Batches of a row group that are decoded together, at most.
const BATCHES: usize = 4;

/// The batches of a file. A row group is decoded whole.
pub(super) struct Portions {
    pages: Pages,
    /// By number, in file order.
    columns: Vec<usize>,
    /// Only rows that pass it are needed.
    test: Option<Box<dyn ArrowPredicate>>,
    /// Place of the next row group among those that are read.
    next: usize,
    /// What is left of the row group before.
    rest: Option<RecordBatch>,
}

impl Portions {
    /// Whether there are many columns, and row groups of few batches: the columns of others would
    /// have to be decoded from the beginning for each batch.
    pub(super) fn fit(pages: &Pages) -> bool {
        let most = pages.batch_rows.saturating_mul(BATCHES);
        let rows = |group: &usize| {
            let group = pages.arrow.metadata().row_groups().get(*group);
            group.map_or(0, |group| usize::try_from(group.num_rows()).unwrap_or(0))
        };
        pages.columns().len() > MANY_COLUMNS && pages.groups.iter().all(|group| rows(group) <= most)
    }

    pub(super) fn open(pages: &Pages, test: Option<Box<dyn ArrowPredicate>>) -> Self {
        let columns = pages.columns();
        Self {
            pages: pages.of(&columns),
            columns,
            test,
            next: 0,
            rest: None,
        }
    }

    /// The rows of a row group; none where no row passes the test.
    fn group(&mut self, group: usize) -> Result<Option<RecordBatch>> {
        let passing = self.passing(group)?;
        if passing.as_ref().is_some_and(|rows| rows.true_count() == 0) {
            return Ok(None);
        }
        let mut fields: Vec<FieldRef> = Vec::with_capacity(self.columns.len());
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for some in self.columns.chunks(COLUMNS) {
            let mut pages = self.pages.of(some);
            pages.groups = vec![group];
            let reader = pages.reader()?;
            let schema = reader.schema();
            let batches = reader.collect::<std::result::Result<Vec<_>, _>>()?;
            let mut batch = concat_batches(&schema, &batches)?;
            if let Some(passing) = &passing {
                batch = filter_record_batch(&batch, passing)?;
            }
            fields.extend(schema.fields().iter().map(Arc::clone));
            columns.extend_from_slice(batch.columns());
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(Some(RecordBatch::try_new(schema, columns)?))
    }

    /// For each row of a row group whether it passes the test.
    fn passing(&mut self, group: usize) -> Result<Option<BooleanArray>> {
        let Some(test) = &mut self.test else {
            return Ok(None);
        };
        let mut pages = self.pages.of(&[]);
        pages.mask = test.projection().clone();
        pages.groups = vec![group];
        let mut parts: Vec<ArrayRef> = Vec::new();
        for batch in pages.reader()? {
            parts.push(Arc::new(test.evaluate(batch?)?));
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        if parts.is_empty() {
            return Ok(Some(BooleanArray::from(Vec::<bool>::new())));
        }
        Ok(Some(concat(&parts)?.as_boolean().clone()))
    }
}

impl Iterator for Portions {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(rest) = self.rest.take() {
                let rows = rest.num_rows().min(self.pages.batch_rows);
                if rows < rest.num_rows() {
                    self.rest = Some(rest.slice(rows, rest.num_rows() - rows));
                }
                return Some(Ok(rest.slice(0, rows)));
            }
            let group = *self.pages.groups.get(self.next)?;
            self.next += 1;
            match self.group(group) {
                Ok(batch) => self.rest = batch.filter(|batch| batch.num_rows() > 0),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
