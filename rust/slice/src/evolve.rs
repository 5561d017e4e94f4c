//! Schema on read: a batch with the names that a file has, to a batch with the table's.
//!
//! Which file column is which table column was decided by column id, outside. Here columns, struct
//! fields, list elements and map values are renamed, and those that belong to another column now are
//! left out. Types are not checked: [`adapt`](crate::adapt) comes after.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};

use crate::error::{Result, SliceError};
use crate::prune::Filter;

/// Where a column, or a part of one, is in the files of one schema version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The table's name for it.
    pub name: String,
    /// The files' name for it; none where they do not have it.
    pub stored: Option<String>,
    /// The same for the fields of a struct, or for the one element or value of a list or map; empty
    /// where all have the table's names.
    pub parts: Vec<Source>,
}

/// Where the table's columns are in the files of every schema version.
#[derive(Debug, Clone, Default)]
pub struct Evolution {
    /// One entry for every distinct way in which files name the columns.
    pub maps: Vec<Arc<[Source]>>,
    /// From which instant on files are of which map, oldest first; none: they have the table's
    /// names. Files before the first are of the first.
    pub versions: Vec<(String, Option<usize>)>,
    /// The instant that wrote the base file.
    pub base: String,
}

impl Evolution {
    /// Where the columns are in what an instant wrote; none when all have the table's names.
    pub(crate) fn at(&self, instant: &str) -> Option<Arc<[Source]>> {
        let after = self
            .versions
            .partition_point(|(from, _)| from.as_str() <= instant);
        let (_, map) = self.versions.get(after.saturating_sub(1))?;
        self.maps.get((*map)?).cloned()
    }
}

/// The files' names for columns of the table; those that the files do not have are left out.
pub(crate) fn stored_names(columns: &[String], map: &[Source]) -> Vec<String> {
    columns
        .iter()
        .filter_map(|name| stored(name, map))
        .collect()
}

/// The filters that say something about the files' columns, under the files' names.
pub(crate) fn stored_filters(filters: &[Filter], map: &[Source]) -> Vec<Filter> {
    filters
        .iter()
        .filter_map(|filter| {
            Some(Filter {
                column: stored(&filter.column, map)?,
                ..filter.clone()
            })
        })
        .collect()
}

fn stored(name: &str, map: &[Source]) -> Option<String> {
    match map.iter().find(|source| source.name == name) {
        Some(source) => source.stored.clone(),
        // Not a column of the table: an operation column, say.
        None => Some(name.to_owned()),
    }
}

/// The batch under the table's names. Columns that the map says nothing about stay.
pub(crate) fn evolve(batch: &RecordBatch, map: &[Source]) -> Result<RecordBatch> {
    let schema = batch.schema();
    let (fields, columns) = renamed(schema.fields(), batch.columns(), map)?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::new(Schema::new(fields)),
        columns,
        &options,
    )?)
}

fn renamed(
    fields: &Fields,
    columns: &[ArrayRef],
    map: &[Source],
) -> Result<(Vec<FieldRef>, Vec<ArrayRef>)> {
    let mut named = Vec::with_capacity(fields.len());
    let mut kept = Vec::with_capacity(fields.len());
    for (field, column) in fields.iter().zip(columns) {
        let source = map
            .iter()
            .find(|source| source.stored.as_ref() == Some(field.name()));
        match source {
            Some(source) => {
                let column = evolve_column(column, &source.parts)?;
                named.push(with_name(field, &source.name, &column));
                kept.push(column);
            }
            None if map.iter().all(|source| source.name != *field.name()) => {
                named.push(Arc::clone(field));
                kept.push(Arc::clone(column));
            }
            None => {}
        }
    }
    Ok((named, kept))
}

fn with_name(field: &Field, name: &str, column: &ArrayRef) -> FieldRef {
    Arc::new(Field::new(
        name,
        column.data_type().clone(),
        field.is_nullable(),
    ))
}

fn evolve_column(column: &ArrayRef, parts: &[Source]) -> Result<ArrayRef> {
    if parts.is_empty() {
        return Ok(Arc::clone(column));
    }
    match (column.data_type(), parts) {
        (DataType::Struct(fields), parts) => {
            let from = column.as_struct();
            let (fields, columns) = renamed(fields, from.columns(), parts)?;
            Ok(Arc::new(StructArray::try_new_with_length(
                Fields::from(fields),
                columns,
                from.nulls().cloned(),
                from.len(),
            )?))
        }
        (DataType::List(item), [element]) => {
            let from: &ListArray = column.as_list();
            let values = evolve_column(from.values(), &element.parts)?;
            Ok(Arc::new(ListArray::try_new(
                with_name(item, item.name(), &values),
                from.offsets().clone(),
                values,
                from.nulls().cloned(),
            )?))
        }
        (DataType::Map(entries, sorted), [value]) => {
            evolve_map(column.as_map(), entries, *sorted, value)
        }
        (other, _) => Err(SliceError::Schema(format!(
            "a column is stored as {other}, whose parts schema on read renames"
        ))),
    }
}

fn evolve_map(from: &MapArray, entries: &Field, sorted: bool, value: &Source) -> Result<ArrayRef> {
    let values = evolve_column(from.values(), &value.parts)?;
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(SliceError::Schema(
            "a map's entries are no struct".to_owned(),
        ));
    };
    let fields: Fields = fields
        .iter()
        .enumerate()
        .map(|(at, field)| match at {
            1 => with_name(field, field.name(), &values),
            _ => Arc::clone(field),
        })
        .collect();
    let pairs = StructArray::try_new(fields, vec![Arc::clone(from.keys()), values], None)?;
    let entries = Field::new(entries.name(), pairs.data_type().clone(), false);
    Ok(Arc::new(MapArray::try_new(
        Arc::new(entries),
        from.offsets().clone(),
        pairs,
        from.nulls().cloned(),
        sorted,
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, StringArray};
    use arrow::buffer::OffsetBuffer;

    fn source(name: &str, stored: Option<&str>, parts: Vec<Source>) -> Source {
        Source {
            name: name.to_owned(),
            stored: stored.map(str::to_owned),
            parts,
        }
    }

    fn ints(columns: &[(&str, i32)]) -> RecordBatch {
        let columns = columns.iter().map(|(name, value)| {
            let column: ArrayRef = Arc::new(Int32Array::from(vec![*value]));
            (*name, column)
        });
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn names(fields: &Fields) -> Vec<&str> {
        fields.iter().map(|field| field.name().as_str()).collect()
    }

    #[test]
    fn a_name_given_to_a_new_column_does_not_read_the_old_one() {
        let batch = ints(&[("a", 1), ("b", 2), ("op", 3)]);
        let map = [
            source("b", Some("a"), vec![]),
            source("a", None, vec![]),
            source("c", Some("c"), vec![]),
        ];
        let read = evolve(&batch, &map).unwrap();
        assert_eq!(names(read.schema().fields()), ["b", "op"]);
        assert_eq!(read["b"].as_ref(), &Int32Array::from(vec![1]));
        let wanted = ["a", "b", "op"].map(str::to_owned);
        assert_eq!(stored_names(&wanted, &map), ["a", "op"]);
    }

    #[test]
    fn two_columns_that_changed_names_are_swapped() {
        let batch = ints(&[("a", 1), ("b", 2)]);
        let map = [
            source("a", Some("b"), vec![]),
            source("b", Some("a"), vec![]),
        ];
        let read = evolve(&batch, &map).unwrap();
        assert_eq!(read["a"].as_ref(), &Int32Array::from(vec![2]));
        assert_eq!(read["b"].as_ref(), &Int32Array::from(vec![1]));
    }

    #[test]
    fn fields_inside_lists_and_maps_are_renamed() {
        let point = StructArray::from(vec![(
            Arc::new(Field::new("x", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef,
        )]);
        let item = Arc::new(Field::new("array", point.data_type().clone(), true));
        let list = ListArray::new(
            item,
            OffsetBuffer::from_lengths([2]),
            Arc::new(point.clone()),
            None,
        );
        let pairs = StructArray::from(vec![
            (
                Arc::new(Field::new("key", DataType::Utf8, false)),
                Arc::new(StringArray::from(vec!["k", "l"])) as ArrayRef,
            ),
            (
                Arc::new(Field::new("value", point.data_type().clone(), true)),
                Arc::new(point) as ArrayRef,
            ),
        ]);
        let entries = Arc::new(Field::new("key_value", pairs.data_type().clone(), false));
        let map = MapArray::new(entries, OffsetBuffer::from_lengths([2]), pairs, None, false);
        let batch = RecordBatch::try_from_iter([
            ("l", Arc::new(list) as ArrayRef),
            ("m", Arc::new(map) as ArrayRef),
        ])
        .unwrap();
        let inner = || vec![source("y", Some("x"), vec![]), source("z", None, vec![])];
        let part = |name| vec![source(name, Some(name), inner())];
        let read = evolve(
            &batch,
            &[
                source("l", Some("l"), part("element")),
                source("n", Some("m"), part("value")),
            ],
        )
        .unwrap();
        let list: &ListArray = read["l"].as_list();
        assert_eq!(names(list.values().as_struct().fields()), ["y"]);
        let values = Arc::clone(read["n"].as_map().values());
        assert_eq!(names(values.as_struct().fields()), ["y"]);
        assert_eq!(values.len(), 2);
    }

    #[test]
    fn the_newest_version_not_after_an_instant_counts() {
        let map: Arc<[Source]> = Arc::from([source("b", Some("a"), vec![])]);
        let evolution = Evolution {
            maps: vec![map],
            versions: vec![("2".to_owned(), Some(0)), ("4".to_owned(), None)],
            base: String::new(),
        };
        let renamed = |instant| evolution.at(instant).is_some();
        assert_eq!(
            ["1", "2", "3", "4", "5"].map(renamed),
            [true, true, true, false, false]
        );
    }
}
