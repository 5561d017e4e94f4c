//! Errors of the core as the exceptions of `pyhudi.errors`.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyhudi_avro::AvroError;
use pyhudi_slice::SliceError;
use pyhudi_store::StoreError;
use pyo3::exceptions::PyFileExistsError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Work without the GIL.
pub(crate) trait Released {
    /// Does the work. Its panic is an error of pyhudi's: a `PanicException` is no `Exception`, so that
    /// no `except` catches it.
    fn released<T: Send>(self, work: impl Send + FnOnce() -> T) -> PyResult<T>;
}

impl Released for Python<'_> {
    fn released<T: Send>(self, work: impl Send + FnOnce() -> T) -> PyResult<T> {
        self.detach(|| {
            catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                    .unwrap_or_default()
            })
        })
        .map_err(|text| fault(&text))
    }
}

/// Whether the caller of long work still wants it: raises what Ctrl-C raises, on the main thread, and
/// on a thread of an engine what says that its call has failed.
pub(crate) fn check_interruption() -> Result<(), Box<dyn Error + Send + Sync>> {
    let check = |py: Python<'_>| {
        py.check_signals()?;
        let engine = py.import("pyhudi.engine.local")?;
        engine.call_method0("check_running").map(drop)
    };
    Python::attach(check).map_err(Into::into)
}

fn fault(text: &str) -> PyErr {
    let hint = "This is a fault of pyhudi: report it with this message and what was called.";
    let extra = Python::attach(|py| hint.into_pyobject(py).map(|hint| hint.into_any().unbind()));
    match extra {
        Ok(hint) => raise(
            "HudiError",
            format!("the core gave up: {text}"),
            &[("hint", hint)],
        ),
        Err(never) => match never {},
    }
}

/// An exception of `pyhudi.errors` by name.
fn raise(kind: &str, message: String, extra: &[(&str, Py<PyAny>)]) -> PyErr {
    Python::attach(|py| {
        let make = || -> PyResult<PyErr> {
            let kwargs = PyDict::new(py);
            for (name, value) in extra {
                kwargs.set_item(name, value)?;
            }
            let class = py.import("pyhudi.errors")?.getattr(kind)?;
            Ok(PyErr::from_value(class.call((message,), Some(&kwargs))?))
        };
        make().unwrap_or_else(|error| error)
    })
}

pub(crate) fn store_error(error: StoreError) -> PyErr {
    match error {
        StoreError::NotFound { ref path } => missing(error.to_string(), path),
        StoreError::AlreadyExists { .. } => PyFileExistsError::new_err(error.to_string()),
        StoreError::Unsupported { .. } => raise("UnsupportedTableFeature", error.to_string(), &[]),
        StoreError::Config { what } => config_error(what),
        StoreError::InvalidPath { ref path, .. } => {
            let message = error.to_string();
            corrupt(message, path, None)
        }
        StoreError::Io { .. } => raise("StorageError", error.to_string(), &[]),
    }
}

pub(crate) fn slice_error(error: SliceError) -> PyErr {
    let message = error.to_string();
    match error {
        SliceError::Store(source) => store_error(source),
        SliceError::Merger(source) | SliceError::Caller(source) => match source.downcast::<PyErr>()
        {
            Ok(raised) => *raised,
            Err(_) => raise("SchemaMismatch", message, &[]),
        },
        SliceError::Spill(_) => raise("StorageError", message, &[]),
        SliceError::Unsupported { .. } => raise("UnsupportedTableFeature", message, &[]),
        SliceError::Schema(_) | SliceError::Arrow(_) => raise("SchemaMismatch", message, &[]),
        SliceError::Corrupt { file, offset, .. } => corrupt(message, &file, offset),
    }
}

/// A `FileNotFoundError` too, for those who expect that a file may be gone.
fn missing(message: String, path: &str) -> PyErr {
    let hint = "Call refresh(): a cleaner may have deleted the file since the table was opened.";
    let extra = Python::attach(|py| -> PyResult<_> {
        let file = path.into_pyobject(py)?.into_any().unbind();
        let hint = hint.into_pyobject(py)?.into_any().unbind();
        Ok([("file", file), ("hint", hint)])
    });
    match extra {
        Ok(extra) => raise("MissingFile", message, &extra),
        Err(error) => error,
    }
}

fn corrupt(message: String, file: &str, offset: Option<u64>) -> PyErr {
    let extra = Python::attach(|py| -> PyResult<_> {
        let file = file.into_pyobject(py)?.into_any().unbind();
        let offset = offset.into_pyobject(py)?.into_any().unbind();
        Ok([("file", file), ("offset", offset)])
    });
    match extra {
        Ok(extra) => raise("CorruptTable", message, &extra),
        Err(error) => error,
    }
}

pub(crate) fn avro_error(error: AvroError) -> PyErr {
    let kind = match error {
        AvroError::Unsupported { .. } => "UnsupportedTableFeature",
        AvroError::Corrupt { .. } => "CorruptTable",
        _ => "SchemaMismatch",
    };
    raise(kind, error.to_string(), &[])
}

pub(crate) fn mismatch(message: String) -> PyErr {
    raise("SchemaMismatch", message, &[])
}

pub(crate) fn config_error(message: String) -> PyErr {
    raise("ConfigError", message, &[])
}
