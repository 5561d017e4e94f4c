//! Rows whose vectors are nearest to a given one.

use arrow::array::{Array, ArrayData, ArrayRef, Float64Array, Int64Array, make_array};
use arrow_pyarrow::{FromPyArrow, ToPyArrow};
use pyhudi_slice::{Metric, nearest};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{Released, slice_error};

#[pyfunction]
#[pyo3(signature = (column, query, k, *, metric, within))]
pub fn nearest_rows<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    query: Vec<f64>,
    k: usize,
    metric: &str,
    within: Option<f64>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let metric = match metric {
        "l2" => Metric::L2,
        "cosine" => Metric::Cosine,
        "dot" => Metric::Dot,
        other => return Err(PyValueError::new_err(format!("metric {other}"))),
    };
    let column: ArrayRef = make_array(ArrayData::from_pyarrow_bound(column)?);
    let found = py
        .released(|| nearest(&column, &query, metric, k, within))?
        .map_err(slice_error)?;
    let rows: Int64Array = found.iter().map(|each| Some(each.row as i64)).collect();
    let distances: Float64Array = found.iter().map(|each| Some(each.distance)).collect();
    Ok((
        rows.to_data().to_pyarrow(py)?,
        distances.to_data().to_pyarrow(py)?,
    ))
}
