//! The metadata table: records of a partition as Arrow tables.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use pyhudi_metadata::{self as metadata, MetadataSlice, SecondaryKeys, StatsSource};
use pyhudi_slice::{BlockFilter, Result as SliceResult};
use pyo3::prelude::*;

use crate::args::texts;
use crate::error::{Released, slice_error};
use crate::store::Store;

#[pyclass(frozen, module = "pyhudi._native")]
pub struct MetadataPartition(pub(crate) metadata::MetadataPartition);

#[pyclass(frozen, module = "pyhudi._native")]
pub struct KnownStats(pub(crate) Arc<metadata::KnownStats>);

/// Partition path and file id.
type Place = (String, String);
#[pyclass(frozen, module = "pyhudi._native")]
pub struct KeptStats(Arc<metadata::KeptStats>);

#[pymethods]
impl KeptStats {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

impl MetadataPartition {
    fn table(
        &self,
        py: Python<'_>,
        read: impl Send + FnOnce(&metadata::MetadataPartition) -> SliceResult<RecordBatch>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        py.released(|| read(&self.0))?
            .map(PyArrowType)
            .map_err(slice_error)
    }
}

#[pymethods]
impl MetadataPartition {
    #[new]
    #[pyo3(signature = (store, groups, *, valid_instants=None, timeline_start=None))]
    fn new(
        store: PyRef<'_, Store>,
        groups: Vec<(Option<String>, Vec<String>)>,
        valid_instants: Option<Vec<String>>,
        timeline_start: Option<String>,
    ) -> Self {
        let slice = |(base, logs)| MetadataSlice { base, logs };
        Self(metadata::MetadataPartition {
            store: store.0.clone(),
            groups: groups.into_iter().map(slice).collect(),
            filter: BlockFilter {
                max_instant: None,
                valid_instants: valid_instants.map(|valid| valid.into_iter().collect()),
                timeline_start,
                drops_repeated: false,
            },
            kept: None,
        })
    }

    fn keeping(&self, max_bytes: usize) -> Self {
        Self(metadata::MetadataPartition {
            kept: Some(Arc::new(metadata::KeptRecords::new(max_bytes))),
            ..self.0.clone()
        })
    }

    #[pyo3(signature = (keys=None))]
    fn files(
        &self,
        py: Python<'_>,
        keys: Option<Vec<String>>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        self.table(py, |partition| {
            metadata::file_listing(partition, keys.as_deref())
        })
    }

    #[pyo3(signature = (keys=None))]
    fn locations(
        &self,
        py: Python<'_>,
        keys: Option<Vec<String>>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        self.table(py, |partition| {
            metadata::record_locations(partition, keys.as_deref())
        })
    }

    fn key_locations<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<Place>)> {
        let keys = texts(keys)?;
        let found = py
            .released(|| metadata::key_locations(&self.0, &keys))?
            .map_err(slice_error)?;
        Ok((found.numbers.to_data().to_pyarrow(py)?, found.locations))
    }

    #[pyo3(signature = (values=None, *, hashed_by_value))]
    fn secondary(
        &self,
        py: Python<'_>,
        values: Option<Vec<String>>,
        hashed_by_value: bool,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let keys = SecondaryKeys {
            values,
            hashed_by_value,
        };
        self.table(py, |partition| metadata::secondary_keys(partition, &keys))
    }

    #[pyo3(signature = (column, value_type, partitions, files=None, *, of_values=false))]
    fn stats(
        &self,
        py: Python<'_>,
        column: &str,
        value_type: PyArrowType<DataType>,
        partitions: &Bound<'_, PyAny>,
        files: Option<&Bound<'_, PyAny>>,
        of_values: bool,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let partitions = texts(partitions)?;
        let files = files.map(texts).transpose()?;
        let source = if of_values {
            StatsSource::Values
        } else {
            StatsSource::Footers
        };
        self.table(py, |partition| {
            metadata::column_stats(
                partition,
                column,
                &value_type.0,
                &partitions,
                files.as_ref(),
                source,
            )
        })
    }

    fn all_stats(
        &self,
        py: Python<'_>,
        column: &str,
        value_type: PyArrowType<DataType>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        self.table(py, |partition| {
            metadata::column_stats_scan(partition, column, &value_type.0)
        })
    }

    #[pyo3(signature = (files, columns, kept=None))]
    fn known_stats(
        &self,
        py: Python<'_>,
        files: Vec<(String, String)>,
        columns: PyArrowType<Schema>,
        kept: Option<PyRef<'_, KeptStats>>,
    ) -> PyResult<KnownStats> {
        let columns = Arc::new(columns.0);
        let kept = kept.map(|kept| Arc::clone(&kept.0));
        py.released(|| metadata::known_stats(&self.0, files, &columns, kept))?
            .map(|known| KnownStats(Arc::new(known)))
            .map_err(slice_error)
    }

    fn may_contain<'py>(
        &self,
        py: Python<'py>,
        partitions: &Bound<'py, PyAny>,
        files: &Bound<'py, PyAny>,
        keys: Vec<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (partitions, files) = (texts(partitions)?, texts(files)?);
        let answers = py
            .released(|| metadata::may_contain(&self.0, &partitions, &files, &keys))?
            .map_err(slice_error)?;
        answers.to_data().to_pyarrow(py)
    }
}
