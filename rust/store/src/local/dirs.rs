//! Directories that survive a crash together with the files in them.

use std::fs;
use std::io;
use std::path::Path;

use super::system;
use crate::{Result, StoreError};

/// Runs `make`, which creates something in `target`'s directory; makes the directory when it turns
/// out to be missing, so that the usual case costs no extra call.
pub(crate) fn with_parent<T>(target: &Path, make: impl Fn() -> io::Result<T>) -> Result<T> {
    match make() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = target.parent().unwrap_or(target);
            ensure(parent).map_err(|source| StoreError::around(parent, source))?;
            make().map_err(|source| StoreError::on_create(target, source))
        }
        other => other.map_err(|source| StoreError::on_create(target, source)),
    }
}

/// Makes the names in `target`'s directory durable.
pub(crate) fn sync_parent(target: &Path) -> Result<()> {
    let parent = target.parent().unwrap_or(target);
    sync(parent).map_err(|source| StoreError::around(parent, source))
}

/// Makes the names in the directory durable; one that is missing has none.
pub(crate) fn sync_if_exists(dir: &Path) -> Result<()> {
    match sync(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|source| StoreError::around(dir, source)),
    }
}

fn ensure(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let Some(parent) = dir.parent() else {
        return Ok(());
    };
    ensure(parent)?;
    match fs::create_dir(dir) {
        Ok(()) => sync(parent),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn sync(dir: &Path) -> io::Result<()> {
    match system::sync_dir(dir) {
        // Some network and FUSE file systems have no fsync for directories.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}
