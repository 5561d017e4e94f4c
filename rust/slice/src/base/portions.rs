//! Rows of thousands of columns, some columns decoded at a time. A column that is being decoded holds
//! buffers and what its codec needs (95 KB for zstd), which together were many times the rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow::compute::concat_batches;
use arrow::datatypes::{FieldRef, Schema};
use parquet::errors::Result;

use super::halves::Pages;

/// Top-level columns that are decoded at a time.
const COLUMNS: usize = 256;

/// The batches of a file, one for each row group.
pub(super) struct Portions {
    pages: Pages,
    /// By number, in file order.
    columns: Vec<usize>,
    /// Place of the next row group among those that are read.
    next: usize,
}

impl Portions {
    /// None where the columns are few, or a row group is more than one batch: its columns would have
    /// to be decoded from its beginning for each of them.
    pub(super) fn open(pages: &Pages) -> Option<Self> {
        let columns = pages.columns();
        let rows = |group: &usize| {
            let group = pages.arrow.metadata().row_groups().get(*group);
            group.map_or(0, |group| usize::try_from(group.num_rows()).unwrap_or(0))
        };
        let small = pages
            .groups
            .iter()
            .all(|group| rows(group) <= pages.batch_rows);
        (columns.len() > COLUMNS && small).then(|| Self {
            pages: pages.of(&columns),
            columns,
            next: 0,
        })
    }

    fn group(&self, group: usize) -> Result<RecordBatch> {
        let mut fields: Vec<FieldRef> = Vec::with_capacity(self.columns.len());
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for some in self.columns.chunks(COLUMNS) {
            let mut pages = self.pages.of(some);
            pages.groups = vec![group];
            let reader = pages.reader()?;
            let schema = reader.schema();
            let batches = reader.collect::<std::result::Result<Vec<_>, _>>()?;
            let batch = concat_batches(&schema, &batches)?;
            fields.extend(schema.fields().iter().map(Arc::clone));
            columns.extend_from_slice(batch.columns());
        }
        Ok(RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            columns,
        )?)
    }
}

impl Iterator for Portions {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let group = *self.pages.groups.get(self.next)?;
            self.next += 1;
            match self.group(group) {
                Ok(batch) if batch.num_rows() == 0 => {}
                done => return Some(done),
            }
        }
    }
}
