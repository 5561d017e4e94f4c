//! Values without parts: which Arrow types fit which Avro type.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type};

use crate::arrow_type::data_type;
use crate::cast::{checked_cast, exact_cast};
use crate::error::{Result, schema_error};
use crate::model::Type;

pub(super) fn leaf(array: &ArrayRef, ty: &Type, path: &str) -> Result<ArrayRef> {
    let target = data_type(ty, path)?;
    let from = array.data_type();
    let number = from.is_integer() || from.is_floating();
    let fits = match ty {
        Type::String => from.is_string(),
        Type::Bytes | Type::Fixed(_) => from.is_binary(),
        Type::Boolean => from == &DataType::Boolean,
        Type::Int | Type::Long => from.is_integer(),
        Type::Float | Type::Double => number,
        Type::Decimal(_) => from.is_decimal() || from.is_integer(),
        Type::Date => matches!(from, DataType::Date32 | DataType::Date64),
        Type::TimeMillis | Type::TimeMicros => {
            matches!(from, DataType::Time32(_) | DataType::Time64(_))
        }
        Type::Timestamp { .. } => matches!(from, DataType::Timestamp(_, _)),
        _ => false,
    };
    if !fits {
        return mismatch(array, ty, path);
    }
    let array = exact_cast(array, &target, path)?;
    check_precision(&array, path)?;
    Ok(array)
}

/// Arrow does not check a decimal against its precision, and fixed bytes hold a bit more.
fn check_precision(array: &ArrayRef, path: &str) -> Result<()> {
    let checked = match array.data_type() {
        DataType::Decimal128(precision, _) => {
            let decimals = array.as_primitive::<Decimal128Type>();
            decimals.validate_decimal_precision(*precision)
        }
        DataType::Decimal256(precision, _) => {
            let decimals = array.as_primitive::<Decimal256Type>();
            decimals.validate_decimal_precision(*precision)
        }
        _ => Ok(()),
    };
    checked.or_else(|e| schema_error(format!("{path}: {e}")))
}

pub(super) fn indices(array: &ArrayRef, symbols: &[String], path: &str) -> Result<ArrayRef> {
    if !array.data_type().is_string() {
        let from = array.data_type();
        return schema_error(format!("{path}: {from} does not fit avro enum"));
    }
    let strings = checked_cast(array, &DataType::Utf8, path)?;
    let index = |value: Option<&str>| {
        let Some(value) = value else {
            return Ok(None);
        };
        match symbols.iter().position(|symbol| symbol == value) {
            Some(index) => Ok(Some(index as i32)),
            None => schema_error(format!("{path}: {value:?} is not a symbol of the enum")),
        }
    };
    let indices = strings.as_string::<i32>().iter().map(index);
    Ok(Arc::new(indices.collect::<Result<Int32Array>>()?))
}

fn mismatch<T>(array: &ArrayRef, ty: &Type, path: &str) -> Result<T> {
    let from = array.data_type();
    schema_error(format!("{path}: {from} does not fit avro {}", ty.name()))
}
