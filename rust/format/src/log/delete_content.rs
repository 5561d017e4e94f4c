//! The content of a delete block: a version, a length, and one of three encodings.

use bytes::Bytes;

use super::{CONTENT_VERSION, DeleteRecord, kryo};
use crate::cursor::Cursor;
use crate::log::seal::check_end;
use crate::{FormatError, Result};

/// What a delete block holds.
///
/// ```text
/// version 4 | length 4 | data
///   version 1: Kryo of HoodieKey[]        (until Hudi 0.9)
///   version 2: Kryo of DeleteRecord[]     (0.10 to 0.12)
///   version 3: Avro of HoodieDeleteRecordList   (0.13 and later)
/// ```
///
/// `HoodieDeleteBlock`.
#[derive(Debug, Clone, PartialEq)]
pub enum DeleteBody {
    /// Versions 1 and 2, decoded.
    Kryo(Vec<DeleteRecord<'static>>),
    /// Version 3: for [`delete_list::decode`](super::delete_list::decode).
    Avro(Bytes),
}

/// Opens the content of a delete block.
pub fn delete_body(content: &Bytes) -> Result<DeleteBody> {
    let mut cursor = Cursor::new(content);
    let version = cursor.u32()?;
    let length = cursor.length()?;
    let start = cursor.position();
    let data = cursor.take(length)?;
    check_end(&mut cursor, content)?;
    match version {
        CONTENT_VERSION => Ok(DeleteBody::Avro(content.slice(start..start + length))),
        1 | 2 => kryo::decode(data, version).map(DeleteBody::Kryo),
        other => Err(FormatError::unsupported(format!(
            "delete block version {other}"
        ))),
    }
}

/// The content of a delete block (version 3) around the bytes of
/// [`delete_list::encode`](super::delete_list::encode).
pub fn delete_content(avro_list: &[u8]) -> Vec<u8> {
    let mut out = CONTENT_VERSION.to_be_bytes().to_vec();
    out.extend_from_slice(&(avro_list.len() as u32).to_be_bytes());
    out.extend_from_slice(avro_list);
    out
}
