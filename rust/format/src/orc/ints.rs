//! Whole numbers in runs, of both versions.

use super::{Stream, ints_v1, ints_v2};
use crate::{ReadAt, Result};

/// How a stream holds its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntsForm {
    /// Of version 2 (`DIRECT_V2`, `DICTIONARY_V2`).
    pub v2: bool,
    /// Whether there are negative ones.
    pub signed: bool,
}

/// The whole numbers of a stream.
#[derive(Debug)]
pub struct Ints<S> {
    stream: Stream<S>,
    form: IntsForm,
    /// Values of the run at hand, 512 at most.
    run: Vec<i64>,
    at: usize,
}

impl<S: ReadAt> Ints<S> {
    /// The numbers of a stream.
    pub fn new(stream: Stream<S>, form: IntsForm) -> Self {
        Self {
            stream,
            form,
            run: Vec::new(),
            at: 0,
        }
    }

    /// The next number. Unsigned ones beyond `i64` are negative.
    ///
    /// # Errors
    /// As [`Stream::byte`].
    #[expect(clippy::should_implement_trait, reason = "there is no end to know of")]
    pub fn next(&mut self) -> Result<i64> {
        loop {
            if let Some(value) = self.run.get(self.at) {
                self.at += 1;
                return Ok(*value);
            }
            self.run.clear();
            self.at = 0;
            if self.form.v2 {
                ints_v2::read_run(&mut self.stream, self.form.signed, &mut self.run)?;
            } else {
                ints_v1::read_run(&mut self.stream, self.form.signed, &mut self.run)?;
            }
        }
    }

    /// The next number, as a count of something.
    ///
    /// # Errors
    /// As [`Stream::byte`]; it is negative.
    pub fn count(&mut self) -> Result<usize> {
        let value = self.next()?;
        match usize::try_from(value) {
            Ok(count) => Ok(count),
            Err(_) => self.stream.damaged(format!("a count of {value}")),
        }
    }
}

/// The number that a zig-zag number stands for.
pub(super) fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The next number of base 128.
pub(super) fn base_128<S: ReadAt>(stream: &mut Stream<S>, is_signed: bool) -> Result<i64> {
    let number = stream.varint()?;
    Ok(if is_signed {
        signed(number)
    } else {
        number as i64
    })
}
