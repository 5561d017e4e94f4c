//! Sorting rows.

use std::sync::Arc;

use arrow::datatypes::Schema;
use pyhudi_slice::{Layout, SortInput, SortOptions, SortedRows};
use pyo3::prelude::*;

use crate::error::config_error;
use crate::reader::BatchReader;

fn layout(name: &str) -> PyResult<Layout> {
    match name {
        "linear" => Ok(Layout::Linear),
        "zorder" => Ok(Layout::ZOrder),
        "hilbert" => Ok(Layout::Hilbert),
        other => Err(config_error(format!("unknown layout {other}"))),
    }
}

#[pyfunction]
#[pyo3(signature = (readers, *, columns, layout, memory_limit))]
pub fn sort_rows(
    readers: Vec<Bound<'_, BatchReader>>,
    columns: Vec<String>,
    layout: &str,
    memory_limit: usize,
) -> PyResult<BatchReader> {
    let options = SortOptions {
        columns,
        layout: self::layout(layout)?,
        memory_limit,
        folder: None,
    };
    let schema = match readers.first() {
        Some(reader) => reader.get().schema_ref(),
        None => Arc::new(Schema::empty()),
    };
    let inputs = readers
        .iter()
        .map(|reader| Ok(reader.get().take()? as SortInput))
        .collect::<PyResult<_>>()?;
    Ok(BatchReader::new(
        schema,
        Box::new(SortedRows::new(inputs, options)),
    ))
}
