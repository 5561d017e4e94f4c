//! Arrays as arrow-avro decodes them (numbered names, enums as ints) to the real types.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Int32Type};

use crate::error::{AvroError, Result, corrupt};
use crate::model::Type;
use crate::vector::vector_list;

/// The array with the type `target`, which is the Arrow type of `ty`.
pub(crate) fn restore(array: &ArrayRef, ty: &Type, target: &DataType) -> Result<ArrayRef> {
    match (ty.value_type(), target) {
        (Type::Enum(symbols), _) => symbols_of(array, symbols),
        (Type::Array(items), DataType::List(field)) => {
            let list = array.as_list::<i32>();
            let values = restore(list.values(), items, field.data_type())?;
            let offsets = list.offsets().clone();
            let nulls = list.nulls().cloned();
            Ok(Arc::new(ListArray::try_new(
                field.clone(),
                offsets,
                values,
                nulls,
            )?))
        }
        (Type::Vector(vector), _) => match array.as_fixed_size_binary_opt() {
            Some(bytes) => vector_list(bytes, target, &vector.text()),
            None => Err(AvroError::Schema(format!(
                "decoded {} for a VECTOR",
                array.data_type()
            ))),
        },
        (Type::Map(values), DataType::Map(entries, _)) => restore_map(array, values, entries),
        (Type::Record(record), DataType::Struct(fields)) => {
            let array = array.as_struct();
            let parts = record.fields.iter().zip(array.columns()).zip(fields);
            let columns = parts
                .map(|((field, column), to)| restore(column, &field.ty, to.data_type()))
                .collect::<Result<_>>()?;
            let nulls = array.nulls().cloned();
            let len = array.len();
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                nulls,
                len,
            )?))
        }
        _ if array.data_type() == target => Ok(Arc::clone(array)),
        _ => Err(AvroError::Schema(format!(
            "decoded {} where {target} was planned",
            array.data_type()
        ))),
    }
}

fn restore_map(array: &ArrayRef, values: &Type, entries: &Arc<Field>) -> Result<ArrayRef> {
    let map = array.as_map();
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(AvroError::Schema("a map without entries".to_owned()));
    };
    let Some(value_field) = fields.get(1) else {
        return Err(AvroError::Schema("a map without values".to_owned()));
    };
    let values = restore(map.values(), values, value_field.data_type())?;
    let columns = vec![Arc::clone(map.keys()), values];
    let pairs = StructArray::try_new(fields.clone(), columns, None)?;
    let offsets = map.offsets().clone();
    let nulls = map.nulls().cloned();
    Ok(Arc::new(MapArray::try_new(
        entries.clone(),
        offsets,
        pairs,
        nulls,
        false,
    )?))
}

fn symbols_of(array: &ArrayRef, symbols: &[String]) -> Result<ArrayRef> {
    let indices = array.as_primitive::<Int32Type>();
    let symbol = |index: Option<i32>| match index {
        None => Ok(None),
        Some(index) => match usize::try_from(index).ok().and_then(|i| symbols.get(i)) {
            Some(symbol) => Ok(Some(symbol.as_str())),
            None => corrupt(format!("enum symbol {index} of {}", symbols.len())),
        },
    };
    let strings = indices.iter().map(symbol);
    Ok(Arc::new(strings.collect::<Result<StringArray>>()?))
}
