//! Runs of version 1: a start and a difference, or numbers written out.

use super::Stream;
use super::ints::base_128;
use crate::{ReadAt, Result};

pub(super) fn read_run<S: ReadAt>(
    stream: &mut Stream<S>,
    signed: bool,
    out: &mut Vec<i64>,
) -> Result<()> {
    let control = stream.byte()?;
    if control >= 0x80 {
        for _ in 0..0x100 - usize::from(control) {
            out.push(base_128(stream, signed)?);
        }
        return Ok(());
    }
    let difference = i64::from(stream.byte()? as i8);
    let mut value = base_128(stream, signed)?;
    for _ in 0..usize::from(control) + 3 {
        out.push(value);
        value = value.wrapping_add(difference);
    }
    Ok(())
}
