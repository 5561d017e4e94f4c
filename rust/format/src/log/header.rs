//! The header map of a log block.

use crate::Result;
use crate::cursor::Cursor;

/// `HoodieLogBlock.HeaderMetadataType`. The discriminant is the number on disk.
///
/// Hudi 0.15 knows the first seven and fails on a block with one of the last two: never write
/// those into a table of version 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeaderKey {
    /// Instant that wrote the block; of a command block, the rollback's instant.
    InstantTime = 0,
    /// Command block: the instant that is rolled back.
    TargetInstantTime,
    /// Avro schema of the records, meta fields included, as JSON.
    Schema,
    /// Decimal number of the command; `0` rolls back.
    CommandBlockType,
    /// Log-compacted block: the instants it replaces, joined by commas.
    CompactedBlockTimes,
    /// Rows of the base file that the records update: Base64 of a 64-bit Roaring bitmap.
    RecordPositions,
    /// Attempt and sequence number of some 0.14 writers.
    BlockIdentifier,
    /// `true` when records hold only the changed columns.
    IsPartial,
    /// Commit time of the base file that the positions count in.
    BaseFileInstantTimeOfRecordPositions,
}

const TABLE: [(HeaderKey, &str); 9] = [
    (HeaderKey::InstantTime, "INSTANT_TIME"),
    (HeaderKey::TargetInstantTime, "TARGET_INSTANT_TIME"),
    (HeaderKey::Schema, "SCHEMA"),
    (HeaderKey::CommandBlockType, "COMMAND_BLOCK_TYPE"),
    (HeaderKey::CompactedBlockTimes, "COMPACTED_BLOCK_TIMES"),
    (HeaderKey::RecordPositions, "RECORD_POSITIONS"),
    (HeaderKey::BlockIdentifier, "BLOCK_IDENTIFIER"),
    (HeaderKey::IsPartial, "IS_PARTIAL"),
    (
        HeaderKey::BaseFileInstantTimeOfRecordPositions,
        "BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS",
    ),
];

impl HeaderKey {
    /// Every key, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(key, _)| *key)
    }

    /// The number on disk.
    pub fn ordinal(self) -> u32 {
        self as u32
    }

    /// The key with this number on disk.
    pub fn from_ordinal(ordinal: u32) -> Option<Self> {
        Self::all().find(|key| key.ordinal() == ordinal)
    }

    /// The name of the constant in Hudi.
    pub fn name(self) -> &'static str {
        TABLE
            .iter()
            .find(|(key, _)| *key == self)
            .map_or("", |(_, name)| name)
    }
}

/// A header map in the order of the file, which means nothing: Java writes a hash map.
///
/// ```text
/// count 4 | count × ( key ordinal 4 | length 4 | UTF-8 )
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header(Vec<(u32, String)>);

impl Header {
    /// The value of a key. Of a key written twice the last value counts, as in a Java map.
    pub fn get(&self, key: HeaderKey) -> Option<&str> {
        let entry = self
            .0
            .iter()
            .rev()
            .find(|(ordinal, _)| *ordinal == key.ordinal());
        entry.map(|(_, value)| value.as_str())
    }

    /// Every entry as number and value, those of keys this crate does not know included.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &str)> {
        self.0
            .iter()
            .map(|(ordinal, value)| (*ordinal, value.as_str()))
    }

    /// Reads the map; [`None`] when it goes on beyond the bytes of the cursor.
    pub(crate) fn decode(cursor: &mut Cursor<'_>, limit: u64) -> Result<Option<Self>> {
        let left = |cursor: &Cursor<'_>| limit.saturating_sub(cursor.offset());
        if cursor.remaining() < 4 {
            return Ok(None);
        }
        let at = cursor.clone();
        let count = cursor.u32()?;
        if u64::from(count) > left(cursor) / 8 {
            return at.corrupt(format!("{count} header entries in {} bytes", left(cursor)));
        }
        let mut entries = Vec::new();
        for _ in 0..count {
            if cursor.remaining() < 8 {
                return Ok(None);
            }
            let key = cursor.u32()?;
            let length = cursor.u32()?;
            if u64::from(length) > left(cursor) {
                return cursor.corrupt(format!("header value of {length} bytes is too long"));
            }
            if cursor.remaining() < length as usize {
                return Ok(None);
            }
            entries.push((key, cursor.text(length as usize)?.to_owned()));
        }
        Ok(Some(Self(entries)))
    }

    pub(crate) fn encode(out: &mut Vec<u8>, entries: &[(HeaderKey, &str)]) {
        out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
        for (key, value) in entries {
            out.extend_from_slice(&key.ordinal().to_be_bytes());
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(value.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_survives_the_round_trip() {
        for (ordinal, key) in HeaderKey::all().enumerate() {
            assert_eq!(key.ordinal() as usize, ordinal);
            assert_eq!(HeaderKey::from_ordinal(key.ordinal()), Some(key));
            assert!(!key.name().is_empty());
        }
        assert_eq!(HeaderKey::from_ordinal(9), None);
    }

    #[test]
    fn unknown_keys_are_kept_and_the_last_of_two_values_counts() {
        let mut bytes = Vec::new();
        let entries = [
            (HeaderKey::InstantTime, "1"),
            (HeaderKey::IsPartial, "é"),
            (HeaderKey::InstantTime, "2"),
        ];
        Header::encode(&mut bytes, &entries);
        bytes[16] = 99;
        let limit = bytes.len() as u64;
        let header = Header::decode(&mut Cursor::new(&bytes), limit)
            .unwrap()
            .unwrap();
        assert_eq!(header.get(HeaderKey::InstantTime), Some("2"));
        assert_eq!(header.get(HeaderKey::IsPartial), None);
        assert_eq!(
            header.iter().collect::<Vec<_>>(),
            [(0, "1"), (99, "é"), (0, "2")]
        );
    }

    #[test]
    fn a_cut_map_asks_for_more_and_an_impossible_one_is_damaged() {
        let mut bytes = Vec::new();
        Header::encode(&mut bytes, &[(HeaderKey::Schema, "{}")]);
        let limit = bytes.len() as u64;
        for len in 0..bytes.len() {
            assert!(
                Header::decode(&mut Cursor::new(&bytes[..len]), limit)
                    .unwrap()
                    .is_none()
            );
        }
        assert!(Header::decode(&mut Cursor::new(&bytes), limit - 1).is_err());
        assert!(Header::decode(&mut Cursor::new(&[0xff; 4]), 1000).is_err());
    }
}
