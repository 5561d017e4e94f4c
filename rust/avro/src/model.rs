//! The types an Avro schema can hold, names resolved and logical types applied.
//!
//! Not a schema library: attributes that change neither bytes nor meaning are gone.

use std::sync::Arc;

use arrow::datatypes::TimeUnit;
use serde_json::Value;

use crate::semi_structured::SemiStructured;
use crate::vector::Vector;

/// One Avro type.
#[derive(Debug, Clone)]
pub(crate) enum Type {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Date,
    TimeMillis,
    TimeMicros,
    Timestamp { unit: TimeUnit, utc: bool },
    Decimal(Decimal),
    Fixed(usize),
    Vector(Vector),
    Enum(Arc<[String]>),
    Array(Arc<Type>),
    Map(Arc<Type>),
    Record(Arc<Record>),
    Union(Arc<[Type]>),
}

/// A decimal: over `fixed` when it has a size, else over `bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub precision: u8,
    pub scale: i8,
    pub size: Option<usize>,
}

impl Decimal {
    /// The minimum number of bytes whose two's complement holds every number of `digits` digits.
    pub(crate) fn fewest_bytes(precision: u8) -> usize {
        // 10^p < 2^(8n-1), and 10^p is never a power of two.
        let bits = (f64::from(precision) * std::f64::consts::LOG2_10).ceil() as usize;
        (bits + 1).div_ceil(8)
    }
}

/// A record with its fields in order.
#[derive(Debug)]
pub(crate) struct Record {
    pub fields: Vec<RecordField>,
    /// The type of Hudi 1.2 that the record is.
    pub kind: Option<SemiStructured>,
    /// Types below this one with every named reference written out, and how deep they nest.
    pub size: usize,
    pub depth: usize,
}

/// A field of a record.
#[derive(Debug)]
pub(crate) struct RecordField {
    pub name: String,
    pub aliases: Vec<String>,
    pub ty: Type,
    pub default: Option<Value>,
}

impl Type {
    /// The `T` of `["null", T]` or `[T, "null"]`.
    pub(crate) fn optional(&self) -> Option<&Type> {
        let Type::Union(branches) = self else {
            return None;
        };
        match &**branches {
            [Type::Null, Type::Null] => None,
            [Type::Null, value] | [value, Type::Null] => Some(value),
            _ => None,
        }
    }

    /// The type without its "or null".
    pub(crate) fn value_type(&self) -> &Type {
        self.optional().unwrap_or(self)
    }

    /// Whether a value takes no bytes at all, so that a count of such values bounds nothing.
    pub(crate) fn is_zero_width(&self) -> bool {
        match self {
            Type::Null | Type::Fixed(0) => true,
            Type::Record(record) => record.fields.iter().all(|f| f.ty.is_zero_width()),
            _ => false,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Boolean => "boolean",
            Type::Int => "int",
            Type::Long => "long",
            Type::Float => "float",
            Type::Double => "double",
            Type::Bytes => "bytes",
            Type::String => "string",
            Type::Date => "date",
            Type::TimeMillis => "time-millis",
            Type::TimeMicros => "time-micros",
            Type::Timestamp { .. } => "timestamp",
            Type::Decimal(_) => "decimal",
            Type::Fixed(_) => "fixed",
            Type::Vector(_) => "vector",
            Type::Enum(_) => "enum",
            Type::Array(_) => "array",
            Type::Map(_) => "map",
            Type::Record(_) => "record",
            Type::Union(_) => "union",
        }
    }
}

impl Record {
    pub(crate) fn field(&self, name: &str) -> Option<(usize, &RecordField)> {
        let mut fields = self.fields.iter().enumerate();
        fields.find(|(_, field)| field.name == name)
    }
}

/// The path of a field below `path`, for messages.
pub(crate) fn below(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
