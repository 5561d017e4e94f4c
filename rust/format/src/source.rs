//! Where bytes come from. Implementations for files and object stores live in other crates.

use std::sync::Arc;

use bytes::Bytes;

use crate::{FormatError, Result};

/// Random access to a file or a part of one.
pub trait ReadAt {
    /// Total length in bytes; does not change while a decoder holds the source.
    fn size(&self) -> u64;

    /// Exactly `len` bytes at `offset`. A range beyond [`size`](Self::size) is an error.
    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes>;

    /// Where bytes may be other than zero from `offset` on: behind the hole of a sparse file, at its
    /// [`size`](Self::size) if that has no end. `offset` itself where the source knows no holes.
    fn next_data(&self, offset: u64) -> u64 {
        offset
    }

    /// Fails where the caller wants no more: long searches ask from time to time.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The range as indexes into memory of length `size`, or an error that names it.
fn range(size: usize, offset: u64, len: usize) -> Result<std::ops::Range<usize>> {
    usize::try_from(offset)
        .ok()
        .and_then(|start| Some(start..start.checked_add(len)?))
        .filter(|range| range.end <= size)
        .ok_or_else(|| {
            FormatError::corrupt(offset, format!("{len} bytes wanted, the whole has {size}"))
        })
}

impl ReadAt for Bytes {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes> {
        Ok(self.slice(range(self.len(), offset, len)?))
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes> {
        let range = range(self.len(), offset, len)?;
        Ok(Bytes::copy_from_slice(self.get(range).unwrap_or_default()))
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes> {
        (**self).read_at(offset, len)
    }

    fn next_data(&self, offset: u64) -> u64 {
        (**self).next_data(offset)
    }

    fn check(&self) -> Result<()> {
        (**self).check()
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Arc<T> {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes> {
        (**self).read_at(offset, len)
    }

    fn next_data(&self, offset: u64) -> u64 {
        (**self).next_data(offset)
    }

    fn check(&self) -> Result<()> {
        (**self).check()
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Box<T> {
    fn size(&self) -> u64 {
        (**self).size()
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes> {
        (**self).read_at(offset, len)
    }

    fn next_data(&self, offset: u64) -> u64 {
        (**self).next_data(offset)
    }

    fn check(&self) -> Result<()> {
        (**self).check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_beyond_the_end_is_an_error() {
        let bytes = Bytes::from_static(b"abc");
        assert_eq!(bytes.read_at(1, 2).unwrap(), "bc");
        assert_eq!(bytes.read_at(3, 0).unwrap(), "");
        for (offset, len) in [(1, 3), (4, 0), (u64::MAX, 1), (1, usize::MAX)] {
            assert!(bytes.read_at(offset, len).is_err());
            assert!((*b"abc").as_slice().read_at(offset, len).is_err());
        }
    }
}
