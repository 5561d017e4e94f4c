//! The crate's one error, by what the caller does next.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::error::ArrowError;
use parquet::errors::ParquetError;
use pyhudi_avro::AvroError;
use pyhudi_format::FormatError;
use pyhudi_keys::KeysError;
use pyhudi_merge::MergeError;
use pyhudi_store::{Interrupted, StoreError};

/// What went wrong with a file slice.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    /// A file is damaged.
    #[error("{file} is damaged{}: {what}", at(*offset))]
    Corrupt {
        /// The file, as storage knows it.
        file: String,
        /// Where in the file, when that is known.
        offset: Option<u64>,
        /// Expected and found.
        what: String,
    },
    /// Something that pyhudi does not read or write.
    #[error("not supported: {feature}")]
    Unsupported {
        /// What it is, by its name in Hudi where it has one.
        feature: String,
    },
    /// The data do not fit the schema.
    #[error("{0}")]
    Schema(String),
    /// The storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Local files for records beyond the memory limit failed.
    #[error("local files failed: {0}")]
    Spill(String),
    /// A merger that is not built in failed.
    #[error("the merger failed: {0}")]
    Merger(Box<dyn std::error::Error + Send + Sync>),
    /// What the caller was asked for while files were written failed.
    #[error("{0}")]
    Caller(Box<dyn std::error::Error + Send + Sync>),
    /// A computation on batches failed.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// The crate's result.
pub type Result<T, E = SliceError> = std::result::Result<T, E>;

/// The Parquet and Arrow crates panic on some damaged files: that is damage, not the end of Python.
///
/// # Errors
/// Those of the work, and that `file` is damaged.
pub fn guarded<T>(file: &str, offset: Option<u64>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("unknown");
        Err(SliceError::Corrupt {
            file: file.to_owned(),
            offset,
            what: format!("its decoder gave up: {what}"),
        })
    })
}

fn at(offset: Option<u64>) -> String {
    offset
        .map(|offset| format!(" at byte {offset}"))
        .unwrap_or_default()
}

impl From<KeysError> for SliceError {
    fn from(error: KeysError) -> Self {
        match error {
            KeysError::Schema(what) => Self::Schema(what),
            KeysError::Arrow(error) => Self::Arrow(error),
        }
    }
}

impl SliceError {
    /// The error, of a file where what it is about is rows of one.
    pub(crate) fn in_rows_of(self, file: &str, offset: Option<u64>) -> Self {
        match self {
            Self::Schema(what) => Self::Corrupt {
                file: file.to_owned(),
                offset,
                what,
            },
            other => other,
        }
    }

    /// The error with a place in the file, if it had none.
    pub(crate) fn at(self, start: u64) -> Self {
        match self {
            Self::Corrupt {
                file,
                offset: None,
                what,
            } => Self::Corrupt {
                file,
                offset: Some(start),
                what,
            },
            other => other,
        }
    }

    /// The error with the file of the rows, where what found it knew rows alone.
    pub(crate) fn of_rows(self, path: Option<&str>) -> Self {
        match self {
            Self::Corrupt { file, offset, what } if file.is_empty() => Self::Corrupt {
                file: path.unwrap_or("a file").to_owned(),
                offset,
                what,
            },
            other => other,
        }
    }

    /// An error of the format crate about bytes that start at `start` of `file`.
    pub fn format(file: &str, start: u64, error: FormatError) -> Self {
        match error {
            FormatError::Corrupt { offset, what } => Self::Corrupt {
                file: file.to_owned(),
                offset: Some(start + offset),
                what,
            },
            FormatError::Unsupported { feature } => Self::Unsupported {
                feature: format!("{feature} ({file})"),
            },
            FormatError::Read(source) => match source.downcast::<StoreError>() {
                Ok(store) => Self::Store(*store),
                Err(other) => match other.downcast::<Interrupted>() {
                    Ok(interrupted) => Self::Caller(interrupted.0),
                    Err(other) => Self::Corrupt {
                        file: file.to_owned(),
                        offset: None,
                        what: other.to_string(),
                    },
                },
            },
        }
    }

    /// An error of the Avro crate about a block at `start` of `file`.
    pub fn avro(file: &str, start: u64, error: AvroError) -> Self {
        match error {
            AvroError::Unsupported { feature } => Self::Unsupported {
                feature: format!("{feature} ({file})"),
            },
            other => Self::Corrupt {
                file: file.to_owned(),
                offset: Some(start),
                what: other.to_string(),
            },
        }
    }

    /// An error while a base file, or a Parquet block at `start` of `file`, was read.
    pub fn parquet(file: &str, start: Option<u64>, error: ParquetError) -> Self {
        match error {
            ParquetError::NYI(feature) => Self::Unsupported {
                feature: format!("{feature} ({file})"),
            },
            ParquetError::External(source) => match store_error(source) {
                Ok(store) => Self::Store(*store),
                Err(other) => Self::Corrupt {
                    file: file.to_owned(),
                    offset: start,
                    what: other.to_string(),
                },
            },
            other => Self::Corrupt {
                file: file.to_owned(),
                offset: start,
                what: other.to_string(),
            },
        }
    }
}

/// The storage's own error, also where it came through `std::io`.
fn store_error(
    source: Box<dyn std::error::Error + Send + Sync>,
) -> Result<Box<StoreError>, Box<dyn std::error::Error + Send + Sync>> {
    match source.downcast::<std::io::Error>() {
        Ok(io) => match io.downcast::<StoreError>() {
            Ok(store) => Ok(Box::new(store)),
            Err(other) => Err(Box::new(other)),
        },
        Err(other) => other.downcast::<StoreError>(),
    }
}

impl From<MergeError> for SliceError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Arrow(source) => Self::Arrow(source),
            MergeError::Merger(source) => Self::Merger(source),
            other => Self::Schema(other.to_string()),
        }
    }
}
