//! Which ranges of a file can be read: those that are all there.

use std::io;
use std::ops::Range;

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
