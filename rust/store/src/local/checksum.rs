//! Hadoop's `.<name>.crc`: never written here, removed when it would no longer be true.

use std::path::Path;
use std::{fs, io};

use crate::error::is_missing;
use crate::{Result, StoreError};

/// Removes the checksum file of `target`. Call it before new content becomes visible: Java reads a
/// file without a checksum, and refuses one with a wrong checksum.
pub(crate) fn forget(target: &Path) -> Result<()> {
    let Some(name) = target.file_name() else {
        return Ok(());
    };
    let mut side = std::ffi::OsString::from(".");
    side.push(name);
    side.push(".crc");
    match fs::remove_file(target.with_file_name(side)) {
        Err(error) if !is_missing(&error) && error.kind() != io::ErrorKind::InvalidFilename => {
            Err(StoreError::around(target, error))
        }
        _ => Ok(()),
    }
}
