//! Files of timelines, archived ones too.

use pyhudi_format::log::{BlockType, HeaderKey, avro_content, write_block};
use pyhudi_metadata::CommitFile;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::avro::json_array;
use crate::error::{Released, avro_error, slice_error};
use crate::store::Store;

#[pyfunction]
pub fn log_records(py: Python<'_>, store: PyRef<'_, Store>, path: &str) -> PyResult<Vec<String>> {
    let files = &store.0;
    py.released(|| pyhudi_slice::log_records_json(files, path))?
        .map_err(slice_error)
}

#[pyfunction]
pub fn archive_block<'py>(
    py: Python<'py>,
    schema: &str,
    records: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let values = json_array(records)?;
    let records = pyhudi_avro::json_to_records(schema, &values).map_err(avro_error)?;
    let content = avro_content(records.iter().map(Vec::as_slice));
    let mut block = Vec::with_capacity(content.len() + schema.len() + 128);
    let header = [(HeaderKey::Schema, schema)];
    write_block(&mut block, BlockType::AvroData, &header, &content);
    Ok(PyBytes::new(py, &block))
}

/// Partition, path, file id, base file, size, whether it was written, change logs.
type FileOfCommit = (
    String,
    String,
    String,
    Option<String>,
    i64,
    bool,
    Vec<(String, i64)>,
);

#[pyfunction]
pub fn commit_files(
    py: Python<'_>,
    contents: Vec<PyBackedBytes>,
) -> PyResult<Vec<Option<Vec<FileOfCommit>>>> {
    let commits = py.released(|| pyhudi_metadata::commit_files(&contents))?;
    let fields = |file: CommitFile| {
        (
            file.partition,
            file.path,
            file.file_id,
            file.base_file,
            file.size,
            file.is_written,
            file.change_logs,
        )
    };
    let commits = commits.into_iter();
    Ok(commits
        .map(|files| files.map(|files| files.into_iter().map(fields).collect()))
        .collect())
}
