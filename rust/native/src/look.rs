//! Looking into single files: their schemas and their blocks.

use std::collections::HashMap;

use arrow::datatypes::Schema;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::args::one_row;
use crate::error::{Released, slice_error};
use crate::store::Store;

#[pyfunction]
pub fn base_file_schema(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
) -> PyResult<(Option<String>, PyArrowType<Schema>)> {
    let store = &store.0;
    let found = py
        .released(|| pyhudi_slice::base_schema(store, path))?
        .map_err(slice_error)?;
    Ok((found.avro, PyArrowType(found.arrow.as_ref().clone())))
}

#[pyfunction]
pub fn base_file_rows(py: Python<'_>, store: PyRef<'_, Store>, path: &str) -> PyResult<i64> {
    let store = &store.0;
    py.released(|| pyhudi_slice::base_schema(store, path))?
        .map(|found| found.rows)
        .map_err(slice_error)
}

#[pyfunction]
pub fn verify_base_file(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
) -> PyResult<&'static str> {
    let store = &store.0;
    let work = || pyhudi_slice::guarded(path, None, || pyhudi_slice::verify_base_file(store, path));
    let coverage = py.released(work)?.map_err(slice_error)?;
    Ok(coverage.name())
}

#[pyfunction]
pub fn verify_log_file(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
) -> PyResult<(&'static str, Option<u64>)> {
    let store = &store.0;
    let work = || pyhudi_slice::guarded(path, None, || pyhudi_slice::verify_log_file(store, path));
    let (coverage, first) = py.released(work)?.map_err(slice_error)?;
    Ok((coverage.name(), first))
}

#[pyfunction]
pub fn verify_hfile(py: Python<'_>, store: PyRef<'_, Store>, path: &str) -> PyResult<&'static str> {
    let store = &store.0;
    let work = || pyhudi_slice::guarded(path, None, || pyhudi_slice::verify_hfile(store, path));
    let coverage = py.released(work)?.map_err(slice_error)?;
    Ok(coverage.name())
}

#[pyfunction]
pub fn columns_for_spark(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
    told: &Bound<'_, PyAny>,
) -> PyResult<PyArrowType<Schema>> {
    let (store, told) = (&store.0, one_row(told)?);
    py.released(|| pyhudi_slice::columns_for_spark(store, path, &told))?
        .map(PyArrowType)
        .map_err(slice_error)
}

#[pyfunction]
pub fn log_blocks<'py>(
    py: Python<'py>,
    store: PyRef<'py, Store>,
    path: &str,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let files = &store.0;
    let blocks = py
        .released(|| pyhudi_slice::list_blocks(files, path))?
        .map_err(slice_error)?;
    let dicts = blocks.into_iter().map(|block| {
        let dict = PyDict::new(py);
        dict.set_item("type", block.block_type)?;
        dict.set_item("offset", block.offset)?;
        dict.set_item("size", block.size)?;
        dict.set_item("content_offset", block.content_offset)?;
        dict.set_item("content_size", block.content_size)?;
        dict.set_item(
            "header",
            block.header.into_iter().collect::<HashMap<_, _>>(),
        )?;
        Ok(dict)
    });
    dicts.collect()
}

#[pyfunction]
pub fn has_partial_records(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    logs: Vec<String>,
) -> PyResult<bool> {
    let store = &store.0;
    py.released(|| pyhudi_slice::has_partial_records(store, &logs))?
        .map_err(slice_error)
}
