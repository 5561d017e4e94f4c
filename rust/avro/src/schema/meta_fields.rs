//! Hudi's meta fields in a schema's text. All else in the text stays as it is.

use serde_json::{Map, Value, json};

use crate::error::{AvroError, Result, schema_error};
use crate::parse::check_size;

const META_FIELDS: [&str; 5] = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
];
const OPERATION_FIELD: &str = "_hoodie_operation";

/// The schema with the five meta fields in front, as Hudi puts it into log blocks and base
/// files; with `operation_field` the sixth, `_hoodie_operation`, after them.
///
/// Meta fields that are there already are kept, and moved to the front.
pub fn with_meta_fields(avro_json: &str, operation_field: bool) -> Result<String> {
    rewrite(avro_json, |fields| {
        let (mut there, others): (Vec<_>, Vec<_>) = fields.into_iter().partition(is_meta_field);
        let mut all = Vec::with_capacity(others.len() + META_FIELDS.len() + 1);
        for name in META_FIELDS {
            match there.iter().position(|f| name_of(f) == Some(name)) {
                Some(index) => all.push(there.remove(index)),
                None => all.push(meta_field(name)),
            }
        }
        if operation_field && there.is_empty() {
            there.push(meta_field(OPERATION_FIELD));
        }
        all.extend(there);
        all.extend(others);
        all
    })
}

/// The schema without any meta field, as Hudi puts it into commits.
pub fn without_meta_fields(avro_json: &str) -> Result<String> {
    rewrite(avro_json, |mut fields| {
        fields.retain(|field| !is_meta_field(field));
        fields
    })
}

fn rewrite(avro_json: &str, change: impl FnOnce(Vec<Value>) -> Vec<Value>) -> Result<String> {
    check_size(avro_json)?;
    let parsed: Result<Map<String, Value>, _> = serde_json::from_str(avro_json);
    let mut schema = parsed.map_err(|e| AvroError::Schema(format!("not a JSON object: {e}")))?;
    match schema.get_mut("fields") {
        Some(Value::Array(fields)) => *fields = change(std::mem::take(fields)),
        _ => return schema_error("not a record schema: no fields"),
    }
    Ok(Value::Object(schema).to_string())
}

fn name_of(field: &Value) -> Option<&str> {
    field.get("name").and_then(Value::as_str)
}

fn is_meta_field(field: &Value) -> bool {
    name_of(field).is_some_and(|name| META_FIELDS.contains(&name) || name == OPERATION_FIELD)
}

fn meta_field(name: &str) -> Value {
    json!({"name": name, "type": ["null", "string"], "doc": "", "default": null})
}
