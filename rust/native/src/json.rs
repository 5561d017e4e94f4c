//! Checks of JSON before it is parsed.

use arrow::array::{Array, ArrayData, AsArray, make_array};
use arrow_pyarrow::PyArrowType;
use pyhudi_format::JsonShape;
use pyo3::prelude::*;

use crate::error::{Released, mismatch};

#[pyfunction]
#[pyo3(signature = (text, *, apart, most_depth, most_names))]
pub fn json_shape(
    py: Python<'_>,
    text: PyArrowType<ArrayData>,
    apart: Vec<String>,
    most_depth: usize,
    most_names: usize,
) -> PyResult<(usize, usize)> {
    let text = make_array(text.0);
    let Some(texts) = text.as_binary_opt::<i64>().filter(|texts| texts.len() == 1) else {
        return Err(mismatch("one text as large_binary is needed".to_owned()));
    };
    let most = JsonShape {
        depth: most_depth,
        names: most_names,
    };
    let found = py.released(|| pyhudi_format::json_shape(texts.value(0), &apart, most))?;
    Ok((found.depth, found.names))
}
