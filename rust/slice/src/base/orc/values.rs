//! Values of one column in a row: texts, times, lengths.

use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use pyhudi_format::FormatError;
use pyhudi_format::orc::{Ints, Stream};
use pyhudi_store::StoreFile;

type Result<T> = std::result::Result<T, FormatError>;

/// Values that room is taken for before they are there.
const FIRST_ROOM: usize = 64 << 10;

/// Elements that the lists of a batch, or a dictionary, may have: a few bytes can stand for as many.
const MOST_ELEMENTS: usize = 1 << 28;

/// Seconds from 1970 to 2015, where ORC begins to count.
const EPOCH: i64 = 1_420_070_400;

pub(super) fn damaged(offset: u64, what: impl Into<String>) -> FormatError {
    FormatError::Corrupt {
        offset,
        what: what.into(),
    }
}

/// The next value for each row that has one, and any for the others.
pub(super) fn run<T: Default>(
    rows: usize,
    valid: impl Fn(usize) -> bool,
    mut next: impl FnMut() -> Result<T>,
) -> Result<Vec<T>> {
    let mut values = Vec::with_capacity(rows.min(FIRST_ROOM));
    for row in 0..rows {
        values.push(if valid(row) { next()? } else { T::default() });
    }
    Ok(values)
}

/// Where the elements of each list begin and end, and how many there are.
pub(super) fn elements(
    rows: usize,
    valid: impl Fn(usize) -> bool,
    lengths: &mut Ints<StoreFile>,
) -> Result<(OffsetBuffer<i32>, usize)> {
    let ends = offsets(rows, valid, lengths)?;
    let count = ends.last() as usize;
    if count > MOST_ELEMENTS {
        return Err(too_many());
    }
    Ok((ends, count))
}

/// Where the bytes or elements of each row begin and end.
fn offsets(
    rows: usize,
    valid: impl Fn(usize) -> bool,
    lengths: &mut Ints<StoreFile>,
) -> Result<OffsetBuffer<i32>> {
    let mut end = 0_i32;
    let mut ends = vec![0];
    let lengths = run(rows, valid, || lengths.count())?;
    for length in lengths {
        let next = i32::try_from(length).ok().and_then(|n| end.checked_add(n));
        end = next.ok_or_else(too_many)?;
        ends.push(end);
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(ends)))
}

fn too_many() -> FormatError {
    damaged(0, "more values than rows can have")
}

/// Texts that are written out.
pub(super) fn texts(
    rows: usize,
    valid: impl Fn(usize) -> bool,
    lengths: &mut Ints<StoreFile>,
    data: &mut Stream<StoreFile>,
) -> Result<(OffsetBuffer<i32>, Vec<u8>)> {
    let ends = offsets(rows, valid, lengths)?;
    let mut bytes = Vec::new();
    data.append(ends.last() as usize, &mut bytes)?;
    Ok((ends, bytes))
}

/// Texts that come often, and which of them each row has.
pub(super) struct Dictionary {
    numbers: Ints<StoreFile>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Dictionary {
    /// The texts; `numbers` say which each row has.
    pub(super) fn read(
        mut lengths: Ints<StoreFile>,
        mut texts: Stream<StoreFile>,
        entries: u64,
        numbers: Ints<StoreFile>,
    ) -> Result<Self> {
        if entries > MOST_ELEMENTS as u64 {
            return Err(too_many());
        }
        let mut ends = vec![0_usize];
        let mut end = 0_usize;
        for _ in 0..entries {
            end = end.checked_add(lengths.count()?).ok_or_else(too_many)?;
            ends.push(end);
        }
        let mut bytes = Vec::new();
        texts.append(end, &mut bytes)?;
        Ok(Self {
            numbers,
            ends,
            bytes,
        })
    }

    /// The texts of the next rows.
    pub(super) fn take(
        &mut self,
        rows: usize,
        valid: impl Fn(usize) -> bool,
    ) -> Result<(OffsetBuffer<i32>, Vec<u8>)> {
        let mut ends = Vec::with_capacity(rows.min(FIRST_ROOM));
        let mut bytes = Vec::new();
        ends.push(0);
        for row in 0..rows {
            if valid(row) {
                let number = self.numbers.count()?;
                let text = match (self.ends.get(number), self.ends.get(number + 1)) {
                    (Some(start), Some(end)) => self.bytes.get(*start..*end),
                    _ => None,
                };
                let Some(text) = text else {
                    return Err(damaged(0, "a text that its dictionary lacks"));
                };
                bytes.extend_from_slice(text);
            }
            ends.push(i32::try_from(bytes.len()).map_err(|_| too_many())?);
        }
        Ok((OffsetBuffer::new(ScalarBuffer::from(ends)), bytes))
    }
}

/// Times as microseconds from 1970.
pub(super) struct Times {
    seconds: Ints<StoreFile>,
    nanos: Ints<StoreFile>,
}

impl Times {
    /// `zone`: the writer's, whose clock times count by.
    pub(super) fn new(
        seconds: Ints<StoreFile>,
        nanos: Ints<StoreFile>,
        zone: Option<&str>,
    ) -> Result<Self> {
        // A writer elsewhere stores what its clocks show, and each reader of Hudi's takes it for what
        // its own show: there is no one instant.
        match zone.unwrap_or("UTC") {
            "UTC" | "GMT" | "Z" | "Etc/UTC" | "Etc/GMT" | "Etc/UCT" | "UCT" | "Zulu"
            | "Universal" | "Etc/Universal" | "Etc/Zulu" | "Greenwich" | "Etc/Greenwich" => {}
            other => {
                return Err(FormatError::Unsupported {
                    feature: format!(
                        "hoodie.table.base.file.format ORC: timestamps by the clocks of {other}"
                    ),
                });
            }
        }
        Ok(Self { seconds, nanos })
    }

    /// As `TreeReaderFactory.TimestampTreeReader` (ORC 1.5 to 1.9): seconds were cut towards zero, and
    /// one is subtracted again before 1970 if there is a millisecond or more.
    pub(super) fn next(&mut self) -> Result<i64> {
        let seconds = self.seconds.next()?.checked_add(EPOCH);
        let nanos = nanos(self.nanos.next()?);
        let micros = seconds.and_then(|seconds| {
            let millis = seconds.checked_mul(1000)?.checked_add(nanos / 1_000_000)?;
            let late = millis < 0 && nanos > 999_999;
            let seconds = seconds - i64::from(late);
            seconds.checked_mul(1_000_000)?.checked_add(nanos / 1000)
        });
        micros.ok_or_else(|| damaged(0, "a time beyond 64 bits of microseconds"))
    }
}

/// The last three bits say how many zeros, less one, were left out.
///
/// Hudi's writer gives only what is beyond a millisecond, negative before 1970, and loses the
/// milliseconds (`AvroOrcUtils.addToVector`, Hudi 0.15 and 1.2). What it wrote is what is read here.
fn nanos(packed: i64) -> i64 {
    let (value, zeros) = (i64::from((packed >> 3) as i32), packed & 7);
    if zeros == 0 {
        return value;
    }
    value.saturating_mul(10_i64.pow(zeros as u32 + 1))
}

#[cfg(test)]
mod tests {
    use super::nanos;

    #[test]
    fn nanoseconds_leave_out_zeros() {
        assert_eq!(nanos(0), 0);
        assert_eq!(nanos(123_456_789 << 3), 123_456_789);
        assert_eq!(nanos(1 << 3 | 7), 100_000_000);
        assert_eq!(nanos(5 << 3 | 1), 500);
        assert_eq!(nanos(-999 << 3 | 2), -999_000);
        assert_eq!(nanos((-999_i64 << 3 | 2) & (i64::MAX >> 1)), -999_000);
    }
}
