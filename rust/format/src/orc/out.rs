//! Streams of a stripe that is being written: bytes, runs of numbers and bits, in the oldest form of
//! each, which all readers know.

use std::io;
use std::mem;

use super::Codec;
use crate::proto::put_varint;

/// Bytes of a chunk before it is packed, as many as Java's writers take.
pub(super) const CHUNK: usize = 256 << 10;

/// Values that are searched together for runs.
const PENDING: usize = 1024;

const RUN_LEAST: usize = 3;
const RUN_MOST: usize = RUN_LEAST + 0x7f;
/// Values that are written out behind one control byte.
const LITERALS: usize = 0x80;

/// Bytes, packed chunk by chunk.
#[derive(Debug)]
pub struct OutStream {
    codec: Codec,
    raw: Vec<u8>,
    packed: Vec<u8>,
}

impl OutStream {
    /// A stream without bytes.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            raw: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// A chunk cannot be packed; so for all that follow.
    pub fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = CHUNK.saturating_sub(self.raw.len());
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.raw.extend_from_slice(now);
            bytes = rest;
            if self.raw.len() >= CHUNK {
                self.end_chunk()?;
            }
        }
        Ok(())
    }

    /// Adds a number of base 128 of which every second is negative.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_wide_zigzag(&mut self, value: i128) -> io::Result<()> {
        let mut left = (value << 1 ^ value >> 127).cast_unsigned();
        while left >= 0x80 {
            self.put(&[left as u8 | 0x80])?;
            left >>= 7;
        }
        self.put(&[left as u8])
    }

    /// Bytes that it takes, of which those of the last chunk are not packed yet.
    pub fn bytes(&self) -> usize {
        self.raw.len() + self.packed.len()
    }

    /// All bytes, and an empty stream again.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn take(&mut self) -> io::Result<Vec<u8>> {
        self.end_chunk()?;
        Ok(mem::take(&mut self.packed))
    }

    fn end_chunk(&mut self) -> io::Result<()> {
        if self.codec == Codec::None {
            self.packed.append(&mut self.raw);
        } else if !self.raw.is_empty() {
            let packed = self.codec.pack(&self.raw)?;
            let is_packed = packed.len() < self.raw.len();
            let chunk = if is_packed { &packed } else { &self.raw };
            let header = chunk.len() << 1 | usize::from(!is_packed);
            let [low, middle, high, ..] = header.to_le_bytes();
            self.packed.extend([low, middle, high]);
            self.packed.extend_from_slice(chunk);
            self.raw.clear();
        }
        Ok(())
    }
}

/// What the values of runs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsForm {
    /// Bytes, of which runs repeat one.
    Bytes,
    /// Whole numbers of version 1, none negative.
    Counts,
    /// Whole numbers of version 1.
    Signed,
}

/// Values in runs: repeated, or rising steadily where they are numbers, else written out.
#[derive(Debug)]
pub struct OutRuns {
    out: OutStream,
    form: RunsForm,
    pending: Vec<i64>,
}

impl OutRuns {
    /// Runs without values.
    pub fn new(codec: Codec, form: RunsForm) -> Self {
        Self {
            out: OutStream::new(codec),
            form,
            pending: Vec::new(),
        }
    }

    /// Adds a value.
    ///
    /// # Errors
    /// As [`OutStream::put`].
    pub fn put(&mut self, value: i64) -> io::Result<()> {
        self.pending.push(value);
        if self.pending.len() >= PENDING {
            self.encode()?;
        }
        Ok(())
    }

    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.out.bytes() + self.pending.len()
    }

    /// All bytes, and no values again.
    ///
    /// # Errors
    /// As [`OutStream::put`].
    pub fn take(&mut self) -> io::Result<Vec<u8>> {
        self.encode()?;
        self.out.take()
    }

    fn encode(&mut self) -> io::Result<()> {
        let mut pending = mem::take(&mut self.pending);
        let mut out = Vec::new();
        let (mut rest, mut literals) = (pending.as_slice(), 0);
        loop {
            let (before, ahead) = rest.split_at(literals);
            let (length, step) = run(ahead, self.form);
            if length < RUN_LEAST && !ahead.is_empty() && literals < LITERALS {
                literals += 1;
                continue;
            }
            self.put_literals(before, &mut out);
            (rest, literals) = (ahead, 0);
            if length >= RUN_LEAST {
                self.put_run(rest, length, step, &mut out);
                rest = rest.get(length..).unwrap_or_default();
            }
            if rest.is_empty() {
                break;
            }
        }
        pending.clear();
        self.pending = pending;
        self.out.put(&out)
    }

    fn put_literals(&self, values: &[i64], out: &mut Vec<u8>) {
        if !values.is_empty() {
            out.push((0x100 - values.len()) as u8);
        }
        for value in values {
            self.put_value(*value, out);
        }
    }

    fn put_run(&self, values: &[i64], length: usize, step: i8, out: &mut Vec<u8>) {
        out.push((length - RUN_LEAST) as u8);
        if self.form != RunsForm::Bytes {
            out.push(step.cast_unsigned());
        }
        if let Some(first) = values.first() {
            self.put_value(*first, out);
        }
    }

    fn put_value(&self, value: i64, out: &mut Vec<u8>) {
        match self.form {
            RunsForm::Bytes => out.push(value as u8),
            RunsForm::Counts => put_varint(out, value.cast_unsigned()),
            RunsForm::Signed => put_varint(out, (value << 1 ^ value >> 63).cast_unsigned()),
        }
    }
}

/// How many of the first values are a run, and by what they rise.
fn run(values: &[i64], form: RunsForm) -> (usize, i8) {
    let [first, second, ..] = values else {
        return (values.len(), 0);
    };
    let step = second.checked_sub(*first);
    let step = step.and_then(|step| i8::try_from(step).ok());
    let Some(step) = step.filter(|step| form != RunsForm::Bytes || *step == 0) else {
        return (1, 0);
    };
    let rises = |pair: &&[i64]| matches!(pair, [a, b] if b.checked_sub(*a) == Some(step.into()));
    let pairs = values.windows(2).take(RUN_MOST - 1);
    (pairs.take_while(rises).count() + 1, step)
}

/// Booleans, eight to a byte, the highest bit first.
#[derive(Debug)]
pub struct OutBits {
    bytes: OutRuns,
    byte: u8,
    count: u32,
}

impl OutBits {
    /// No booleans.
    pub fn new(codec: Codec) -> Self {
        Self {
            bytes: OutRuns::new(codec, RunsForm::Bytes),
            byte: 0,
            count: 0,
        }
    }

    /// Adds a boolean.
    ///
    /// # Errors
    /// As [`OutStream::put`].
    pub fn put(&mut self, bit: bool) -> io::Result<()> {
        self.byte |= u8::from(bit) << (7 - self.count);
        self.count += 1;
        if self.count < 8 {
            return Ok(());
        }
        self.end_byte()
    }

    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        self.bytes.bytes()
    }

    /// All bytes, and no booleans again.
    ///
    /// # Errors
    /// As [`OutStream::put`].
    pub fn take(&mut self) -> io::Result<Vec<u8>> {
        if self.count > 0 {
            self.end_byte()?;
        }
        self.bytes.take()
    }

    fn end_byte(&mut self) -> io::Result<()> {
        self.count = 0;
        self.bytes.put(i64::from(mem::take(&mut self.byte)))
    }
}
