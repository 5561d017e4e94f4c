//! The content of an Avro data block (and of a CDC block, which has the same form).
//!
//! Splits into records and joins them; decoding a record needs a schema and happens elsewhere.

use std::io::Read;

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::log::seal::check_end;
use crate::{FormatError, Result};

/// Version at the start of data and delete contents that Hudi 0.13 and later write.
pub const CONTENT_VERSION: u32 = 3;

/// A schema text beyond this is damage (or an attack by compression).
const SCHEMA_MOST: u64 = 64 << 20;

/// The records of a block, still encoded.
///
/// ```text
/// content version 4 (3; 1 and 2 are read alike) | count 4 | count × ( length 4 | Avro binary )
///
/// format version 0:   length 4 | zlib(schema JSON) | count 4 | count × ( length 4 | Avro binary )
/// ```
///
/// `HoodieAvroDataBlock`; the old form is that of its `getBlock`.
#[derive(Debug, Clone)]
pub struct AvroRecords {
    /// Number of records.
    pub count: usize,
    /// Writer schema as JSON, when the content carries it: only in format version 0.
    pub schema: Option<String>,
    records: Bytes,
}

impl AvroRecords {
    /// The records in order, without copying.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut cursor = Cursor::new(&self.records);
        // `avro_records` walked the same lengths: none of these fails.
        (0..self.count).map_while(move |_| {
            let length = cursor.length().ok()?;
            cursor.take(length).ok()
        })
    }
}

/// Splits the content of a block whose frame has `format_version`.
///
/// All lengths are verified here; errors count from the start of the content.
pub fn avro_records(content: &Bytes, format_version: u32) -> Result<AvroRecords> {
    let mut cursor = Cursor::new(content);
    let schema = if format_version == 0 {
        Some(inflate_schema(&mut cursor)?)
    } else {
        content_version(&mut cursor)?;
        None
    };
    let count = cursor.count(4)?;
    let records = content.slice(cursor.position()..);
    for _ in 0..count {
        let length = cursor.length()?;
        cursor.take(length)?;
    }
    check_end(&mut cursor, content)?;
    Ok(AvroRecords {
        count,
        schema,
        records,
    })
}

pub(super) fn content_version(cursor: &mut Cursor<'_>) -> Result<()> {
    match cursor.u32()? {
        1..=CONTENT_VERSION => Ok(()),
        other => Err(FormatError::unsupported(format!(
            "data block content version {other}"
        ))),
    }
}

fn inflate_schema(cursor: &mut Cursor<'_>) -> Result<String> {
    let length = cursor.length()?;
    let at = cursor.clone();
    let mut text = String::new();
    let mut inflated = flate2::read::ZlibDecoder::new(cursor.take(length)?).take(SCHEMA_MOST);
    match inflated.read_to_string(&mut text) {
        Ok(_) if inflated.limit() > 0 => Ok(text),
        Ok(_) => at.corrupt("schema of a log block is implausibly long"),
        Err(error) => at.corrupt(format!("schema of a log block does not inflate: {error}")),
    }
}

/// The content of an Avro data block with these records. Fewer than 2³¹ records, each shorter
/// than 2³¹ bytes.
pub fn avro_content<'a>(records: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut content = AvroContent::default();
    content.extend(records);
    content.finish()
}

/// The content of an Avro data block that grows.
#[derive(Debug, Default)]
pub struct AvroContent {
    count: u32,
    bytes: Vec<u8>,
}

impl AvroContent {
    /// The content, within the limits of [`avro_content`].
    pub fn finish(mut self) -> Vec<u8> {
        self.extend([]);
        if let Some(place) = self.bytes.get_mut(4..8) {
            place.copy_from_slice(&self.count.to_be_bytes());
        }
        self.bytes
    }
}

impl<'a> Extend<&'a [u8]> for AvroContent {
    fn extend<T: IntoIterator<Item = &'a [u8]>>(&mut self, records: T) {
        if self.bytes.is_empty() {
            self.bytes.extend(CONTENT_VERSION.to_be_bytes());
            self.bytes.extend([0; 4]);
        }
        for record in records {
            self.bytes.extend((record.len() as u32).to_be_bytes());
            self.bytes.extend_from_slice(record);
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn split(content: &[u8], version: u32) -> Result<AvroRecords> {
        avro_records(&Bytes::copy_from_slice(content), version)
    }

    #[test]
    fn records_come_back_as_written() {
        let records: [&[u8]; 3] = [b"one", b"", b"three"];
        let content = avro_content(records);
        assert_eq!(content[..8], [0, 0, 0, 3, 0, 0, 0, 3]);
        let read = split(&content, 1).unwrap();
        assert_eq!((read.count, read.schema.clone()), (3, None));
        assert_eq!(read.iter().collect::<Vec<_>>(), records);
    }

    #[test]
    fn format_version_0_carries_its_schema() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(b"\"string\"").unwrap();
        let schema = zlib.finish().unwrap();
        let mut content = (schema.len() as u32).to_be_bytes().to_vec();
        content.extend_from_slice(&schema);
        content.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2, 0x02, b'a']);
        let read = split(&content, 0).unwrap();
        assert_eq!(read.schema.as_deref(), Some("\"string\""));
        assert_eq!(read.iter().collect::<Vec<_>>(), [[0x02, b'a']]);
        for at in 0..content.len() {
            let mut damaged = content.clone();
            damaged[at] ^= 0xff;
            assert!(
                split(&damaged, 0).is_err() || at == content.len() - 1 || at == content.len() - 2
            );
        }
    }

    #[test]
    fn wrong_lengths_are_reported_where_they_are() {
        let content = avro_content([b"abc".as_slice()]);
        for (at, value, expected) in [(4, 0x80, 4), (7, 2, 4), (7, 0, 8), (11, 4, 8), (8, 0xff, 8)]
        {
            let mut damaged = content.clone();
            damaged[at] = value;
            match split(&damaged, 1) {
                Err(FormatError::Corrupt { offset, .. }) => assert_eq!(offset, expected),
                other => panic!("{at}: {other:?}"),
            }
        }
        assert!(matches!(
            split(&[0, 0, 0, 4], 1),
            Err(FormatError::Unsupported { .. })
        ));
        for len in 0..content.len() {
            assert!(split(&content[..len], 1).is_err());
        }
    }
}
