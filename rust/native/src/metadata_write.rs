//! Making records of the metadata table and the files that hold them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow_pyarrow::PyArrowType;
use pyhudi_metadata::{
    self as metadata, ExpressionFilter, ExpressionStats, FileEntry, FileFacts, Location,
    MetadataLogOptions, Recorder, RestOfPartition, WrittenFile,
};
use pyo3::prelude::*;

use crate::args::{source, texts};
use crate::error::{Released, mismatch, slice_error};
use crate::metadata::{KnownStats, MetadataPartition};
use crate::read::{PyBootstrap, bootstrap_source};
use crate::reader::Batches;
use crate::store::Store;
use crate::write::{BaseFile, LogFile};

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

    #[pyo3(signature = (entries, *, keys=Vec::new()))]
    fn files(
        &self,
        py: Python<'_>,
        entries: Vec<(String, String, i64, bool)>,
        keys: Vec<String>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let entry = |(key, name, size, deleted)| FileEntry {
            key,
            name,
            size,
            deleted,
        };
        let entries: Vec<FileEntry> = entries.into_iter().map(entry).collect();
        py.released(|| self.0.files(&entries, &keys))?
            .map(PyArrowType)
            .map_err(slice_error)
    }

    #[pyo3(signature = (store, partition, files, *, columns, value_types, partition_stats, bloom_filters, instant, rest=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn file_facts(
        &self,
        py: Python<'_>,
        store: PyRef<'_, Store>,
        partition: &str,
        files: WrittenFiles,
        columns: PyArrowType<Schema>,
        value_types: bool,
        partition_stats: bool,
        bloom_filters: bool,
        instant: String,
        rest: Option<(WrittenFiles, PyRef<'_, KnownStats>)>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let files = written_files(files);
        let rest = rest.map(|(files, known)| RestOfPartition {
            files: written_files(files),
            known: known.0.clone(),
        });
        let facts = FileFacts {
            columns: Arc::new(columns.0),
            value_types,
            partition_stats,
            rest,
            bloom_filters,
            instant,
        };
        let store = &store.0;
        py.released(|| metadata::file_facts(&self.0, store, partition, &files, &facts))?
            .map(PyArrowType)
            .map_err(slice_error)
    }

    #[pyo3(signature = (index, partition, names, *, columns, filters))]
    fn forget_files(
        &self,
        py: Python<'_>,
        index: &str,
        partition: &str,
        names: Vec<String>,
        columns: Vec<String>,
        filters: bool,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        py.released(|| {
            metadata::forget_files(&self.0, index, partition, &names, &columns, filters)
        })?
        .map(PyArrowType)
        .map_err(slice_error)
    }

    #[pyo3(signature = (partition, file_id, instant_ms, *, added, removed, groups=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn locations(
        &self,
        py: Python<'_>,
        partition: String,
        file_id: String,
        instant_ms: i64,
        added: &Bound<'_, PyAny>,
        removed: &Bound<'_, PyAny>,
        groups: Option<(u32, u32)>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let (added, removed) = (texts(added)?, texts(removed)?);
        let location = Location {
            partition,
            file_id,
            instant_ms,
            groups,
        };
        py.released(|| metadata::locations(&self.0, &location, &added, &removed))?
            .map(PyArrowType)
            .map_err(slice_error)
    }

    #[pyo3(signature = (index, column, partition, files, *, value_types, tight))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn expression_stats(
        &self,
        py: Python<'_>,
        index: String,
        column: String,
        partition: String,
        files: PyArrowType<RecordBatch>,
        value_types: bool,
        tight: bool,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let what = ExpressionStats {
            index,
            column,
            partition,
            value_types,
            tight,
        };
        let files = &files.0;
        py.released(|| metadata::expression_stats(&self.0, &what, files))?
            .map(PyArrowType)
            .map_err(slice_error)
    }

    #[pyo3(signature = (index, partition, name, instant, values, *, simple, entries, fpp, max_entries, passes_all))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn expression_filter(
        &self,
        py: Python<'_>,
        index: String,
        partition: String,
        name: String,
        instant: String,
        values: &Bound<'_, PyAny>,
        simple: bool,
        entries: u32,
        fpp: f64,
        max_entries: u32,
        passes_all: bool,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let values = texts(values)?;
        let what = ExpressionFilter {
            index,
            partition,
            name,
            instant,
            simple,
            entries,
            fpp,
            max_entries,
            passes_all,
        };
        py.released(|| metadata::expression_filter(&self.0, &what, &values))?
            .map(PyArrowType)
            .map_err(slice_error)
    }

    #[pyo3(signature = (index, *, hashed_by_value, before, after))]
    fn secondary(
        &self,
        py: Python<'_>,
        index: &str,
        hashed_by_value: bool,
        before: Option<Bound<'_, PyAny>>,
        after: Option<Bound<'_, PyAny>>,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        let (before, after) = (rows_of(before)?, rows_of(after)?);
        py.released(|| metadata::secondary_changes(&self.0, index, hashed_by_value, before, after))?
            .map(PyArrowType)
            .map_err(slice_error)
    }
}

/// The rows of a stream, none without one.
fn rows_of(data: Option<Bound<'_, PyAny>>) -> PyResult<Batches> {
    data.as_ref()
        .map_or_else(|| Ok(Box::new(std::iter::empty()) as Batches), source)
}

/// Paths of files, whether each is a log file, and of a skeleton where its rows are.
type WrittenFiles = Vec<(String, bool, Option<PyBootstrap>)>;

fn written_files(files: WrittenFiles) -> Vec<WrittenFile> {
    let file = |(path, log, source): (_, _, Option<PyBootstrap>)| WrittenFile {
        path,
        log,
        source: source.map(bootstrap_source),
    };
    files.into_iter().map(file).collect()
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
    py.released(|| metadata::write_metadata_log(store, path, rows, &options))?
        .map(LogFile::from)
        .map_err(slice_error)
}

#[pyfunction]
#[pyo3(signature = (store, path, rows, *, avro_schema))]
pub fn write_metadata_base(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
    rows: &Bound<'_, PyAny>,
    avro_schema: &str,
) -> PyResult<BaseFile> {
    let rows = source(rows)?;
    let store = &store.0;
    py.released(|| metadata::write_metadata_base(store, path, rows, avro_schema))?
        .map(BaseFile::from)
        .map_err(slice_error)
}

#[pyfunction]
#[pyo3(signature = (group, path, *, avro_schema))]
pub fn compact_metadata_group(
    py: Python<'_>,
    group: &Bound<'_, MetadataPartition>,
    path: &str,
    avro_schema: &str,
) -> PyResult<BaseFile> {
    let group = &group.get().0;
    let [slice] = group.groups.as_slice() else {
        return Err(mismatch("a base file is that of one file group".to_owned()));
    };
    py.released(|| metadata::compact_metadata_group(group, slice, path, avro_schema))?
        .map(BaseFile::from)
        .map_err(slice_error)
}

#[pyfunction]
#[pyo3(signature = (store, partition, files, *, columns, of_files, whole=None))]
pub fn statistics_gaps(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    partition: &str,
    files: WrittenFiles,
    columns: PyArrowType<Schema>,
    of_files: &Bound<'_, MetadataPartition>,
    whole: Option<&Bound<'_, MetadataPartition>>,
) -> PyResult<PyArrowType<RecordBatch>> {
    let files = written_files(files);
    let columns = Arc::new(columns.0);
    let (of_files, whole) = (&of_files.get().0, whole.map(|whole| &whole.get().0));
    let store = &store.0;
    py.released(|| metadata::statistics_gaps(store, partition, &files, &columns, of_files, whole))?
        .map(PyArrowType)
        .map_err(slice_error)
}
