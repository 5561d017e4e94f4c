//! Where a table lies on the local file system.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Result, path};

/// A table's base: an absolute path. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct LocalBase(Arc<str>);

impl LocalBase {
    pub(crate) fn new(base: String) -> Self {
        Self(base.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn root(&self) -> &Path {
        Path::new(&*self.0)
    }

    /// The absolute path of a file.
    pub(crate) fn locate(&self, path: &str) -> Result<PathBuf> {
        path::check_file(path)?;
        Ok(self.root().join(path))
    }
}
