//! JSON values to Avro binary.
//!
//! Not by apache-avro's writer: its `Value` holds a map as a `HashMap`, which loses the order of
//! the JSON, and its serde way would need every line here that matches a value with its type.

use serde_json::{Map, Value};

use crate::error::{AvroError, Result, schema_error};
use crate::model::{Record, Type, below};

/// Writes a JSON value as `ty`; `path` is for messages. On an error `out` has a part of it.
pub(crate) fn write(ty: &Type, value: &Value, out: &mut Vec<u8>, path: &str) -> Result<()> {
    let wrong = || AvroError::Schema(format!("{path}: {} from {}", ty.name(), brief(value)));
    match ty {
        Type::Null => value.as_null().ok_or_else(wrong)?,
        Type::Boolean => out.push(u8::from(value.as_bool().ok_or_else(wrong)?)),
        Type::Int | Type::Date | Type::TimeMillis => {
            let int = value.as_i64().and_then(|long| i32::try_from(long).ok());
            put_long(out, i64::from(int.ok_or_else(wrong)?));
        }
        Type::Long | Type::TimeMicros | Type::Timestamp { .. } => {
            put_long(out, value.as_i64().ok_or_else(wrong)?);
        }
        Type::Float => {
            let float = as_float(value).ok_or_else(wrong)? as f32;
            out.extend_from_slice(&float.to_le_bytes());
        }
        Type::Double => {
            let double = as_float(value).ok_or_else(wrong)?;
            out.extend_from_slice(&double.to_le_bytes());
        }
        Type::Bytes => put_bytes(out, &as_bytes(value).ok_or_else(wrong)?),
        Type::Fixed(size) => {
            let bytes = as_bytes(value).filter(|b| b.len() == *size);
            out.extend_from_slice(&bytes.ok_or_else(wrong)?);
        }
        Type::Vector(vector) => write(&Type::Fixed(vector.size()), value, out, path)?,
        Type::Decimal(decimal) => match decimal.size {
            Some(size) => write(&Type::Fixed(size), value, out, path)?,
            None => write(&Type::Bytes, value, out, path)?,
        },
        Type::String => put_bytes(out, value.as_str().ok_or_else(wrong)?.as_bytes()),
        Type::Enum(symbols) => {
            let symbol = value.as_str().ok_or_else(wrong)?;
            let index = symbols.iter().position(|s| s == symbol);
            put_long(out, index.ok_or_else(wrong)? as i64);
        }
        Type::Array(items) => {
            let list = value.as_array().ok_or_else(wrong)?;
            put_count(out, list.len());
            for item in list {
                write(items, item, out, path)?;
            }
            put_end(out, list.len());
        }
        Type::Map(values) => {
            let map = value.as_object().ok_or_else(wrong)?;
            put_count(out, map.len());
            for (key, value) in map {
                put_bytes(out, key.as_bytes());
                write(values, value, out, &below(path, key))?;
            }
            put_end(out, map.len());
        }
        Type::Record(record) => {
            write_record(record, value.as_object().ok_or_else(wrong)?, out, path)?;
        }
        Type::Union(branches) => write_union(branches, value, out, path)?,
    }
    Ok(())
}

fn write_record(
    record: &Record,
    object: &Map<String, Value>,
    out: &mut Vec<u8>,
    path: &str,
) -> Result<()> {
    if let Some(name) = object.keys().find(|name| record.field(name).is_none()) {
        return schema_error(format!("{}: not in the avro schema", below(path, name)));
    }
    for field in &record.fields {
        let path = below(path, &field.name);
        match object.get(&field.name).or(field.default.as_ref()) {
            Some(value) => write(&field.ty, value, out, &path)?,
            None => return schema_error(format!("{path}: missing, and has no default")),
        }
    }
    Ok(())
}

/// The first branch that takes the value. The error is that of the last branch tried other
/// than null, which for an optional field is the one that says what is wrong.
fn write_union(branches: &[Type], value: &Value, out: &mut Vec<u8>, path: &str) -> Result<()> {
    let start = out.len();
    let mut failed = None;
    for (index, branch) in branches.iter().enumerate() {
        if matches!(branch, Type::Null) != value.is_null() {
            continue;
        }
        put_long(out, index as i64);
        match write(branch, value, out, path) {
            Ok(()) => return Ok(()),
            Err(error) => failed = Some(error),
        }
        out.truncate(start);
    }
    Err(failed.unwrap_or_else(|| {
        AvroError::Schema(format!("{path}: no union branch for {}", brief(value)))
    }))
}

pub(crate) fn put_long(out: &mut Vec<u8>, value: i64) {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    while raw >= 0x80 {
        out.push(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.push(raw as u8);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_long(out, bytes.len() as i64);
    out.extend_from_slice(bytes);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    put_long(out, count as i64);
}

/// The end mark of an array or map; the count of an empty one is the mark already.
fn put_end(out: &mut Vec<u8>, count: usize) {
    if count > 0 {
        put_long(out, 0);
    }
}

fn as_float(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        _ => value.as_f64(),
    }
}

pub(crate) fn as_bytes(value: &Value) -> Option<Vec<u8>> {
    let chars = value.as_str()?.chars();
    chars.map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

fn brief(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(80) {
        text.truncate(end);
        text.push('…');
    }
    text
}
