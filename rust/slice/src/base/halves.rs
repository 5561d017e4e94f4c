//! A base file's columns decoded by two threads, half of the bytes each, and put together again
//! batch by batch. One large slice so keeps two processors busy, with no more than some batches of
//! it in memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowFilter,
    RowSelection,
};
use parquet::errors::{ParquetError, Result};

use super::page_file::PageFile;

/// Batches that the second thread may be ahead by.
const AHEAD: usize = 2;

/// Fewer bytes, uncompressed, are not worth a thread.
const LEAST_BYTES: i64 = 4 << 20;

/// What is read of a file.
pub(crate) struct Pages {
    pub(crate) file: PageFile,
    pub(crate) arrow: ArrowReaderMetadata,
    pub(crate) mask: ProjectionMask,
    pub(crate) groups: Vec<usize>,
    pub(crate) batch_rows: usize,
    /// Of the row groups; all without it.
    pub(crate) rows: Option<RowSelection>,
}

impl Pages {
    /// The batches, decoded where they are asked for.
    pub(crate) fn reader(self) -> Result<ParquetRecordBatchReader> {
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file, self.arrow)
            .with_projection(self.mask)
            .with_row_groups(self.groups)
            .with_batch_size(self.batch_rows);
        if let Some(rows) = self.rows {
            builder = builder.with_row_selection(rows);
        }
        builder.build()
    }

    /// The batches of the rows that pass a test, which is made now.
    pub(crate) fn tested(self, test: RowFilter) -> Result<ParquetRecordBatchReader> {
        ParquetRecordBatchReaderBuilder::new_with_metadata(self.file, self.arrow)
            .with_projection(self.mask)
            .with_row_groups(self.groups)
            .with_batch_size(self.batch_rows)
            .with_row_filter(test)
            .build()
    }

    /// The most bytes of a row group in the file, of the columns that are read.
    pub(crate) fn largest_group(&self) -> i64 {
        let groups = self.groups.iter();
        let groups = groups.filter_map(|group| self.arrow.metadata().row_groups().get(*group));
        let sizes = groups.map(|group| {
            let columns = group.columns().iter().enumerate();
            let read = columns.filter(|(leaf, _)| self.mask.leaf_included(*leaf));
            read.map(|(_, column)| column.compressed_size())
                .fold(0_i64, i64::saturating_add)
        });
        sizes.max().unwrap_or(0)
    }

    /// Top-level columns by number in two parts of about the same weight, each in file order; none
    /// where two threads would not pay.
    fn parts(&self) -> Option<(Vec<usize>, Vec<usize>)> {
        let schema = self.arrow.parquet_schema();
        let mut weights = vec![None; schema.root_schema().get_fields().len()];
        for group in &self.groups {
            let columns = self.arrow.metadata().row_groups().get(*group)?.columns();
            for (leaf, column) in columns.iter().enumerate() {
                if self.mask.leaf_included(leaf) {
                    let weight: &mut Option<i64> =
                        weights.get_mut(schema.get_column_root_idx(leaf))?;
                    *weight = Some(
                        weight
                            .unwrap_or(0)
                            .saturating_add(column.uncompressed_size()),
                    );
                }
            }
        }
        let mut columns: Vec<(i64, usize)> = weights
            .into_iter()
            .enumerate()
            .filter_map(|(root, weight)| Some((weight?, root)))
            .collect();
        columns.sort_unstable_by(|one, other| other.cmp(one));
        let (mut mine, mut theirs) = ((0_i64, Vec::new()), (0_i64, Vec::new()));
        for (weight, root) in columns {
            let lighter = if mine.0 <= theirs.0 {
                &mut mine
            } else {
                &mut theirs
            };
            lighter.0 = lighter.0.saturating_add(weight);
            lighter.1.push(root);
        }
        mine.1.sort_unstable();
        theirs.1.sort_unstable();
        let pays = !theirs.1.is_empty() && mine.0.saturating_add(theirs.0) >= LEAST_BYTES;
        pays.then_some((mine.1, theirs.1))
    }

    /// The top-level columns that are read, by number.
    pub(super) fn columns(&self) -> Vec<usize> {
        let schema = self.arrow.parquet_schema();
        let read = (0..schema.num_columns()).filter(|leaf| self.mask.leaf_included(*leaf));
        let mut columns: Vec<usize> = read.map(|leaf| schema.get_column_root_idx(leaf)).collect();
        columns.dedup();
        columns
    }

    pub(crate) fn of(&self, roots: &[usize]) -> Self {
        Self {
            file: self.file.clone(),
            arrow: self.arrow.clone(),
            mask: ProjectionMask::roots(self.arrow.parquet_schema(), roots.iter().copied()),
            groups: self.groups.clone(),
            batch_rows: self.batch_rows,
            rows: None,
        }
    }
}

/// The batches of a file. The second thread ends with its columns, or soon after this is dropped.
pub(crate) struct Halves {
    mine: ParquetRecordBatchReader,
    theirs: Receiver<Result<RecordBatch>>,
    /// For each column in file order whether it is of this thread, and its place there.
    order: Vec<(bool, usize)>,
    schema: SchemaRef,
}

impl Halves {
    /// None where one thread does as well.
    pub(crate) fn open(pages: &Pages) -> Result<Option<Self>> {
        let Some((mine, theirs)) = pages.parts() else {
            return Ok(None);
        };
        let place = |own: bool, roots: &[usize]| -> Vec<(usize, (bool, usize))> {
            let numbered = roots.iter().enumerate();
            numbered.map(|(at, root)| (*root, (own, at))).collect()
        };
        let mut order = [place(true, &mine), place(false, &theirs)].concat();
        order.sort_unstable_by_key(|(root, _)| *root);
        let order: Vec<(bool, usize)> = order.into_iter().map(|(_, from)| from).collect();
        let (mine, theirs) = (pages.of(&mine).reader()?, pages.of(&theirs).reader()?);
        let (first, second) = (mine.schema(), theirs.schema());
        let fields = order.iter().map(|(own, at)| {
            let half = if *own { &first } else { &second };
            half.fields().get(*at).map(Arc::clone)
        });
        let Some(fields) = fields.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let (sender, receiver) = sync_channel(AHEAD);
        let thread = thread::Builder::new().name("pyhudi-columns".to_owned());
        if thread.spawn(move || decode(theirs, &sender)).is_err() {
            return Ok(None);
        }
        Ok(Some(Self {
            mine,
            theirs: receiver,
            order,
            schema: Arc::new(Schema::new(fields)),
        }))
    }

    fn joined(&self, mine: &RecordBatch, theirs: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.order.iter().map(|(own, at)| {
            let half = if *own { mine } else { theirs };
            Arc::clone(half.column(*at))
        });
        Ok(RecordBatch::try_new(
            Arc::clone(&self.schema),
            columns.collect(),
        )?)
    }
}

impl Iterator for Halves {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let mine = self.mine.next().map(|batch| batch.map_err(Into::into));
        // The sender is gone when the other thread has reached the end.
        let theirs = self.theirs.recv().ok();
        Some(match (mine, theirs) {
            (None, None) => return None,
            (Some(Ok(mine)), Some(Ok(theirs))) => self.joined(&mine, &theirs),
            (Some(Err(error)), _) | (_, Some(Err(error))) => Err(error),
            _ => Err(ParquetError::General(
                "columns of different lengths".to_owned(),
            )),
        })
    }
}

/// The second thread's work.
fn decode(reader: ParquetRecordBatchReader, sender: &SyncSender<Result<RecordBatch>>) {
    let work = || {
        for batch in reader {
            let failed = batch.is_err();
            if sender.send(batch.map_err(Into::into)).is_err() || failed {
                break;
            }
        }
    };
    // The Parquet crate panics on some damaged files.
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        // The receiver may have ended already.
        let _ = sender.send(Err(ParquetError::General("its decoder gave up".to_owned())));
    }
}
