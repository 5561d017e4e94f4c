//! Avro record schemas and Arrow schemas: one mapping for every table.
//!
//! | Avro | Arrow |
//! |---|---|
//! | `["null", T]`, `[T, "null"]` | `T`, nullable |
//! | boolean, int, long, float, double | Boolean, Int32, Int64, Float32, Float64 |
//! | string (also with logical type uuid), enum | Utf8 |
//! | bytes, fixed | Binary, FixedSizeBinary |
//! | decimal over bytes or fixed | Decimal128, above 38 digits Decimal256 |
//! | date, time-millis, time-micros | Date32, Time32(ms), Time64(µs) |
//! | timestamp-millis, timestamp-micros | Timestamp(ms or µs, "UTC") |
//! | local-timestamp-millis, local-timestamp-micros | Timestamp(ms or µs, none) |
//! | array, map, record | List, Map, Struct |
//! | vector over fixed | FixedSizeList, in a field whose metadata say `hudi_type` |
//! | blob and variant over a record | Struct, as a column in a field whose metadata say `hudi_type` |
//!
//! List items are named `item` and map entries `entries`, `key`, `value`: the names that the
//! builders of arrow-rs and `pyarrow.list_` use, so arrays from either need no renaming.
//! (Parquet files have `array` or `element` and `key_value` in those places.)
//! Logical types not in the table are ignored as Avro prescribes.

mod from_arrow;
mod meta_fields;

use arrow::datatypes::Schema;

pub use from_arrow::avro_schema;
pub use meta_fields::{with_meta_fields, without_meta_fields};

use crate::arrow_type::arrow_fields;
use crate::error::Result;
use crate::parse::parse_record;

/// The Arrow schema of an Avro record schema, without metadata.
///
/// Unions other than with null, the bare type null and recursive types are
/// [`Unsupported`](crate::AvroError::Unsupported), with the path of the field.
pub fn arrow_schema(avro_json: &str) -> Result<Schema> {
    let record = parse_record(avro_json)?;
    Ok(Schema::new(arrow_fields(&record, "")?))
}

/// The names of the record's top-level fields, in order.
pub fn field_names(avro_json: &str) -> Result<Vec<String>> {
    Ok(parse_record(avro_json)?
        .fields
        .iter()
        .map(|field| field.name.clone())
        .collect())
}

/// The record's full name, namespace included.
pub fn record_name(avro_json: &str) -> Result<String> {
    parse_record(avro_json)?;
    let schema: serde_json::Value = serde_json::from_str(avro_json)
        .map_err(|error| crate::AvroError::Schema(format!("not JSON: {error}")))?;
    let text = |key: &str| {
        schema
            .get(key)
            .and_then(serde_json::Value::as_str)
            .unwrap_or("")
    };
    let (name, namespace) = (text("name"), text("namespace"));
    Ok(if namespace.is_empty() || name.contains('.') {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    })
}
