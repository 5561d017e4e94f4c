//! A file that is being written: stripes, one after the other, and the tail.
//!
//! No row indexes and no bounds of columns: readers do without.

use std::io::{self, Write};

use super::out::{CHUNK, OutStream};
use super::tail::MAGIC;
use super::types::type_message;
use super::{Codec, StreamKind, Stripe, Type};
use crate::proto::{put_bytes, put_number, put_varint};

/// Version 0.12 of the format, which knows both versions of runs.
const VERSION: [u64; 2] = [0, 12];

/// Of the writers whose bounds and filters are right (`WriterVersion.ORC_135`): others than Java's
/// begin there.
const WRITER_VERSION: u64 = 6;

/// A stream of a column, packed.
#[derive(Debug)]
pub struct StripeStream {
    /// The column's number.
    pub column: usize,
    /// What it holds.
    pub kind: StreamKind,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What a file says of a column.
#[derive(Debug, Clone, Copy, Default)]
pub struct ColumnCount {
    /// How many values it has.
    pub values: u64,
    /// Whether there are rows without one.
    pub has_nulls: bool,
}

/// A file that is being written.
#[derive(Debug)]
pub struct OutFile<W> {
    to: W,
    at: u64,
    codec: Codec,
    types: Vec<Type>,
    stripes: Vec<Stripe>,
    user: Vec<(String, String)>,
}

impl<W: Write> OutFile<W> {
    /// A file without stripes. `types`: each before its parts.
    ///
    /// # Errors
    /// Writing fails.
    pub fn create(mut to: W, codec: Codec, types: Vec<Type>) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        Ok(Self {
            to,
            at: MAGIC.len() as u64,
            codec,
            types,
            stripes: Vec::new(),
            user: Vec::new(),
        })
    }

    /// Adds a stripe, all of whose streams are of direct values and version 1.
    ///
    /// # Errors
    /// Writing fails.
    pub fn stripe(&mut self, rows: u64, streams: &[StripeStream]) -> io::Result<()> {
        let offset = self.at;
        let mut footer = Vec::new();
        for stream in streams {
            self.write(&stream.bytes)?;
            let mut message = Vec::new();
            put_number(&mut message, 1, stream.kind as u64);
            put_number(&mut message, 2, stream.column as u64);
            put_number(&mut message, 3, stream.bytes.len() as u64);
            put_bytes(&mut footer, 1, &message);
        }
        let data = self.at - offset;
        for _ in &self.types {
            put_bytes(&mut footer, 2, &DIRECT);
        }
        put_bytes(&mut footer, 3, b"UTC");
        let footer = self.write_packed(&footer)?;
        self.stripes.push(Stripe {
            offset,
            index: 0,
            data,
            footer,
            rows,
        });
        Ok(())
    }

    /// A string in the file's user metadata.
    pub fn keep(&mut self, key: &str, value: String) {
        self.user.push((key.to_owned(), value));
    }

    /// Bytes of the stripes so far.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    /// Writes the tail, and gives back what the file was written to. `counts`: of each column.
    ///
    /// # Errors
    /// Writing fails.
    pub fn finish(mut self, counts: &[ColumnCount]) -> io::Result<W> {
        let footer = self.footer(counts);
        let mut postscript = Vec::new();
        put_number(&mut postscript, 1, self.write_packed(&footer)?);
        put_number(&mut postscript, 2, self.codec.number());
        put_number(&mut postscript, 3, CHUNK as u64);
        let mut version = Vec::new();
        for part in VERSION {
            put_varint(&mut version, part);
        }
        put_bytes(&mut postscript, 4, &version);
        put_number(&mut postscript, 5, 0);
        put_number(&mut postscript, 6, WRITER_VERSION);
        put_bytes(&mut postscript, 8000, MAGIC);
        postscript.push(postscript.len() as u8);
        self.write(&postscript)?;
        Ok(self.to)
    }

    fn footer(&self, counts: &[ColumnCount]) -> Vec<u8> {
        let mut footer = Vec::new();
        let header = MAGIC.len() as u64;
        put_number(&mut footer, 1, header);
        put_number(&mut footer, 2, self.at - header);
        for stripe in &self.stripes {
            let mut message = Vec::new();
            let numbers = [
                stripe.offset,
                stripe.index,
                stripe.data,
                stripe.footer,
                stripe.rows,
            ];
            for (number, value) in (1..).zip(numbers) {
                put_number(&mut message, number, value);
            }
            put_bytes(&mut footer, 3, &message);
        }
        for of in &self.types {
            put_bytes(&mut footer, 4, &type_message(of));
        }
        for (key, value) in &self.user {
            let mut message = Vec::new();
            put_bytes(&mut message, 1, key.as_bytes());
            put_bytes(&mut message, 2, value.as_bytes());
            put_bytes(&mut footer, 5, &message);
        }
        let rows = self.stripes.iter().map(|stripe| stripe.rows).sum();
        put_number(&mut footer, 6, rows);
        for count in counts {
            let mut message = Vec::new();
            put_number(&mut message, 1, count.values);
            put_number(&mut message, 10, count.has_nulls.into());
            put_bytes(&mut footer, 7, &message);
        }
        // No row index.
        put_number(&mut footer, 8, 0);
        footer
    }

    /// How many bytes it came to.
    fn write_packed(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let mut packed = OutStream::new(self.codec);
        packed.put(bytes)?;
        let packed = packed.take()?;
        self.write(&packed)?;
        Ok(packed.len() as u64)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.to.write_all(bytes)
    }
}

/// `ColumnEncoding` of kind DIRECT.
const DIRECT: [u8; 2] = [1 << 3, 0];
