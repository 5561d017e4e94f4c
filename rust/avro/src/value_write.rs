//! A tree of values as one unframed Avro record: for the metadata table's records.
//!
//! The counterpart of [`Datum`](crate::Datum). Rows of tables go through [`encode`](crate::encode()).

use std::sync::Arc;

use crate::datum::{put_bytes, put_long};
use crate::error::{Result, schema_error, unsupported};
use crate::model::{Record, Type};
use crate::parse::parse_record;

/// A value to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Null.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An int or a long.
    Whole(i64),
    /// A float.
    Float(f32),
    /// A double.
    Double(f64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A string.
    Text(&'a str),
    /// A map.
    Map(Vec<(&'a str, Value<'a>)>),
    /// The fields of a record that are not null, false, zero or empty.
    Record(Vec<(&'a str, Value<'a>)>),
    /// The value of a union of more than "or null", with the number of its branch.
    Branch(usize, Box<Value<'a>>),
}

/// Writes records of one schema.
#[derive(Debug, Clone)]
pub struct DatumWriter(Arc<Record>);

impl DatumWriter {
    /// For the schema of a record, as JSON.
    pub fn new(schema_json: &str) -> Result<Self> {
        parse_record(schema_json).map(Self)
    }

    /// The bytes of a record. A field that is not in `fields` is null if it can be, else false, 0 or
    /// empty; a field that is not in the schema is left out, since older schemas have fewer.
    pub fn write(&self, fields: &[(&str, Value<'_>)]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        put_record(&mut out, &self.0, fields)?;
        Ok(out)
    }
}

fn put_record(out: &mut Vec<u8>, record: &Record, fields: &[(&str, Value<'_>)]) -> Result<()> {
    for field in &record.fields {
        match fields.iter().find(|(name, _)| *name == field.name) {
            Some((_, value)) => put(out, &field.ty, value)?,
            None => put_nothing(out, &field.ty)?,
        }
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, ty: &Type, value: &Value<'_>) -> Result<()> {
    match (ty, value) {
        (Type::Union(branches), _) => return put_union(out, branches, value),
        (Type::Null, Value::Null) => {}
        (Type::Boolean, Value::Boolean(value)) => out.push(u8::from(*value)),
        (Type::Int | Type::Date | Type::TimeMillis, Value::Whole(number)) => {
            if i32::try_from(*number).is_err() {
                return misfit(ty, value);
            }
            put_long(out, *number);
        }
        (Type::Long | Type::TimeMicros | Type::Timestamp { .. }, Value::Whole(number)) => {
            put_long(out, *number);
        }
        (Type::Float, Value::Float(value)) => out.extend(value.to_le_bytes()),
        (Type::Double, Value::Double(value)) => out.extend(value.to_le_bytes()),
        (Type::Bytes, Value::Bytes(bytes)) => put_bytes(out, bytes),
        (Type::Decimal(decimal), Value::Bytes(bytes)) if decimal.size.is_none() => {
            put_bytes(out, bytes);
        }
        (Type::String, Value::Text(text)) => put_bytes(out, text.as_bytes()),
        (Type::Map(values), Value::Map(entries)) => {
            if !entries.is_empty() {
                put_long(out, entries.len() as i64);
                for (key, value) in entries {
                    put_bytes(out, key.as_bytes());
                    put(out, values, value)?;
                }
            }
            out.push(0);
        }
        (Type::Record(record), Value::Record(fields)) => put_record(out, record, fields)?,
        _ => return misfit(ty, value),
    }
    Ok(())
}

fn put_union(out: &mut Vec<u8>, branches: &[Type], value: &Value<'_>) -> Result<()> {
    let (number, value) = match value {
        Value::Branch(number, value) => (Some(*number), &**value),
        Value::Null => (
            branches.iter().position(|ty| matches!(ty, Type::Null)),
            value,
        ),
        // Of "T or null" there is only one T.
        _ => (
            branches.iter().position(|ty| !matches!(ty, Type::Null)),
            value,
        ),
    };
    let branch = number.and_then(|number| Some((number, branches.get(number)?)));
    let Some((number, branch)) = branch else {
        return unsupported("avro value of a branch that its union lacks");
    };
    put_long(out, number as i64);
    put(out, branch, value)
}

fn put_nothing(out: &mut Vec<u8>, ty: &Type) -> Result<()> {
    match ty {
        Type::Union(branches) => match branches.iter().position(|ty| matches!(ty, Type::Null)) {
            Some(number) => put_long(out, number as i64),
            None => return unsupported("avro union without null and without a value"),
        },
        Type::Null => {}
        Type::Boolean
        | Type::Int
        | Type::Long
        | Type::Bytes
        | Type::String
        | Type::Map(_)
        | Type::Array(_) => out.push(0),
        other => return unsupported(format!("avro {} without a value", other.name())),
    }
    Ok(())
}

fn misfit(ty: &Type, value: &Value<'_>) -> Result<()> {
    schema_error(format!("{value:?} for an avro {}", ty.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datum, DatumReader};

    const SCHEMA: &str = r#"{"type": "record", "name": "r", "fields": [
        {"name": "key", "type": "string"},
        {"name": "sizes", "type": ["null", {"type": "map", "values": "long"}]},
        {"name": "least", "type": ["null",
            {"type": "record", "name": "I", "fields": [{"name": "value", "type": "int"}]},
            {"type": "record", "name": "S", "fields": [{"name": "value", "type": "string"}]}]},
        {"name": "tight", "type": "boolean"},
        {"name": "later", "type": ["null", "long"]}]}"#;

    #[test]
    fn what_is_written_is_read_again() {
        let least = Value::Record(vec![("value", Value::Text("hi"))]);
        let fields = [
            ("tight", Value::Boolean(true)),
            ("sizes", Value::Map(vec![("a", Value::Whole(-70_000))])),
            ("least", Value::Branch(2, Box::new(least))),
            ("unheard", Value::Boolean(true)),
        ];
        let bytes = DatumWriter::new(SCHEMA).unwrap().write(&fields).unwrap();
        let reader = DatumReader::new(SCHEMA).unwrap();
        let record = reader.read(&bytes).unwrap();
        assert_eq!(record.field("key").text(), Some(""));
        assert_eq!(
            record.field("sizes"),
            &Datum::Map(vec![("a", Datum::Long(-70_000))])
        );
        let Datum::Branch(2, least) = record.field("least") else {
            panic!("{record:?}");
        };
        assert_eq!(least.field("value").text(), Some("hi"));
        assert!(record.field("tight").is_true());
        assert_eq!(record.field("later"), &Datum::Null);
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error() {
        let writer = DatumWriter::new(SCHEMA).unwrap();
        for field in [
            ("key", Value::Whole(1)),
            ("least", Value::Branch(7, Box::new(Value::Null))),
            ("tight", Value::Null),
        ] {
            assert!(writer.write(&[field]).is_err());
        }
    }
}
