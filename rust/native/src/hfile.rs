//! HFiles as pairs of bytes.

use pyhudi_format::hfile::HFileOptions;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Released, mismatch, slice_error};
use crate::store::Store;

type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pyfunction]
#[pyo3(signature = (store, path, *, keys=None))]
pub fn hfile_pairs<'py>(
    py: Python<'py>,
    store: PyRef<'py, Store>,
    path: &str,
    keys: Option<Vec<Vec<u8>>>,
) -> PyResult<Vec<Pair<'py>>> {
    let files = &store.0;
    let pairs = py
        .released(|| pyhudi_slice::hfile_pairs(files, path, keys.as_deref()))?
        .map_err(slice_error)?;
    let bytes = |data: &[u8]| PyBytes::new(py, data);
    Ok(pairs
        .iter()
        .map(|(key, value)| (bytes(key), bytes(value)))
        .collect())
}

#[pyfunction]
pub fn hfile_order(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
) -> PyResult<Option<&'static str>> {
    let files = &store.0;
    py.released(|| pyhudi_slice::hfile_order(files, path))?
        .map_err(slice_error)
}

#[pyfunction]
pub fn hfile_info<'py>(
    py: Python<'py>,
    store: PyRef<'py, Store>,
    path: &str,
    name: &str,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let files = &store.0;
    let found = py
        .released(|| pyhudi_slice::hfile_info(files, path, name))?
        .map_err(slice_error)?;
    Ok(found.map(|data| PyBytes::new(py, &data)))
}

#[pyfunction]
pub fn write_hfile<'py>(
    py: Python<'py>,
    keys: Vec<String>,
    values: Vec<Vec<u8>>,
    schema: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = py.released(|| {
        let pairs = keys.iter().zip(&values);
        let pairs = pairs.map(|(key, value)| (key.as_bytes(), value.as_slice()));
        let infos = [("schema", schema.as_bytes())];
        pyhudi_format::hfile::write_hfile(pairs, &infos, &HFileOptions::default())
    })?;
    let bytes = bytes.map_err(|error| mismatch(error.to_string()))?;
    Ok(PyBytes::new(py, &bytes))
}
