//! The values of a page, of which some stay. Nothing is decoded but what says where a value begins.

use std::ops::Range;

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::BooleanBuffer;
use bytes::Bytes;
use parquet::basic::Type;

use super::hybrid;

/// Values as they are in a page.
pub(super) enum Values<'a> {
    /// So many bytes each.
    Fixed(Bytes, usize),
    Bits(BooleanBuffer),
    /// Each after its length, where it begins, and the end of all.
    Texts(Bytes, Vec<usize>),
    Indexes(Vec<u32>, u8, &'a Values<'a>),
}

impl<'a> Values<'a> {
    /// Of the encoding PLAIN, so many; none where they are not there.
    pub(super) fn plain(bytes: Bytes, ty: Type, width: i32, count: usize) -> Option<Self> {
        let width = match ty {
            Type::BOOLEAN => {
                let within = bytes.len().saturating_mul(8) >= count;
                return within.then(|| Self::Bits(BooleanBuffer::new(bytes.into(), 0, count)));
            }
            Type::BYTE_ARRAY => return Self::texts(bytes, count),
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(width).ok()?,
        };
        let all = bytes.len() == count.checked_mul(width)?;
        all.then_some(Self::Fixed(bytes, width))
    }

    fn texts(bytes: Bytes, count: usize) -> Option<Self> {
        // Each has a length.
        let mut begins = Vec::with_capacity(count.min(bytes.len() / 4) + 1);
        let mut at = 0_usize;
        for _ in 0..count {
            begins.push(at);
            let length = bytes.get(at..)?.first_chunk::<4>()?;
            at = at
                .checked_add(4)?
                .checked_add(u32::from_le_bytes(*length) as usize)?;
        }
        begins.push(at);
        (at == bytes.len()).then_some(Self::Texts(bytes, begins))
    }

    /// Indexes of values of a dictionary, so many; none where they are not there.
    pub(super) fn indexes(bytes: &[u8], count: usize, dictionary: &'a Self) -> Option<Self> {
        if count == 0 {
            return Some(Self::Indexes(Vec::new(), 0, dictionary));
        }
        let (width, rest) = bytes.split_first()?;
        let indexes = hybrid::decode(rest, *width, count)?;
        let known = dictionary.len();
        let within = indexes.iter().all(|index| (*index as usize) < known);
        within.then_some(Self::Indexes(indexes, *width, dictionary))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fixed(_, 0) => 0,
            Self::Fixed(bytes, width) => bytes.len() / width,
            Self::Bits(bits) => bits.len(),
            Self::Texts(_, begins) => begins.len() - 1,
            Self::Indexes(indexes, ..) => indexes.len(),
        }
    }

    /// The bytes of a value, without its length.
    pub(super) fn value(&self, at: usize) -> Option<&[u8]> {
        match self {
            Self::Fixed(bytes, width) => bytes.get(at * width..(at + 1) * width),
            Self::Bits(bits) if at < bits.len() => Some(if bits.value(at) { &[1] } else { &[0] }),
            Self::Bits(_) => None,
            Self::Texts(bytes, begins) => bytes.get(begins.get(at)? + 4..*begins.get(at + 1)?),
            Self::Indexes(indexes, _, dictionary) => dictionary.value(*indexes.get(at)? as usize),
        }
    }

    /// Marks the values of runs in a list of the dictionary's values, where there is a dictionary.
    pub(super) fn mark<T>(&self, runs: &[Range<usize>], marks: &mut [T], mark: impl Fn(&mut T)) {
        if let Self::Indexes(indexes, ..) = self {
            for run in runs {
                for index in indexes.get(run.clone()).unwrap_or_default() {
                    if let Some(value) = marks.get_mut(*index as usize) {
                        mark(value);
                    }
                }
            }
        }
    }

    /// How many bytes they have in the encoding PLAIN.
    pub(super) fn plain_size(&self) -> usize {
        match self {
            Self::Fixed(bytes, _) | Self::Texts(bytes, _) => bytes.len(),
            Self::Bits(bits) => bits.len().div_ceil(8),
            Self::Indexes(..) => 0,
        }
    }

    /// All values of a dictionary in the encoding PLAIN, with those that are marked as empty texts
    /// or zeros.
    pub(super) fn blank(&self, is_blank: &[bool]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(self.plain_size());
        for (at, is_blank) in is_blank.iter().enumerate() {
            match self {
                Self::Fixed(_, width) if *is_blank => out.resize(out.len() + width, 0),
                Self::Fixed(..) => out.extend_from_slice(self.value(at)?),
                Self::Texts(..) if *is_blank => out.extend([0; 4]),
                Self::Texts(bytes, begins) => {
                    out.extend_from_slice(bytes.get(*begins.get(at)?..*begins.get(at + 1)?)?);
                }
                Self::Bits(_) | Self::Indexes(..) => return None,
            }
        }
        Some(out)
    }

    /// Appends those that stay.
    pub(super) fn keep(&self, stay: &[Range<usize>], out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Fixed(bytes, width) => {
                for run in stay {
                    out.extend_from_slice(bytes.get(run.start * width..run.end * width)?);
                }
            }
            Self::Texts(bytes, begins) => {
                for run in stay {
                    let (begin, end) = (*begins.get(run.start)?, *begins.get(run.end)?);
                    out.extend_from_slice(bytes.get(begin..end)?);
                }
            }
            Self::Bits(bits) => {
                let mut kept = BooleanBufferBuilder::new(bits.len());
                for run in stay {
                    kept.append_buffer(&bits.slice(run.start, run.len()));
                }
                out.extend_from_slice(kept.as_slice());
            }
            Self::Indexes(indexes, width, _) => {
                let mut kept = Vec::with_capacity(indexes.len());
                for run in stay {
                    kept.extend_from_slice(indexes.get(run.clone())?);
                }
                out.push(*width);
                hybrid::encode(&kept, *width, out);
            }
        }
        Some(())
    }
}
