//! Where a table lies on the local file system, and which folders are its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Result, StoreError, path};

/// A table's base, or a folder of it: an absolute path. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct LocalBase {
    path: Arc<str>,
    /// The number of bytes of the path that are the table's base. A link there is the user's own.
    table: usize,
}

impl LocalBase {
    pub(crate) fn new(base: String) -> Self {
        let table = base.len();
        Self {
            path: base.into(),
            table,
        }
    }

    /// A folder of the table as a base of its own.
    pub(crate) fn below(&self, folder: &str) -> Result<Self> {
        path::check_file(folder)?;
        let path = format!("{}/{folder}", self.path.trim_end_matches('/'));
        Ok(Self {
            path: path.into(),
            table: self.table,
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.path
    }

    pub(crate) fn root(&self) -> &Path {
        Path::new(&*self.path)
    }

    /// The absolute path of a file.
    pub(crate) fn locate(&self, path: &str) -> Result<PathBuf> {
        path::check_file(path)?;
        Ok(self.root().join(path))
    }

    /// The absolute path of a file that is to be made or replaced.
    pub(crate) fn locate_own(&self, path: &str) -> Result<PathBuf> {
        let full = self.locate(path)?;
        self.check_own(&full)?;
        Ok(full)
    }

    /// An error where a symbolic link of the table's leads to the file's folder: what is there can
    /// belong to anyone. Directories that are still missing are created, and so the table's own.
    pub(crate) fn check_own(&self, full: &Path) -> Result<()> {
        let table = Path::new(&self.path[..self.table]);
        let folders = full.ancestors().skip(1);
        for folder in folders.take_while(|folder| *folder != table) {
            let found = fs::symlink_metadata(folder);
            if found.is_ok_and(|metadata| metadata.is_symlink()) {
                return Err(StoreError::Unsupported {
                    what: format!(
                        "changing {} behind the symbolic link {}",
                        full.display(),
                        folder.display()
                    ),
                });
            }
        }
        Ok(())
    }
}
