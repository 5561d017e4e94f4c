//! Lists and maps: entries from offset zero, none under a null, values without an offset.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, UInt64Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};

use super::conform;
use crate::arrow_type::map_entries;
use crate::cast::checked_cast;
use crate::error::{Result, schema_error};
use crate::model::{Type, below};
use crate::vector::{Vector, vector_bytes};

pub(super) fn conform_vector(array: &ArrayRef, vector: Vector, path: &str) -> Result<ArrayRef> {
    let bytes = match array.data_type() {
        DataType::FixedSizeList(..) => vector_bytes(array.as_fixed_size_list(), path)?,
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().clone(),
        other => return schema_error(format!("{path}: {other} does not fit {}", vector.text())),
    };
    let (fits, kind) = (
        bytes.value_length() as usize == vector.size(),
        array.data_type(),
    );
    if !fits {
        return schema_error(format!("{path}: {kind} does not fit {}", vector.text()));
    }
    Ok(Arc::new(bytes))
}

pub(super) fn conform_list(
    array: &ArrayRef,
    items: &Type,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<ArrayRef> {
    let item = match array.data_type() {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => Arc::clone(item),
        other => return schema_error(format!("{path}: {other} does not fit avro array")),
    };
    let array = checked_cast(array, &DataType::List(item), path)?;
    let list = array.as_list::<i32>();
    let valid = NullBuffer::union(parent, list.nulls());
    let hidden = valid.as_ref().is_some_and(|n| hides(n, list.offsets()));
    let compact = if hidden {
        visible(list, valid)?
    } else {
        list.clone()
    };
    let (start, len) = span(compact.offsets());
    let values = compact.values().slice(start, len);
    let values = conform(&values, items, None, &below(path, "items"))?;
    let values = realigned(values);
    let offsets = from_zero(compact.offsets());
    let field = Field::new(
        Field::LIST_FIELD_DEFAULT_NAME,
        values.data_type().clone(),
        true,
    );
    let nulls = compact.nulls().cloned();
    Ok(Arc::new(ListArray::try_new(
        Arc::new(field),
        offsets,
        values,
        nulls,
    )?))
}

pub(super) fn conform_map(
    array: &ArrayRef,
    values: &Type,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<ArrayRef> {
    let Some(map) = array.as_map_opt() else {
        return schema_error(format!(
            "{path}: {} does not fit avro map",
            array.data_type()
        ));
    };
    // A map is a list of its entries, and hidden entries go the same way.
    let entry = Arc::new(Field::new(
        "entries",
        map.entries().data_type().clone(),
        false,
    ));
    let entries: ArrayRef = Arc::new(map.entries().clone());
    let list = ListArray::try_new(entry, map.offsets().clone(), entries, map.nulls().cloned())?;
    let valid = NullBuffer::union(parent, list.nulls());
    let hidden = valid.as_ref().is_some_and(|n| hides(n, list.offsets()));
    let compact = if hidden { visible(&list, valid)? } else { list };
    let (start, len) = span(compact.offsets());
    let entries = compact.values().as_struct().slice(start, len);
    let [keys, items] = entries.columns() else {
        return schema_error(format!("{path}: a map without keys and values"));
    };
    let keys = conform(keys, &Type::String, None, &below(path, "key"))?;
    let items = conform(items, values, None, &below(path, "values"))?;
    let items = realigned(items);
    let value = Field::new(
        Field::MAP_VALUE_FIELD_DEFAULT_NAME,
        items.data_type().clone(),
        true,
    );
    let entry = map_entries(value);
    let DataType::Struct(fields) = entry.data_type() else {
        return schema_error(format!("{path}: a map without entries"));
    };
    let pairs = StructArray::try_new(fields.clone(), vec![keys, items], None)?;
    let offsets = from_zero(compact.offsets());
    let nulls = compact.nulls().cloned();
    Ok(Arc::new(MapArray::try_new(
        entry, offsets, pairs, nulls, false,
    )?))
}

/// Whether a null list has items, which are then not data and must not be checked or cast.
fn hides(valid: &NullBuffer, offsets: &OffsetBuffer<i32>) -> bool {
    let mut rows = offsets.windows(2).enumerate();
    valid.null_count() > 0
        && rows.any(|(row, pair)| valid.is_null(row) && pair.first() != pair.last())
}

fn visible(list: &ListArray, valid: Option<NullBuffer>) -> Result<ListArray> {
    let DataType::List(item) = list.data_type() else {
        return schema_error("not a list");
    };
    let (offsets, values) = (list.offsets().clone(), Arc::clone(list.values()));
    let masked = ListArray::try_new(Arc::clone(item), offsets, values, valid)?;
    // Taking each row in turn copies the items of valid rows only.
    let rows = UInt64Array::from_iter_values(0..list.len() as u64);
    Ok(take(&masked, &rows, None)?.as_list::<i32>().clone())
}

fn span(offsets: &OffsetBuffer<i32>) -> (usize, usize) {
    let (first, last) = (offsets.first() as usize, offsets.last() as usize);
    (first, last - first)
}

fn from_zero(offsets: &OffsetBuffer<i32>) -> OffsetBuffer<i32> {
    if offsets.first() == 0 {
        return offsets.clone();
    }
    OffsetBuffer::from_lengths(offsets.lengths())
}

/// arrow-avro subtracts the offset of a list's or map's values from the row, though the only
/// array that has one, a boolean array, counts from it already.
fn realigned(values: ArrayRef) -> ArrayRef {
    match values.as_boolean_opt() {
        Some(array) if array.offset() != 0 => {
            let bits = BooleanBuffer::new(array.values().sliced(), 0, array.len());
            Arc::new(BooleanArray::new(bits, array.nulls().cloned()))
        }
        _ => values,
    }
}
