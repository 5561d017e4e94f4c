//! Keys of incoming rows: making, combining, tagging.

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, Int32Array,
    RecordBatch, StringArray, make_array,
};
use arrow::datatypes::Schema;
use arrow_pyarrow::{FromPyArrow, IntoPyArrow, PyArrowType, Table, ToPyArrow};
use pyhudi_keys::{KeysError, PartitionPaths, RecordKeys};
use pyhudi_slice::{MergeSpec, Result as SliceResult, SliceError};
use pyo3::prelude::*;
use std::sync::Arc;

use crate::args::{Stream, merge_mode, one_batch, source, stream, texts};
use crate::error::{Released, mismatch, slice_error};
use crate::reader::BatchReader;

#[pyfunction]
#[pyo3(signature = (rows, *, key_fields, key_prefixed, partition_fields=Vec::new(), hive_style=false, url_encode=false, slash_dates=false, partition_columns=None))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "keyword arguments of Python"
)]
pub fn add_keys<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    key_fields: Vec<String>,
    key_prefixed: bool,
    partition_fields: Vec<String>,
    hive_style: bool,
    url_encode: bool,
    slash_dates: bool,
    partition_columns: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = stream(rows)?;
    let columns = partition_columns.as_ref().map(stream).transpose()?;
    let keys = RecordKeys {
        fields: key_fields,
        prefixed: key_prefixed,
    };
    let paths = PartitionPaths {
        fields: partition_fields,
        hive_style,
        url_encode,
        slash_dates,
    };
    let batches = py
        .released(|| {
            let columns = columns.map(one_batch).transpose()?;
            with_keys(rows, columns.as_ref(), &keys, &paths)
        })?
        .map_err(slice_error)?;
    table(py, batches)
}

/// Each batch with its keys, at least an empty one; no batch is copied.
fn with_keys(
    rows: Stream,
    columns: Option<&RecordBatch>,
    keys: &RecordKeys,
    paths: &PartitionPaths,
) -> SliceResult<Vec<RecordBatch>> {
    let empty = RecordBatch::new_empty(rows.schema());
    let (mut keyed, mut first) = (Vec::new(), 0);
    for batch in rows {
        let batch = batch?;
        let last = first + batch.num_rows();
        let columns = match columns {
            Some(all) if all.num_rows() < last => {
                let msg = "there are fewer partition values than rows";
                return Err(SliceError::Schema(msg.to_owned()));
            }
            other => other.map(|all| all.slice(first, batch.num_rows())),
        };
        keyed.push(pyhudi_keys::add_keys(
            &batch,
            first,
            keys,
            paths,
            columns.as_ref(),
        )?);
        first = last;
    }
    if keyed.is_empty() {
        keyed.push(pyhudi_keys::add_keys(&empty, 0, keys, paths, columns)?);
    }
    Ok(keyed)
}

#[pyfunction]
pub fn format_times<'py>(
    py: Python<'py>,
    times: &Bound<'py, PyAny>,
    pattern: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let times = array(times)?;
    let texts = py
        .released(|| match pyhudi_keys::as_times(&times) {
            Some(times) => pyhudi_keys::format_times(times, &pattern),
            None => Err(KeysError::Schema(format!(
                "expected local times in milliseconds, got {}",
                times.data_type()
            ))),
        })?
        .map_err(|error| slice_error(error.into()))?;
    texts.to_data().to_pyarrow(py)
}

#[pyfunction]
pub fn parse_times<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
    patterns: Vec<Vec<String>>,
) -> PyResult<Bound<'py, PyAny>> {
    let texts = array(texts)?;
    let times = py
        .released(|| pyhudi_keys::parse_times(&texts, &patterns))?
        .map_err(|error| slice_error(error.into()))?;
    times.to_data().to_pyarrow(py)
}

#[pyfunction]
pub fn shown_text(
    py: Python<'_>,
    column: PyArrowType<ArrayData>,
    name: &str,
) -> PyResult<PyArrowType<ArrayData>> {
    py.released(|| pyhudi_keys::shown_text(&make_array(column.0), name))?
        .map(|texts| PyArrowType(texts.to_data()))
        .map_err(|error| slice_error(error.into()))
}

fn array(data: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Ok(make_array(ArrayData::from_pyarrow_bound(data)?))
}

#[pyfunction]
#[pyo3(signature = (
    rows, *, ordering_fields, merge_mode, sequence_ordering=false, delete_rule=None
))]
pub fn combine<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    ordering_fields: Vec<String>,
    merge_mode: &str,
    sequence_ordering: bool,
    delete_rule: Option<(String, String)>,
) -> PyResult<Bound<'py, PyAny>> {
    let spec = MergeSpec {
        mode: self::merge_mode(merge_mode)?,
        ordering_fields,
        sequence_ordering,
        delete_marker: delete_rule,
        ..MergeSpec::default()
    };
    let rows = stream(rows)?;
    let batch = py
        .released(|| pyhudi_slice::combine(&one_batch(rows)?, &spec))?
        .map_err(slice_error)?;
    table(py, vec![batch])
}

fn table(py: Python<'_>, batches: Vec<RecordBatch>) -> PyResult<Bound<'_, PyAny>> {
    let schema = batches
        .first()
        .map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    let table = Table::try_new(batches, schema).map_err(|error| slice_error(error.into()))?;
    table.into_pyarrow(py)
}

#[pyfunction]
#[pyo3(signature = (rows, *, instant, task, first_row, file_name, populated=true))]
pub fn with_meta_columns(
    rows: &Bound<'_, PyAny>,
    instant: String,
    task: u64,
    first_row: u64,
    file_name: String,
    populated: bool,
) -> PyResult<BatchReader> {
    let rows = stream(rows)?;
    let empty = RecordBatch::new_empty(rows.schema());
    let mut meta = pyhudi_slice::MetaColumns::new(instant, task, first_row, file_name, populated);
    let schema = meta.add(&empty).map_err(slice_error)?.schema();
    let batches = rows.map(move |batch| meta.add(&batch?));
    Ok(BatchReader::new(schema, Box::new(batches)))
}

/// For each key the number of its part. The parts of equal keys are equal.
#[pyfunction]
pub fn key_parts<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    parts: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = texts(keys)?;
    let found: Int32Array = py.released(|| {
        keys.iter()
            .map(|key| key.map(|key| pyhudi_merge::key_bucket(key, parts).cast_signed()))
            .collect()
    })?;
    Array::to_data(&found).to_pyarrow(py)
}

/// Which parts have a key: a truth for each of `parts`. What `key_parts` gives for a key is among
/// them, and for a key that is not one of them it seldom is.
#[pyfunction]
pub fn parts_with_keys<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    parts: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = texts(keys)?;
    let found = py.released(|| {
        let mut bits = BooleanBufferBuilder::new(parts as usize);
        bits.append_n(parts as usize, false);
        for key in keys.iter().flatten() {
            bits.set_bit(pyhudi_merge::key_bucket(key, parts) as usize, true);
        }
        BooleanArray::new(bits.finish(), None)
    })?;
    Array::to_data(&found).to_pyarrow(py)
}

#[pyfunction]
pub fn lost_keys<'py>(
    py: Python<'py>,
    before: &Bound<'py, PyAny>,
    after: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (before, after) = (source(before)?, source(after)?);
    let keys = |batch: SliceResult<RecordBatch>| one_text(&batch.map_err(slice_error)?).cloned();
    let lost = py.released(|| {
        let after = after.map(keys).collect::<PyResult<Vec<_>>>()?;
        pyhudi_merge::lost_keys(before.map(keys), &after)
    })??;
    Array::to_data(&lost).to_pyarrow(py)
}

fn one_text(batch: &RecordBatch) -> PyResult<&StringArray> {
    (batch.num_columns() == 1)
        .then(|| batch.column(0).as_string_opt::<i32>())
        .flatten()
        .ok_or_else(|| mismatch("expected one column of text".to_owned()))
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct KeyTagger(pyhudi_merge::KeyTagger);

#[pymethods]
impl KeyTagger {
    #[new]
    fn new(py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Self> {
        let keys = texts(keys)?;
        Ok(Self(py.released(|| pyhudi_merge::KeyTagger::new(keys))?))
    }

    fn probe(&self, py: Python<'_>, existing: &Bound<'_, PyAny>, location: i32) -> PyResult<usize> {
        let batches = source(existing)?;
        py.released(|| {
            let mut found = 0;
            for batch in batches {
                let batch = batch.map_err(slice_error)?;
                found += self.0.probe(one_text(&batch)?, location);
            }
            Ok(found)
        })?
    }

    fn probe_rows(&self, py: Python<'_>, existing: &Bound<'_, PyAny>) -> PyResult<()> {
        let batches = source(existing)?;
        py.released(|| {
            let mut first = 0;
            for batch in batches {
                let batch = batch.map_err(slice_error)?;
                self.0.probe_rows(one_text(&batch)?, first);
                first += batch.num_rows() as u64;
            }
            Ok(())
        })?
    }

    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let positions = py.released(|| self.0.positions())?;
        Array::to_data(&positions).to_pyarrow(py)
    }

    fn locations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let locations: Int32Array = py.released(|| self.0.locations())?;
        locations.to_data().to_pyarrow(py)
    }
}
