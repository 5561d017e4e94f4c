//! Avro object container files: completed instants and plans of a Hudi timeline.
//!
//! ```text
//! "Obj" 1 | map: avro.schema, [avro.codec], ... | sync marker (16)
//! then blocks: count (long) | size in bytes (long) | records | sync marker
//! ```
//!
//! The format has no checksum of a block that is not compressed, but a sync marker may have any value:
//! those of containers that are written here are a mark, the CRC-32 of all other bytes, and eight
//! random bytes.
//!
//! apache-avro reads the header, the numbers, the records, and deflate. The steps from block to
//! block are ours, so that the schema text survives to the byte (Java's has attributes such as
//! `avro.java.string`): its `Writer` formats the schema again and its `Reader` hides the JSON. Its
//! `Reader` also passes over bytes left in a block, and a file cut in a block's first number.
//!
//! Values are JSON, see `datum`: Avro's JSON with unions unwrapped, bytes as strings of the
//! characters U+0000 to U+00FF.
//!
//! Rows of data files go to Arrow ([`container_batches`]), the rest to JSON. What the fields mean is
//! not known here.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use apache_avro::error::Details;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::{Codec, DeflateSettings};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde_json::Value;

use crate::datum::{self, Parsed, put_bytes, put_long};
use crate::decode::DatumDecoder;
use crate::error::{AvroError, Result, corrupt, unsupported};
use crate::model::Type;
use crate::value::{self, Datum, DatumReader};

const MAGIC: &[u8] = b"Obj\x01";
/// What sync markers begin with that have the checksum of their file.
const CHECKED: &[u8] = b"PYCR";
/// A block ends once it has this many bytes, as in Java's `DataFileWriter`.
const BLOCK_BYTES: usize = 64_000;
/// What all deflated blocks of a file of the timeline may inflate to.
const MAX_INFLATED: usize = 256 << 20;

/// The writer schema's text, and the records in order.
///
/// Codecs null and deflate; another is [`AvroError::Unsupported`]. An empty file is not a
/// container and so corrupt: what it stands for is the caller's to know.
pub fn container_to_json(bytes: &[u8]) -> Result<(String, Vec<Value>)> {
    let (schema_json, blocks) = Blocks::of(bytes)?;
    let parsed = Parsed::of(&schema_json)?;
    let reader = datum::reader(&parsed.schema)?;
    let mut records = Vec::new();
    blocks.each(|count, block| read_block(&reader, &parsed.ty, count, block, &mut records))?;
    Ok((schema_json, records))
}

/// What `take` makes of the one record of a container.
///
/// reader: of the container before, which mostly has the same schema.
///
/// # Errors
/// As [`container_to_json`], and for more than one record or none.
pub fn container_datum<T>(
    bytes: &[u8],
    reader: &mut Option<(String, DatumReader)>,
    mut take: impl FnMut(&Datum<'_>) -> T,
) -> Result<T> {
    let (schema_json, blocks) = Blocks::of(bytes)?;
    let reader = match reader.take_if(|(text, _)| *text != schema_json) {
        None if reader.is_some() => reader.as_ref(),
        _ => {
            let made = DatumReader::new(&schema_json)?;
            Some(&*reader.insert((schema_json, made)))
        }
    };
    let mut taken = None;
    blocks.each(|count, block| {
        let (1, None, Some((_, reader))) = (count, &taken, reader) else {
            return corrupt("not one record");
        };
        taken = Some(take(&reader.read(block)?));
        Ok(())
    })?;
    taken.map_or_else(|| corrupt("no record"), Ok)
}

/// The rows of a data file: their columns, and batches of at most `batch_rows`.
///
/// # Errors
/// As [`container_to_json`], and for types that Arrow batches cannot hold here.
pub fn container_batches(bytes: &[u8], batch_rows: usize) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let (schema_json, mut blocks) = Blocks::of(bytes)?;
    // A block is bounded by apache-avro; a file of rows may be as large as it is.
    blocks.inflatable = usize::MAX;
    let mut decoder = DatumDecoder::new(&schema_json, None, batch_rows)?;
    let schema = decoder.schema();
    let mut batches = Vec::new();
    blocks.each(|count, mut block| {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if count > block.len() as u64 {
            return corrupt(format!("{count} records in {} bytes", block.len()));
        }
        for _ in 0..count {
            if decoder.is_full() {
                batches.extend(decoder.flush()?);
            }
            let used = decoder.push_first(block)?;
            block = block.get(used..).unwrap_or_default();
        }
        match block.len() {
            0 => Ok(()),
            left => corrupt(format!("{left} bytes after {count} records")),
        }
    })?;
    batches.extend(decoder.flush()?);
    Ok((schema, batches))
}

/// What follows the header of a container.
struct Blocks<'a> {
    bytes: &'a [u8],
    rest: &'a [u8],
    codec: Codec,
    /// What the deflated blocks may inflate to.
    inflatable: usize,
}

impl<'a> Blocks<'a> {
    /// With the text of the schema.
    fn of(bytes: &'a [u8]) -> Result<(String, Self)> {
        let Some(mut rest) = bytes.strip_prefix(MAGIC) else {
            return corrupt("not an avro container file");
        };
        let (schema_json, codec) = header(&mut rest)?;
        let blocks = Self {
            bytes,
            rest,
            codec,
            inflatable: MAX_INFLATED,
        };
        Ok((schema_json, blocks))
    }

    /// Hands over how many records each block has, and their bytes.
    fn each(mut self, mut take: impl FnMut(i64, &[u8]) -> Result<()>) -> Result<()> {
        let mut checksum = Checksum::default();
        checksum.add(self.bytes, self.rest);
        let sync = split_off(&mut self.rest, 16)?;
        while !self.rest.is_empty() {
            let at = self.bytes.len() - self.rest.len();
            let block = self.rest;
            let count = long(&mut self.rest)?;
            let size = long(&mut self.rest)?;
            let data = split_off(&mut self.rest, size)?;
            checksum.add(block, self.rest);
            if split_off(&mut self.rest, 16)? != sync {
                return corrupt(format!("no sync marker after the block at byte {at}"));
            }
            inflate(self.codec, data, &mut self.inflatable)
                .and_then(|block| take(count, &block))
                .map_err(|error| located(error, at))?;
        }
        if sync.starts_with(CHECKED) && !sync.starts_with(checksum.marker([0; 16]).split_at(8).0) {
            return corrupt("the container does not have its checksum");
        }
        Ok(())
    }
}

/// A container file with this schema text, a checksum in its sync markers, codec null, and no `avro.codec` entry: what
/// Hudi's Java code writes.
///
/// A field missing in a record takes the schema's default; one that is not in the schema is an
/// error. For a union the first branch that takes the value is written.
pub fn json_to_container(
    schema_json: &str,
    records: &[Value],
    sync_marker: [u8; 16],
) -> Result<Vec<u8>> {
    let parsed = Parsed::of(schema_json)?;
    let mut checksum = Checksum::default();
    let mut out = MAGIC.to_vec();
    put_long(&mut out, 1);
    put_bytes(&mut out, b"avro.schema");
    put_bytes(&mut out, schema_json.as_bytes());
    put_long(&mut out, 0);
    checksum.add(&out, &[]);
    let mut markers = vec![out.len()];
    out.extend_from_slice(&sync_marker);
    let mut block = Vec::new();
    let mut count = 0;
    for (index, record) in records.iter().enumerate() {
        datum::write(&parsed.ty, record, &mut block, "")?;
        count += 1;
        if block.len() >= BLOCK_BYTES || index + 1 == records.len() {
            let at = out.len();
            put_long(&mut out, count);
            put_bytes(&mut out, &block);
            checksum.add(out.get(at..).unwrap_or_default(), &[]);
            markers.push(out.len());
            out.extend_from_slice(&sync_marker);
            block.clear();
            count = 0;
        }
    }
    let marker = checksum.marker(sync_marker);
    for at in markers {
        if let Some(place) = out.get_mut(at..at + marker.len()) {
            place.copy_from_slice(&marker);
        }
    }
    Ok(out)
}

/// The CRC-32 of a container without its sync markers.
#[derive(Default)]
struct Checksum(crc32fast::Hasher);

impl Checksum {
    /// Adds bytes up to those that follow them.
    fn add(&mut self, bytes: &[u8], rest: &[u8]) {
        let end = bytes.len().saturating_sub(rest.len());
        self.0.update(bytes.get(..end).unwrap_or_default());
    }

    /// A sync marker, whose last bytes are those of `random`.
    fn marker(self, random: [u8; 16]) -> [u8; 16] {
        let mut marker = random;
        let (mark, rest) = marker.split_at_mut(CHECKED.len());
        mark.copy_from_slice(CHECKED);
        if let Some(number) = rest.first_chunk_mut::<4>() {
            *number = self.0.finalize().to_be_bytes();
        }
        marker
    }
}

/// The schema text and the codec of the metadata map.
fn header(rest: &mut &[u8]) -> Result<(String, Codec)> {
    static MAP: LazyLock<Type> = LazyLock::new(|| Type::Map(Arc::new(Type::Bytes)));
    let meta = value::read(&MAP, rest)?;
    let entry = |key| match &meta {
        Datum::Map(entries) => entries.iter().rev().find_map(|(name, value)| match value {
            Datum::Bytes(bytes) if *name == key => Some(*bytes),
            _ => None,
        }),
        _ => None,
    };
    let codec = match entry("avro.codec") {
        None | Some(b"null") => Codec::Null,
        Some(b"deflate") => Codec::Deflate(DeflateSettings::default()),
        Some(other) => {
            let name = String::from_utf8_lossy(other);
            return unsupported(format!("container codec {name}"));
        }
    };
    match entry("avro.schema").map(str::from_utf8) {
        Some(Ok(text)) => Ok((text.to_owned(), codec)),
        _ => corrupt("a container file without schema"),
    }
}

fn long(rest: &mut &[u8]) -> Result<i64> {
    static LONG: Type = Type::Long;
    let long = value::read(&LONG, rest)?;
    long.number().map_or_else(|| corrupt("not a long"), Ok)
}

fn split_off<'a>(rest: &mut &'a [u8], len: i64) -> Result<&'a [u8]> {
    let split = usize::try_from(len)
        .ok()
        .and_then(|len| rest.split_at_checked(len));
    let Some((taken, left)) = split else {
        return corrupt(format!("{len} bytes wanted, {} are left", rest.len()));
    };
    *rest = left;
    Ok(taken)
}

fn read_block(
    reader: &GenericDatumReader,
    ty: &Type,
    count: i64,
    mut data: &[u8],
    records: &mut Vec<Value>,
) -> Result<()> {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    if count > data.len() as u64 {
        return corrupt(format!("{count} records in {} bytes", data.len()));
    }
    for _ in 0..count {
        value::check(ty, data)?;
        records.push(datum::read(reader, &mut data)?);
    }
    match data.len() {
        0 => Ok(()),
        left => corrupt(format!("{left} bytes after {count} records")),
    }
}

fn inflate<'a>(codec: Codec, data: &'a [u8], inflatable: &mut usize) -> Result<Cow<'a, [u8]>> {
    if codec == Codec::Null {
        return Ok(Cow::Borrowed(data));
    }
    let mut block = data.to_vec();
    if let Err(error) = codec.decompress(&mut block) {
        return match error.details() {
            Details::MemoryAllocation { maximum, .. } => {
                unsupported(format!("container block of more than {maximum} bytes"))
            }
            details => corrupt(details.to_string()),
        };
    }
    match inflatable.checked_sub(block.len()) {
        Some(left) => *inflatable = left,
        None => return unsupported(format!("container of more than {MAX_INFLATED} bytes")),
    }
    Ok(Cow::Owned(block))
}

fn located(error: AvroError, at: usize) -> AvroError {
    match error {
        AvroError::Corrupt { what } => AvroError::Corrupt {
            what: format!("block at byte {at}: {what}"),
        },
        other => other,
    }
}
