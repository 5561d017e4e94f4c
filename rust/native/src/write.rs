//! Writing base files and log files.

use pyhudi_slice::{
    BaseFileOptions, BloomOptions, Codec, DataBlocks, LogFileOptions, Result as SliceResult,
    SliceError,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::args::source;
use crate::error::{config_error, slice_error};
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

#[pyfunction]
#[pyo3(signature = (
    store, path, rows, *, avro_schema, file_name=None,
    key_column=Some("_hoodie_record_key".to_owned()), codec="zstd",
    row_group_bytes=120 * 1024 * 1024, bloom_entries=60000, bloom_fpp=1e-9,
    bloom_max_entries=100_000, bloom_type=Some("DYNAMIC_V0"), page_bytes=1 << 20, dictionary=true,
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn write_base_file(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
    rows: &Bound<'_, PyAny>,
    avro_schema: String,
    file_name: Option<String>,
    key_column: Option<String>,
    codec: &str,
    row_group_bytes: usize,
    bloom_entries: u32,
    bloom_fpp: f64,
    bloom_max_entries: u32,
    bloom_type: Option<&str>,
    page_bytes: usize,
    dictionary: bool,
) -> PyResult<BaseFile> {
    let max_entries = match bloom_type {
        None | Some("SIMPLE") => None,
        Some("DYNAMIC_V0") => Some(bloom_max_entries),
        Some(other) => return Err(config_error(format!("unknown bloom filter type {other}"))),
    };
    let bloom = BloomOptions {
        entries: bloom_entries,
        fpp: bloom_fpp,
        max_entries,
    };
    let options = BaseFileOptions {
        avro_schema,
        file_name,
        key_column,
        codec: self::codec(codec)?,
        row_group_bytes,
        page_bytes,
        dictionary,
        bloom: bloom_type.map(|_| bloom),
    };
    let rows = source(rows)?;
    let store = &store.0;
    py.detach(|| pyhudi_slice::write_base_file(store, path, rows, &options))
        .map(BaseFile)
        .map_err(slice_error)
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

fn data_blocks(kind: &str, codec: &str) -> PyResult<DataBlocks> {
    match kind {
        "avro" => Ok(DataBlocks::Avro),
        "parquet" => Ok(DataBlocks::Parquet(self::codec(codec)?)),
        "hfile" => Ok(DataBlocks::Hfile),
        "cdc" => Ok(DataBlocks::Changes),
        other => Err(config_error(format!("unknown kind of log blocks {other}"))),
    }
}

#[pyfunction]
#[pyo3(signature = (
    store, next_path, *, instant, avro_schema, rows=None, delete_keys=None,
    block_bytes=256 * 1024 * 1024, file_bytes=1024 * 1024 * 1024, blocks="avro", codec="zstd",
    partial=false, base_instant=None,
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn write_log_files(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    next_path: Py<PyAny>,
    instant: String,
    avro_schema: String,
    rows: Option<Bound<'_, PyAny>>,
    delete_keys: Option<Bound<'_, PyAny>>,
    block_bytes: usize,
    file_bytes: u64,
    blocks: &str,
    codec: &str,
    partial: bool,
    base_instant: Option<String>,
) -> PyResult<Vec<LogFile>> {
    let options = LogFileOptions {
        instant,
        avro_schema,
        block_bytes,
        file_bytes,
        blocks: data_blocks(blocks, codec)?,
        partial,
        base_instant,
    };
    let rows = rows.as_ref().map(source).transpose()?.into_iter().flatten();
    let deletes = delete_keys
        .as_ref()
        .map(source)
        .transpose()?
        .into_iter()
        .flatten();
    let store = &store.0;
    let mut next = || -> SliceResult<String> {
        Python::attach(|py| next_path.call0(py)?.extract(py))
            .map_err(|error: PyErr| SliceError::Caller(Box::new(error)))
    };
    py.detach(|| pyhudi_slice::write_log_files(store, &mut next, rows, deletes, &options))
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
