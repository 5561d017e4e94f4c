//! A column of a stripe that is being written, or a part of one: arrays to streams.

use std::io;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
};
use pyhudi_format::orc::{
    Codec, ColumnCount, Kind, OutBits, OutRuns, OutStream, RunsForm, StreamKind, StripeStream, Type,
};

/// 1582-10-15, the first day of the calendar that all readers have.
const FIRST_DAY: i32 = -141_427;

/// Hudi's writers store such days by today's calendar, and do not say so. Spark takes them for those of
/// the old one (`RebaseDateTime` in its ORC reader), Hudi's Avro readers do not.
#[derive(Debug, thiserror::Error)]
#[error("a date before 1582-10-15, which readers count by different calendars")]
pub(super) struct OldDate;

/// A column, which begins again with each stripe.
pub(super) struct OutColumn {
    number: usize,
    present: OutBits,
    /// Whether rows of the stripe have no value.
    has_nulls: bool,
    count: ColumnCount,
    values: Values,
}

enum Values {
    Booleans(OutBits),
    /// Whole numbers and days.
    Ints(OutRuns),
    /// Floating numbers of either width.
    Floats(OutStream),
    /// Lengths, and the bytes of texts and the like.
    Bytes(OutRuns, OutStream),
    /// Values, the scale of each, and what that is.
    Decimals(OutStream, OutRuns, i64),
    /// Lengths of lists and maps, and the parts.
    Lists(OutRuns, Vec<OutColumn>),
    Struct(Vec<OutColumn>),
}

impl OutColumn {
    /// The column of this number among the types.
    pub(super) fn new(number: usize, types: &[Type], codec: Codec) -> Self {
        let found = types.get(number);
        let parts = || {
            let parts = found.into_iter().flat_map(|found| &found.parts);
            parts.map(|part| Self::new(*part, types, codec)).collect()
        };
        let runs = |form| OutRuns::new(codec, form);
        let stream = || OutStream::new(codec);
        let values = match found.map(|found| found.kind) {
            Some(Kind::Boolean) => Values::Booleans(OutBits::new(codec)),
            Some(Kind::Float | Kind::Double) => Values::Floats(stream()),
            Some(Kind::String | Kind::Binary) => Values::Bytes(runs(RunsForm::Counts), stream()),
            Some(Kind::Decimal) => {
                let scale = found.map_or(0, |found| found.scale as i64);
                Values::Decimals(stream(), runs(RunsForm::Signed), scale)
            }
            Some(Kind::List | Kind::Map) => Values::Lists(runs(RunsForm::Counts), parts()),
            Some(Kind::Struct) => Values::Struct(parts()),
            _ => Values::Ints(runs(RunsForm::Signed)),
        };
        Self {
            number,
            present: OutBits::new(codec),
            has_nulls: false,
            count: ColumnCount::default(),
            values,
        }
    }

    /// Adds rows. `above`: those that the struct around it has; the others are not stored.
    pub(super) fn write(&mut self, array: &ArrayRef, above: Option<&NullBuffer>) -> io::Result<()> {
        let valid = NullBuffer::union(above, array.nulls());
        let stored = above.map_or(array.len(), |above| above.len() - above.null_count());
        let values = valid
            .as_ref()
            .map_or(array.len(), |valid| valid.len() - valid.null_count());
        self.count.values += values as u64;
        self.has_nulls |= values < stored;
        for row in rows(array.len(), above) {
            self.present.put(array.is_valid(row))?;
        }
        let rows = rows(array.len(), valid.as_ref());
        match &mut self.values {
            Values::Booleans(bits) => {
                let array = array.as_boolean();
                rows.map(|row| array.value(row))
                    .try_for_each(|bit| bits.put(bit))
            }
            Values::Ints(runs) => match array.data_type() {
                DataType::Date32 => {
                    let days = array.as_primitive::<Date32Type>();
                    rows.map(|row| days.value(row))
                        .try_for_each(|day| match day {
                            FIRST_DAY.. => runs.put(day.into()),
                            _ => Err(io::Error::other(OldDate)),
                        })
                }
                DataType::Int64 => ints::<Int64Type>(array, rows, runs),
                _ => ints::<Int32Type>(array, rows, runs),
            },
            Values::Floats(data) if array.data_type() == &DataType::Float32 => {
                let array = array.as_primitive::<Float32Type>();
                rows.map(|row| array.value(row).to_le_bytes())
                    .try_for_each(|bytes| data.put(&bytes))
            }
            Values::Floats(data) => {
                let array = array.as_primitive::<Float64Type>();
                rows.map(|row| array.value(row).to_le_bytes())
                    .try_for_each(|bytes| data.put(&bytes))
            }
            Values::Bytes(lengths, data) => {
                rows.map(|row| bytes_at(array, row)).try_for_each(|bytes| {
                    lengths.put(bytes.len() as i64)?;
                    data.put(bytes)
                })
            }
            Values::Decimals(data, scales, scale) => {
                let array = array.as_primitive::<Decimal128Type>();
                rows.map(|row| array.value(row)).try_for_each(|value| {
                    data.put_wide_zigzag(value)?;
                    scales.put(*scale)
                })
            }
            Values::Lists(lengths, parts) => {
                let (offsets, arrays) = if let Some(map) = array.as_map_opt() {
                    (map.offsets(), vec![map.keys(), map.values()])
                } else {
                    let list = array.as_list::<i32>();
                    (list.offsets(), vec![list.values()])
                };
                for range in elements(offsets, rows, lengths)? {
                    for (part, array) in parts.iter_mut().zip(&arrays) {
                        part.write(&array.slice(range.start, range.len()), None)?;
                    }
                }
                Ok(())
            }
            Values::Struct(parts) => {
                let arrays = array.as_struct().columns();
                let mut pairs = parts.iter_mut().zip(arrays);
                pairs.try_for_each(|(part, array)| part.write(array, valid.as_ref()))
            }
        }
    }

    /// Bytes of the stripe so far, about.
    pub(super) fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Booleans(bits) => bits.bytes(),
            Values::Ints(runs) => runs.bytes(),
            Values::Floats(data) => data.bytes(),
            Values::Bytes(runs, data) | Values::Decimals(data, runs, _) => {
                runs.bytes() + data.bytes()
            }
            Values::Lists(lengths, _) => lengths.bytes(),
            Values::Struct(_) => 0,
        };
        let parts = self.parts().iter().map(Self::bytes);
        self.present.bytes() + values + parts.sum::<usize>()
    }

    /// The streams of the stripe; the next one begins.
    pub(super) fn take(&mut self, to: &mut Vec<StripeStream>) -> io::Result<()> {
        let column = self.number;
        let mut add = |kind, bytes| {
            to.push(StripeStream {
                column,
                kind,
                bytes,
            });
        };
        let present = self.present.take()?;
        if std::mem::take(&mut self.has_nulls) {
            self.count.has_nulls = true;
            add(StreamKind::Present, present);
        }
        let parts = match &mut self.values {
            Values::Booleans(bits) => {
                add(StreamKind::Data, bits.take()?);
                return Ok(());
            }
            Values::Ints(runs) => {
                add(StreamKind::Data, runs.take()?);
                return Ok(());
            }
            Values::Floats(data) => {
                add(StreamKind::Data, data.take()?);
                return Ok(());
            }
            Values::Bytes(lengths, data) => {
                add(StreamKind::Data, data.take()?);
                add(StreamKind::Length, lengths.take()?);
                return Ok(());
            }
            Values::Decimals(data, scales, _) => {
                add(StreamKind::Data, data.take()?);
                add(StreamKind::Secondary, scales.take()?);
                return Ok(());
            }
            Values::Lists(lengths, parts) => {
                add(StreamKind::Length, lengths.take()?);
                parts
            }
            Values::Struct(parts) => parts,
        };
        parts.iter_mut().try_for_each(|part| part.take(to))
    }

    /// What the file says of it and its parts, in the order of their numbers.
    pub(super) fn counts(&self, to: &mut Vec<ColumnCount>) {
        to.push(self.count);
        for part in self.parts() {
            part.counts(to);
        }
    }

    fn parts(&self) -> &[Self] {
        match &self.values {
            Values::Lists(_, parts) | Values::Struct(parts) => parts,
            _ => &[],
        }
    }
}

/// The rows that there are.
fn rows(count: usize, valid: Option<&NullBuffer>) -> impl Iterator<Item = usize> {
    (0..count).filter(move |row| valid.is_none_or(|valid| valid.is_valid(*row)))
}

fn ints<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &ArrayRef,
    rows: impl Iterator<Item = usize>,
    runs: &mut OutRuns,
) -> io::Result<()> {
    let array = array.as_primitive::<T>();
    rows.map(|row| array.value(row).into())
        .try_for_each(|value| runs.put(value))
}

fn bytes_at(array: &ArrayRef, row: usize) -> &[u8] {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(row),
        _ => array.as_binary::<i32>().value(row),
    }
}

/// Where the elements of the rows are: what lies under nulls is not among them.
fn elements(
    offsets: &OffsetBuffer<i32>,
    rows: impl Iterator<Item = usize>,
    lengths: &mut OutRuns,
) -> io::Result<Vec<Range<usize>>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for row in rows {
        let (Some(start), Some(end)) = (offsets.get(row), offsets.get(row + 1)) else {
            break;
        };
        let range = *start as usize..*end as usize;
        lengths.put(range.len() as i64)?;
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if range.is_empty() => {}
            _ => ranges.push(range),
        }
    }
    Ok(ranges)
}
