//! INT96 timestamps as microseconds.
//!
//! Parquet's old timestamps are days and nanoseconds of the day, in UTC. Read as nanoseconds since
//! 1970, as Arrow does by default, those before 1677 and after 2262 would wrap around.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::Type as PhysicalType;

use crate::adapt::INT96_ZONE;

/// The file's Arrow schema with its INT96 columns as microseconds in UTC; none when it has no such
/// column.
pub(crate) fn int96_as_micros(file: &ArrowReaderMetadata) -> Option<SchemaRef> {
    let leaves: Vec<bool> = file
        .parquet_schema()
        .columns()
        .iter()
        .map(|leaf| leaf.physical_type() == PhysicalType::INT96)
        .collect();
    if !leaves.contains(&true) {
        return None;
    }
    let mut leaves = leaves.into_iter();
    let fields = changed_all(file.schema().fields(), &mut leaves);
    Some(Arc::new(Schema::new(fields)))
}

fn changed_all(fields: &Fields, leaves: &mut impl Iterator<Item = bool>) -> Fields {
    fields.iter().map(|field| changed(field, leaves)).collect()
}

/// Takes one of `leaves` for every leaf of the field, in the order of the file.
fn changed(field: &FieldRef, leaves: &mut impl Iterator<Item = bool>) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(changed_all(fields, leaves)),
        DataType::List(item) => DataType::List(changed(item, leaves)),
        DataType::Map(entries, sorted) => DataType::Map(changed(entries, leaves), *sorted),
        other => match leaves.next() {
            Some(true) => DataType::Timestamp(TimeUnit::Microsecond, Some(INT96_ZONE.into())),
            _ => other.clone(),
        },
    };
    Arc::new(Field::new(field.name(), kind, field.is_nullable()))
}
