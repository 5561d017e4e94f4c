//! The crate's one error, by what the caller does next.

use arrow::error::ArrowError;

/// What can go wrong between Avro and Arrow.
#[derive(Debug, thiserror::Error)]
pub enum AvroError {
    /// The schema is not valid, or values and schema do not fit together: fix the call.
    #[error("avro schema: {0}")]
    Schema(String),
    /// The bytes are damaged, or were written with another schema.
    #[error("corrupt avro data: {what}")]
    Corrupt {
        /// Where and what.
        what: String,
    },
    /// Valid Avro that pyhudi does not handle.
    #[error("avro feature not supported: {feature}")]
    Unsupported {
        /// The feature, with the field it stands at.
        feature: String,
    },
    /// An error of the Arrow library.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// The crate's result.
pub type Result<T, E = AvroError> = std::result::Result<T, E>;

pub(crate) fn schema_error<T>(what: impl Into<String>) -> Result<T> {
    Err(AvroError::Schema(what.into()))
}

pub(crate) fn corrupt<T>(what: impl Into<String>) -> Result<T> {
    Err(AvroError::Corrupt { what: what.into() })
}

pub(crate) fn unsupported<T>(feature: impl Into<String>) -> Result<T> {
    Err(AvroError::Unsupported {
        feature: feature.into(),
    })
}
