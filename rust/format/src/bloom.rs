//! Hudi's bloom filters over record keys, bit for bit.
//!
//! Where a filter is stored (Parquet footer, HFile, metadata table) is not decided here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::cursor::Cursor;
use crate::hash::murmur;
use crate::{FormatError, Result};

const LAYOUT: i32 = -1;
const MURMUR: u8 = 1;
/// No error rate of any use needs as many; keeps a damaged header from stalling a look-up.
const HASHES_MOST: u32 = 4096;
/// Header of a simple filter.
const HEADER: usize = 13;

/// A filter of either kind.
///
/// ```text
/// SIMPLE:       -1 4 | hashes 4 | hash type 1 (murmur) | bits m 4 | ceil(m / 8) bytes
/// DYNAMIC_V0:   -1 4 | hashes 4 | hash type 1 | m of a row 4 | keys per row 4
///                 | keys in the last row 4 | rows 4 | rows × SIMPLE
/// bit i is byte i / 8, mask 1 << (i % 8); numbers are big-endian
///
/// m = ceil(n × -ln p / ln²2)      hashes = ceil(ln 2 × m / n)
/// place of hash i: |h(i) rem m|,  h(0) = murmur(key, 0),  h(i) = murmur(key, h(i - 1))
/// ```
///
/// `SimpleBloomFilter` and `HoodieDynamicBoundedBloomFilter`, Hudi 0.5 to 1.2. Java refuses an
/// empty key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BloomFilter(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Simple(Row),
    Dynamic(Dynamic),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    hashes: u32,
    bits: u32,
    vector: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Dynamic {
    shape: (u32, u32),
    keys_per_row: u32,
    keys_in_last: u32,
    rows: Vec<Row>,
    /// No new rows from here on. Not stored: a filter that was read never grows, as in Java.
    max_keys: u64,
    /// The row that takes the next key once there are no new ones; [`None`] before.
    turn: Option<usize>,
}

impl BloomFilter {
    /// An empty filter of one fixed size (`SIMPLE`) for `entries` keys at error rate `fpp`.
    pub fn simple(entries: u32, fpp: f64) -> Self {
        let (hashes, bits) = shape(entries, fpp);
        Self(Kind::Simple(Row::new(hashes, bits)))
    }

    /// An empty filter (`DYNAMIC_V0`) that adds a row every `entries` keys until `max` keys fit.
    pub fn dynamic(entries: u32, fpp: f64, max: u32) -> Self {
        let shape = shape(entries, fpp);
        Self(Kind::Dynamic(Dynamic {
            shape,
            keys_per_row: entries,
            keys_in_last: 0,
            rows: vec![Row::new(shape.0, shape.1)],
            max_keys: u64::from(max),
            turn: None,
        }))
    }

    /// Reads either kind; the lengths tell them apart. Where the kind is stored beside the filter,
    /// [`expect_type`](Self::expect_type) also notices a `DYNAMIC_V0` filter cut to the length of
    /// a `SIMPLE` one.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let (hashes, bits) = header(&mut cursor)?;
        let kind = if cursor.remaining() == vector_len(bits) {
            Kind::Simple(Row {
                hashes,
                bits,
                vector: cursor.take(vector_len(bits))?.to_vec(),
            })
        } else {
            Kind::Dynamic(Dynamic::decode(&mut cursor, (hashes, bits))?)
        };
        cursor.finish()?;
        Ok(Self(kind))
    }

    /// Reads the Base64 text in which filters are stored.
    pub fn from_base64(text: &str) -> Result<Self> {
        let bytes = STANDARD.decode(text.trim_ascii_end()).map_err(|error| {
            FormatError::corrupt(0, format!("bloom filter is not Base64: {error}"))
        })?;
        Self::parse(&bytes)
    }

    /// This filter if it is of the kind with this name.
    pub fn expect_type(self, type_code: &str) -> Result<Self> {
        match self.type_code() {
            found if found == type_code => Ok(self),
            found => {
                let what = format!("bloom filter of type {found}, {type_code} expected");
                Err(FormatError::corrupt(0, what))
            }
        }
    }

    /// Adds the UTF-8 bytes of a record key.
    pub fn add(&mut self, key: &[u8]) {
        match &mut self.0 {
            Kind::Simple(row) => row.add(key),
            Kind::Dynamic(dynamic) => dynamic.add(key),
        }
    }

    /// Whether the key may have been added; false is certain.
    pub fn contains(&self, key: &[u8]) -> bool {
        match &self.0 {
            Kind::Simple(row) => row.contains(key),
            Kind::Dynamic(dynamic) => dynamic.rows.iter().any(|row| row.contains(key)),
        }
    }

    /// The bytes as Java writes them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.0 {
            Kind::Simple(row) => row.encode(&mut out),
            Kind::Dynamic(dynamic) => dynamic.encode(&mut out),
        }
        out
    }

    /// [`to_bytes`](Self::to_bytes) as the Base64 text in which filters are stored.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.to_bytes())
    }

    /// Name of the kind in metadata (`BloomFilterTypeCode`).
    pub fn type_code(&self) -> &'static str {
        match self.0 {
            Kind::Simple(_) => "SIMPLE",
            Kind::Dynamic(_) => "DYNAMIC_V0",
        }
    }
}

/// Number of hashes and of bits.
fn shape(entries: u32, fpp: f64) -> (u32, u32) {
    let entries = f64::from(entries.max(1));
    let ln2 = std::f64::consts::LN_2;
    let bits = (entries * (-fpp.ln() / (ln2 * ln2)))
        .ceil()
        .clamp(1.0, f64::from(i32::MAX));
    let hashes = (ln2 * bits / entries)
        .ceil()
        .clamp(1.0, f64::from(HASHES_MOST));
    (hashes as u32, bits as u32)
}

fn vector_len(bits: u32) -> usize {
    (bits as usize).div_ceil(8)
}

fn header(cursor: &mut Cursor<'_>) -> Result<(u32, u32)> {
    let at = cursor.clone();
    match cursor.i32()? {
        LAYOUT => {}
        1.. => {
            return Err(FormatError::unsupported(
                "bloom filter without a layout version",
            ));
        }
        other => return at.corrupt(format!("bloom filter layout {other}")),
    }
    let hashes = cursor.u32()?;
    match cursor.u8()? {
        MURMUR => {}
        0 => return Err(FormatError::unsupported("bloom filter of Jenkins hashes")),
        other => return at.corrupt(format!("bloom filter hash {other}")),
    }
    let bits = cursor.u32()?;
    if hashes == 0 || hashes > HASHES_MOST || bits == 0 || bits > i32::MAX as u32 {
        return at.corrupt(format!("bloom filter of {hashes} hashes over {bits} bits"));
    }
    Ok((hashes, bits))
}

fn put_header(out: &mut Vec<u8>, hashes: u32, bits: u32) {
    out.extend_from_slice(&LAYOUT.to_be_bytes());
    out.extend_from_slice(&hashes.to_be_bytes());
    out.push(MURMUR);
    out.extend_from_slice(&bits.to_be_bytes());
}

impl Row {
    fn new(hashes: u32, bits: u32) -> Self {
        Self {
            hashes,
            bits,
            vector: vec![0; vector_len(bits)],
        }
    }

    /// Byte and mask of each bit that stands for a key.
    fn places<'k>(&self, key: &'k [u8]) -> impl Iterator<Item = (usize, u8)> + use<'k> {
        let bits = i64::from(self.bits);
        let first = murmur(key, 0);
        std::iter::successors(Some(first), move |hash| Some(murmur(key, *hash)))
            .take(self.hashes as usize)
            .map(move |hash| {
                let place = (i64::from(hash) % bits).unsigned_abs() as usize;
                (place >> 3, 1 << (place & 7))
            })
    }

    fn add(&mut self, key: &[u8]) {
        for (byte, mask) in self.places(key) {
            if let Some(byte) = self.vector.get_mut(byte) {
                *byte |= mask;
            }
        }
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.places(key)
            .all(|(byte, mask)| self.vector.get(byte).is_some_and(|byte| byte & mask != 0))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_header(out, self.hashes, self.bits);
        out.extend_from_slice(&self.vector);
    }
}

impl Dynamic {
    fn decode(cursor: &mut Cursor<'_>, shape: (u32, u32)) -> Result<Self> {
        let keys_per_row = cursor.u32()?;
        let keys_in_last = cursor.u32()?;
        let count = cursor.count(HEADER.saturating_add(vector_len(shape.1)))?;
        if count == 0 {
            return cursor.corrupt("bloom filter without rows");
        }
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            let at = cursor.clone();
            let (hashes, bits) = header(cursor)?;
            if (hashes, bits) != shape {
                return at.corrupt("rows of a bloom filter differ");
            }
            rows.push(Row {
                hashes,
                bits,
                vector: cursor.take(vector_len(bits))?.to_vec(),
            });
        }
        Ok(Self {
            shape,
            keys_per_row,
            keys_in_last,
            rows,
            max_keys: 0,
            turn: None,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_header(out, self.shape.0, self.shape.1);
        for number in [self.keys_per_row, self.keys_in_last, self.rows.len() as u32] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for row in &self.rows {
            row.encode(out);
        }
    }

    /// `InternalDynamicBloomFilter.add`.
    fn add(&mut self, key: &[u8]) {
        let full = self.keys_in_last >= self.keys_per_row;
        let capacity = self.rows.len() as u64 * u64::from(self.keys_per_row);
        if self.turn.is_none() && full && capacity < self.max_keys {
            self.rows.push(Row::new(self.shape.0, self.shape.1));
            self.keys_in_last = 0;
        }
        let rows = self.rows.len();
        let row = match self.turn {
            Some(turn) => {
                self.turn = Some(turn.wrapping_add(1));
                turn % rows
            }
            // The first key over the limit goes to the first row, and so does the next one.
            None if full && capacity >= self.max_keys => {
                self.turn = Some(0);
                0
            }
            None => rows - 1,
        };
        if let Some(row) = self.rows.get_mut(row) {
            row.add(key);
        }
        self.keys_in_last = self.keys_in_last.saturating_add(1);
    }
}

#[cfg(test)]
mod tests;
