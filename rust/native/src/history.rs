//! Files of archived timelines.

use pyo3::prelude::*;

use crate::error::slice_error;
use crate::store::Store;

#[pyfunction]
pub fn log_records(py: Python<'_>, store: PyRef<'_, Store>, path: &str) -> PyResult<Vec<String>> {
    let files = &store.0;
    py.detach(|| pyhudi_slice::log_records_json(files, path))
        .map_err(slice_error)
}
