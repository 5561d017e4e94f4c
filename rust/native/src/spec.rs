//! Keyword arguments as one object: what a verb is asked, with a field for each.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Keyword arguments that no field has taken yet.
pub(crate) struct Given<'py>(Option<Bound<'py, PyDict>>);

impl<'py> Given<'py> {
    pub(crate) fn new(given: Option<&Bound<'py, PyDict>>) -> PyResult<Self> {
        given.map(PyDictMethods::copy).transpose().map(Self)
    }

    pub(crate) fn take(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(given) = &self.0 else {
            return Ok(None);
        };
        let found = given.get_item(name)?;
        if found.is_some() {
            given.del_item(name)?;
        }
        Ok(found)
    }

    /// No argument is left.
    pub(crate) fn end(&self) -> PyResult<()> {
        match self.0.iter().flatten().next() {
            Some((name, _)) => Err(PyTypeError::new_err(format!("unexpected argument {name}"))),
            None => Ok(()),
        }
    }
}

/// A struct of keyword arguments: `of` takes them from Python. A field without a default is needed.
macro_rules! spec {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty $(= $default:expr)?,)* }) => {
        $(#[$doc])*
        struct $name {
            $($field: $type,)*
        }

        impl $name {
            fn of(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                let given = crate::spec::Given::new(given)?;
                let spec = Self {
                    $($field: match given.take(stringify!($field))? {
                        Some(value) => value.extract::<$type>()?,
                        None => spec!(@missing $field $($default)?),
                    },)*
                };
                given.end()?;
                Ok(spec)
            }
        }
    };
    (@missing $field:ident $default:expr) => { $default };
    (@missing $field:ident) => {
        return Err(pyo3::exceptions::PyTypeError::new_err(concat!(
            "missing argument ",
            stringify!($field)
        )))
    };
}

pub(crate) use spec;
