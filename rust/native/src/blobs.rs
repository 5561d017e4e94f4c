//! Bytes of BLOB columns.

use std::collections::HashMap;

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow_pyarrow::{FromPyArrow, ToPyArrow};
use pyo3::prelude::*;

use crate::error::{Released, slice_error};
use crate::store::Store;

#[pyfunction]
pub fn blob_roots(py: Python<'_>, column: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<String>> {
    let column: ArrayRef = make_array(ArrayData::from_pyarrow_bound(column)?);
    py.released(|| pyhudi_slice::blob_roots(&column, name))?
        .map_err(slice_error)
}

#[pyfunction]
#[pyo3(signature = (column, name, stores, *, first_row, start, most_bytes))]
pub fn read_blobs<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    name: &str,
    stores: HashMap<String, Py<Store>>,
    first_row: usize,
    start: usize,
    most_bytes: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let column: ArrayRef = make_array(ArrayData::from_pyarrow_bound(column)?);
    let stores: Vec<(String, pyhudi_store::Store)> = stores
        .into_iter()
        .map(|(root, store)| (root, store.get().0.clone()))
        .collect();
    let read = || pyhudi_slice::read_blobs(&column, name, &stores, first_row, start, most_bytes);
    let values = py.released(read)?.map_err(slice_error)?;
    values.to_data().to_pyarrow(py)
}
