//! Deleting a file or a directory tree.

use std::fs;
use std::path::Path;

use super::{LocalBase, checksum};
use crate::error::is_missing;
use crate::{Result, StoreError};

/// Deletes the file and its checksum file; false when the file was not there.
pub(crate) fn file(base: &LocalBase, path: &str) -> Result<bool> {
    let target = base.locate(path)?;
    if is_gone(base, &target)? {
        return Ok(false);
    }
    let was_there = match fs::remove_file(&target) {
        Ok(()) => true,
        Err(error) if is_missing(&error) => false,
        Err(error) => return Err(StoreError::around(&target, error)),
    };
    checksum::forget(&target)?;
    Ok(was_there)
}

/// Deletes the tree; symbolic links in it are removed, not followed.
pub(crate) fn dir(base: &LocalBase, path: &str) -> Result<()> {
    let target = base.locate(path)?;
    if is_gone(base, &target)? {
        return Ok(());
    }
    match fs::remove_dir_all(&target) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::around(&target, error))
        }
        _ => Ok(()),
    }
}

/// Whether there is nothing to delete behind a symbolic link; what is there is not the table's to
/// delete. A write that was refused behind the link has to be rolled back all the same.
fn is_gone(base: &LocalBase, target: &Path) -> Result<bool> {
    let Err(refusal) = base.check_own(target) else {
        return Ok(false);
    };
    match target.symlink_metadata() {
        Err(error) if is_missing(&error) => Ok(true),
        _ => Err(refusal),
    }
}
