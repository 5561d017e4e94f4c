//! Deleting a file or a directory tree.

use std::fs;
use std::path::Path;

use super::checksum;
use crate::error::is_missing;
use crate::{Result, StoreError};

/// Deletes the file and its checksum file; false when the file was not there.
pub(crate) fn file(target: &Path) -> Result<bool> {
    let was_there = match fs::remove_file(target) {
        Ok(()) => true,
        Err(error) if is_missing(&error) => false,
        Err(error) => return Err(StoreError::around(target, error)),
    };
    checksum::forget(target)?;
    Ok(was_there)
}

/// Deletes the tree; symbolic links in it are removed, not followed.
pub(crate) fn dir(target: &Path) -> Result<()> {
    match fs::remove_dir_all(target) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::around(target, error))
        }
        _ => Ok(()),
    }
}
