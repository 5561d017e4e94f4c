//! The tail of a file: postscript and footer.

use std::ops::Range;

use super::types::{TYPES_MOST, Type, check_types, column_type};
use super::{Codec, Stream};
use crate::cursor::Cursor;
use crate::proto::{Value, field};
use crate::{FormatError, ReadAt, Result};

pub(super) const MAGIC: &[u8] = b"ORC";

/// A postscript is shorter than a byte can say.
const POSTSCRIPT_MOST: u64 = 256;

/// Writers make chunks of a quarter of a megabyte; a length of packed bytes has 23 bits.
const CHUNK_MOST: u64 = 8 << 20;

/// Bytes of a footer that is unpacked.
const FOOTER_MOST: usize = 32 << 20;

/// Rows that were written together.
#[derive(Debug, Clone, Copy)]
pub struct Stripe {
    /// Where it begins.
    pub offset: u64,
    /// Bytes of its indexes, which are first.
    pub index: u64,
    /// Bytes of its data.
    pub data: u64,
    /// Bytes of its footer.
    pub footer: u64,
    /// Its rows.
    pub rows: u64,
}

impl Stripe {
    /// Its bytes.
    pub(super) fn range(&self) -> Range<u64> {
        // Sums of what lies within the file, which was checked.
        self.offset..self.offset + self.index + self.data + self.footer
    }
}

/// What the end of a file says about all of it.
#[derive(Debug, Clone)]
pub struct Tail {
    codec: Codec,
    chunk: usize,
    /// Its stripes, in file order.
    pub stripes: Vec<Stripe>,
    /// Its types, of which the first is the struct of all columns.
    pub types: Vec<Type>,
    /// Rows in the file.
    pub rows: u64,
    user: Vec<(String, Vec<u8>)>,
}

impl Tail {
    /// Reads the tail of a file.
    ///
    /// # Errors
    /// It is no ORC file, or is damaged; it is encrypted.
    pub fn read<S: ReadAt>(source: &S) -> Result<Self> {
        let size = source.size();
        let length = size.min(POSTSCRIPT_MOST);
        let end = source.read_at(size - length, length as usize)?;
        let postscript = match end.split_last() {
            Some((last, rest)) => rest
                .len()
                .checked_sub(usize::from(*last))
                .and_then(|at| rest.get(at..)),
            None => None,
        };
        let Some(postscript) = postscript else {
            return Err(FormatError::corrupt(size, "no ORC postscript"));
        };
        let start = size - 1 - postscript.len() as u64;
        let postscript = Postscript::read(postscript, start)?;
        let Some(from) = start.checked_sub(postscript.footer) else {
            return Err(FormatError::corrupt(start, "a footer longer than the file"));
        };
        let mut tail = Self {
            codec: postscript.codec,
            chunk: postscript.chunk,
            stripes: Vec::new(),
            types: Vec::new(),
            rows: 0,
            user: Vec::new(),
        };
        let footer = tail.stream(source, from..start).all(FOOTER_MOST)?;
        tail.read_footer(&footer, from)?;
        tail.check(from)?;
        Ok(tail)
    }

    /// A string in the file's user metadata.
    pub fn value(&self, key: &str) -> Option<String> {
        let (_, value) = self.user.iter().find(|(name, _)| name == key)?;
        String::from_utf8(value.clone()).ok()
    }

    /// A part of the file as a stream.
    pub(super) fn stream<S: ReadAt>(&self, source: S, range: Range<u64>) -> Stream<S> {
        Stream::new(source, self.codec, self.chunk, range)
    }

    fn read_footer(&mut self, footer: &[u8], start: u64) -> Result<()> {
        let mut message = Cursor::at(footer, start);
        while let Some((number, value)) = field(&mut message)? {
            match (number, value) {
                (3, Value::Bytes(bytes)) => self.stripes.push(stripe(bytes, start)?),
                (4, Value::Bytes(_)) if self.types.len() == TYPES_MOST => {
                    let what = format!("an ORC schema of more than {TYPES_MOST} types");
                    return Err(FormatError::unsupported(what));
                }
                (4, Value::Bytes(bytes)) => self.types.push(column_type(bytes, start)?),
                (5, Value::Bytes(bytes)) => self.user.push(user_value(bytes, start)?),
                (6, Value::Number(rows)) => self.rows = rows,
                (10, _) => return Err(FormatError::unsupported("encrypted ORC files")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Stripes lie before the footer, one after the other, and their rows are all rows; types are a tree.
    fn check(&self, footer: u64) -> Result<()> {
        let damaged = |what: &str| Err(FormatError::corrupt(footer, what));
        let mut rows = 0_u64;
        let mut least = 0;
        for stripe in &self.stripes {
            let lengths = [stripe.index, stripe.data, stripe.footer];
            let end = lengths
                .iter()
                .try_fold(stripe.offset, |end, length| end.checked_add(*length));
            match end {
                Some(end) if stripe.offset >= least && end <= footer => least = end,
                _ => return damaged("a stripe that is not within the file"),
            }
            rows = rows.saturating_add(stripe.rows);
        }
        if rows != self.rows || i64::try_from(rows).is_err() {
            return damaged("stripes of another number of rows than the file");
        }
        check_types(&self.types, footer)
    }
}

struct Postscript {
    footer: u64,
    codec: Codec,
    chunk: usize,
}

impl Postscript {
    fn read(bytes: &[u8], start: u64) -> Result<Self> {
        let damaged = |what: &str| Err(FormatError::corrupt(start, what));
        let (mut footer, mut codec, mut chunk, mut magic) = (0, 0, CHUNK_MOST, false);
        let mut message = Cursor::at(bytes, start);
        while let Some((number, value)) = field(&mut message)? {
            match (number, value) {
                (1, Value::Number(length)) => footer = length,
                (2, Value::Number(kind)) => codec = kind,
                (3, Value::Number(length)) => chunk = length,
                (8000, Value::Bytes(bytes)) => magic = bytes == MAGIC,
                _ => {}
            }
        }
        if !magic {
            return damaged("no ORC postscript");
        }
        if chunk > CHUNK_MOST {
            return damaged("chunks larger than 8 MiB");
        }
        Ok(Self {
            footer,
            codec: Codec::of(codec)?,
            chunk: chunk as usize,
        })
    }
}

fn stripe(bytes: &[u8], start: u64) -> Result<Stripe> {
    let mut numbers = [0; 5];
    let mut message = Cursor::at(bytes, start);
    while let Some((number, value)) = field(&mut message)? {
        let at = (number as usize).wrapping_sub(1);
        if let (Some(to), Some(value)) = (numbers.get_mut(at), value.number()) {
            *to = value;
        }
    }
    let [offset, index, data, footer, rows] = numbers;
    Ok(Stripe {
        offset,
        index,
        data,
        footer,
        rows,
    })
}

fn user_value(bytes: &[u8], start: u64) -> Result<(String, Vec<u8>)> {
    let (mut name, mut content) = (String::new(), Vec::new());
    let mut message = Cursor::at(bytes, start);
    while let Some((number, value)) = field(&mut message)? {
        match (number, value) {
            (1, Value::Bytes(bytes)) => name = text(bytes, start)?,
            (2, Value::Bytes(bytes)) => content = bytes.to_vec(),
            _ => {}
        }
    }
    Ok((name, content))
}

pub(super) fn text(bytes: &[u8], start: u64) -> Result<String> {
    String::from_utf8(bytes.to_vec())
        .map_err(|error| FormatError::corrupt(start, format!("text is not UTF-8: {error}")))
}
