//! The file info block: named facts about the file, the schema among them.

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::proto;
use crate::{FormatError, Result};

const MAGIC: &[u8; 4] = b"PBUF";

/// Facts by name, in file order.
///
/// ```text
/// "PBUF" | length varint | InfoProto { repeated BytesBytesPair = 1 { bytes first = 1, second = 2 } }
/// ```
#[derive(Debug, Default)]
pub(super) struct Info(Vec<(Bytes, Bytes)>);

impl Info {
    pub(super) fn decode(payload: &Bytes, at: u64) -> Result<Self> {
        let mut cursor = Cursor::at(payload, at);
        if cursor.take(MAGIC.len())? != MAGIC {
            return Err(FormatError::unsupported(
                "HFile info not in Protocol Buffers",
            ));
        }
        let mut message = proto::delimited(&mut cursor)?;
        let mut entries = Vec::new();
        while let Some((number, value)) = proto::field(&mut message)? {
            if let (1, Some(pair)) = (number, value.bytes()) {
                entries.push(decode_pair(payload, pair, at)?);
            }
        }
        Ok(Self(entries))
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let entry = self.0.iter().find(|(known, _)| known == name);
        entry.map(|(_, value)| value.as_ref())
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

fn decode_pair(payload: &Bytes, pair: &[u8], at: u64) -> Result<(Bytes, Bytes)> {
    let mut message = Cursor::at(pair, at);
    let (mut first, mut second) = (Bytes::new(), Bytes::new());
    while let Some((number, value)) = proto::field(&mut message)? {
        match (number, value.bytes()) {
            (1, Some(bytes)) => first = payload.slice_ref(bytes),
            (2, Some(bytes)) => second = payload.slice_ref(bytes),
            _ => {}
        }
    }
    Ok((first, second))
}
