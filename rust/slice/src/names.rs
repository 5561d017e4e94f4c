//! Columns by their names.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

use crate::error::{Result, SliceError};

pub(crate) fn select(schema: &SchemaRef, names: &[String]) -> Result<SchemaRef> {
    let fields = names.iter().map(|name| {
        schema
            .fields()
            .iter()
            .find(|field| field.name() == name)
            .cloned()
            .ok_or_else(|| SliceError::Schema(format!("the table has no column {name}")))
    });
    Ok(Arc::new(Schema::new(fields.collect::<Result<Fields>>()?)))
}

pub(crate) fn names_of(schema: &Schema) -> Vec<String> {
    schema
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect()
}

/// The field of a dotted path.
pub fn nested(schema: &Schema, path: &str) -> Result<Field> {
    let missing = || SliceError::Schema(format!("the table has no column {path}"));
    if let Ok(field) = schema.field_with_name(path) {
        return Ok(field.clone());
    }
    let mut parts = path.split('.');
    let root = parts.next().ok_or_else(missing)?;
    let mut field = schema.field_with_name(root).map_err(|_| missing())?.clone();
    for part in parts {
        let DataType::Struct(fields) = field.data_type() else {
            return Err(missing());
        };
        let (_, child) = fields.find(part).ok_or_else(missing)?;
        field = child.as_ref().clone();
    }
    Ok(field)
}
