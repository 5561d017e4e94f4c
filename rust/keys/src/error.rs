//! The crate's one error.

use arrow::error::ArrowError;

/// Why rows have no keys, or values no text.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The rows are not what was said.
    #[error("{0}")]
    Schema(String),
    /// A computation on batches failed.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// The crate's result.
pub type Result<T, E = KeysError> = std::result::Result<T, E>;
