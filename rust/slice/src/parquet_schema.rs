//! The Parquet schema that Hudi's Avro writer gives a table.
//!
//! It is that of parquet-avro with the old list structure, the default that Java's readers of base
//! files count on, or with the new one, which has a place for null elements. arrow-rs would write three-level lists and decimals as integers, and
//! `parquet.avro.schema` must agree with what is in the file.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit as ArrowTimeUnit};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};

use crate::error::{Result, SliceError};

/// The Arrow schema to hand to the writer of old lists: list elements and map keys are never null.
pub(crate) fn writer_schema(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(required_elements(schema.fields())))
}

fn required_elements(fields: &Fields) -> Fields {
    fields
        .iter()
        .map(|field| Arc::new(required_element(field)))
        .collect()
}

/// The Arrow schema to hand to a writer of Parquet: a VECTOR is its fixed bytes.
///
/// Only VECTOR columns are lists of a fixed size in a table's schema.
pub(crate) fn with_vector_bytes(schema: &Schema) -> Schema {
    Schema::new(stored_fields(schema.fields()))
}

fn stored_fields(fields: &Fields) -> Fields {
    let stored = fields.iter().map(|field| {
        let kind = stored_type(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(kind))
    });
    stored.collect()
}

fn stored_type(kind: &DataType) -> DataType {
    let one = |field: &Field| field.clone().with_data_type(stored_type(field.data_type()));
    match kind {
        DataType::FixedSizeList(item, dimension) => {
            let width = item.data_type().primitive_width().unwrap_or_default();
            DataType::FixedSizeBinary(dimension * width as i32)
        }
        DataType::List(item) => DataType::List(Arc::new(one(item))),
        DataType::Struct(fields) => DataType::Struct(stored_fields(fields)),
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(one(entries)), *sorted),
        other => other.clone(),
    }
}

fn required_element(field: &Field) -> Field {
    let kind = match field.data_type() {
        DataType::List(item) => {
            DataType::List(Arc::new(required_element(item).with_nullable(false)))
        }
        DataType::Struct(fields) => DataType::Struct(required_elements(fields)),
        DataType::Map(entries, sorted) => {
            DataType::Map(Arc::new(required_element(entries)), *sorted)
        }
        other => other.clone(),
    };
    Field::new(field.name(), kind, field.is_nullable())
}

/// The Parquet schema of `schema`, which comes from [`writer_schema`] where lists are to be old ones.
/// `root` is the message name.
pub(crate) fn parquet_schema(
    schema: &Schema,
    root: &str,
    old_lists: bool,
) -> Result<SchemaDescPtr> {
    let fields = schema
        .fields()
        .iter()
        .map(|f| named(f, f.name(), old_lists))
        .collect::<Result<Vec<_>>>()?;
    let message = Type::group_type_builder(root)
        .with_fields(fields)
        .build()
        .map_err(schema_error)?;
    Ok(Arc::new(SchemaDescriptor::new(Arc::new(message))))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn schema_error(error: ParquetError) -> SliceError {
    SliceError::Schema(error.to_string())
}

fn named(field: &Field, name: &str, old_lists: bool) -> Result<Arc<Type>> {
    let repetition = if field.is_nullable() {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    node(field, name, repetition, old_lists)
}

fn node(field: &Field, name: &str, repetition: Repetition, old_lists: bool) -> Result<Arc<Type>> {
    let group = |fields: Vec<Arc<Type>>, converted: ConvertedType| {
        Type::group_type_builder(name)
            .with_repetition(repetition)
            .with_converted_type(converted)
            .with_fields(fields)
            .build()
            .map(Arc::new)
            .map_err(schema_error)
    };
    match field.data_type() {
        DataType::Struct(fields) => {
            let children = fields
                .iter()
                .map(|f| named(f, f.name(), old_lists))
                .collect::<Result<Vec<_>>>()?;
            group(children, ConvertedType::NONE)
        }
        DataType::List(item) if old_lists => group(
            vec![node(item, "array", Repetition::REPEATED, old_lists)?],
            ConvertedType::LIST,
        ),
        DataType::List(item) => {
            let repeated = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![named(item, "element", old_lists)?])
                .build()
                .map_err(schema_error)?;
            group(vec![Arc::new(repeated)], ConvertedType::LIST)
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else {
                return Err(SliceError::Schema(format!("map {name} without entries")));
            };
            let [key, value] = pair.as_ref() else {
                return Err(SliceError::Schema(format!(
                    "map {name} without key and value"
                )));
            };
            let pair = Type::group_type_builder("key_value")
                .with_repetition(Repetition::REPEATED)
                .with_converted_type(ConvertedType::MAP_KEY_VALUE)
                .with_fields(vec![
                    node(key, "key", Repetition::REQUIRED, old_lists)?,
                    named(value, "value", old_lists)?,
                ])
                .build()
                .map_err(schema_error)?;
            group(vec![Arc::new(pair)], ConvertedType::MAP)
        }
        _ => primitive(field, name, repetition),
    }
}

fn primitive(field: &Field, name: &str, repetition: Repetition) -> Result<Arc<Type>> {
    let mut length = -1;
    let mut decimal = None;
    let (physical, logical) = match field.data_type() {
        DataType::Boolean => (PhysicalType::BOOLEAN, None),
        DataType::Int32 => (PhysicalType::INT32, None),
        DataType::Int64 => (PhysicalType::INT64, None),
        DataType::Float32 => (PhysicalType::FLOAT, None),
        DataType::Float64 => (PhysicalType::DOUBLE, None),
        DataType::Utf8 => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        DataType::Binary => (PhysicalType::BYTE_ARRAY, None),
        DataType::FixedSizeBinary(size) => {
            length = *size;
            (PhysicalType::FIXED_LEN_BYTE_ARRAY, None)
        }
        DataType::Date32 => (PhysicalType::INT32, Some(LogicalType::Date)),
        DataType::Decimal128(precision, scale) => {
            length = decimal_bytes(*precision);
            decimal = Some((i32::from(*precision), i32::from(*scale)));
            let (precision, scale) = (i32::from(*precision), i32::from(*scale));
            (
                PhysicalType::FIXED_LEN_BYTE_ARRAY,
                Some(LogicalType::decimal(scale, precision)),
            )
        }
        DataType::Timestamp(unit, zone) => {
            let logical = LogicalType::timestamp(zone.is_some(), time_unit(*unit));
            (PhysicalType::INT64, Some(logical))
        }
        DataType::Time32(ArrowTimeUnit::Millisecond) => (
            PhysicalType::INT32,
            Some(LogicalType::time(true, TimeUnit::MILLIS)),
        ),
        DataType::Time64(ArrowTimeUnit::Microsecond) => (
            PhysicalType::INT64,
            Some(LogicalType::time(true, TimeUnit::MICROS)),
        ),
        other => {
            return Err(SliceError::Unsupported {
                feature: format!("writing column {name} of type {other}"),
            });
        }
    };
    let mut builder = Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .with_length(length);
    if let Some((precision, scale)) = decimal {
        builder = builder.with_precision(precision).with_scale(scale);
    }
    builder.build().map(Arc::new).map_err(schema_error)
}

fn time_unit(unit: ArrowTimeUnit) -> TimeUnit {
    match unit {
        ArrowTimeUnit::Second | ArrowTimeUnit::Millisecond => TimeUnit::MILLIS,
        ArrowTimeUnit::Microsecond => TimeUnit::MICROS,
        ArrowTimeUnit::Nanosecond => TimeUnit::NANOS,
    }
}

/// Minimum bytes of a two's-complement number of `digits` digits: the size of Hudi's Avro fixed.
fn decimal_bytes(precision: u8) -> i32 {
    let bits = f64::from(precision) * std::f64::consts::LOG2_10 + 1.0;
    (bits / 8.0).ceil() as i32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};

    use super::{decimal_bytes, parquet_schema, writer_schema};

    #[test]
    fn lists_have_a_place_for_nulls_in_the_new_structure_alone() {
        let item = |kind| Arc::new(Field::new_list_field(kind, true));
        let kind = DataType::List(item(DataType::List(item(DataType::Int32))));
        let schema = Schema::new(vec![Field::new("l", kind, true)]);
        let levels = |schema: &Schema, old_lists| {
            let made = parquet_schema(schema, "t", old_lists).unwrap();
            let leaf = made.column(0);
            (leaf.path().string(), leaf.max_def_level())
        };
        let old = levels(&writer_schema(&schema), true);
        assert_eq!(old, ("l.array.array".to_owned(), 3));
        let new = levels(&schema, false);
        assert_eq!(new, ("l.list.element.list.element".to_owned(), 5));
    }

    #[test]
    fn decimal_sizes_are_those_of_avro_fixed() {
        let sizes: Vec<i32> = [1, 2, 4, 9, 10, 18, 19, 38].map(decimal_bytes).into();
        assert_eq!(sizes, [1, 1, 2, 4, 5, 8, 9, 16]);
    }
}
