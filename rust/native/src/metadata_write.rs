//! Making records of the metadata table and the files that hold them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow_pyarrow::PyArrowType;
use pyhudi_slice::metadata::{
    self, FileEntry, FileFacts, Location, MetadataLogOptions, Recorder, WrittenFile,
};
use pyo3::prelude::*;

use crate::args::{source, texts};
use crate::error::slice_error;
use crate::store::Store;
use crate::write::LogFile;

#[pyclass(frozen, module = "pyhudi._native")]
pub struct MetadataRecorder(Recorder);

#[pymethods]
impl MetadataRecorder {
    #[new]
    fn new(avro_schema: &str, groups: HashMap<String, u32>) -> PyResult<Self> {
        Recorder::new(avro_schema, groups)
            .map(Self)
            .map_err(slice_error)
    }

    fn files(
        &self,
        py: Python<'_>,
        entries: Vec<(String, String, i64, bool)>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let entry = |(key, name, size, deleted)| FileEntry {
            key,
            name,
            size,
            deleted,
        };
        let entries: Vec<FileEntry> = entries.into_iter().map(entry).collect();
        py.detach(|| self.0.files(&entries))
            .map(PyArrowType)
            .map_err(slice_error)
    }

    #[pyo3(signature = (store, partition, files, *, columns, value_types, partition_stats, bloom_filters, instant))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn file_facts(
        &self,
        py: Python<'_>,
        store: PyRef<'_, Store>,
        partition: &str,
        files: Vec<(String, bool)>,
        columns: PyArrowType<Schema>,
        value_types: bool,
        partition_stats: bool,
        bloom_filters: bool,
        instant: String,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let files: Vec<WrittenFile> = files
            .into_iter()
            .map(|(path, log)| WrittenFile { path, log })
            .collect();
        let facts = FileFacts {
            columns: Arc::new(columns.0),
            value_types,
            partition_stats,
            bloom_filters,
            instant,
        };
        let store = &store.0;
        py.detach(|| metadata::file_facts(&self.0, store, partition, &files, &facts))
            .map(PyArrowType)
            .map_err(slice_error)
    }

    #[pyo3(signature = (partition, file_id, instant_ms, *, added, removed))]
    fn locations(
        &self,
        py: Python<'_>,
        partition: String,
        file_id: String,
        instant_ms: i64,
        added: &Bound<'_, PyAny>,
        removed: &Bound<'_, PyAny>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let (added, removed) = (texts(added)?, texts(removed)?);
        let location = Location {
            partition,
            file_id,
            instant_ms,
        };
        py.detach(|| metadata::locations(&self.0, &location, &added, &removed))
            .map(PyArrowType)
            .map_err(slice_error)
    }
}

#[pyfunction]
#[pyo3(signature = (store, path, rows=None, *, instant, avro_schema, partition))]
pub fn write_metadata_log(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
    rows: Option<Bound<'_, PyAny>>,
    instant: String,
    avro_schema: String,
    partition: String,
) -> PyResult<LogFile> {
    let options = MetadataLogOptions {
        instant,
        avro_schema,
        partition,
    };
    let rows = rows.as_ref().map(source).transpose()?.into_iter().flatten();
    let store = &store.0;
    py.detach(|| metadata::write_metadata_log(store, path, rows, &options))
        .map(LogFile::from)
        .map_err(slice_error)
}
