//! Arrow columns to exactly the arrays that arrow-avro encodes for our canonical schema.
//!
//! arrow-avro writes whatever lies in the values buffer for a null in a required field, so
//! nulls are checked here and nowhere else.

mod leaf;
mod nested;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StructArray, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, Fields};

use crate::arrow_type::{data_type, map_entries};
use crate::canonical::field_name;
use crate::cast::checked_cast;
use crate::error::{Result, schema_error};
use crate::model::{Record, Type, below};
use leaf::{indices, leaf};
use nested::{conform_list, conform_map, conform_vector};

/// The column with the layout of `ty`. `parent` is the validity of the structs around it.
pub(crate) fn conform(
    array: &ArrayRef,
    ty: &Type,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<ArrayRef> {
    if ty.optional().is_none() {
        check_required(array, parent, path)?;
    }
    let ty = ty.value_type();
    let array = &plain(array, path)?;
    if array.data_type() == &DataType::Null {
        return Ok(new_null_array(&wire_type(ty, path)?, array.len()));
    }
    match ty {
        Type::Record(record) => conform_record(array, record, parent, path),
        Type::Array(items) => conform_list(array, items, parent, path),
        Type::Map(values) => conform_map(array, values, parent, path),
        Type::Vector(vector) => conform_vector(array, *vector, path),
        Type::Enum(symbols) => indices(&hide(array, parent)?, symbols, path),
        ty => leaf(&hide(array, parent)?, ty, path),
    }
}

/// The column with nulls inside null structs, where any value may lie.
fn hide(array: &ArrayRef, parent: Option<&NullBuffer>) -> Result<ArrayRef> {
    match parent.filter(|nulls| nulls.null_count() > 0) {
        None => Ok(Arc::clone(array)),
        Some(nulls) => Ok(nullif(array, &BooleanArray::new(!nulls.inner(), None))?),
    }
}

/// The column of nulls for a column that is not there.
pub(crate) fn missing(ty: &Type, rows: usize, path: &str) -> Result<ArrayRef> {
    if ty.optional().is_none() {
        return schema_error(format!("{path}: required, but not in the batch"));
    }
    Ok(new_null_array(&wire_type(ty.value_type(), path)?, rows))
}

/// Refuses nulls other than those inside a null parent.
pub(crate) fn check_required(
    array: &ArrayRef,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<()> {
    let Some(nulls) = array.logical_nulls().filter(|n| n.null_count() > 0) else {
        return Ok(());
    };
    let hidden = parent.map_or(0, NullBuffer::null_count);
    let all = NullBuffer::union(parent, Some(&nulls));
    if all.map_or(0, |n| n.null_count()) > hidden {
        return schema_error(format!("{path}: null in a required field"));
    }
    Ok(())
}

/// The Arrow type that `conform` gives; everything nullable, as nulls are checked by us.
fn wire_type(ty: &Type, path: &str) -> Result<DataType> {
    let inner = |name: &str, ty: &Type| {
        let ty = wire_type(ty.value_type(), path)?;
        Ok::<_, crate::AvroError>(Field::new(name, ty, true))
    };
    Ok(match ty {
        Type::Enum(_) => DataType::Int32,
        Type::Vector(vector) => DataType::FixedSizeBinary(vector.size() as i32),
        Type::Array(items) => {
            DataType::List(Arc::new(inner(Field::LIST_FIELD_DEFAULT_NAME, items)?))
        }
        Type::Map(values) => DataType::Map(
            map_entries(inner(Field::MAP_VALUE_FIELD_DEFAULT_NAME, values)?),
            false,
        ),
        Type::Record(record) => {
            let fields = record.fields.iter().enumerate();
            let fields: Result<Fields> = fields
                .map(|(index, f)| inner(&field_name(index), &f.ty))
                .collect();
            DataType::Struct(fields?)
        }
        ty => data_type(ty, path)?,
    })
}

fn plain(array: &ArrayRef, path: &str) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(_, values) => checked_cast(array, values, path),
        _ => Ok(Arc::clone(array)),
    }
}

fn conform_record(
    array: &ArrayRef,
    record: &Record,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<ArrayRef> {
    let Some(array) = array.as_struct_opt() else {
        return schema_error(format!(
            "{path}: {} does not fit avro record",
            array.data_type()
        ));
    };
    for name in array.column_names() {
        if record.field(name).is_none() {
            return schema_error(format!("{}: not in the avro schema", below(path, name)));
        }
    }
    let valid = NullBuffer::union(parent, array.nulls());
    let mut fields = Vec::with_capacity(record.fields.len());
    let mut columns = Vec::with_capacity(record.fields.len());
    for (index, field) in record.fields.iter().enumerate() {
        let path = below(path, &field.name);
        let column = match array.column_by_name(&field.name) {
            Some(column) => conform(column, &field.ty, valid.as_ref(), &path)?,
            None => missing(&field.ty, array.len(), &path)?,
        };
        let ty = column.data_type().clone();
        fields.push(Field::new(field_name(index), ty, true));
        columns.push(column);
    }
    let (nulls, len) = (array.nulls().cloned(), array.len());
    Ok(Arc::new(StructArray::try_new_with_length(
        fields.into(),
        columns,
        nulls,
        len,
    )?))
}
