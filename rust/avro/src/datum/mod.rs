//! One Avro value in binary to a JSON value and back, order kept. For metadata, not for rows.
//!
//! The JSON is Avro's own with unions unwrapped: bytes and fixed are strings of the characters
//! U+0000 to U+00FF, logical types become their underlying type, and floats that JSON does not have
//! are the strings "NaN", "Infinity" and "-Infinity".
//!
//! apache-avro reads the bytes, see `json` and `schema`; `write` says why it does not write them.

mod json;
mod parsed;
mod schema;
mod write;

use apache_avro::Schema;
use apache_avro::error::Details;
use apache_avro::reader::datum::GenericDatumReader;
use serde_json::Value;

use crate::error::{AvroError, Result, corrupt};
use crate::value;

pub(crate) use parsed::Parsed;
pub(crate) use write::{put_bytes, put_long, write};

/// The longest string or bytes value, and the largest inflated block. apache-avro keeps the first
/// limit that it is given, for the whole process.
const MAX_LENGTH: usize = 64 << 20;

/// Unframed records as JSON values, in the form of [`container`](crate::container). For the few
/// metadata records whose types Arrow columns do not take; rows of a table go through
/// [`DatumDecoder`](crate::DatumDecoder).
pub fn records_to_json<'a>(
    schema_json: &str,
    records: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Value>> {
    let parsed = Parsed::of(schema_json)?;
    let reader = reader(&parsed.schema)?;
    let one = |(index, mut bytes)| {
        value::check(&parsed.ty, bytes)?;
        let value = read(&reader, &mut bytes)?;
        match bytes.len() {
            0 => Ok(value),
            left => corrupt(format!("record {index}: {left} bytes left over")),
        }
    };
    records.into_iter().enumerate().map(one).collect()
}

/// JSON values as unframed records, the way back from [`records_to_json`]; fields as in
/// [`json_to_container`](crate::json_to_container).
pub fn json_to_records(schema_json: &str, values: &[Value]) -> Result<Vec<Vec<u8>>> {
    let parsed = Parsed::of(schema_json)?;
    let one = |value| {
        let mut record = Vec::new();
        write(&parsed.ty, value, &mut record, "")?;
        Ok(record)
    };
    values.iter().map(one).collect()
}

pub(crate) fn reader(schema: &Schema) -> Result<GenericDatumReader<'_>> {
    apache_avro::util::max_allocation_bytes(MAX_LENGTH);
    let reader = GenericDatumReader::builder(schema).build();
    reader.map_err(|error| AvroError::Schema(error.to_string()))
}

/// Reads a value from the front of `bytes`.
pub(crate) fn read(reader: &GenericDatumReader, bytes: &mut &[u8]) -> Result<Value> {
    match reader.read_deser(bytes) {
        Ok(json::Json(value)) => Ok(value),
        Err(error) => Err(match error.details() {
            // Raised before the value is taken: a length that the bytes hold is no damage.
            Details::MemoryAllocation {
                desired: Some(length),
                ..
            } if *length <= bytes.len() => AvroError::Unsupported {
                feature: format!("avro value of {length} bytes"),
            },
            details => AvroError::Corrupt {
                what: details.to_string(),
            },
        }),
    }
}
