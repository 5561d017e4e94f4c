//! Reading: whole files, and exact ranges of an open one.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;

use crate::range::{beyond_end, check_range};
use crate::{Result, StoreError};

/// All bytes of the file.
pub(crate) fn whole(target: &Path) -> Result<Bytes> {
    fs::read(target)
        .map(Bytes::from)
        .map_err(|source| StoreError::on_open(target, source))
}

/// Opens a file, not a directory, and tells its size.
pub(crate) fn open(target: &Path) -> io::Result<(File, u64)> {
    let file = File::open(target)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok((file, metadata.len()))
}

/// Exactly the bytes of `range` from a file of `size` bytes. The bound is checked first, so that a
/// length from a damaged file never becomes an allocation.
pub(crate) fn range(file: &File, size: u64, range: &Range<u64>) -> io::Result<Bytes> {
    check_range(size, range)?;
    let len = usize::try_from(range.end - range.start)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut buffer = vec![0; len];
    file.read_exact_at(&mut buffer, range.start)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => beyond_end(range, size),
            _ => error,
        })?;
    Ok(buffer.into())
}
