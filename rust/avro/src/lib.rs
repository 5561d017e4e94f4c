//! Avro to Arrow and back, for Hudi: rows of log blocks, timeline container files, schemas.
//!
//! * [`schema`]: the one mapping between Avro record schemas and Arrow schemas.
//! * [`decode`]: unframed Avro records (the rows of a log block) to record batches.
//! * [`mod@encode`]: record batches to unframed Avro records.
//! * [`container`]: Avro object container files (instants, plans) to JSON values and back.
//!
//! Not here: log block framing (`pyhudi-format`), which columns or instants are wanted, and
//! anything that reads a file. Everything takes bytes and gives values.
//!
//! Avro schemas are parsed by this crate and handed to arrow-avro and apache-avro with names of
//! our own, so their rules for names, aliases, attributes and enums never matter; see
//! `canonical` and `datum::Parsed`.

mod arrow_type;
mod canonical;
mod cast;
mod conform;
pub mod container;
mod datum;
pub mod decode;
mod direct;
pub mod encode;
mod error;
mod model;
mod parse;
mod resolve;
mod restore;
pub mod schema;
mod semi_structured;
mod splice;
mod value;
mod value_write;
mod vector;

pub use container::{container_batches, container_datum, container_to_json, json_to_container};
pub use datum::{json_to_records, records_to_json};
pub use decode::DatumDecoder;
pub use encode::{EncodedRows, encode};
pub use error::{AvroError, Result};
pub use schema::{
    arrow_schema, avro_schema, field_names, record_name, with_meta_fields, without_meta_fields,
};
pub use splice::with_text;
pub use value::{Datum, DatumReader, Fields};
pub use value_write::{DatumWriter, Value};
pub use vector::{vector_bytes, vector_columns, vector_list};
