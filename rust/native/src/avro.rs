//! Schemas and container files.

use arrow::array::{Array, ArrayData, AsArray, make_array};
use arrow::datatypes::Schema;
use arrow_pyarrow::{IntoPyArrow, PyArrowType, Table};
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

/// Rows of a batch that Avro records are decoded into.
const BATCH_ROWS: usize = 64 * 1024;

#[pyfunction]
pub fn avro_file_rows<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (schema, batches) = py
        .released(|| pyhudi_avro::container_batches(data, BATCH_ROWS))?
        .map_err(avro_error)?;
    Table::try_new(batches, schema)
        .map_err(|error| mismatch(error.to_string()))?
        .into_pyarrow(py)
}

#[pyfunction]
#[pyo3(signature = (schema, records, *, skip))]
pub fn avro_rows<'py>(
    py: Python<'py>,
    schema: &str,
    records: PyArrowType<ArrayData>,
    skip: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let records = make_array(records.0);
    let Some(records) = records.as_binary_opt::<i64>() else {
        return Err(mismatch("records as large_binary are needed".to_owned()));
    };
    let decode = || {
        let mut decoder = pyhudi_avro::DatumDecoder::new(schema, None, BATCH_ROWS)?;
        let mut batches = Vec::new();
        for row in 0..records.len() {
            if decoder.is_full() {
                batches.extend(decoder.flush()?);
            }
            decoder.push(records.value(row).get(skip..).unwrap_or_default())?;
        }
        batches.extend(decoder.flush()?);
        Ok((decoder.schema(), batches))
    };
    let (schema, batches) = py.released(decode)?.map_err(avro_error)?;
    Table::try_new(batches, schema)
        .map_err(|error| mismatch(error.to_string()))?
        .into_pyarrow(py)
}

/// Records given as the text of a JSON array.
pub fn json_array(text: &str) -> PyResult<Vec<serde_json::Value>> {
    serde_json::from_str(text)
        .map_err(|error| mismatch(format!("the records are no JSON array: {error}")))
}
