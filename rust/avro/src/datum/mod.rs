//! One Avro value in binary to a JSON value and back, order kept. For metadata, not for rows.
//!
//! The JSON is Avro's own with unions unwrapped: bytes and fixed are strings of the characters
//! U+0000 to U+00FF, logical types stand as their underlying type, and floats that JSON lacks
//! are the strings "NaN", "Infinity" and "-Infinity".

mod read;
mod write;

use serde_json::Value;

use crate::error::{Result, corrupt};
use crate::parse::parse;

pub(crate) use read::Reader;
pub(crate) use write::{put_bytes, put_long, write};

/// Unframed records as JSON values, in the form of [`container`](crate::container). For the few
/// metadata records whose types Arrow columns do not take; rows of a table go through
/// [`DatumDecoder`](crate::DatumDecoder).
pub fn records_to_json<'a>(
    schema_json: &str,
    records: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Value>> {
    let ty = parse(schema_json)?;
    let one = |(index, bytes)| {
        let mut reader = Reader::new(bytes);
        let value = reader.value(&ty)?;
        match reader.rest().len() {
            0 => Ok(value),
            left => corrupt(format!("record {index}: {left} bytes left over")),
        }
    };
    records.into_iter().enumerate().map(one).collect()
}
