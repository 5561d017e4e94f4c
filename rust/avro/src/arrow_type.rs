//! The Arrow type of an Avro type.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};

use crate::error::{Result, unsupported};
use crate::model::{Record, Type, below};
use crate::vector::HUDI_TYPE;

/// The Arrow fields of a record's fields.
pub(crate) fn arrow_fields(record: &Record, path: &str) -> Result<Fields> {
    let fields = record.fields.iter();
    fields
        .map(|f| arrow_field(&f.name, &f.ty, &below(path, &f.name)))
        .collect()
}

/// The Arrow field of a named type; `path` is for messages.
pub(crate) fn arrow_field(name: &str, ty: &Type, path: &str) -> Result<Field> {
    let field = Field::new(
        name,
        data_type(ty.value_type(), path)?,
        ty.optional().is_some(),
    );
    Ok(match ty.value_type() {
        Type::Vector(vector) => field.with_metadata([(HUDI_TYPE.to_owned(), vector.text())]),
        // Nested types with metadata are no equals of those without.
        Type::Record(record) if path == name => match record.kind {
            Some(kind) => field.with_metadata([(HUDI_TYPE.to_owned(), kind.name().to_owned())]),
            None => field,
        },
        _ => field,
    })
}

/// The Arrow type of a type that is not "or null" itself.
pub(crate) fn data_type(ty: &Type, path: &str) -> Result<DataType> {
    Ok(match ty {
        Type::Boolean => DataType::Boolean,
        Type::Int => DataType::Int32,
        Type::Long => DataType::Int64,
        Type::Float => DataType::Float32,
        Type::Double => DataType::Float64,
        Type::Bytes => DataType::Binary,
        Type::String | Type::Enum(_) => DataType::Utf8,
        Type::Date => DataType::Date32,
        Type::TimeMillis => DataType::Time32(arrow::datatypes::TimeUnit::Millisecond),
        Type::TimeMicros => DataType::Time64(arrow::datatypes::TimeUnit::Microsecond),
        Type::Timestamp { unit, utc } => DataType::Timestamp(*unit, utc.then(|| "UTC".into())),
        Type::Decimal(d) if d.precision <= 38 => DataType::Decimal128(d.precision, d.scale),
        Type::Decimal(d) => DataType::Decimal256(d.precision, d.scale),
        Type::Fixed(size) => DataType::FixedSizeBinary(*size as i32),
        Type::Vector(vector) => vector.data_type(),
        Type::Array(items) => DataType::List(Arc::new(arrow_field(
            Field::LIST_FIELD_DEFAULT_NAME,
            items,
            &below(path, "items"),
        )?)),
        Type::Map(values) => DataType::Map(
            map_entries(arrow_field(
                Field::MAP_VALUE_FIELD_DEFAULT_NAME,
                values,
                &below(path, "values"),
            )?),
            false,
        ),
        Type::Record(record) => DataType::Struct(arrow_fields(record, path)?),
        Type::Null => return unsupported(format!("type null at {path}")),
        Type::Union(branches) => {
            let names: Vec<_> = branches.iter().map(Type::name).collect();
            return unsupported(format!("union of {} at {path}", names.join(", ")));
        }
    })
}

/// The entries field of a map with these values.
pub(crate) fn map_entries(value: Field) -> Arc<Field> {
    let key = Field::new(Field::MAP_KEY_FIELD_DEFAULT_NAME, DataType::Utf8, false);
    Arc::new(Field::new(
        Field::MAP_ENTRIES_FIELD_DEFAULT_NAME,
        DataType::Struct(Fields::from(vec![key, value])),
        false,
    ))
}
