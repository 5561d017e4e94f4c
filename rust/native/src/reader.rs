//! Batches with typed errors, and the counters of a merge.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_pyarrow::{IntoPyArrow, PyArrowType, Table};
use pyhudi_slice::{ReadStats, Result as SliceResult};
use pyo3::prelude::*;

use crate::error::{Released, config_error, slice_error};

/// Batches, each of which may fail.
pub(crate) type Batches = Box<dyn Iterator<Item = SliceResult<RecordBatch>> + Send>;

/// Batches that Python iterates over. Not a `pyarrow.RecordBatchReader`: an error that crosses the C
/// stream interface keeps its text but loses its kind.
#[pyclass(frozen, module = "pyhudi._native")]
pub struct BatchReader {
    schema: SchemaRef,
    batches: Mutex<Option<Batches>>,
}

impl BatchReader {
    pub(crate) fn new(schema: SchemaRef, batches: Batches) -> Self {
        Self {
            schema,
            batches: Mutex::new(Some(batches)),
        }
    }

    /// The batches not given out yet, which this reader then no longer has.
    pub(crate) fn take(&self) -> PyResult<Batches> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches
            .take()
            .ok_or_else(|| config_error("the reader was used up or closed".to_owned()))
    }

    pub(crate) fn schema_ref(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next_batch(&self) -> SliceResult<Option<RecordBatch>> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let next = batches
            .as_mut()
            .and_then(|batches| guarded(|| batches.next().transpose()).transpose());
        if !matches!(next, Some(Ok(_))) {
            *batches = None;
        }
        next.transpose()
    }
}

/// The work, with a panic of it as damage, of a file that is not known here.
pub(crate) fn guarded<T>(work: impl FnOnce() -> SliceResult<T>) -> SliceResult<T> {
    pyhudi_slice::guarded("a file of the slice", None, work)
}

#[pymethods]
impl BatchReader {
    #[getter]
    fn schema(&self) -> PyArrowType<Schema> {
        PyArrowType(self.schema.as_ref().clone())
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        Ok(py
            .released(|| self.next_batch())?
            .map_err(slice_error)?
            .map(PyArrowType))
    }

    fn read_all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = py.released(|| {
            let mut all = Vec::new();
            while let Some(batch) = self.next_batch()? {
                all.push(batch);
            }
            Ok(all)
        })?;
        let table = Table::try_new(all.map_err(slice_error)?, Arc::clone(&self.schema))
            .map_err(|error| slice_error(error.into()))?;
        table.into_pyarrow(py)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.released(|| *self.batches.lock().unwrap_or_else(PoisonError::into_inner) = None)
    }
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct MergeStats(pub(crate) Arc<ReadStats>);

#[pymethods]
impl MergeStats {
    #[getter]
    fn base_rows(&self) -> u64 {
        self.0.base_rows.load(Ordering::Relaxed)
    }

    #[getter]
    fn log_records(&self) -> u64 {
        self.0.log_records.load(Ordering::Relaxed)
    }

    #[getter]
    fn updated(&self) -> u64 {
        self.0.updated.load(Ordering::Relaxed)
    }

    #[getter]
    fn deleted(&self) -> u64 {
        self.0.deleted.load(Ordering::Relaxed)
    }

    #[getter]
    fn inserted(&self) -> u64 {
        self.0.inserted.load(Ordering::Relaxed)
    }

    #[getter]
    fn corrupt_blocks(&self) -> u64 {
        self.0.corrupt_blocks.load(Ordering::Relaxed)
    }

    #[getter]
    fn rollback_blocks(&self) -> u64 {
        self.0.rollback_blocks.load(Ordering::Relaxed)
    }

    #[getter]
    fn log_blocks(&self) -> u64 {
        self.0.log_blocks.load(Ordering::Relaxed)
    }

    #[getter]
    fn by_position(&self) -> bool {
        self.0.by_position.load(Ordering::Relaxed) > 0
    }

    #[getter]
    fn spilled_parts(&self) -> u64 {
        self.0.spilled_parts.load(Ordering::Relaxed)
    }

    #[getter]
    fn pruned_row_groups(&self) -> u64 {
        self.0.pruned_row_groups.load(Ordering::Relaxed)
    }
}
