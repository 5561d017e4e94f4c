//! Changes between two states of records.

use std::sync::Arc;

use arrow::array::{ArrayData, AsArray, make_array};
use arrow::datatypes::Schema;
use arrow_pyarrow::PyArrowType;
use pyhudi_keys::RecordKeys;
use pyhudi_merge::RowMatcher;
use pyhudi_slice::{CdcRead, CdcReader, ChangeSpec, Changes, LogKeys};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::args::{bound, source};
use crate::error::{Released, mismatch, slice_error};
use crate::reader::{BatchReader, Batches};
use crate::spec::spec;
use crate::store::Store;

spec! {
    /// How two states are compared, see the stub.
    MatchSpec {
        schema: PyArrowType<Schema>,
        images: usize,
        key_fields: Vec<String>,
        place: Option<String> = None,
        constants: Vec<(String, PyArrowType<ArrayData>)> = Vec::new(),
        only_keys: Option<Py<PyAny>> = None,
        bucket: Option<(u32, u32)> = None,
        as_json: bool = false,
    }
}

#[pyfunction]
#[pyo3(signature = (before, after, **spec))]
pub fn match_changes(
    py: Python<'_>,
    before: Option<Bound<'_, PyAny>>,
    after: Option<Bound<'_, PyAny>>,
    spec: Option<&Bound<'_, PyDict>>,
) -> PyResult<BatchReader> {
    let spec = MatchSpec::of(spec)?;
    let before = before.as_ref().map(source).transpose()?;
    let after = after.as_ref().map(source).transpose()?;
    let only = bound(py, spec.only_keys.as_ref(), source)?;
    let constants = spec.constants.into_iter();
    let constants = constants.map(|(name, value)| (name, make_array(value.0)));
    let constants = constants.collect();
    let changes = py.released(|| {
        let spec = ChangeSpec {
            schema: Arc::new(spec.schema.0),
            images: spec.images,
            key_fields: spec.key_fields,
            place: spec.place,
            constants,
            only: only.map(key_set).transpose()?,
            bucket: spec.bucket,
            as_json: spec.as_json,
        };
        Changes::new(before, after, spec).map_err(slice_error)
    })??;
    Ok(BatchReader::new(changes.schema(), Box::new(changes)))
}

fn key_set(batches: Batches) -> PyResult<RowMatcher> {
    let mut keys = RowMatcher::default();
    for batch in batches {
        let batch = batch.map_err(slice_error)?;
        let column = (batch.num_columns() == 1)
            .then(|| batch.column(0).as_string_opt::<i32>())
            .flatten()
            .ok_or_else(|| mismatch("expected one column of text".to_owned()))?;
        keys.add(column.clone(), None)
            .map_err(|error| mismatch(error.to_string()))?;
    }
    Ok(keys)
}

#[pyfunction]
#[pyo3(signature = (store, files, *, schema, before=None, after=None, as_json=false))]
pub fn read_cdc(
    store: PyRef<'_, Store>,
    files: Vec<String>,
    schema: PyArrowType<Schema>,
    before: Option<Bound<'_, PyAny>>,
    after: Option<Bound<'_, PyAny>>,
    as_json: bool,
) -> PyResult<BatchReader> {
    let reader = CdcReader::new(CdcRead {
        store: store.0.clone(),
        files,
        schema: Arc::new(schema.0),
        before: before.as_ref().map(source).transpose()?,
        after: after.as_ref().map(source).transpose()?,
        as_json,
    })
    .map_err(slice_error)?;
    Ok(BatchReader::new(reader.schema(), Box::new(reader)))
}

#[pyfunction]
#[pyo3(signature = (store, logs, *, key_fields=vec!["_hoodie_record_key".to_owned()]))]
pub fn read_log_keys(
    store: PyRef<'_, Store>,
    logs: Vec<String>,
    key_fields: Vec<String>,
) -> BatchReader {
    let keys = RecordKeys {
        prefixed: key_fields.len() > 1,
        fields: key_fields,
    };
    let batches = LogKeys::new(store.0.clone(), logs, keys);
    BatchReader::new(LogKeys::schema(), Box::new(batches))
}
