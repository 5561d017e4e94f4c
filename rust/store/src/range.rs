//! What of a file can be read: ranges that are all there, and all of it where it is not too large.

use std::io;
use std::ops::Range;

use crate::StoreError;

/// The largest file that is read whole: files of a timeline and of its archive, which are smaller.
pub(crate) const MAX_WHOLE: u64 = 2 << 30;

/// A file that is too large to be read whole by mistake.
pub(crate) fn too_large(path: &str, size: u64) -> StoreError {
    StoreError::Unsupported {
        what: format!("{path}: {size} bytes to be read whole, {MAX_WHOLE} at most"),
    }
}

/// An error unless `range` is within a file of `size` bytes.
pub(crate) fn check_range(size: u64, range: &Range<u64>) -> io::Result<()> {
    if range.start > range.end {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("bytes {}..{} asked for", range.start, range.end),
        ));
    }
    if range.end > size {
        return Err(beyond_end(range, size));
    }
    Ok(())
}

/// The file ends within or before the range.
pub(crate) fn beyond_end(range: &Range<u64>, size: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!(
            "bytes {}..{} asked for of a file of {size} bytes",
            range.start, range.end
        ),
    )
}

/// An error unless as many bytes came as `range` has.
pub(crate) fn check_came(range: &Range<u64>, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() as u64 == range.end - range.start {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!(
            "{} bytes came for {}..{}",
            bytes.len(),
            range.start,
            range.end
        ),
    ))
}
