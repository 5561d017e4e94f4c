//! Avro object container files: completed instants and plans of a Hudi timeline.
//!
//! ```text
//! "Obj" 1 | map: avro.schema, [avro.codec], ... | sync marker (16)
//! then blocks: count (long) | size in bytes (long) | records | sync marker
//! ```
//!
//! The framing is ours so that the schema text survives to the byte (Java's has attributes
//! such as `avro.java.string`) and maps keep their order. Values are JSON, see `datum`: Avro's
//! JSON with unions unwrapped, bytes as strings of the characters U+0000 to U+00FF.
//!
//! Not for table rows: those go to Arrow. What the fields mean is not known here.

use std::io::Read;

use flate2::read::DeflateDecoder;
use serde_json::Value;

use crate::datum::{self, Reader, put_bytes, put_long};
use crate::error::{AvroError, Result, corrupt, unsupported};
use crate::model::Type;
use crate::parse::parse;

const MAGIC: &[u8] = b"Obj\x01";
/// A block ends once it has this many bytes, as in Java's `DataFileWriter`.
const BLOCK_BYTES: usize = 64_000;
/// What all deflated blocks of a file may inflate to.
const MAX_INFLATED: usize = 256 << 20;

/// The writer schema's text, and the records in order.
///
/// Codecs null and deflate; another is [`AvroError::Unsupported`]. An empty file is not a
/// container and so corrupt: what it stands for is the caller's to know.
pub fn container_to_json(bytes: &[u8]) -> Result<(String, Vec<Value>)> {
    let mut reader = Reader::new(bytes);
    if reader.take(MAGIC.len()).ok() != Some(MAGIC) {
        return corrupt("not an avro container file");
    }
    let (schema_json, codec) = header(&mut reader)?;
    let ty = parse(&schema_json)?;
    let sync = reader.take(16)?;
    let mut records = Vec::new();
    let mut inflatable = MAX_INFLATED;
    while !reader.rest().is_empty() {
        let at = bytes.len() - reader.rest().len();
        let count = reader.long()?;
        let data = reader.bytes()?;
        if reader.take(16)? != sync {
            return corrupt(format!("no sync marker after the block at byte {at}"));
        }
        let block = match codec {
            Codec::Null => read_block(&ty, count, data, &mut records),
            Codec::Deflate => {
                let inflated = inflate(data, inflatable)?;
                inflatable -= inflated.len();
                read_block(&ty, count, &inflated, &mut records)
            }
        };
        block.map_err(|e| located(e, at))?;
    }
    Ok((schema_json, records))
}

/// A container file with this schema text, codec null, and no `avro.codec` entry: what
/// Hudi's Java code writes.
///
/// A field missing in a record takes the schema's default; one that the schema lacks is an
/// error. For a union the first branch that takes the value is written.
pub fn json_to_container(
    schema_json: &str,
    records: &[Value],
    sync_marker: [u8; 16],
) -> Result<Vec<u8>> {
    let ty = parse(schema_json)?;
    let mut out = MAGIC.to_vec();
    put_long(&mut out, 1);
    put_bytes(&mut out, b"avro.schema");
    put_bytes(&mut out, schema_json.as_bytes());
    put_long(&mut out, 0);
    out.extend_from_slice(&sync_marker);
    let mut block = Vec::new();
    let mut count = 0;
    for (index, record) in records.iter().enumerate() {
        datum::write(&ty, record, &mut block, "")?;
        count += 1;
        if block.len() >= BLOCK_BYTES || index + 1 == records.len() {
            put_long(&mut out, count);
            put_bytes(&mut out, &block);
            out.extend_from_slice(&sync_marker);
            block.clear();
            count = 0;
        }
    }
    Ok(out)
}

#[derive(Debug, Clone, Copy)]
enum Codec {
    Null,
    Deflate,
}

/// The schema text and the codec of the metadata map.
fn header(reader: &mut Reader) -> Result<(String, Codec)> {
    let mut schema = None;
    let mut codec = Codec::Null;
    loop {
        let count = reader.block()?;
        if count == 0 {
            break;
        }
        for _ in 0..count {
            let key = reader.string()?;
            let value = reader.bytes()?;
            match (key, value) {
                ("avro.schema", text) => schema = Some(text),
                ("avro.codec", b"deflate") => codec = Codec::Deflate,
                ("avro.codec", b"null") => codec = Codec::Null,
                ("avro.codec", other) => {
                    let name = String::from_utf8_lossy(other);
                    return unsupported(format!("container codec {name}"));
                }
                _ => {}
            }
        }
    }
    let text = schema.and_then(|text| std::str::from_utf8(text).ok());
    match text {
        Some(text) => Ok((text.to_owned(), codec)),
        None => corrupt("a container file without schema"),
    }
}

fn read_block(ty: &Type, count: i64, data: &[u8], records: &mut Vec<Value>) -> Result<()> {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    if count > data.len() as u64 {
        return corrupt(format!("{count} records in {} bytes", data.len()));
    }
    let mut reader = Reader::new(data);
    for _ in 0..count {
        records.push(reader.value(ty)?);
    }
    match reader.rest().len() {
        0 => Ok(()),
        left => corrupt(format!("{left} bytes after {count} records")),
    }
}

fn inflate(data: &[u8], limit: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut decoder = DeflateDecoder::new(data).take(limit as u64 + 1);
    if let Err(error) = decoder.read_to_end(&mut out) {
        return corrupt(format!("deflated block: {error}"));
    }
    if out.len() > limit {
        return unsupported(format!("container of more than {MAX_INFLATED} bytes"));
    }
    Ok(out)
}

fn located(error: AvroError, at: usize) -> AvroError {
    match error {
        AvroError::Corrupt { what } => AvroError::Corrupt {
            what: format!("block at byte {at}: {what}"),
        },
        other => other,
    }
}
