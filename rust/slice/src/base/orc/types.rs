//! The Arrow types of ORC's columns.
//!
//! What Hudi turns each Avro type into stands in `AvroOrcUtils.createOrcSchema` (Hudi 0.15 and 1.2). It
//! loses what a number of days' or seconds' kind is where ORC has no such type: times of day are plain
//! numbers. The Avro schema in the footer tells.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use pyhudi_format::FormatError;
use pyhudi_format::orc::{Kind, Tail};

use crate::adapt::INT96_ZONE;

/// The columns of a file. `meant`: the same by its Avro schema.
pub(super) fn columns_of(tail: &Tail, meant: Option<&Fields>) -> Result<Fields, FormatError> {
    parts_of(tail, 0, meant)
}

fn parts_of(tail: &Tail, number: usize, meant: Option<&Fields>) -> Result<Fields, FormatError> {
    let Some(found) = tail.types.get(number) else {
        return Ok(Fields::empty());
    };
    let parts = found.parts.iter().zip(&found.names);
    let fields = parts.map(|(part, name)| {
        let same = |field: &&FieldRef| field.name() == name;
        let meant = meant.and_then(|fields| fields.iter().find(same));
        field_of(tail, *part, name, meant.map(|field| field.data_type()))
    });
    fields.collect()
}

fn field_of(
    tail: &Tail,
    number: usize,
    name: &str,
    meant: Option<&DataType>,
) -> Result<FieldRef, FormatError> {
    let data_type = type_of(tail, number, name, meant)?;
    Ok(Arc::new(Field::new(name, data_type, true)))
}

fn type_of(
    tail: &Tail,
    number: usize,
    name: &str,
    meant: Option<&DataType>,
) -> Result<DataType, FormatError> {
    let unsupported = |what: String| FormatError::Unsupported {
        feature: format!("hoodie.table.base.file.format ORC: {what} ({name})"),
    };
    let Some(found) = tail.types.get(number) else {
        return Err(unsupported("a type that is not there".to_owned()));
    };
    let part = |at: usize| found.parts.get(at).copied().unwrap_or_default();
    Ok(match found.kind {
        Kind::Boolean => DataType::Boolean,
        Kind::Byte | Kind::Short | Kind::Int => match meant {
            Some(time @ DataType::Time32(_)) => time.clone(),
            _ => DataType::Int32,
        },
        Kind::Long => match meant {
            Some(time @ DataType::Time64(_)) => time.clone(),
            _ => DataType::Int64,
        },
        Kind::Float => DataType::Float32,
        Kind::Double => DataType::Float64,
        Kind::String | Kind::Varchar | Kind::Char => DataType::Utf8,
        Kind::Binary => DataType::Binary,
        Kind::Date => DataType::Date32,
        // The zone says that they are what they seem, unlike some of Parquet's.
        Kind::Timestamp | Kind::TimestampInstant => {
            DataType::Timestamp(TimeUnit::Microsecond, Some(INT96_ZONE.into()))
        }
        Kind::Decimal => match (u8::try_from(found.precision), i8::try_from(found.scale)) {
            (Ok(precision @ 1..=38), Ok(scale)) if scale <= precision as i8 => {
                DataType::Decimal128(precision, scale)
            }
            _ => {
                let (precision, scale) = (found.precision, found.scale);
                return Err(unsupported(format!("decimal({precision},{scale})")));
            }
        },
        Kind::List => {
            let meant = match meant {
                Some(DataType::List(item)) => Some(item.data_type()),
                _ => None,
            };
            DataType::List(field_of(tail, part(0), "element", meant)?)
        }
        Kind::Map => {
            let meant = match meant {
                Some(DataType::Map(entries, _)) => match entries.data_type() {
                    DataType::Struct(fields) => fields.get(1).map(|field| field.data_type()),
                    _ => None,
                },
                _ => None,
            };
            let key = type_of(tail, part(0), "key", None)?;
            let fields = Fields::from(vec![
                Arc::new(Field::new("key", key, false)),
                field_of(tail, part(1), "value", meant)?,
            ]);
            let entries = Field::new("key_value", DataType::Struct(fields), false);
            DataType::Map(Arc::new(entries), false)
        }
        Kind::Struct => {
            let meant = match meant {
                Some(DataType::Struct(fields)) => Some(fields),
                _ => None,
            };
            DataType::Struct(parts_of(tail, number, meant)?)
        }
        Kind::Union => return Err(unsupported("a union of several types".to_owned())),
    })
}
