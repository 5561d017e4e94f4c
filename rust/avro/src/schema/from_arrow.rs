//! The Avro schema that Hudi's Spark writer makes for a table of such columns.
//!
//! Spark's `SchemaConverters` (in Hudi's copy) names nested types by position: a struct under
//! column `c` is record `c`, also inside lists and maps, in the namespace of the record around
//! it extended by that record's name; a decimal is a fixed called `fixed` in a namespace that
//! ends with its column.

use std::collections::HashSet;

use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use serde_json::{Value, json};

use crate::error::{Result, schema_error, unsupported};
use crate::model::{Decimal, below};
use crate::semi_structured::SemiStructured;
use crate::vector::Vector;

/// The Avro schema of an Arrow schema. Nullable fields become `["null", T]` with default null.
///
/// Dictionaries count as their values; large and view types as the plain ones; integers below
/// 32 bits as int, below 64 as long. Timestamps in milliseconds stay millis, all others are
/// micros. Types that Avro or Spark do not have (unsigned 64-bit, durations, unions, null, maps
/// without string keys) are [`Unsupported`](crate::AvroError::Unsupported), and so is a
/// decimal with negative scale. Field names must be Avro names as Java has
/// them: letters of any script.
pub fn avro_schema(schema: &Schema, record_name: &str, namespace: &str) -> Result<String> {
    let mut record = record(schema.fields(), record_name, namespace, "")?;
    if let Some(fields) = record.get_mut("fields").and_then(Value::as_array_mut) {
        name_types_once(fields);
    }
    Ok(record.to_string())
}

/// Columns of one type of Hudi 1.2 share its name, which an Avro schema may define once.
fn name_types_once(fields: &mut [Value]) {
    let mut defined = HashSet::new();
    for field in fields {
        let Some(mut ty) = field.get_mut("type") else {
            continue;
        };
        if ty.is_array() {
            match ty.get_mut(1) {
                Some(value) => ty = value,
                None => continue,
            }
        }
        let logical = ty.get("logicalType").and_then(Value::as_str);
        if !logical.is_some_and(|name| ["vector", "blob", "variant"].contains(&name)) {
            continue;
        }
        if let Some(Value::String(name)) = ty.get("name").cloned()
            && !defined.insert(name.clone())
        {
            *ty = Value::String(name);
        }
    }
}

fn record(fields: &Fields, name: &str, namespace: &str, path: &str) -> Result<Value> {
    check_name(name)?;
    let inner = below(namespace, name);
    let fields = fields.iter().map(|f| field(f, &inner, path));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    Ok(json!({"type": "record", "name": name, "namespace": namespace, "fields": fields}))
}

fn field(field: &Field, namespace: &str, path: &str) -> Result<Value> {
    let path = below(path, field.name());
    check_name(field.name())?;
    let ty = match (Vector::of(field), SemiStructured::of_field(field)) {
        (Some(vector), _) if path == *field.name() => vector.avro(),
        (Some(_), _) => return unsupported(format!("VECTOR in a struct, column {path}")),
        (None, Some(kind)) if path == *field.name() => kind.avro(),
        (None, _) => avro_type(field.data_type(), field.name(), namespace, &path)?,
    };
    Ok(if field.is_nullable() {
        json!({"name": field.name(), "type": ["null", ty], "default": null})
    } else {
        json!({"name": field.name(), "type": ty})
    })
}

/// A type inside a list or map. `name` stays that of the column.
fn element(field: &Field, name: &str, namespace: &str, path: &str) -> Result<Value> {
    let ty = avro_type(field.data_type(), name, namespace, path)?;
    Ok(if field.is_nullable() {
        json!(["null", ty])
    } else {
        ty
    })
}

fn avro_type(ty: &DataType, name: &str, namespace: &str, path: &str) -> Result<Value> {
    use DataType as D;
    Ok(match ty {
        D::Boolean => json!("boolean"),
        D::Int8 | D::Int16 | D::Int32 | D::UInt8 | D::UInt16 => json!("int"),
        D::Int64 | D::UInt32 => json!("long"),
        D::Float16 | D::Float32 => json!("float"),
        D::Float64 => json!("double"),
        D::Utf8 | D::LargeUtf8 | D::Utf8View => json!("string"),
        D::Binary | D::LargeBinary | D::BinaryView => json!("bytes"),
        D::FixedSizeBinary(size) => fixed(*size, &below(namespace, name)),
        D::Decimal32(p, s) | D::Decimal64(p, s) | D::Decimal128(p, s) | D::Decimal256(p, s) => {
            decimal(*p, *s, &below(namespace, name), path)?
        }
        D::Date32 | D::Date64 => logical("int", "date"),
        D::Time32(_) => logical("int", "time-millis"),
        D::Time64(_) => logical("long", "time-micros"),
        D::Timestamp(unit, zone) => timestamp(*unit, zone.is_some()),
        D::List(items)
        | D::LargeList(items)
        | D::ListView(items)
        | D::LargeListView(items)
        | D::FixedSizeList(items, _) => {
            json!({"type": "array", "items": element(items, name, namespace, path)?})
        }
        D::Map(entries, _) => map(entries, name, namespace, path)?,
        D::Struct(fields) => record(fields, name, namespace, path)?,
        D::Dictionary(_, values) => avro_type(values, name, namespace, path)?,
        other => return unsupported(format!("{other} column {path}")),
    })
}

fn logical(base: &str, logical: &str) -> Value {
    json!({"type": base, "logicalType": logical})
}

fn timestamp(unit: TimeUnit, utc: bool) -> Value {
    let name = match (unit, utc) {
        (TimeUnit::Millisecond, true) => "timestamp-millis",
        (TimeUnit::Millisecond, false) => "local-timestamp-millis",
        (_, true) => "timestamp-micros",
        (_, false) => "local-timestamp-micros",
    };
    logical("long", name)
}

fn fixed(size: i32, namespace: &str) -> Value {
    json!({"type": "fixed", "name": "fixed", "namespace": namespace, "size": size})
}

fn decimal(precision: u8, scale: i8, namespace: &str, path: &str) -> Result<Value> {
    if scale < 0 || scale.unsigned_abs() > precision {
        return unsupported(format!("decimal({precision}, {scale}) column {path}"));
    }
    Ok(json!({
        "type": "fixed",
        "name": "fixed",
        "namespace": namespace,
        "size": Decimal::fewest_bytes(precision),
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }))
}

fn map(entries: &Field, name: &str, namespace: &str, path: &str) -> Result<Value> {
    let DataType::Struct(fields) = entries.data_type() else {
        return schema_error(format!("{path}: a map without entries"));
    };
    let [key, value] = &fields[..] else {
        return schema_error(format!("{path}: a map without keys and values"));
    };
    let text = match key.data_type() {
        DataType::Dictionary(_, values) => values.is_string(),
        other => other.is_string(),
    };
    if !text {
        return unsupported(format!("map with {} keys at {path}", key.data_type()));
    }
    Ok(json!({"type": "map", "values": element(value, name, namespace, path)?}))
}

fn check_name(name: &str) -> Result<()> {
    let mut chars = name.chars();
    // Java checks UTF-16 code units (`Schema.validateName`, Avro 1.11): letters of one unit.
    let one_unit = |c: char| c.len_utf16() == 1;
    let first = chars
        .next()
        .is_some_and(|c| c == '_' || (c.is_alphabetic() && one_unit(c)));
    if first && chars.all(|c| c == '_' || (c.is_alphanumeric() && one_unit(c))) {
        return Ok(());
    }
    schema_error(format!("{name:?} is not an avro name"))
}
