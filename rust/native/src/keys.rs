//! Keys of incoming rows: making, combining, tagging.

use arrow::array::{AsArray, Int32Array};
use arrow::datatypes::SchemaRef;
use arrow_pyarrow::{IntoPyArrow, Table, ToPyArrow};
use pyhudi_slice::{PartitionPaths, RecordKeys, Result as SliceResult};
use pyo3::prelude::*;

use crate::args::{merge_mode, one_batch, source, stream, texts};
use crate::error::{mismatch, slice_error};
use crate::read::BatchReader;

#[pyfunction]
#[pyo3(signature = (rows, *, key_fields, key_prefixed, partition_fields=Vec::new(), hive_style=false, url_encode=false))]
pub fn add_keys<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    key_fields: Vec<String>,
    key_prefixed: bool,
    partition_fields: Vec<String>,
    hive_style: bool,
    url_encode: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = stream(rows)?;
    let keys = RecordKeys {
        fields: key_fields,
        prefixed: key_prefixed,
    };
    let paths = PartitionPaths {
        fields: partition_fields,
        hive_style,
        url_encode,
    };
    let batch = py
        .detach(|| pyhudi_slice::add_keys(&one_batch(rows)?, &keys, &paths))
        .map_err(slice_error)?;
    table(py, batch)
}

#[pyfunction]
#[pyo3(signature = (rows, *, ordering_fields, merge_mode))]
pub fn combine<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    ordering_fields: Vec<String>,
    merge_mode: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let mode = self::merge_mode(merge_mode)?;
    let rows = stream(rows)?;
    let batch = py
        .detach(|| pyhudi_slice::combine(&one_batch(rows)?, mode, &ordering_fields))
        .map_err(slice_error)?;
    table(py, batch)
}

fn table(py: Python<'_>, batch: arrow::array::RecordBatch) -> PyResult<Bound<'_, PyAny>> {
    let schema: SchemaRef = batch.schema();
    let table = Table::try_new(vec![batch], schema).map_err(|error| slice_error(error.into()))?;
    table.into_pyarrow(py)
}

#[pyfunction]
#[pyo3(signature = (rows, *, instant, task, first_row, file_name))]
pub fn with_meta_columns(
    rows: &Bound<'_, PyAny>,
    instant: String,
    task: u64,
    first_row: u64,
    file_name: String,
) -> PyResult<BatchReader> {
    let rows = stream(rows)?;
    let empty = arrow::array::RecordBatch::new_empty(rows.schema());
    let add = move |batch: &arrow::array::RecordBatch, first: u64| {
        pyhudi_slice::with_meta_columns(batch, &instant, task, first, &file_name)
    };
    let schema = add(&empty, 0).map_err(slice_error)?.schema();
    let mut next = first_row;
    let batches = rows.map(move |batch| -> SliceResult<_> {
        let batch = batch?;
        let first = next;
        next += batch.num_rows() as u64;
        add(&batch, first)
    });
    Ok(BatchReader::new(schema, Box::new(batches)))
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct KeyTagger(pyhudi_merge::KeyTagger);

#[pymethods]
impl KeyTagger {
    #[new]
    fn new(py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        let keys = texts(keys)?;
        Ok(Self(py.detach(|| pyhudi_merge::KeyTagger::new(keys))))
    }

    fn probe(&self, py: Python<'_>, existing: &Bound<'_, PyAny>, location: i32) -> PyResult<usize> {
        let batches = source(existing)?;
        py.detach(|| {
            let mut found = 0;
            for batch in batches {
                let batch = batch.map_err(slice_error)?;
                let keys = (batch.num_columns() == 1)
                    .then(|| batch.column(0).as_string_opt::<i32>())
                    .flatten()
                    .ok_or_else(|| mismatch("expected one column of text".to_owned()))?;
                found += self.0.probe(keys, location);
            }
            Ok(found)
        })
    }

    fn locations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let locations: Int32Array = py.detach(|| self.0.locations());
        arrow::array::Array::to_data(&locations).to_pyarrow(py)
    }
}
