//! Writing base files and log files.

use pyhudi_slice::{
    BaseFileOptions, BloomOptions, Codec, DataBlocks, LogFileOptions, RECORD_KEY,
    Result as SliceResult, Rewrite, SliceError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::args::{bound, source};
use crate::error::{Released, config_error, slice_error};
use crate::read::slice_read;
use crate::reader::{MergeStats, guarded};
use crate::spec::spec;
use crate::store::Store;

#[pyclass(frozen, module = "pyhudi._native")]
pub struct BaseFile(pyhudi_slice::BaseFile);

#[pymethods]
impl BaseFile {
    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows
    }

    #[getter]
    fn min_key(&self) -> Option<&str> {
        self.0.keys.as_ref().map(|(least, _)| least.as_str())
    }

    #[getter]
    fn max_key(&self) -> Option<&str> {
        self.0.keys.as_ref().map(|(_, greatest)| greatest.as_str())
    }
}

fn codec(name: &str) -> PyResult<Codec> {
    match name {
        "gzip" => Ok(Codec::Gzip),
        "snappy" => Ok(Codec::Snappy),
        "zstd" => Ok(Codec::Zstd),
        "lz4_raw" => Ok(Codec::Lz4Raw),
        "uncompressed" => Ok(Codec::Uncompressed),
        other => Err(config_error(format!("unknown compression codec {other}"))),
    }
}

spec! {
    /// What a base file is like, see the stub.
    BaseFileSpec {
        avro_schema: String,
        file_name: Option<String> = None,
        key_column: Option<String> = Some(RECORD_KEY.to_owned()),
        codec: String,
        row_group_bytes: usize,
        page_bytes: usize,
        dictionary: bool,
        old_lists: bool = true,
        bloom_type: Option<String>,
        bloom_entries: u32,
        bloom_by_keys: bool,
        bloom_fpp: f64,
        bloom_max_entries: u32,
        two_threads: bool = false,
    }
}

impl BaseFileSpec {
    fn options(self) -> PyResult<BaseFileOptions> {
        Ok(BaseFileOptions {
            bloom: self.bloom()?,
            avro_schema: self.avro_schema,
            file_name: self.file_name,
            key_column: self.key_column,
            codec: codec(&self.codec)?,
            row_group_bytes: self.row_group_bytes,
            page_bytes: self.page_bytes,
            dictionary: self.dictionary,
            old_lists: self.old_lists,
            two_threads: self.two_threads,
        })
    }

    fn bloom(&self) -> PyResult<Option<BloomOptions>> {
        let max_entries = match self.bloom_type.as_deref() {
            None => return Ok(None),
            Some("SIMPLE") => None,
            Some("DYNAMIC_V0") => Some(self.bloom_max_entries),
            Some(other) => return Err(config_error(format!("unknown bloom filter type {other}"))),
        };
        Ok(Some(BloomOptions {
            entries: self.bloom_entries,
            by_keys: self.bloom_by_keys,
            fpp: self.bloom_fpp,
            max_entries,
        }))
    }
}

#[pyfunction]
#[pyo3(signature = (store, path, rows, **spec))]
pub fn write_base_file(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
    rows: &Bound<'_, PyAny>,
    spec: Option<&Bound<'_, PyDict>>,
) -> PyResult<BaseFile> {
    let options = BaseFileSpec::of(spec)?.options()?;
    let rows = source(rows)?;
    let store = &store.0;
    py.released(|| guarded(|| pyhudi_slice::write_base_file(store, path, rows, &options)))?
        .map(BaseFile)
        .map_err(slice_error)
}

spec! {
    /// What is asked of a rewrite, see the stub.
    RewriteSpec {
        appended: Option<Py<PyAny>> = None,
        new_rows: u64,
        kept_rows: u64,
    }
}

#[pyfunction]
#[pyo3(signature = (store, path, merged, rewrite, **spec))]
pub fn rewrite_base_file(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
    merged: &Bound<'_, PyDict>,
    rewrite: &Bound<'_, PyDict>,
    spec: Option<&Bound<'_, PyDict>>,
) -> PyResult<(BaseFile, MergeStats)> {
    let options = BaseFileSpec::of(spec)?.options()?;
    let read = slice_read(merged, &store)?;
    let asked = RewriteSpec::of(Some(rewrite))?;
    let rewrite = Rewrite {
        appended: bound(py, asked.appended.as_ref(), source)?,
        new_rows: asked.new_rows,
        least_rows: asked.kept_rows,
    };
    py.released(|| guarded(|| pyhudi_slice::rewrite_base_file(path, read, rewrite, &options)))?
        .map(|(file, stats)| (BaseFile(file), MergeStats(stats)))
        .map_err(slice_error)
}

#[pyfunction]
#[pyo3(signature = (store, next_path, rows, most_bytes, **spec))]
pub fn write_base_files(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    next_path: Py<PyAny>,
    rows: &Bound<'_, PyAny>,
    most_bytes: u64,
    spec: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<BaseFile>> {
    let options = BaseFileSpec::of(spec)?.options()?;
    let rows = source(rows)?;
    let store = &store.0;
    let mut next = || path_of(&next_path);
    py.released(|| {
        guarded(|| pyhudi_slice::write_base_files(store, &mut next, rows, &options, most_bytes))
    })?
    .map(|files| files.into_iter().map(BaseFile).collect())
    .map_err(slice_error)
}

#[pyfunction]
#[pyo3(signature = (store, next_path, slices, most_bytes, kept_rows, **spec))]
pub fn join_base_files(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    next_path: Py<PyAny>,
    slices: Vec<Bound<'_, PyDict>>,
    most_bytes: u64,
    kept_rows: u64,
    spec: Option<&Bound<'_, PyDict>>,
) -> PyResult<(Vec<BaseFile>, Vec<MergeStats>)> {
    let options = BaseFileSpec::of(spec)?.options()?;
    let slices = slices.iter().map(|slice| slice_read(slice, &store));
    let slices = slices.collect::<PyResult<Vec<_>>>()?;
    let store = &store.0;
    let mut next = || path_of(&next_path);
    let work =
        || pyhudi_slice::join_base_files(store, &mut next, slices, &options, most_bytes, kept_rows);
    py.released(|| guarded(work))?
        .map(|(files, stats)| {
            let files = files.into_iter().map(BaseFile).collect();
            (files, stats.into_iter().map(MergeStats).collect())
        })
        .map_err(slice_error)
}

/// What Python calls the next file.
fn path_of(next_path: &Py<PyAny>) -> SliceResult<String> {
    Python::attach(|py| next_path.call0(py)?.extract(py))
        .map_err(|error: PyErr| SliceError::Caller(Box::new(error)))
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct LogFile(pyhudi_slice::LogFile);

impl From<pyhudi_slice::BaseFile> for BaseFile {
    fn from(file: pyhudi_slice::BaseFile) -> Self {
        Self(file)
    }
}

impl From<pyhudi_slice::LogFile> for LogFile {
    fn from(file: pyhudi_slice::LogFile) -> Self {
        Self(file)
    }
}

#[pymethods]
impl LogFile {
    #[getter]
    fn path(&self) -> &str {
        &self.0.path
    }

    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    #[getter]
    fn records(&self) -> u64 {
        self.0.records
    }

    #[getter]
    fn deletes(&self) -> u64 {
        self.0.deletes
    }
}

fn data_blocks(kind: &str, codec: &str, old_lists: bool) -> PyResult<DataBlocks> {
    match kind {
        "avro" => Ok(DataBlocks::Avro),
        "parquet" => Ok(DataBlocks::Parquet {
            codec: self::codec(codec)?,
            old_lists,
        }),
        "hfile" => Ok(DataBlocks::Hfile),
        "cdc" => Ok(DataBlocks::Changes),
        other => Err(config_error(format!("unknown kind of log blocks {other}"))),
    }
}

spec! {
    /// What log files hold and are like, see the stub.
    LogFilesSpec {
        instant: String,
        avro_schema: String,
        rows: Option<Py<PyAny>> = None,
        delete_keys: Option<Py<PyAny>> = None,
        block_bytes: usize,
        file_bytes: u64,
        blocks: String,
        codec: String,
        old_lists: bool = true,
        partial: bool = false,
        base_instant: Option<String> = None,
    }
}

spec! {
    /// What a log file is like that others come to, see the stub.
    CompactedSpec {
        partition: String,
        instant: String,
        avro_schema: String,
        block_bytes: usize,
        blocks: String,
        codec: String,
        old_lists: bool = true,
    }
}

#[pyfunction]
#[pyo3(signature = (store, path, merged, **spec))]
pub fn compact_logs(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
    merged: &Bound<'_, PyDict>,
    spec: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<LogFile>> {
    let spec = CompactedSpec::of(spec)?;
    let options = LogFileOptions {
        instant: spec.instant,
        avro_schema: spec.avro_schema,
        block_bytes: spec.block_bytes,
        blocks: data_blocks(&spec.blocks, &spec.codec, spec.old_lists)?,
        ..LogFileOptions::default()
    };
    let read = slice_read(merged, &store)?;
    py.released(move || pyhudi_slice::compact_logs(&read, path, &spec.partition, &options))?
        .map(|file| file.map(LogFile))
        .map_err(slice_error)
}

#[pyfunction]
#[pyo3(signature = (store, next_path, **spec))]
pub fn write_log_files(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    next_path: Py<PyAny>,
    spec: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<LogFile>> {
    let spec = LogFilesSpec::of(spec)?;
    let options = LogFileOptions {
        blocks: data_blocks(&spec.blocks, &spec.codec, spec.old_lists)?,
        instant: spec.instant,
        avro_schema: spec.avro_schema,
        block_bytes: spec.block_bytes,
        file_bytes: spec.file_bytes,
        partial: spec.partial,
        base_instant: spec.base_instant,
        compacted: None,
    };
    let rows = bound(py, spec.rows.as_ref(), source)?.into_iter().flatten();
    let deletes = bound(py, spec.delete_keys.as_ref(), source)?;
    let deletes = deletes.into_iter().flatten();
    let store = &store.0;
    let mut next = || path_of(&next_path);
    py.released(|| pyhudi_slice::write_log_files(store, &mut next, rows, deletes, &options))?
        .map(|files| files.into_iter().map(LogFile).collect())
        .map_err(slice_error)
}

#[pyfunction]
pub fn rollback_block<'py>(
    py: Python<'py>,
    rollback_instant: &str,
    target_instant: &str,
) -> Bound<'py, PyBytes> {
    let mut block = Vec::new();
    pyhudi_format::log::rollback_block(&mut block, rollback_instant, target_instant);
    PyBytes::new(py, &block)
}
