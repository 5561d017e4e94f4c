//! Arrow data from Python and to Python.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchReader, StringArray};
use arrow::compute::{cast, concat, concat_batches};
use arrow::datatypes::DataType;
use arrow::ffi_stream::RecordBatchStreamReader;
use arrow_pyarrow::FromPyArrow;
use pyhudi_merge::MergeMode;
use pyhudi_slice::{Result as SliceResult, SliceError};
use pyo3::prelude::*;

use crate::error::{config_error, mismatch, slice_error};
use crate::reader::{BatchReader, Batches};

/// A stream of batches that came from Python.
pub(crate) type Stream = Box<dyn RecordBatchReader + Send>;

/// The batches of a native reader, or of anything with `__arrow_c_stream__`.
pub(crate) fn source(data: &Bound<'_, PyAny>) -> PyResult<Batches> {
    if let Ok(reader) = data.cast::<BatchReader>() {
        return reader.get().take();
    }
    Ok(Box::new(batches(stream(data)?)))
}

/// What `take` makes of an argument that may be missing.
pub(crate) fn bound<T>(
    py: Python<'_>,
    argument: Option<&Py<PyAny>>,
    take: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    argument.map(|given| take(given.bind(py))).transpose()
}

/// Anything with `__arrow_c_stream__`.
pub(crate) fn stream(data: &Bound<'_, PyAny>) -> PyResult<Stream> {
    if !data.hasattr("__arrow_c_stream__")? {
        let kind = data.get_type().name()?;
        return Err(mismatch(format!(
            "expected Arrow data (an object with __arrow_c_stream__), got {kind}"
        )));
    }
    Ok(Box::new(RecordBatchStreamReader::from_pyarrow_bound(data)?))
}

/// The batches of a stream with this crate's error. A failing producer counts as bad data.
pub(crate) fn batches(stream: Stream) -> impl Iterator<Item = SliceResult<RecordBatch>> {
    stream.map(|batch| batch.map_err(SliceError::Arrow))
}

/// The whole stream as one batch.
pub(crate) fn one_batch(stream: Stream) -> SliceResult<RecordBatch> {
    let schema = stream.schema();
    let all = stream.collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &all)?)
}

pub(crate) fn one_row(data: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let batch = one_batch(stream(data)?).map_err(slice_error)?;
    if batch.num_rows() == 1 {
        Ok(batch)
    } else {
        Err(config_error("exactly one row is needed".to_owned()))
    }
}

/// An array or a stream of one text column.
pub(crate) fn texts(data: &Bound<'_, PyAny>) -> PyResult<StringArray> {
    let array: ArrayRef = if data.hasattr("__arrow_c_array__")? {
        arrow::array::make_array(arrow::array::ArrayData::from_pyarrow_bound(data)?)
    } else {
        let columns = stream(data)?
            .map(|batch| batch.map(|batch| Arc::clone(batch.column(0))))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| slice_error(error.into()))?;
        let parts: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
        match parts.as_slice() {
            [] => Arc::new(StringArray::from(Vec::<&str>::new())),
            parts => concat(parts).map_err(|error| slice_error(error.into()))?,
        }
    };
    let texts = cast(&array, &DataType::Utf8).map_err(|error| slice_error(error.into()))?;
    texts
        .as_string_opt::<i32>()
        .cloned()
        .ok_or_else(|| mismatch(format!("expected text, got {}", array.data_type())))
}

pub(crate) fn merge_mode(name: &str) -> PyResult<MergeMode> {
    match name {
        "COMMIT_TIME_ORDERING" => Ok(MergeMode::CommitTime),
        "EVENT_TIME_ORDERING" => Ok(MergeMode::EventTime),
        other => Err(config_error(format!(
            "merge mode {other} is none of the built-in ones"
        ))),
    }
}
