//! Records whose columns are flat, straight into Arrow buffers. What is not asked for is passed over.
//!
//! Most log records are of this kind. Those of lists, maps, structs, enums and vectors are left to arrow-avro.

use arrow::array::{ArrayData, ArrayRef, BooleanBufferBuilder, NullBufferBuilder, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Schema};

use crate::error::{AvroError, Result, corrupt};
use crate::model::{Decimal, Record, Type};

/// Rows that a new batch has room for, at most.
const ROOM: usize = 8192;

/// Decodes the chosen columns of a record.
#[derive(Debug)]
pub(crate) struct Direct {
    /// One for each field, up to the end of the record.
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Skip(Skip),
    /// The place among the columns that were asked for.
    Take(usize, Column),
}

/// How a value that nobody asked for is passed over.
#[derive(Debug)]
enum Skip {
    /// So many bytes.
    Bytes(usize),
    /// An int or a long.
    Number,
    /// A length and as many bytes.
    Text,
    Array(Box<Skip>),
    Map(Box<Skip>),
    Record(Vec<Skip>),
    Union(Vec<Skip>),
}

#[derive(Debug)]
struct Column {
    values: Values,
    /// The branch that is null, where there is one.
    null: Option<i64>,
    nulls: NullBufferBuilder,
    to: DataType,
}

#[derive(Debug)]
enum Values {
    Booleans(BooleanBufferBuilder),
    Ints(Vec<i32>),
    Longs(Vec<i64>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    /// Offsets of texts or bytes, the first one included, and what they are made of.
    Texts(Vec<i32>, Vec<u8>),
    /// Of so many bytes, or of any number of them.
    Decimals(Option<usize>, Vec<i128>),
    Fixed(usize, Vec<u8>),
}

impl Direct {
    /// None unless all these fields of the record are flat. `schema` has their Arrow types.
    pub(crate) fn of(
        record: &Record,
        indices: &[usize],
        schema: &Schema,
        rows: usize,
    ) -> Option<Self> {
        let rows = rows.min(ROOM);
        let mut steps = Vec::with_capacity(record.fields.len());
        for (index, field) in record.fields.iter().enumerate() {
            steps.push(match indices.iter().position(|wanted| *wanted == index) {
                None => Step::Skip(Skip::of(&field.ty)),
                Some(at) => {
                    let to = schema.fields().get(at)?.data_type().clone();
                    Step::Take(at, Column::of(&field.ty, to, rows)?)
                }
            });
        }
        Some(Self { steps })
    }

    /// Decodes one record; how many of its bytes that took.
    pub(crate) fn decode(&mut self, record: &[u8]) -> Result<usize> {
        let mut input = Bytes(record);
        for step in &mut self.steps {
            let found = match step {
                Step::Skip(skip) => input.skip(skip),
                Step::Take(_, column) => column.decode(&mut input),
            };
            if found.is_none() {
                let at = record.len() - input.0.len();
                return corrupt(format!("no value at byte {at} of {}", record.len()));
            }
        }
        Ok(record.len() - input.0.len())
    }

    /// The columns of the `rows` records decoded since the last call.
    pub(crate) fn flush(&mut self, rows: usize) -> Result<Vec<ArrayRef>> {
        let mut arrays = Vec::with_capacity(self.steps.len());
        for step in &mut self.steps {
            if let Step::Take(at, column) = step {
                arrays.push((*at, column.flush(rows)?));
            }
        }
        arrays.sort_unstable_by_key(|(at, _)| *at);
        Ok(arrays.into_iter().map(|(_, array)| array).collect())
    }
}

impl Skip {
    fn of(ty: &Type) -> Self {
        match ty {
            Type::Null => Self::Bytes(0),
            Type::Boolean => Self::Bytes(1),
            Type::Float => Self::Bytes(4),
            Type::Double => Self::Bytes(8),
            Type::Fixed(size)
            | Type::Decimal(Decimal {
                size: Some(size), ..
            }) => Self::Bytes(*size),
            Type::Vector(vector) => Self::Bytes(vector.size()),
            Type::Int
            | Type::Long
            | Type::Date
            | Type::TimeMillis
            | Type::TimeMicros
            | Type::Timestamp { .. }
            | Type::Enum(_) => Self::Number,
            Type::Bytes | Type::String | Type::Decimal(_) => Self::Text,
            Type::Array(items) => Self::Array(Box::new(Self::of(items))),
            Type::Map(values) => Self::Map(Box::new(Self::of(values))),
            Type::Record(record) => {
                Self::Record(record.fields.iter().map(|f| Self::of(&f.ty)).collect())
            }
            Type::Union(branches) => Self::Union(branches.iter().map(Self::of).collect()),
        }
    }
}

impl Column {
    fn of(ty: &Type, to: DataType, rows: usize) -> Option<Self> {
        let null = ty.optional().and(match ty {
            Type::Union(branches) => branches.iter().position(|ty| matches!(ty, Type::Null)),
            _ => None,
        });
        Some(Self {
            values: Values::of(ty.value_type(), rows)?,
            null: null.map(|branch| branch as i64),
            nulls: NullBufferBuilder::new(rows),
            to,
        })
    }

    fn decode(&mut self, input: &mut Bytes<'_>) -> Option<()> {
        if let Some(null) = self.null {
            match input.long()? {
                branch if branch == null => {
                    self.nulls.append_null();
                    return self.values.push_null();
                }
                0 | 1 => self.nulls.append_non_null(),
                _ => return None,
            }
        }
        self.values.decode(input)
    }

    fn flush(&mut self, rows: usize) -> Result<ArrayRef> {
        let nulls = self.null.and_then(|_| self.nulls.finish());
        let data = ArrayData::builder(self.to.clone())
            .len(rows)
            .nulls(nulls)
            .buffers(self.values.flush());
        // Texts are checked here.
        let data = data.build().map_err(|error| AvroError::Corrupt {
            what: error.to_string(),
        })?;
        Ok(make_array(data))
    }
}

impl Values {
    fn of(ty: &Type, rows: usize) -> Option<Self> {
        Some(match ty {
            Type::Boolean => Self::Booleans(BooleanBufferBuilder::new(rows)),
            Type::Int | Type::Date | Type::TimeMillis => Self::Ints(Vec::with_capacity(rows)),
            Type::Long | Type::TimeMicros | Type::Timestamp { .. } => {
                Self::Longs(Vec::with_capacity(rows))
            }
            Type::Float => Self::Floats(Vec::with_capacity(rows)),
            Type::Double => Self::Doubles(Vec::with_capacity(rows)),
            Type::Bytes | Type::String => Self::Texts(offsets_for(rows), Vec::new()),
            Type::Decimal(Decimal {
                precision, size, ..
            }) if *precision <= 38 => Self::Decimals(*size, Vec::with_capacity(rows)),
            Type::Fixed(size) => Self::Fixed(*size, Vec::new()),
            _ => return None,
        })
    }

    fn decode(&mut self, input: &mut Bytes<'_>) -> Option<()> {
        match self {
            Self::Booleans(values) => values.append(input.array::<1>()? != [0]),
            Self::Ints(values) => values.push(input.int()?),
            Self::Longs(values) => values.push(input.long()?),
            Self::Floats(values) => values.push(f32::from_le_bytes(input.array()?)),
            Self::Doubles(values) => values.push(f64::from_le_bytes(input.array()?)),
            Self::Texts(offsets, bytes) => {
                bytes.extend_from_slice(input.text()?);
                offsets.push(i32::try_from(bytes.len()).ok()?);
            }
            Self::Decimals(Some(size), values) => values.push(big_endian(input.take(*size)?)?),
            Self::Decimals(None, values) => values.push(big_endian(input.text()?)?),
            Self::Fixed(size, values) => values.extend_from_slice(input.take(*size)?),
        }
        Some(())
    }

    fn push_null(&mut self) -> Option<()> {
        match self {
            Self::Booleans(values) => values.append(false),
            Self::Ints(values) => values.push(0),
            Self::Longs(values) => values.push(0),
            Self::Floats(values) => values.push(0.0),
            Self::Doubles(values) => values.push(0.0),
            Self::Texts(offsets, bytes) => offsets.push(i32::try_from(bytes.len()).ok()?),
            Self::Decimals(_, values) => values.push(0),
            Self::Fixed(size, values) => values.resize(values.len().checked_add(*size)?, 0),
        }
        Some(())
    }

    /// The buffers of an array.
    fn flush(&mut self) -> Vec<Buffer> {
        match self {
            Self::Booleans(values) => vec![values.finish().into_inner()],
            Self::Ints(values) => vec![emptied(values)],
            Self::Longs(values) => vec![emptied(values)],
            Self::Floats(values) => vec![emptied(values)],
            Self::Doubles(values) => vec![emptied(values)],
            Self::Texts(offsets, bytes) => {
                let next = offsets_for(offsets.len());
                let offsets = Buffer::from_vec(std::mem::replace(offsets, next));
                vec![offsets, emptied(bytes)]
            }
            Self::Decimals(_, values) => vec![emptied(values)],
            Self::Fixed(_, values) => vec![emptied(values)],
        }
    }
}

/// The values, in no more memory than they need; room for as many is left.
fn emptied<T: arrow::datatypes::ArrowNativeType>(values: &mut Vec<T>) -> Buffer {
    let next = Vec::with_capacity(values.len());
    let mut full = std::mem::replace(values, next);
    full.shrink_to_fit();
    Buffer::from_vec(full)
}

fn offsets_for(rows: usize) -> Vec<i32> {
    let mut offsets = Vec::with_capacity(rows.saturating_add(1));
    offsets.push(0);
    offsets
}

/// A number in two's complement; none beyond 128 bits.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 16];
    let (extra, low) = bytes.split_at(bytes.len().saturating_sub(wide.len()));
    let at = wide.len() - low.len();
    wide.get_mut(at..)?.copy_from_slice(low);
    let number = i128::from_be_bytes(wide);
    let is_whole = extra.iter().all(|byte| *byte == sign) && (number < 0) == (sign != 0);
    is_whole.then_some(number)
}

/// The bytes not read yet. Each method gives none where they do not hold what it reads.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn long(&mut self) -> Option<i64> {
        let (first, rest) = self.0.split_first()?;
        if *first < 0x80 {
            self.0 = rest;
            return Some(i64::from(first >> 1) ^ -i64::from(first & 1));
        }
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let group = u64::from(byte & 0x7f);
            if shift == 63 && group > 1 {
                return None;
            }
            value |= group << shift;
            if byte < 0x80 {
                return Some((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        None
    }

    fn int(&mut self) -> Option<i32> {
        i32::try_from(self.long()?).ok()
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.long()?).ok()?;
        self.take(length)
    }

    fn skip(&mut self, skip: &Skip) -> Option<()> {
        match skip {
            Skip::Bytes(len) => self.take(*len).map(drop),
            Skip::Number => self.long().map(drop),
            Skip::Text => self.text().map(drop),
            Skip::Array(item) => self.blocks(|bytes| bytes.skip(item)),
            Skip::Map(value) => self.blocks(|bytes| {
                bytes.text()?;
                bytes.skip(value)
            }),
            Skip::Record(fields) => fields.iter().try_for_each(|field| self.skip(field)),
            Skip::Union(branches) => {
                let branch = usize::try_from(self.long()?).ok()?;
                self.skip(branches.get(branch)?)
            }
        }
    }

    /// Passes over blocks of items that each begin with their count.
    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Some(());
            }
            if count < 0 {
                // Its size in bytes follows.
                self.text()?;
                continue;
            }
            // Schemas with items of no bytes are refused: the count is bounded by what is left.
            for _ in 0..count {
                item(self)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::big_endian;

    #[test]
    fn numbers_of_any_length_keep_their_sign() {
        for (bytes, number) in [
            (&[5][..], Some(5)),
            (&[0xff], Some(-1)),
            (&[1, 0], Some(256)),
            (&[0xff; 17], Some(-1)),
            (&[0; 20], Some(0)),
            (&[], None),
        ] {
            assert_eq!(big_endian(bytes), number, "{bytes:?}");
        }
        let beyond = [&[0][..], &[0x80], &[0; 15]].concat();
        assert_eq!(big_endian(&beyond), None);
    }
}
