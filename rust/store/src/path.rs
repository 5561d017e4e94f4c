//! Which relative paths are well formed. Everything else in a name is the storage's business.

use crate::{Result, StoreError};

/// Checks the path of a file.
pub(crate) fn check_file(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(StoreError::invalid_path(path, "the path is empty"));
    }
    check_prefix(path)
}

/// Checks the path of a directory; the empty path is the base itself.
pub(crate) fn check_prefix(path: &str) -> Result<()> {
    if path.is_empty() {
        return Ok(());
    }
    if path.contains('\0') {
        return Err(StoreError::invalid_path(path, "the path holds a NUL"));
    }
    for part in path.split('/') {
        match part {
            "" => {
                return Err(StoreError::invalid_path(
                    path,
                    "the path is absolute or has an empty part",
                ));
            }
            "." | ".." => {
                return Err(StoreError::invalid_path(path, "the path has a dot part"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// `prefix/name`, where the empty prefix is the base.
pub(crate) fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}/{name}")
    }
}
