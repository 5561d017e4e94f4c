//! Hudi's bloom filters over record keys, bit for bit.
//!
//! Where a filter is stored (Parquet footer, HFile, metadata table) is not decided here.

mod dynamic;
mod places;
mod row;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use self::dynamic::Dynamic;
use self::places::Places;
use self::row::{Row, header, shape, vector_len};
use crate::cursor::Cursor;
use crate::{FormatError, Result};

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

impl Kind {
    /// The row that the next key is added to.
    fn next_row(&mut self) -> Option<&mut Row> {
        match self {
            Self::Simple(row) => Some(row),
            Self::Dynamic(dynamic) => dynamic.next_row(),
        }
    }
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

    /// Reads either kind; the lengths tell them apart. If the kind is stored next to the filter,
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
        if let Some(row) = self.0.next_row() {
            row.add(key);
        }
    }

    /// Adds keys as [`add`](Self::add) does, several at a time: many times faster.
    pub fn add_all<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>) {
        let (hashes, bits) = match &self.0 {
            Kind::Simple(row) => (row.hashes, row.bits),
            Kind::Dynamic(dynamic) => dynamic.shape,
        };
        let mut places = Places::new(hashes, bits);
        let mut keys = keys.fuse();
        while let Some(first) = keys.next() {
            let some = [Some(first), keys.next(), keys.next(), keys.next()];
            let [Some(a), Some(b), Some(c), Some(d)] = some else {
                for key in some.into_iter().flatten() {
                    self.add(key);
                }
                return;
            };
            if places.take([a, b, c, d]) {
                for lane in 0..4 {
                    if let Some(row) = self.0.next_row() {
                        row.set(places.of(lane));
                    }
                }
            } else {
                for key in [a, b, c, d] {
                    self.add(key);
                }
            }
        }
    }

    /// A filter that was read, to be added to as when it was made for `max` keys.
    #[must_use]
    pub fn growing_to(mut self, max: u32) -> Self {
        if let Kind::Dynamic(dynamic) = &mut self.0 {
            dynamic.max_keys = u64::from(max);
        }
        self
    }

    /// Whether both are of one kind and size, as filters that were made alike.
    pub fn is_shaped_as(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Simple(one), Kind::Simple(other)) => {
                (one.hashes, one.bits) == (other.hashes, other.bits)
            }
            (Kind::Dynamic(one), Kind::Dynamic(other)) => {
                (one.shape, one.keys_per_row) == (other.shape, other.keys_per_row)
            }
            _ => false,
        }
    }

    /// Lets every key through.
    pub fn fill(&mut self) {
        let rows = match &mut self.0 {
            Kind::Simple(row) => std::slice::from_mut(row),
            Kind::Dynamic(dynamic) => dynamic.rows.as_mut_slice(),
        };
        for row in rows {
            row.vector.fill(u8::MAX);
        }
    }

    /// The share of other keys for which [`contains`](Self::contains) is true, about.
    pub fn passed_share(&self) -> f64 {
        let rows = match &self.0 {
            Kind::Simple(row) => std::slice::from_ref(row),
            Kind::Dynamic(dynamic) => dynamic.rows.as_slice(),
        };
        let refused: f64 = rows.iter().map(|row| 1.0 - row.passed_share()).product();
        1.0 - refused
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

#[cfg(test)]
mod tests;
