//! Arrow types and arrays of them.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int32Array, Int64Array, ListArray, MapArray, RecordBatch,
    RecordBatchOptions, StringArray, StructArray, Time32MillisecondArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampMillisecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn leaf() -> impl Strategy<Value = DataType> {
    prop_oneof![
        prop::sample::select(vec![
            DataType::Boolean,
            DataType::Int32,
            DataType::Int64,
            DataType::Float32,
            DataType::Float64,
            DataType::Utf8,
            DataType::Binary,
            DataType::Date32,
            DataType::Time32(TimeUnit::Millisecond),
            DataType::Time64(TimeUnit::Microsecond),
            DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            DataType::Timestamp(TimeUnit::Microsecond, None),
        ]),
        (1..5_i32).prop_map(DataType::FixedSizeBinary),
        (1..=38_u8)
            .prop_flat_map(|precision| (Just(precision), 0..=precision as i8))
            .prop_map(|(p, s)| DataType::Decimal128(p, s)),
    ]
}

/// A type with other types in it. Names repeat on each level, as those of nested records may.
pub fn kind() -> impl Strategy<Value = DataType> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), any::<bool>())
                .prop_map(|(kind, is_nullable)| DataType::new_list(kind, is_nullable)),
            (inner.clone(), any::<bool>()).prop_map(|(kind, is_nullable)| map_of(Field::new(
                "value",
                kind,
                is_nullable
            ))),
            vec((inner, any::<bool>()), 1..4).prop_map(|fields| DataType::Struct(named(fields))),
        ]
    })
}

fn named(fields: Vec<(DataType, bool)>) -> Fields {
    let field = |(at, (kind, is_nullable)): (usize, (DataType, bool))| {
        Field::new(format!("c{at}"), kind, is_nullable)
    };
    fields.into_iter().enumerate().map(field).collect()
}

fn map_of(value: Field) -> DataType {
    let entries = DataType::Struct(vec![Field::new("key", DataType::Utf8, false), value].into());
    DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
}

fn values<T: std::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
    is_nullable: bool,
    rows: usize,
) -> BoxedStrategy<Vec<Option<T>>> {
    if is_nullable {
        vec(option::weighted(0.8, value), rows).boxed()
    } else {
        vec(value.prop_map(Some), rows).boxed()
    }
}

fn nulls(is_nullable: bool, rows: usize) -> BoxedStrategy<Option<NullBuffer>> {
    if is_nullable {
        vec(prop::bool::weighted(0.8), rows)
            .prop_map(|valid| Some(NullBuffer::from(valid)))
            .boxed()
    } else {
        Just(None).boxed()
    }
}

macro_rules! leaves {
    ($array:ty, $value:expr, $nullable:expr, $rows:expr) => {
        values($value, $nullable, $rows)
            .prop_map(|values| Arc::new(<$array>::from(values)) as ArrayRef)
            .boxed()
    };
}

/// An array of so many rows.
pub fn array(kind: &DataType, is_nullable: bool, rows: usize) -> BoxedStrategy<ArrayRef> {
    match kind {
        DataType::Boolean => leaves!(BooleanArray, any::<bool>(), is_nullable, rows),
        DataType::Int32 => leaves!(Int32Array, any::<i32>(), is_nullable, rows),
        DataType::Int64 => leaves!(Int64Array, any::<i64>(), is_nullable, rows),
        DataType::Float32 => leaves!(
            Float32Array,
            any::<u32>().prop_map(f32::from_bits),
            is_nullable,
            rows
        ),
        DataType::Float64 => leaves!(
            Float64Array,
            any::<u64>().prop_map(f64::from_bits),
            is_nullable,
            rows
        ),
        DataType::Utf8 => leaves!(StringArray, any::<String>(), is_nullable, rows),
        DataType::Date32 => leaves!(Date32Array, any::<i32>(), is_nullable, rows),
        DataType::Time32(_) => {
            leaves!(Time32MillisecondArray, 0..86_400_000_i32, is_nullable, rows)
        }
        DataType::Time64(_) => leaves!(
            Time64MicrosecondArray,
            0..86_400_000_000_i64,
            is_nullable,
            rows
        ),
        DataType::Binary => values(vec(any::<u8>(), 0..9), is_nullable, rows)
            .prop_map(|values| {
                Arc::new(values.iter().map(Option::as_ref).collect::<BinaryArray>()) as ArrayRef
            })
            .boxed(),
        DataType::FixedSizeBinary(size) => {
            let size = *size;
            values(vec(any::<u8>(), size as usize), is_nullable, rows)
                .prop_map(move |values| {
                    let values = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                        values.into_iter(),
                        size,
                    );
                    Arc::new(values.unwrap()) as ArrayRef
                })
                .boxed()
        }
        DataType::Timestamp(unit, zone) => {
            let (is_millis, zone) = (*unit == TimeUnit::Millisecond, zone.clone());
            values(any::<i64>(), is_nullable, rows)
                .prop_map(move |values| {
                    let zone = zone.clone();
                    if is_millis {
                        let values = TimestampMillisecondArray::from(values);
                        Arc::new(values.with_timezone_opt(zone)) as ArrayRef
                    } else {
                        let values = TimestampMicrosecondArray::from(values);
                        Arc::new(values.with_timezone_opt(zone))
                    }
                })
                .boxed()
        }
        DataType::Decimal128(precision, scale) => {
            let (precision, scale) = (*precision, *scale);
            let bound = 10_i128.pow(precision.into());
            values(1 - bound..bound, is_nullable, rows)
                .prop_map(move |values| {
                    let values =
                        Decimal128Array::from(values).with_precision_and_scale(precision, scale);
                    Arc::new(values.unwrap()) as ArrayRef
                })
                .boxed()
        }
        nested => nested_array(nested, is_nullable, rows),
    }
}

/// An array of a type with other types in it.
fn nested_array(kind: &DataType, is_nullable: bool, rows: usize) -> BoxedStrategy<ArrayRef> {
    match kind {
        DataType::List(item) => {
            let item = Arc::clone(item);
            lengths(is_nullable, rows)
                .prop_flat_map(move |(lengths, nulls)| {
                    let items = array(item.data_type(), item.is_nullable(), lengths.iter().sum());
                    (Just((Arc::clone(&item), lengths, nulls)), items)
                })
                .prop_map(|((item, lengths, nulls), items)| {
                    Arc::new(ListArray::new(
                        item,
                        OffsetBuffer::from_lengths(lengths),
                        items,
                        nulls,
                    )) as ArrayRef
                })
                .boxed()
        }
        DataType::Map(entries, _) => {
            let entries = Arc::clone(entries);
            lengths(is_nullable, rows)
                .prop_flat_map(move |(lengths, nulls)| {
                    let DataType::Struct(fields) = entries.data_type() else {
                        unreachable!("entries of a map")
                    };
                    let values = array(
                        fields[1].data_type(),
                        fields[1].is_nullable(),
                        lengths.iter().sum(),
                    );
                    (Just((Arc::clone(&entries), lengths, nulls)), values)
                })
                .prop_map(|((entries, lengths, nulls), values)| {
                    let DataType::Struct(fields) = entries.data_type() else {
                        unreachable!("entries of a map")
                    };
                    let keys = lengths
                        .iter()
                        .flat_map(|length| (0..*length).map(|key| Some(format!("k{key}"))));
                    let pairs = StructArray::new(
                        fields.clone(),
                        vec![Arc::new(keys.collect::<StringArray>()), values],
                        None,
                    );
                    Arc::new(MapArray::new(
                        entries,
                        OffsetBuffer::from_lengths(lengths),
                        pairs,
                        nulls,
                        false,
                    )) as ArrayRef
                })
                .boxed()
        }
        DataType::Struct(fields) => {
            let parts: Vec<_> = fields
                .iter()
                .map(|field| array(field.data_type(), field.is_nullable(), rows))
                .collect();
            let fields = fields.clone();
            (parts, nulls(is_nullable, rows))
                .prop_map(move |(parts, nulls)| {
                    Arc::new(StructArray::new(fields.clone(), parts, nulls)) as ArrayRef
                })
                .boxed()
        }
        other => unreachable!("{other}"),
    }
}

/// The lengths of lists, and which of them are none. Such a list has no elements.
fn lengths(
    is_nullable: bool,
    rows: usize,
) -> impl Strategy<Value = (Vec<usize>, Option<NullBuffer>)> {
    (vec(0..4_usize, rows), nulls(is_nullable, rows)).prop_map(|(lengths, nulls)| {
        let is_valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let lengths = lengths.into_iter().enumerate();
        (
            lengths
                .map(|(row, length)| if is_valid(row) { length } else { 0 })
                .collect(),
            nulls,
        )
    })
}

/// Rows of any schema.
pub fn batch() -> impl Strategy<Value = RecordBatch> {
    (vec((kind(), any::<bool>()), 1..5), 0..6_usize).prop_flat_map(|(fields, rows)| {
        let fields = named(fields);
        let columns: Vec<_> = fields
            .iter()
            .map(|field| array(field.data_type(), field.is_nullable(), rows))
            .collect();
        columns.prop_map(move |columns| {
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            RecordBatch::try_new_with_options(
                Arc::new(Schema::new(fields.clone())),
                columns,
                &options,
            )
            .unwrap()
        })
    })
}
