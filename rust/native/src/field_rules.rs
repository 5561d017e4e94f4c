//! Merging field by field, as Python says it, and mergers written in Python.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow_pyarrow::{FromPyArrow, IntoPyArrow};
use pyhudi_merge::{ColumnRule, MergeError, RowMerger};
use pyhudi_slice::{CustomMerger, FillRule, MergeSpec};
use pyo3::prelude::*;

use crate::args::{one_batch, one_row, stream};
use crate::error::{config_error, mismatch, slice_error};

/// See the stub.
#[pyclass(frozen, module = "pyhudi._native")]
#[expect(clippy::struct_excessive_bools, reason = "independent rules of tables")]
pub struct FieldRules {
    fill: FillRule,
    newest_meta: bool,
    deletes_always_win: bool,
    deletes_are_rows: bool,
    sequence_ordering: bool,
    column_rules: Vec<(String, ColumnRule)>,
    merger: Option<(Py<PyAny>, Vec<String>)>,
}

#[pymethods]
impl FieldRules {
    #[new]
    #[pyo3(signature = (
        fill="absent", *, marker=None, defaults=None, newest_meta=false,
        deletes_always_win=false, deletes_are_rows=false, sequence_ordering=false,
        column_rules=Vec::new(), merger=None, merger_columns=Vec::new(),
    ))]
    #[expect(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "keyword arguments of Python"
    )]
    fn new(
        fill: &str,
        marker: Option<String>,
        defaults: Option<Bound<'_, PyAny>>,
        newest_meta: bool,
        deletes_always_win: bool,
        deletes_are_rows: bool,
        sequence_ordering: bool,
        column_rules: Vec<(String, String)>,
        merger: Option<Py<PyAny>>,
        merger_columns: Vec<String>,
    ) -> PyResult<Self> {
        let fill = match (fill, marker) {
            ("absent", None) => FillRule::Absent,
            ("nulls", None) => FillRule::Defaults(None),
            ("defaults", None) => FillRule::Defaults(defaults.as_ref().map(one_row).transpose()?),
            ("marker", Some(marker)) => FillRule::Marker(marker),
            ("newer_marker", Some(marker)) => FillRule::NewerMarker(marker),
            (other, _) => return Err(config_error(format!("fill {other} with this marker"))),
        };
        let column_rules = column_rules.into_iter().map(|(column, rule)| {
            let named = ColumnRule::named(&rule);
            let named = named.ok_or_else(|| config_error(format!("merge rule {rule}")))?;
            Ok((column, named))
        });
        Ok(Self {
            fill,
            newest_meta,
            deletes_always_win,
            deletes_are_rows,
            sequence_ordering,
            column_rules: column_rules.collect::<PyResult<_>>()?,
            merger: merger.map(|merger| (merger, merger_columns)),
        })
    }
}

impl FieldRules {
    pub(crate) fn spec(&self, py: Python<'_>) -> MergeSpec {
        MergeSpec {
            fill: self.fill.clone(),
            newest_meta: self.newest_meta,
            deletes_always_win: self.deletes_always_win,
            deletes_are_rows: self.deletes_are_rows,
            sequence_ordering: self.sequence_ordering,
            column_rules: self.column_rules.clone(),
            merger: self
                .merger
                .as_ref()
                .map(|(function, columns)| CustomMerger {
                    merger: Arc::new(PythonMerger(function.clone_ref(py))),
                    columns: columns.clone(),
                }),
            ..MergeSpec::default()
        }
    }
}

/// A function `(older, newer) -> merged` or `(merged, deleted)`.
struct PythonMerger(Py<PyAny>);

impl RowMerger for PythonMerger {
    fn merge(
        &self,
        older: &RecordBatch,
        newer: &RecordBatch,
    ) -> Result<(RecordBatch, Option<BooleanArray>), MergeError> {
        Python::attach(|py| self.call(py, older, newer))
            .map_err(|error| MergeError::Merger(Box::new(error)))
    }
}

impl PythonMerger {
    fn call(
        &self,
        py: Python<'_>,
        older: &RecordBatch,
        newer: &RecordBatch,
    ) -> PyResult<(RecordBatch, Option<BooleanArray>)> {
        let arguments = (
            older.clone().into_pyarrow(py)?,
            newer.clone().into_pyarrow(py)?,
        );
        let answer = self.0.bind(py).call1(arguments)?;
        let (rows, deleted) = match answer.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
            Ok((rows, deleted)) => (rows, Some(deleted)),
            Err(_) => (answer, None),
        };
        let merged = one_batch(stream(&rows)?).map_err(slice_error)?;
        if merged.num_rows() != newer.num_rows() {
            return Err(mismatch(format!(
                "the merger gave {} rows for {} pairs",
                merged.num_rows(),
                newer.num_rows()
            )));
        }
        Ok((
            in_order(&merged, newer)?,
            deleted.map(|d| mask(&d, &merged)).transpose()?,
        ))
    }
}

/// The merger's columns by name. The caller has cast them to the table's types.
fn in_order(merged: &RecordBatch, like: &RecordBatch) -> PyResult<RecordBatch> {
    let columns = like.schema_ref().fields().iter().map(|field| {
        merged
            .column_by_name(field.name())
            .cloned()
            .ok_or_else(|| mismatch(format!("the merger left out the column {}", field.name())))
    });
    let columns = columns.collect::<PyResult<Vec<_>>>()?;
    RecordBatch::try_new(like.schema(), columns).map_err(|error| slice_error(error.into()))
}

fn mask(deleted: &Bound<'_, PyAny>, rows: &RecordBatch) -> PyResult<BooleanArray> {
    let data = arrow::array::ArrayData::from_pyarrow_bound(deleted)?;
    let array = arrow::array::make_array(data);
    match array.as_boolean_opt() {
        Some(mask) if mask.len() == rows.num_rows() => Ok(mask.clone()),
        _ => Err(mismatch(
            "the merger's second result must be a boolean array, one value a pair".to_owned(),
        )),
    }
}
