//! Encoding the columns of a batch, by two threads where a processor is free for the second one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowLeafColumn, compute_leaves};
use parquet::errors::{ParquetError, Result};

use crate::column_encoder::ColumnEncoder;
use crate::repeats::{Pages, Repeats};

/// Fewer rows are not worth a thread.
const LEAST_ROWS: usize = 2048;

/// Files of this process that may use a second thread.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Says that a file may use a second thread, for as long as it is open.
pub(crate) struct Helped(());

impl Helped {
    pub(crate) fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// Whether there are fewer such files than processors.
    pub(crate) fn has_room() -> bool {
        static PROCESSORS: OnceLock<usize> = OnceLock::new();
        let known =
            PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, Into::into));
        OPEN.load(Ordering::Relaxed) < *known
    }
}

impl Drop for Helped {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Gives each column what it has of a batch, but for those that repeat.
pub(crate) fn write_leaves(
    columns: &mut [ColumnEncoder],
    schema: &SchemaRef,
    batch: &RecordBatch,
    helped: Option<&Helped>,
    repeats: &Repeats,
) -> Result<()> {
    let mut columns = columns.iter_mut();
    let mut work = Vec::with_capacity(columns.len());
    let fields = schema.fields().iter().zip(batch.columns());
    for (at, (field, column)) in fields.enumerate() {
        if !matches!(repeats.pages(at), Pages::Encoded) {
            // It has one leaf.
            columns.next();
            continue;
        }
        let bytes = column.get_array_memory_size();
        let leaves = compute_leaves(field, column)?;
        let each = bytes / leaves.len().max(1);
        let leaves = leaves.into_iter().map(|leaf| (each, leaf));
        work.extend(
            leaves
                .zip(columns.by_ref())
                .map(|(leaf, column)| (column, leaf)),
        );
    }
    let two = batch.num_rows() >= LEAST_ROWS && helped.is_some() && Helped::has_room();
    if !two {
        return work
            .into_iter()
            .map(|(column, (_, leaf))| (column, leaf))
            .try_for_each(write);
    }
    work.sort_by_key(|(_, (bytes, _))| *bytes);
    // A free thread takes the largest remaining one.
    let left = Mutex::new(work);
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let rest = || {
        while let Some((column, (_, leaf))) = next() {
            write((column, leaf))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        // Where the system gives no thread, this one does all.
        let second = thread::Builder::new().spawn_scoped(scope, rest);
        let first = rest();
        let gave_up = |_| ParquetError::General("a column's encoder gave up".to_owned());
        first.and(
            second
                .map_or(Ok(Ok(())), thread::ScopedJoinHandle::join)
                .map_err(gave_up)?,
        )
    })
}

fn write((column, leaf): (&mut ColumnEncoder, ArrowLeafColumn)) -> Result<()> {
    column.write(&leaf)
}
