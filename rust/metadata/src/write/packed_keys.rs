//! Keys of records that share a value, packed into one: as many records of the record index as a commit
//! makes travel as a few rows.
//!
//! Layout: the number of keys, their lengths, their text; numbers are little-endian `u32`.

use pyhudi_slice::{Result, SliceError};

/// Bytes of keys in one row. Spark holds 10,000 rows in a batch, which must stay far below 2 GiB.
const ROW_BYTES: usize = 32 << 10;

/// Keys on their way into packed values.
#[derive(Default)]
pub(super) struct PackedKeys {
    full: Vec<Vec<u8>>,
    lengths: Vec<u8>,
    text: Vec<u8>,
}

impl PackedKeys {
    pub(super) fn add(&mut self, key: &str) {
        if self.text.len() + self.lengths.len() >= ROW_BYTES {
            self.end_row();
        }
        self.lengths.extend((key.len() as u32).to_le_bytes());
        self.text.extend_from_slice(key.as_bytes());
    }

    /// The packed values, in the order in which their keys were added.
    pub(super) fn finish(mut self) -> Vec<Vec<u8>> {
        if !self.lengths.is_empty() {
            self.end_row();
        }
        self.full
    }

    fn end_row(&mut self) {
        let count = (self.lengths.len() / 4) as u32;
        let mut row = Vec::with_capacity(4 + self.lengths.len() + self.text.len());
        row.extend(count.to_le_bytes());
        row.append(&mut self.lengths);
        row.append(&mut self.text);
        self.full.push(row);
    }
}

/// The keys of a packed value.
///
/// # Errors
/// The value is not one.
pub(super) fn unpack(packed: &[u8]) -> Result<impl Iterator<Item = Result<&str>>> {
    let (lengths, text) = parts(packed).ok_or_else(damaged)?;
    let text = std::str::from_utf8(text).map_err(|_| damaged())?;
    let mut at = 0;
    Ok(lengths.iter().map(move |length| {
        let start = at;
        at += u32::from_le_bytes(*length) as usize;
        text.get(start..at).ok_or_else(damaged)
    }))
}

fn parts(packed: &[u8]) -> Option<(&[[u8; 4]], &[u8])> {
    let (count, rest) = packed.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    let (lengths, text) = rest.split_at_checked(count.checked_mul(4)?)?;
    let (lengths, _) = lengths.as_chunks::<4>();
    Some((lengths, text))
}

fn damaged() -> SliceError {
    SliceError::Schema("packed keys of the metadata table are damaged".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(rows: &[Vec<u8>]) -> Vec<String> {
        let keys = rows.iter().flat_map(|row| unpack(row).unwrap());
        keys.map(|key| key.unwrap().to_owned()).collect()
    }

    #[test]
    fn packed_keys_come_back_in_their_order() {
        let long = "é".repeat(ROW_BYTES);
        let many: Vec<String> = (0..9000).map(|key| format!("key-{key}")).collect();
        let mut keys = vec![String::new(), "b".to_owned(), "日本".to_owned(), long];
        keys.extend(many);
        for keys in [&keys[..], &[]] {
            let mut packed = PackedKeys::default();
            for key in keys {
                packed.add(key);
            }
            let rows = packed.finish();
            assert_eq!(unpacked(&rows), keys);
            assert_eq!(rows.len() > 3, !keys.is_empty());
        }
    }

    #[test]
    fn damaged_packed_keys_are_an_error() {
        let mut packed = PackedKeys::default();
        packed.add("éa");
        let row = packed.finish().remove(0);
        for bytes in [
            &row[..3],
            &row[..6],
            &[255, 255, 255, 255][..],
            &row[..row.len() - 2],
        ] {
            assert!(unpack(bytes).is_err(), "{bytes:?}");
        }
        for (at, value) in [(4, 1), (4, 200)] {
            let mut other = row.clone();
            other[at] = value;
            let keys: Result<Vec<&str>> = unpack(&other).unwrap().collect();
            assert!(keys.is_err());
        }
    }
}
