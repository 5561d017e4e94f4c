//! Reading slices: batches with typed errors, and their counters.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, RecordBatch, make_array};
use arrow::datatypes::{Schema, SchemaRef};
use arrow_pyarrow::{IntoPyArrow, PyArrowType, Table};
use pyhudi_slice::{
    BlockFilter, BootstrapSource, Comparison, Evolution, Filter, Incoming, MergeSpec, ReadStats,
    Result as SliceResult, SliceError, SliceKeys, SliceRead, SliceReader, Source, SpillOptions,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::args::{Batches, merge_mode, source, texts};
use crate::error::{config_error, slice_error};
use crate::field_rules::FieldRules;
use crate::store::Store;

/// Batches that Python iterates over. Not a `pyarrow.RecordBatchReader`: an error that crosses the C
/// stream interface keeps its text but loses its kind.
#[pyclass(frozen, module = "pyhudi._native")]
pub struct BatchReader {
    schema: SchemaRef,
    batches: Mutex<Option<Batches>>,
}

impl BatchReader {
    pub(crate) fn new(schema: SchemaRef, batches: Batches) -> Self {
        Self {
            schema,
            batches: Mutex::new(Some(batches)),
        }
    }

    /// The batches not given out yet, which this reader then no longer has.
    pub(crate) fn take(&self) -> PyResult<Batches> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        batches
            .take()
            .ok_or_else(|| config_error("the reader was used up or closed".to_owned()))
    }

    fn next_batch(&self) -> SliceResult<Option<RecordBatch>> {
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let next = batches
            .as_mut()
            .and_then(|batches| guarded(|| batches.next()).transpose());
        if !matches!(next, Some(Ok(_))) {
            *batches = None;
        }
        next.transpose()
    }
}

/// The Parquet and Arrow crates panic on some damaged files: that is damage, not the end of Python.
fn guarded<T>(work: impl FnOnce() -> Option<SliceResult<T>>) -> SliceResult<Option<T>> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| {
            let what = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown");
            Some(Err(SliceError::Corrupt {
                file: "a file of the slice".to_owned(),
                offset: None,
                what: format!("its decoder gave up: {what}"),
            }))
        })
        .transpose()
}

#[pymethods]
impl BatchReader {
    #[getter]
    fn schema(&self) -> PyArrowType<Schema> {
        PyArrowType(self.schema.as_ref().clone())
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArrowType<RecordBatch>>> {
        Ok(py
            .detach(|| self.next_batch())
            .map_err(slice_error)?
            .map(PyArrowType))
    }

    fn read_all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = py.detach(|| {
            let mut all = Vec::new();
            while let Some(batch) = self.next_batch()? {
                all.push(batch);
            }
            Ok(all)
        });
        let table = Table::try_new(all.map_err(slice_error)?, Arc::clone(&self.schema))
            .map_err(|error| slice_error(error.into()))?;
        table.into_pyarrow(py)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| *self.batches.lock().unwrap_or_else(PoisonError::into_inner) = None);
    }
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct MergeStats(Arc<ReadStats>);

#[pymethods]
impl MergeStats {
    #[getter]
    fn base_rows(&self) -> u64 {
        self.0.base_rows.load(Ordering::Relaxed)
    }

    #[getter]
    fn log_records(&self) -> u64 {
        self.0.log_records.load(Ordering::Relaxed)
    }

    #[getter]
    fn updated(&self) -> u64 {
        self.0.updated.load(Ordering::Relaxed)
    }

    #[getter]
    fn deleted(&self) -> u64 {
        self.0.deleted.load(Ordering::Relaxed)
    }

    #[getter]
    fn inserted(&self) -> u64 {
        self.0.inserted.load(Ordering::Relaxed)
    }

    #[getter]
    fn corrupt_blocks(&self) -> u64 {
        self.0.corrupt_blocks.load(Ordering::Relaxed)
    }

    #[getter]
    fn rollback_blocks(&self) -> u64 {
        self.0.rollback_blocks.load(Ordering::Relaxed)
    }

    #[getter]
    fn log_blocks(&self) -> u64 {
        self.0.log_blocks.load(Ordering::Relaxed)
    }

    #[getter]
    fn by_position(&self) -> bool {
        self.0.by_position.load(Ordering::Relaxed) > 0
    }

    #[getter]
    fn spilled_parts(&self) -> u64 {
        self.0.spilled_parts.load(Ordering::Relaxed)
    }

    #[getter]
    fn pruned_row_groups(&self) -> u64 {
        self.0.pruned_row_groups.load(Ordering::Relaxed)
    }
}

fn filter(
    (column, operator, literals): (String, String, PyArrowType<arrow::array::ArrayData>),
) -> PyResult<Option<Filter>> {
    let comparison = match operator.as_str() {
        "=" | "in" => Comparison::In,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        // Statistics say nothing about it.
        "!=" => return Ok(None),
        other => return Err(config_error(format!("unknown comparison {other}"))),
    };
    Ok(Some(Filter {
        column,
        comparison,
        literals: make_array(literals.0),
    }))
}

fn block_filter(
    max_instant: Option<String>,
    valid_instants: Option<Vec<String>>,
    timeline_start: Option<String>,
) -> BlockFilter {
    let valid_instants = valid_instants.map(|valid| valid.into_iter().collect::<HashSet<_>>());
    BlockFilter {
        max_instant,
        valid_instants,
        timeline_start,
    }
}

#[derive(FromPyObject)]
struct PySource(String, Option<String>, Vec<PySource>);

impl From<PySource> for Source {
    fn from(PySource(name, stored, parts): PySource) -> Self {
        Self {
            name,
            stored,
            parts: parts.into_iter().map(Self::from).collect(),
        }
    }
}

#[derive(FromPyObject)]
pub struct PyEvolution(Vec<Vec<PySource>>, Vec<(String, Option<usize>)>, String);

impl From<PyEvolution> for Evolution {
    fn from(PyEvolution(maps, versions, base): PyEvolution) -> Self {
        let map = |map: Vec<PySource>| map.into_iter().map(Source::from).collect();
        Self {
            maps: maps.into_iter().map(map).collect(),
            versions,
            base,
        }
    }
}

#[pyfunction]
#[pyo3(signature = (
    store, *, base, logs, schema, columns, merge_mode, ordering_fields=Vec::new(),
    key_fields=vec!["_hoodie_record_key".to_owned()], delete_field=None, delete_marker=None,
    max_instant=None, valid_instants=None, timeline_start=None, incoming=None, delete_keys=None,
    null_ordering_loses=false, filters=Vec::new(), evolution=None, batch_rows=8192,
    base_instant=None, field_rules=None, memory_limit=None, spill_folder=None, bootstrap=None,
    plain_key=None, two_threads=false, base_part=None,
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn read_slice(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    base: Option<String>,
    logs: Vec<String>,
    schema: PyArrowType<Schema>,
    columns: Vec<String>,
    merge_mode: &str,
    ordering_fields: Vec<String>,
    key_fields: Vec<String>,
    delete_field: Option<String>,
    delete_marker: Option<String>,
    max_instant: Option<String>,
    valid_instants: Option<Vec<String>>,
    timeline_start: Option<String>,
    incoming: Option<Bound<'_, PyAny>>,
    delete_keys: Option<Bound<'_, PyAny>>,
    null_ordering_loses: bool,
    filters: Vec<(String, String, PyArrowType<arrow::array::ArrayData>)>,
    evolution: Option<PyEvolution>,
    batch_rows: usize,
    base_instant: Option<String>,
    field_rules: Option<PyRef<'_, FieldRules>>,
    memory_limit: Option<usize>,
    spill_folder: Option<PathBuf>,
    bootstrap: Option<(PyRef<'_, Store>, String)>,
    plain_key: Option<String>,
    two_threads: bool,
    base_part: Option<(u64, Option<u64>)>,
) -> PyResult<(BatchReader, MergeStats)> {
    let incoming = Incoming {
        rows: incoming.as_ref().map(source).transpose()?,
        delete_keys: delete_keys.as_ref().map(texts).transpose()?,
    };
    let filters = filters
        .into_iter()
        .map(filter)
        .collect::<PyResult<Vec<_>>>()?;
    let reader = SliceReader::new(SliceRead {
        store: store.0.clone(),
        base,
        bootstrap: bootstrap.map(|(store, path)| BootstrapSource {
            store: store.0.clone(),
            path,
        }),
        logs,
        schema: Arc::new(schema.0),
        columns,
        key_fields,
        merge: MergeSpec {
            mode: self::merge_mode(merge_mode)?,
            ordering_fields,
            delete_marker: delete_field.zip(delete_marker),
            null_ordering_loses,
            plain_key,
            ..field_rules.map_or_else(MergeSpec::default, |rules| rules.spec(py))
        },
        base_instant,
        filter: block_filter(max_instant, valid_instants, timeline_start),
        incoming,
        filters: filters.into_iter().flatten().collect(),
        evolution: evolution.map(Evolution::from),
        batch_rows: batch_rows.max(1),
        two_threads,
        base_part: base_part.map(|(begin, end)| begin..end.unwrap_or(u64::MAX)),
        spill: memory_limit.map(|memory_limit| SpillOptions {
            memory_limit,
            folder: spill_folder,
        }),
    })
    .map_err(slice_error)?;
    let stats = MergeStats(reader.stats());
    Ok((BatchReader::new(reader.schema(), Box::new(reader)), stats))
}

#[pyfunction]
#[pyo3(signature = (
    store, *, base, logs, schema, key_fields=vec!["_hoodie_record_key".to_owned()],
    max_instant=None, valid_instants=None, timeline_start=None,
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn read_keys(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    base: Option<String>,
    logs: Vec<String>,
    schema: PyArrowType<Schema>,
    key_fields: Vec<String>,
    max_instant: Option<String>,
    valid_instants: Option<Vec<String>>,
    timeline_start: Option<String>,
) -> PyResult<BatchReader> {
    let read = SliceRead {
        store: store.0.clone(),
        base,
        bootstrap: None,
        logs,
        schema: Arc::new(schema.0),
        columns: Vec::new(),
        key_fields,
        merge: MergeSpec::default(),
        base_instant: None,
        filter: block_filter(max_instant, valid_instants, timeline_start),
        incoming: Incoming::default(),
        filters: Vec::new(),
        evolution: None,
        batch_rows: 8192,
        two_threads: false,
        base_part: None,
        spill: None,
    };
    let keys = py.detach(|| SliceKeys::new(read)).map_err(slice_error)?;
    Ok(BatchReader::new(SliceKeys::schema(), Box::new(keys)))
}

#[pyfunction]
pub fn shown_text(
    py: Python<'_>,
    column: PyArrowType<arrow::array::ArrayData>,
    name: &str,
) -> PyResult<PyArrowType<arrow::array::ArrayData>> {
    py.detach(|| pyhudi_keys::shown_text(&make_array(column.0), name))
        .map(|texts| PyArrowType(texts.to_data()))
        .map_err(|error| slice_error(error.into()))
}

#[pyfunction]
pub fn base_file_schema(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    path: &str,
) -> PyResult<(Option<String>, PyArrowType<Schema>)> {
    let store = &store.0;
    let found = py
        .detach(|| pyhudi_slice::base_schema(store, path))
        .map_err(slice_error)?;
    Ok((found.avro, PyArrowType(found.arrow.as_ref().clone())))
}

#[pyfunction]
pub fn log_blocks<'py>(
    py: Python<'py>,
    store: PyRef<'py, Store>,
    path: &str,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let files = &store.0;
    let blocks = py
        .detach(|| pyhudi_slice::list_blocks(files, path))
        .map_err(slice_error)?;
    let dicts = blocks.into_iter().map(|block| {
        let dict = PyDict::new(py);
        dict.set_item("type", block.block_type)?;
        dict.set_item("offset", block.offset)?;
        dict.set_item("size", block.size)?;
        dict.set_item("content_offset", block.content_offset)?;
        dict.set_item("content_size", block.content_size)?;
        dict.set_item(
            "header",
            block.header.into_iter().collect::<HashMap<_, _>>(),
        )?;
        Ok(dict)
    });
    dicts.collect()
}

#[pyfunction]
pub fn has_partial_records(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    logs: Vec<String>,
) -> PyResult<bool> {
    let store = &store.0;
    py.detach(|| pyhudi_slice::has_partial_records(store, &logs))
        .map_err(slice_error)
}
