//! `Store`: where a table's bytes live.

use std::collections::HashMap;

use pyhudi_store::{Entry, RequestKind};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{Released, store_error};

type Row = (String, u64, i64);

fn row(entry: Entry) -> Row {
    (entry.path, entry.size, entry.modified_ms)
}

type Totals = (&'static str, u64, u64, u64, u64, u64);

#[pyfunction]
pub fn request_totals() -> Vec<Totals> {
    let of_kind = |kind: RequestKind| {
        let all = kind.totals();
        let bytes = (all.bytes_sent, all.bytes_received);
        (
            kind.name(),
            all.count,
            bytes.0,
            bytes.1,
            all.retries,
            all.throttled,
        )
    };
    RequestKind::ALL.into_iter().map(of_kind).collect()
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct Store(pub(crate) pyhudi_store::Store);

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (uri, options=None))]
    fn new(py: Python<'_>, uri: &str, options: Option<HashMap<String, String>>) -> PyResult<Self> {
        let mut options: Vec<_> = options.unwrap_or_default().into_iter().collect();
        // Stores with the same options share a client.
        options.sort_unstable();
        py.released(|| pyhudi_store::Store::open(uri, &options))?
            .map(Self)
            .map_err(store_error)
    }

    #[getter]
    fn uri(&self) -> &str {
        self.0.uri()
    }

    fn below(&self, folder: &str) -> PyResult<Self> {
        self.0.below(folder).map(Self).map_err(store_error)
    }

    fn read<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.released(|| self.0.read(path))?.map_err(store_error)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn head(&self, py: Python<'_>, path: &str) -> PyResult<Option<Row>> {
        Ok(py
            .released(|| self.0.head(path))?
            .map_err(store_error)?
            .map(row))
    }

    fn list(&self, py: Python<'_>, prefix: &str) -> PyResult<Vec<Row>> {
        let entries = py.released(|| self.0.list(prefix))?.map_err(store_error)?;
        Ok(entries.into_iter().map(row).collect())
    }

    fn list_dir(&self, py: Python<'_>, prefix: &str) -> PyResult<(Vec<String>, Vec<Row>)> {
        let listing = py
            .released(|| self.0.list_dir(prefix))?
            .map_err(store_error)?;
        Ok((listing.dirs, listing.files.into_iter().map(row).collect()))
    }

    fn put(&self, py: Python<'_>, path: &str, data: Vec<u8>) -> PyResult<()> {
        py.released(|| self.0.put(path, data.into()))?
            .map_err(store_error)
    }

    fn put_if_absent(&self, py: Python<'_>, path: &str, data: Vec<u8>) -> PyResult<bool> {
        py.released(|| self.0.put_if_absent(path, data.into()))?
            .map_err(store_error)
    }

    fn set_modified(&self, py: Python<'_>, path: &str, modified_ms: u64) -> PyResult<bool> {
        py.released(|| self.0.set_modified(path, modified_ms))?
            .map_err(store_error)
    }

    fn read_version<'py>(
        &self,
        py: Python<'py>,
        path: &str,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, String)>> {
        let found = py
            .released(|| self.0.read_version(path))?
            .map_err(store_error)?;
        Ok(found.map(|(bytes, version)| (PyBytes::new(py, &bytes), version)))
    }

    #[pyo3(signature = (path, data, expected, durable))]
    fn replace_version(
        &self,
        py: Python<'_>,
        path: &str,
        data: Vec<u8>,
        expected: Option<&str>,
        durable: bool,
    ) -> PyResult<Option<String>> {
        py.released(|| self.0.replace_version(path, data.into(), expected, durable))?
            .map_err(store_error)
    }

    #[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
    fn sync_directories(&self, py: Python<'_>, paths: Vec<String>) -> PyResult<()> {
        py.released(|| self.0.sync_directories(&paths))?
            .map_err(store_error)
    }

    fn delete(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        py.released(|| self.0.delete(path))?.map_err(store_error)
    }

    #[expect(clippy::needless_pass_by_value, reason = "as PyO3 gives it")]
    fn delete_all(&self, py: Python<'_>, paths: Vec<String>) -> PyResult<()> {
        py.released(|| self.0.delete_all(&paths))?
            .map_err(store_error)
    }

    fn delete_dir(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        py.released(|| self.0.delete_dir(path))?
            .map_err(store_error)
    }
}
