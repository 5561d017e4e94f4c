//! VARIANT columns.

use arrow::array::{Array, ArrayData, ArrayRef, make_array};
use arrow_pyarrow::{FromPyArrow, ToPyArrow};
use pyhudi_slice::Result;
use pyo3::prelude::*;

use crate::error::{Released, slice_error};

#[pyfunction]
pub fn check_variants(py: Python<'_>, column: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    let column: ArrayRef = make_array(ArrayData::from_pyarrow_bound(column)?);
    py.released(|| pyhudi_slice::check_variants(&column, name))?
        .map_err(slice_error)
}

#[pyfunction]
pub fn variants_from_json<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    converted(py, texts, pyhudi_slice::variants_from_json)
}

#[pyfunction]
pub fn variants_to_json<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    converted(py, column, pyhudi_slice::variants_to_json)
}

fn converted<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    convert: fn(&ArrayRef) -> Result<ArrayRef>,
) -> PyResult<Bound<'py, PyAny>> {
    let array: ArrayRef = make_array(ArrayData::from_pyarrow_bound(array)?);
    let made = py.released(|| convert(&array))?.map_err(slice_error)?;
    made.to_data().to_pyarrow(py)
}
