//! Reading: whole files, and exact ranges of an open one.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

use super::system;
use crate::range::{MAX_WHOLE, beyond_end, check_range, too_large};
use crate::{Result, StoreError};

/// All bytes of the file.
pub(crate) fn whole(target: &Path) -> Result<Bytes> {
    let (file, size) = open(target).map_err(|source| StoreError::on_open(target, source))?;
    if size > MAX_WHOLE {
        return Err(too_large(&target.display().to_string(), size));
    }
    let mut buffer = Vec::with_capacity(size as usize);
    // Not more than it had when it was opened, should it grow in between.
    file.take(MAX_WHOLE)
        .read_to_end(&mut buffer)
        .map_err(|source| StoreError::around(target, source))?;
    Ok(buffer.into())
}

/// Opens a regular file and tells its size.
pub(crate) fn open(target: &Path) -> io::Result<(File, u64)> {
    let file = match system::open(target) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(no_regular_file()),
        other => other?,
    };
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(no_regular_file());
    }
    Ok((file, metadata.len()))
}

/// What is neither file nor directory: it could keep a reader waiting, or never end.
pub(crate) fn no_regular_file() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "a pipe, socket or device in place of a file",
    )
}

/// Exactly the bytes of `range` from a file of `size` bytes. The bound is checked first, so that a
/// length from a damaged file never becomes an allocation.
pub(crate) fn range(file: &File, size: u64, range: &Range<u64>) -> io::Result<Bytes> {
    check_range(size, range)?;
    let len = usize::try_from(range.end - range.start)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut buffer = vec![0; len];
    system::read_exact_at(file, &mut buffer, range.start).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => beyond_end(range, size),
        _ => error,
    })?;
    Ok(buffer.into())
}
