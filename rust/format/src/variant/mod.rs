//! The bytes of a VARIANT value (Parquet's Variant encoding, version 1): field names, values, new
//! values made of parts, and values from JSON and as JSON.
//!
//! A VARIANT is two byte strings: `metadata`, the dictionary of field names, and `value`. Shredding,
//! which splits a value over Parquet columns, is the caller's part.

mod from_json;
mod names;
mod parts;
#[cfg(test)]
mod tests;
mod to_json;
mod writer;

pub use from_json::variant_from_json;
pub use names::VariantNames;
pub use parts::{VariantFields, VariantPart, check_variant, object_fields, variant_size};
pub use to_json::variant_to_json;
pub use writer::VariantWriter;

/// The low two bits of a value's first byte.
const PRIMITIVE: u8 = 0;
const SHORT_STRING: u8 = 1;
const OBJECT: u8 = 2;
const ARRAY: u8 = 3;

/// Kinds of primitive values, in the high six bits of the first byte.
const NULL: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const INT8: u8 = 3;
const INT16: u8 = 4;
const INT32: u8 = 5;
const INT64: u8 = 6;
const DOUBLE: u8 = 7;
const DECIMAL4: u8 = 8;
const DECIMAL8: u8 = 9;
const DECIMAL16: u8 = 10;
const DATE: u8 = 11;
const TIMESTAMP: u8 = 12;
const TIMESTAMP_NTZ: u8 = 13;
const FLOAT: u8 = 14;
const BINARY: u8 = 15;
const STRING: u8 = 16;
const TIME: u8 = 17;
const TIMESTAMP_NANOS: u8 = 18;
const TIMESTAMP_NTZ_NANOS: u8 = 19;
const UUID: u8 = 20;

/// The number of bytes that an unsigned number takes, from one to four.
fn width_of(number: usize) -> usize {
    match number {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}
