//! Runs of bytes, and the booleans that they hold.

use super::Stream;
use crate::{ReadAt, Result};

/// Bytes in runs of one value, or written out.
#[derive(Debug)]
pub struct ByteRuns<S> {
    stream: Stream<S>,
    left: usize,
    /// The value of a run; none where bytes are written out.
    value: Option<u8>,
}

impl<S: ReadAt> ByteRuns<S> {
    /// The runs of a stream.
    pub fn new(stream: Stream<S>) -> Self {
        Self {
            stream,
            left: 0,
            value: None,
        }
    }

    /// The next byte.
    ///
    /// # Errors
    /// As [`Stream::byte`].
    #[expect(clippy::should_implement_trait, reason = "there is no end to know of")]
    pub fn next(&mut self) -> Result<u8> {
        if self.left == 0 {
            let control = self.stream.byte()?;
            if control < 0x80 {
                self.left = usize::from(control) + 3;
                self.value = Some(self.stream.byte()?);
            } else {
                self.left = 0x100 - usize::from(control);
                self.value = None;
            }
        }
        self.left -= 1;
        match self.value {
            Some(value) => Ok(value),
            None => self.stream.byte(),
        }
    }
}

/// Booleans, eight to a byte, the highest bit first.
#[derive(Debug)]
pub struct Bits<S> {
    bytes: ByteRuns<S>,
    byte: u8,
    left: u32,
}

impl<S: ReadAt> Bits<S> {
    /// The booleans of a stream.
    pub fn new(stream: Stream<S>) -> Self {
        Self {
            bytes: ByteRuns::new(stream),
            byte: 0,
            left: 0,
        }
    }

    /// The next boolean.
    ///
    /// # Errors
    /// As [`Stream::byte`].
    #[expect(clippy::should_implement_trait, reason = "there is no end to know of")]
    pub fn next(&mut self) -> Result<bool> {
        if self.left == 0 {
            self.byte = self.bytes.next()?;
            self.left = 8;
        }
        self.left -= 1;
        Ok((self.byte >> self.left) & 1 == 1)
    }
}
