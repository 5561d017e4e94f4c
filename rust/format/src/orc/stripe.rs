//! The footer of a stripe: where the streams of its columns are, and how they are encoded.

use std::ops::Range;

use super::tail::text;
use super::{Stream, Stripe, Tail};
use crate::cursor::Cursor;
use crate::proto::{Value, field};
use crate::{FormatError, ReadAt, Result};

/// Bytes of a stripe's footer that is unpacked.
const FOOTER_MOST: usize = 32 << 20;

/// What a stream holds (`Stream.Kind`), of those that rows are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum StreamKind {
    Present = 0,
    Data = 1,
    Length = 2,
    DictionaryData = 3,
    Secondary = 5,
}

/// How a column is encoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnEncoding {
    /// Values are numbers of entries of a dictionary.
    pub dictionary: bool,
    /// Whole numbers are in runs of version 2.
    pub v2: bool,
    /// Entries of the dictionary.
    pub entries: u64,
}

/// What the footer of a stripe says.
#[derive(Debug, Clone)]
pub struct StripeFooter {
    /// Kind, column and place in the file.
    streams: Vec<(u64, u64, Range<u64>)>,
    encodings: Vec<ColumnEncoding>,
    /// The time zone of the writer, empty if it is not recorded.
    pub time_zone: String,
}

impl StripeFooter {
    /// Reads the footer of a stripe.
    ///
    /// # Errors
    /// It is damaged.
    pub fn read<S: ReadAt>(source: &S, tail: &Tail, stripe: &Stripe) -> Result<Self> {
        let end = stripe.range().end;
        let start = end - stripe.footer;
        let bytes = tail.stream(source, start..end).all(FOOTER_MOST)?;
        let mut found = Self {
            streams: Vec::new(),
            encodings: Vec::new(),
            time_zone: String::new(),
        };
        let mut at = stripe.offset;
        let mut message = Cursor::at(&bytes, start);
        while let Some((number, value)) = field(&mut message)? {
            match (number, value) {
                (1, Value::Bytes(bytes)) => {
                    let [kind, column, length] = numbers(bytes, start)?;
                    let next = at.checked_add(length).filter(|next| *next <= start);
                    let Some(next) = next else {
                        return Err(FormatError::corrupt(start, "a stream beyond its stripe"));
                    };
                    found.streams.push((kind, column, at..next));
                    at = next;
                }
                (2, Value::Bytes(bytes)) => found.encodings.push(encoding(bytes, start)?),
                (3, Value::Bytes(bytes)) => found.time_zone = text(bytes, start)?,
                (4, _) => return Err(FormatError::unsupported("encrypted ORC files")),
                _ => {}
            }
        }
        if found.encodings.len() != tail.types.len() {
            return Err(FormatError::corrupt(
                start,
                "another number of encodings than of types",
            ));
        }
        Ok(found)
    }

    /// How a column is encoded.
    pub fn encoding(&self, column: usize) -> ColumnEncoding {
        self.encodings.get(column).copied().unwrap_or_default()
    }

    /// Whether some rows of a column have no value.
    pub fn has_nulls(&self, column: usize) -> bool {
        self.place(column, StreamKind::Present).is_some()
    }

    /// A stream of a column. A missing stream has no bytes: writers leave out empty ones.
    pub fn stream<S: ReadAt>(
        &self,
        source: S,
        tail: &Tail,
        column: usize,
        kind: StreamKind,
    ) -> Stream<S> {
        tail.stream(source, self.place(column, kind).unwrap_or(0..0))
    }

    fn place(&self, column: usize, kind: StreamKind) -> Option<Range<u64>> {
        let mut streams = self.streams.iter();
        let found = streams.find(|(of, number, _)| *of == kind as u64 && *number == column as u64);
        found.map(|(_, _, range)| range.clone())
    }
}

/// The numbers of the fields 1 to 3.
fn numbers(bytes: &[u8], start: u64) -> Result<[u64; 3]> {
    let mut numbers = [0; 3];
    let mut message = Cursor::at(bytes, start);
    while let Some((number, value)) = field(&mut message)? {
        let at = (number as usize).wrapping_sub(1);
        if let (Some(to), Some(value)) = (numbers.get_mut(at), value.number()) {
            *to = value;
        }
    }
    Ok(numbers)
}

fn encoding(bytes: &[u8], start: u64) -> Result<ColumnEncoding> {
    let [kind, entries, _] = numbers(bytes, start)?;
    if kind > 3 {
        return Err(FormatError::unsupported(format!("ORC encoding {kind}")));
    }
    Ok(ColumnEncoding {
        dictionary: kind & 1 == 1,
        v2: kind & 2 == 2,
        entries,
    })
}
