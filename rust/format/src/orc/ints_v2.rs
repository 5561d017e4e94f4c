//! Runs of version 2, of four kinds.

use super::Stream;
use super::ints::{base_128, signed};
use crate::{ReadAt, Result};

pub(super) fn read_run<S: ReadAt>(
    stream: &mut Stream<S>,
    is_signed: bool,
    out: &mut Vec<i64>,
) -> Result<()> {
    let first = stream.byte()?;
    match first >> 6 {
        0 => short_repeat(stream, first, is_signed, out),
        1 => direct(stream, first, is_signed, out),
        2 => patched_base(stream, first, out),
        _ => delta(stream, first, is_signed, out),
    }
}

fn short_repeat<S: ReadAt>(
    stream: &mut Stream<S>,
    first: u8,
    is_signed: bool,
    out: &mut Vec<i64>,
) -> Result<()> {
    let value = big_endian(stream, u32::from(first >> 3 & 7) + 1)?;
    let value = if is_signed {
        signed(value)
    } else {
        value as i64
    };
    out.resize(usize::from(first & 7) + 3, value);
    Ok(())
}

fn direct<S: ReadAt>(
    stream: &mut Stream<S>,
    first: u8,
    is_signed: bool,
    out: &mut Vec<i64>,
) -> Result<()> {
    let width = width_of(first >> 1 & 31);
    let length = length_of(first, stream.byte()?);
    let mut packed = Packed::new(stream, width);
    for _ in 0..length {
        let value = packed.next()?;
        out.push(if is_signed {
            signed(value)
        } else {
            value as i64
        });
    }
    Ok(())
}

/// Differences from the least value, of which the widest have their high bits apart.
fn patched_base<S: ReadAt>(stream: &mut Stream<S>, first: u8, out: &mut Vec<i64>) -> Result<()> {
    let width = width_of(first >> 1 & 31);
    let length = length_of(first, stream.byte()?);
    let (third, fourth) = (stream.byte()?, stream.byte()?);
    let base_bytes = u32::from(third >> 5) + 1;
    let patch_width = width_of(third & 31);
    let gap_width = u32::from(fourth >> 5) + 1;
    let patches = usize::from(fourth & 31);
    let base = sign_and_magnitude(big_endian(stream, base_bytes)?, base_bytes);
    let mut values = Vec::with_capacity(length);
    let mut packed = Packed::new(stream, width);
    for _ in 0..length {
        values.push(packed.next()?);
    }
    let mut packed = Packed::new(stream, closest_width(gap_width + patch_width));
    let mut at = 0_usize;
    for _ in 0..patches {
        let patch = packed.next()?;
        let gap = patch.checked_shr(patch_width).unwrap_or(0);
        let patch = patch & low_bits(patch_width);
        at = at.saturating_add(gap as usize);
        // A gap of 255 without a patch goes on in the next entry; the value that it meets stays.
        let high = patch.checked_shl(width).unwrap_or(0);
        match values.get_mut(at) {
            Some(value) => *value |= high,
            None if patch == 0 => {}
            None => return stream.damaged("a patch beyond its run"),
        }
    }
    out.extend(values.iter().map(|value| base.wrapping_add(*value as i64)));
    Ok(())
}

fn delta<S: ReadAt>(
    stream: &mut Stream<S>,
    first: u8,
    is_signed: bool,
    out: &mut Vec<i64>,
) -> Result<()> {
    let code = first >> 1 & 31;
    let length = length_of(first, stream.byte()?);
    let mut value = base_128(stream, is_signed)?;
    let difference = base_128(stream, true)?;
    out.push(value);
    if code == 0 {
        for _ in 1..length {
            value = value.wrapping_add(difference);
            out.push(value);
        }
        return Ok(());
    }
    if length < 2 {
        return Ok(());
    }
    value = value.wrapping_add(difference);
    out.push(value);
    let mut packed = Packed::new(stream, width_of(code));
    for _ in 2..length {
        let step = packed.next()? as i64;
        value = if difference < 0 {
            value.wrapping_sub(step)
        } else {
            value.wrapping_add(step)
        };
        out.push(value);
    }
    Ok(())
}

/// Values of a run, from the last bit of its first byte and its second.
fn length_of(first: u8, second: u8) -> usize {
    (usize::from(first & 1) << 8 | usize::from(second)) + 1
}

/// The bits of a value, from five bits.
fn width_of(code: u8) -> u32 {
    match code {
        0..=23 => u32::from(code) + 1,
        24 => 26,
        25 => 28,
        26 => 30,
        27 => 32,
        28 => 40,
        29 => 48,
        30 => 56,
        _ => 64,
    }
}

/// The minimum encodable width for this number of bits.
fn closest_width(bits: u32) -> u32 {
    (0..32)
        .map(width_of)
        .find(|width| *width >= bits)
        .unwrap_or(64)
}

fn low_bits(count: u32) -> u64 {
    u64::MAX.checked_shr(64 - count).unwrap_or(0)
}

fn big_endian<S: ReadAt>(stream: &mut Stream<S>, bytes: u32) -> Result<u64> {
    let mut value = 0;
    for _ in 0..bytes {
        value = value << 8 | u64::from(stream.byte()?);
    }
    Ok(value)
}

/// The highest bit of the bytes says that the value is negative.
fn sign_and_magnitude(value: u64, bytes: u32) -> i64 {
    let sign = 1_u64 << (bytes * 8 - 1);
    if value & sign == 0 {
        value as i64
    } else {
        ((value & !sign) as i64).wrapping_neg()
    }
}

/// Numbers of some bits, one after the other, in whole bytes together.
struct Packed<'a, S> {
    stream: &'a mut Stream<S>,
    width: u32,
    byte: u8,
    left: u32,
}

impl<'a, S: ReadAt> Packed<'a, S> {
    fn new(stream: &'a mut Stream<S>, width: u32) -> Self {
        Self {
            stream,
            width,
            byte: 0,
            left: 0,
        }
    }

    fn next(&mut self) -> Result<u64> {
        let (mut value, mut wanted) = (0_u64, self.width);
        while wanted > 0 {
            if self.left == 0 {
                self.byte = self.stream.byte()?;
                self.left = 8;
            }
            let now = wanted.min(self.left);
            let bits = u64::from(self.byte) >> (self.left - now) & low_bits(now);
            value = value << now | bits;
            self.left -= now;
            wanted -= now;
        }
        Ok(value)
    }
}
