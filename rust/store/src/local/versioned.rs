//! Compare and swap of one small file: what locks are made of.
//!
//! A guard file next to it is locked by the system for the moment of the swap. The system takes
//! that lock from a process that dies, and the file is replaced whole, so nothing needs mending.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::{dirs, put, read};
use crate::{Result, StoreError};

/// The file and its version; None if it does not exist. Two versions of the same bytes are one.
pub(crate) fn read(target: &Path) -> Result<Option<(Bytes, String)>> {
    match read::whole(target) {
        Ok(bytes) => {
            let version = version(&bytes);
            Ok(Some((bytes, version)))
        }
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the file if its version is still `expected`, none for no file: the new version, or none
/// where another writer was first.
///
/// durable: it means something after a crash of the machine.
pub(crate) fn replace(
    target: &Path,
    bytes: &[u8],
    expected: Option<&str>,
    durable: bool,
) -> Result<Option<String>> {
    let guard = guard(target)?;
    let replaced = replace_guarded(target, bytes, expected, durable);
    // Closing would not do: a process that was forked in between has the file open, too.
    guard
        .unlock()
        .map_err(|source| StoreError::around(target, source))?;
    Ok(replaced?.then(|| version(bytes)))
}

fn replace_guarded(
    target: &Path,
    bytes: &[u8],
    expected: Option<&str>,
    durable: bool,
) -> Result<bool> {
    let found = read(target)?.map(|(_, version)| version);
    if found.as_deref() != expected {
        return Ok(false);
    }
    match (expected, durable) {
        // Other programs create such files without looking at the guard.
        (None, true) => put::if_absent(target, bytes),
        (None, false) => put::if_absent_unsynced(target, bytes),
        (Some(_), true) => put::replace(target, bytes).map(|()| true),
        (Some(_), false) => put::replace_unsynced(target, bytes).map(|()| true),
    }
}

/// Locked until it is unlocked, or the last process that has it open closes it.
fn guard(target: &Path) -> Result<File> {
    let path = guard_path(target);
    let file = dirs::with_parent(&path, || {
        File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
    })?;
    file.lock().map_err(|source| match source.kind() {
        io::ErrorKind::Unsupported => StoreError::Unsupported {
            what: format!("locks of the file system at {}", path.display()),
        },
        _ => StoreError::around(&path, source),
    })?;
    Ok(file)
}

fn guard_path(target: &Path) -> PathBuf {
    let mut name = OsString::from(target.file_name().unwrap_or_default());
    name.push(".guard");
    target.with_file_name(name)
}

/// Compared within a process alone.
fn version(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
