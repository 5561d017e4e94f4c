//! Reading slices.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayData, RecordBatch, make_array};
use arrow::datatypes::Schema;
use arrow_pyarrow::PyArrowType;
use pyhudi_slice::{
    BATCH_ROWS, BlockFilter, BootstrapSource, Comparison, Evolution, Filter, Incoming, MergeSpec,
    RECORD_KEY, SliceKeys, SliceRead, SliceReader, Source, SpillOptions,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::args::{bound, merge_mode, source, texts};
use crate::error::{Released, config_error, slice_error};
use crate::field_rules::FieldRules;
use crate::reader::{BatchReader, MergeStats};
use crate::spec::spec;
use crate::store::Store;

type PyFilter = (String, String, PyArrowType<ArrayData>);

fn filter((column, operator, literals): PyFilter) -> PyResult<Option<Filter>> {
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
    BlockFilter {
        max_instant,
        valid_instants: valid_instants.map(|valid| valid.into_iter().collect()),
        timeline_start,
        drops_repeated: false,
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
struct PyEvolution(Vec<Vec<PySource>>, Vec<(String, Option<usize>)>, String);

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

spec! {
    /// A slice to read, see the stub.
    SliceSpec {
        base: Option<String>,
        logs: Vec<String>,
        schema: PyArrowType<Schema>,
        columns: Vec<String>,
        merge_mode: String,
        ordering_fields: Vec<String> = Vec::new(),
        key_fields: Vec<String> = vec![RECORD_KEY.to_owned()],
        delete_field: Option<String> = None,
        delete_marker: Option<String> = None,
        max_instant: Option<String> = None,
        valid_instants: Option<Vec<String>> = None,
        timeline_start: Option<String> = None,
        drops_repeated: bool = false,
        incoming: Option<Py<PyAny>> = None,
        delete_keys: Option<Py<PyAny>> = None,
        null_ordering_loses: bool = false,
        filters: Vec<PyFilter> = Vec::new(),
        evolution: Option<PyEvolution> = None,
        batch_rows: usize = BATCH_ROWS,
        base_instant: Option<String> = None,
        field_rules: Option<Py<FieldRules>> = None,
        memory_limit: Option<usize> = None,
        spill_folder: Option<PathBuf> = None,
        bootstrap: Option<PyBootstrap> = None,
        plain_key: Option<String> = None,
        two_threads: bool = false,
        base_part: Option<(u64, Option<u64>)> = None,
    }
}

/// Where the rows of a skeleton are: store, path, and one row of what the file's folder tells.
pub(crate) type PyBootstrap = (Py<Store>, String, Option<PyArrowType<RecordBatch>>);

pub(crate) fn bootstrap_source((store, path, values): PyBootstrap) -> BootstrapSource {
    BootstrapSource {
        store: store.get().0.clone(),
        path,
        values: values.map(|values| values.0),
    }
}

impl SliceSpec {
    fn merge(&self, py: Python<'_>) -> PyResult<MergeSpec> {
        let rules = self.field_rules.as_ref();
        Ok(MergeSpec {
            mode: merge_mode(&self.merge_mode)?,
            ordering_fields: self.ordering_fields.clone(),
            delete_marker: self.delete_field.clone().zip(self.delete_marker.clone()),
            null_ordering_loses: self.null_ordering_loses,
            plain_key: self.plain_key.clone(),
            ..rules.map_or_else(MergeSpec::default, |rules| rules.get().spec(py))
        })
    }

    fn read(self, py: Python<'_>, store: &Store) -> PyResult<SliceRead> {
        let merge = self.merge(py)?;
        let filters = self.filters.into_iter().map(filter);
        Ok(SliceRead {
            store: store.0.clone(),
            base: self.base,
            bootstrap: self.bootstrap.map(bootstrap_source),
            logs: self.logs,
            schema: Arc::new(self.schema.0),
            columns: self.columns,
            key_fields: self.key_fields,
            merge,
            base_instant: self.base_instant,
            filter: BlockFilter {
                drops_repeated: self.drops_repeated,
                ..block_filter(self.max_instant, self.valid_instants, self.timeline_start)
            },
            incoming: Incoming {
                rows: bound(py, self.incoming.as_ref(), source)?,
                delete_keys: bound(py, self.delete_keys.as_ref(), texts)?,
            },
            filters: filters
                .filter_map(Result::transpose)
                .collect::<PyResult<_>>()?,
            lookup: None,
            evolution: self.evolution.map(Evolution::from),
            batch_rows: self.batch_rows.max(1),
            two_threads: self.two_threads,
            base_part: self
                .base_part
                .map(|(begin, end)| begin..end.unwrap_or(u64::MAX)),
            spill: self.memory_limit.map(|memory_limit| SpillOptions {
                memory_limit,
                folder: self.spill_folder,
            }),
        })
    }
}

/// What is read of a slice, by the arguments of `read_slice`.
pub(crate) fn slice_read(spec: &Bound<'_, PyDict>, store: &Store) -> PyResult<SliceRead> {
    SliceSpec::of(Some(spec))?.read(spec.py(), store)
}

#[pyfunction]
#[pyo3(signature = (store, **spec))]
pub fn read_slice(
    py: Python<'_>,
    store: PyRef<'_, Store>,
    spec: Option<&Bound<'_, PyDict>>,
) -> PyResult<(BatchReader, MergeStats)> {
    let read = SliceSpec::of(spec)?.read(py, &store)?;
    let reader = SliceReader::new(read).map_err(slice_error)?;
    let stats = MergeStats(reader.stats());
    Ok((BatchReader::new(reader.schema(), Box::new(reader)), stats))
}

#[pyfunction]
#[pyo3(signature = (
    store, *, base, logs, schema, key_fields=vec![RECORD_KEY.to_owned()],
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
        base,
        logs,
        key_fields,
        filter: block_filter(max_instant, valid_instants, timeline_start),
        ..SliceRead::new(store.0.clone(), Arc::new(schema.0))
    };
    let keys = py.released(|| SliceKeys::new(read))?.map_err(slice_error)?;
    Ok(BatchReader::new(SliceKeys::schema(), Box::new(keys)))
}
