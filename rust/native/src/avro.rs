//! Schemas and container files.

use arrow::datatypes::Schema;
use arrow_pyarrow::PyArrowType;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Released, avro_error, mismatch};

#[pyfunction]
pub fn arrow_schema(py: Python<'_>, avro_schema: &str) -> PyResult<PyArrowType<Schema>> {
    py.released(|| pyhudi_avro::arrow_schema(avro_schema))?
        .map(PyArrowType)
        .map_err(avro_error)
}

#[pyfunction]
pub fn avro_schema(
    py: Python<'_>,
    schema: PyArrowType<Schema>,
    record_name: &str,
    namespace: &str,
) -> PyResult<String> {
    py.released(|| pyhudi_avro::avro_schema(&schema.0, record_name, namespace))?
        .map_err(avro_error)
}

#[pyfunction]
pub fn with_meta_fields(py: Python<'_>, avro_schema: &str) -> PyResult<String> {
    py.released(|| pyhudi_avro::with_meta_fields(avro_schema, false))?
        .map_err(avro_error)
}

#[pyfunction]
pub fn without_meta_fields(py: Python<'_>, avro_schema: &str) -> PyResult<String> {
    py.released(|| pyhudi_avro::without_meta_fields(avro_schema))?
        .map_err(avro_error)
}

#[pyfunction]
pub fn container_to_json(py: Python<'_>, data: &[u8]) -> PyResult<(String, String)> {
    let (schema, records) = py
        .released(|| pyhudi_avro::container_to_json(data))?
        .map_err(avro_error)?;
    Ok((schema, serde_json::Value::Array(records).to_string()))
}

#[pyfunction]
pub fn json_to_container<'py>(
    py: Python<'py>,
    schema: &str,
    records: &str,
    sync_marker: [u8; 16],
) -> PyResult<Bound<'py, PyBytes>> {
    let records = json_array(records)?;
    let bytes = py
        .released(|| pyhudi_avro::json_to_container(schema, &records, sync_marker))?
        .map_err(avro_error)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Records given as the text of a JSON array.
pub fn json_array(text: &str) -> PyResult<Vec<serde_json::Value>> {
    serde_json::from_str(text)
        .map_err(|error| mismatch(format!("the records are no JSON array: {error}")))
}
