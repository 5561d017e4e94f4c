//! The crate's one error, by what the caller does next.

use std::io;
use std::path::Path;

use pyhudi_format::FormatError;

/// What went wrong; `path` is absolute, or a URI, so that a message can stand alone.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such file.
    #[error("{path}: not found")]
    NotFound {
        /// The absolute path.
        path: String,
    },
    /// The file was to be new, and is there.
    #[error("{path}: already exists")]
    AlreadyExists {
        /// The absolute path.
        path: String,
    },
    /// This build, or the storage, cannot do it.
    #[error("not supported: {what}")]
    Unsupported {
        /// The scheme, option or ability that is missing.
        what: String,
    },
    /// A location or an option makes no sense. Holds no option's value but one that is a number.
    #[error("{what}")]
    Config {
        /// What is wrong.
        what: String,
    },
    /// A path that names nothing below the base.
    #[error("{path:?} is no path of a file in the table: {reason}")]
    InvalidPath {
        /// The path as it was given.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The storage refused, or the request cannot be satisfied.
    #[error("{path}: {source}")]
    Io {
        /// The absolute path.
        path: String,
        /// The cause. A range beyond the end is `UnexpectedEof`.
        source: io::Error,
    },
}

/// The crate's result.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

impl StoreError {
    /// An I/O error on opening the file, where "not found" speaks of that file.
    pub(crate) fn on_open(path: &Path, source: io::Error) -> Self {
        if is_missing(&source) {
            Self::NotFound { path: text(path) }
        } else if source.kind() == io::ErrorKind::Unsupported {
            Self::Unsupported {
                what: format!("{}: {source}", text(path)),
            }
        } else {
            Self::around(path, source)
        }
    }

    /// An I/O error on creating the file, where "not found" can only speak of its directory.
    pub(crate) fn on_create(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AlreadyExists => Self::AlreadyExists { path: text(path) },
            _ => Self::around(path, source),
        }
    }

    /// Any other I/O error: on a directory, on a staged file, in the middle of a file.
    pub(crate) fn around(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: text(path),
            source,
        }
    }

    /// An error of writing to a stream: the store's own where there is one inside.
    pub fn of_stream(path: &str, source: io::Error) -> Self {
        match source.downcast::<Self>() {
            Ok(own) => own,
            Err(source) => Self::Io {
                path: path.to_owned(),
                source,
            },
        }
    }

    /// A path that names nothing on any storage.
    pub(crate) fn invalid_path(path: &str, reason: &'static str) -> Self {
        Self::InvalidPath {
            path: path.to_owned(),
            reason,
        }
    }

    fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NotFound { .. } => io::ErrorKind::NotFound,
            Self::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
            Self::Unsupported { .. } => io::ErrorKind::Unsupported,
            Self::Config { .. } | Self::InvalidPath { .. } => io::ErrorKind::InvalidInput,
            Self::Io { source, .. } => source.kind(),
        }
    }
}

/// Keeps the kind and, as its inner error, the path.
impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<StoreError> for FormatError {
    fn from(error: StoreError) -> Self {
        Self::Read(Box::new(error))
    }
}

/// True when nothing is there: on an object store, too, there is nothing below a file.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
