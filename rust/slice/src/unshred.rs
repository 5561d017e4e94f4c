//! Shredded VARIANT columns: the plain column that they stand for, by Parquet's rules of shredding.
//!
//! A file that shreds a VARIANT keeps parts of its values in typed columns: a group is `value` and
//! `typed_value`, in which fields of objects and elements of lists are such groups again. Readers of
//! `metadata` and `value` alone would lose what is in `typed_value`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Fields, Float32Type, Float64Type, Int64Type, TimeUnit,
};
use pyhudi_format::FormatError;
use pyhudi_format::variant::{VariantNames, VariantWriter, object_fields};

use crate::error::{Result, SliceError};

const METADATA: &str = "metadata";
const VALUE: &str = "value";
const TYPED_VALUE: &str = "typed_value";

/// Whether a struct of a file is a shredded VARIANT, to be read as a plain one.
pub(crate) fn is_shredded(from: &Fields, to: &Fields) -> bool {
    let is_plain = to.len() == 2 && [METADATA, VALUE].iter().all(|name| to.find(name).is_some());
    is_plain && from.find(METADATA).is_some() && from.find(TYPED_VALUE).is_some()
}

/// The struct of `metadata` and `value` that a shredded VARIANT column stands for.
pub(crate) fn unshred(column: &StructArray, fields: &Fields) -> Result<ArrayRef> {
    let Some(metadata) = column.column_by_name(METADATA) else {
        return Err(SliceError::Schema("a VARIANT without metadata".to_owned()));
    };
    let metadata = binary(metadata)?;
    let group = Group::of(column)?;
    let mut values = BinaryBuilder::with_capacity(column.len(), 16 * column.len());
    for row in 0..column.len() {
        if column.is_null(row) {
            values.append_value([]);
            continue;
        }
        let damaged = |error| damaged(error, row);
        if metadata.is_null(row) {
            let error = FormatError::Corrupt {
                offset: 0,
                what: "no metadata".to_owned(),
            };
            return Err(damaged(error));
        }
        let names = VariantNames::parse(metadata.value(row)).map_err(damaged)?;
        let mut out = VariantWriter::default();
        // A value that is nowhere, where one must be, is null.
        if !group.write(row, &names, &mut out).map_err(damaged)? {
            out.null();
        }
        values.append_value(out.bytes());
    }
    let values: ArrayRef = Arc::new(values.finish());
    let metadata: ArrayRef = Arc::new(metadata);
    let columns = fields.iter().map(|field| {
        let own = if field.name() == VALUE {
            &values
        } else {
            &metadata
        };
        cast(own, field.data_type())
    });
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(
        fields.clone(),
        columns,
        column.nulls().cloned(),
        column.len(),
    )?))
}

fn damaged(error: FormatError, row: usize) -> SliceError {
    match error {
        FormatError::Unsupported { feature } => SliceError::Unsupported { feature },
        error => SliceError::Corrupt {
            file: String::new(),
            offset: None,
            what: format!("a shredded VARIANT in row {row} of a batch: {error}"),
        },
    }
}

fn binary(column: &ArrayRef) -> Result<BinaryArray> {
    Ok(cast(column, &DataType::Binary)?.as_binary().clone())
}

/// A value, a field or an element: what is left of it in `value`, and what is typed.
struct Group {
    column: StructArray,
    value: Option<BinaryArray>,
    typed: Option<(ArrayRef, Typed)>,
}

enum Typed {
    Leaf,
    Object(Vec<(String, Group)>),
    List(Box<Group>),
}

impl Group {
    fn of(column: &StructArray) -> Result<Self> {
        let value = column.column_by_name(VALUE).map(binary).transpose()?;
        let typed = match column.column_by_name(TYPED_VALUE) {
            None => None,
            // One width for all integers: what is written takes the fewest bytes anyway.
            Some(typed) if typed.data_type().is_signed_integer() => {
                Some((cast(typed, &DataType::Int64)?, Typed::Leaf))
            }
            Some(typed) => Some((Arc::clone(typed), Typed::of(typed)?)),
        };
        Ok(Self {
            column: column.clone(),
            value,
            typed,
        })
    }

    /// Writes the value of a row; false if there is no value.
    fn write(
        &self,
        row: usize,
        names: &VariantNames<'_>,
        out: &mut VariantWriter,
    ) -> Result<bool, FormatError> {
        if self.column.is_null(row) {
            return Ok(false);
        }
        let value = self.value.as_ref().filter(|value| value.is_valid(row));
        let value = value.map(|value| value.value(row));
        let typed = self.typed.as_ref().filter(|(typed, _)| typed.is_valid(row));
        match (typed, value) {
            (None, None) => return Ok(false),
            (None, Some(value)) => out.raw(value),
            (Some((_, Typed::Object(fields))), value) => {
                write_object(fields, value, row, names, out)?;
            }
            (Some(_), Some(_)) => {
                return Err(corrupt("a typed value beside another one"));
            }
            (Some((list, Typed::List(element))), None) => {
                write_list(list, element, row, names, out)?;
            }
            (Some((leaf, Typed::Leaf)), None) => write_leaf(leaf, row, out)?,
        }
        Ok(true)
    }
}

impl Typed {
    fn of(typed: &ArrayRef) -> Result<Self> {
        use DataType as T;
        Ok(match typed.data_type() {
            T::Struct(fields) => {
                let fields = fields.iter().zip(typed.as_struct().columns());
                let groups = fields.map(|(field, column)| match column.as_struct_opt() {
                    Some(group) => Ok((field.name().clone(), Group::of(group)?)),
                    None => Err(unreadable(column.data_type())),
                });
                Self::Object(groups.collect::<Result<_>>()?)
            }
            T::List(_) => match typed.as_list::<i32>().values().as_struct_opt() {
                Some(group) => Self::List(Box::new(Group::of(group)?)),
                None => return Err(unreadable(typed.data_type())),
            },
            T::Boolean
            | T::Float32
            | T::Float64
            | T::Decimal128(_, 0..)
            | T::Date32
            | T::Time64(TimeUnit::Microsecond)
            | T::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)
            | T::Binary
            | T::Utf8
            | T::FixedSizeBinary(16) => Self::Leaf,
            other => return Err(unreadable(other)),
        })
    }
}

fn unreadable(kind: &DataType) -> SliceError {
    SliceError::Unsupported {
        feature: format!("a VARIANT that is shredded into {kind}"),
    }
}

fn corrupt(what: &str) -> FormatError {
    FormatError::Corrupt {
        offset: 0,
        what: what.to_owned(),
    }
}

fn write_object(
    fields: &[(String, Group)],
    value: Option<&[u8]>,
    row: usize,
    names: &VariantNames<'_>,
    out: &mut VariantWriter,
) -> Result<(), FormatError> {
    let start = out.len();
    let mut written = Vec::with_capacity(fields.len());
    for (name, group) in fields {
        let at = out.len();
        if group.write(row, names, out)? {
            let number = names.number(name);
            let missing = || corrupt(&format!("the metadata lack the field name {name:?}"));
            written.push((number.ok_or_else(missing)?, at));
        }
    }
    if let Some(value) = value {
        let rest = object_fields(value)?;
        let rest = rest.ok_or_else(|| corrupt("fields beside a value that is no object"))?;
        for (number, field) in rest {
            // What is shredded counts: writers must not write a second field of its name.
            let is_typed = |name| fields.iter().any(|(typed, _)| typed == name);
            if !names.get(number).is_some_and(is_typed) {
                written.push((number, out.len()));
                out.raw(field);
            }
        }
    }
    out.object(names, start, &written)
}

fn write_list(
    list: &ArrayRef,
    element: &Group,
    row: usize,
    names: &VariantNames<'_>,
    out: &mut VariantWriter,
) -> Result<(), FormatError> {
    let offsets = list.as_list::<i32>().value_offsets();
    let (from, to) = match offsets.get(row..row + 2) {
        Some([from, to]) => (*from as usize, *to as usize),
        _ => return Err(corrupt("a list without end")),
    };
    let start = out.len();
    let mut starts = Vec::with_capacity(to.saturating_sub(from));
    for item in from..to {
        starts.push(out.len());
        if !element.write(item, names, out)? {
            out.null();
        }
    }
    out.array(start, &starts)
}

fn write_leaf(leaf: &ArrayRef, row: usize, out: &mut VariantWriter) -> Result<(), FormatError> {
    use DataType as T;
    match leaf.data_type() {
        T::Boolean => out.bool(leaf.as_boolean().value(row)),
        T::Int64 => out.int(leaf.as_primitive::<Int64Type>().value(row)),
        T::Float32 => out.float(leaf.as_primitive::<Float32Type>().value(row)),
        T::Float64 => out.double(leaf.as_primitive::<Float64Type>().value(row)),
        T::Decimal128(_, scale) => {
            let unscaled = leaf.as_primitive::<Decimal128Type>().value(row);
            out.decimal(unscaled, scale.unsigned_abs());
        }
        T::Date32 => out.date(leaf.as_primitive::<Date32Type>().value(row)),
        T::Time64(_) => {
            use arrow::datatypes::Time64MicrosecondType as Micros;
            out.time(leaf.as_primitive::<Micros>().value(row));
        }
        T::Timestamp(TimeUnit::Nanosecond, zone) => {
            use arrow::datatypes::TimestampNanosecondType as Nanos;
            let value = leaf.as_primitive::<Nanos>().value(row);
            out.timestamp(value, true, zone.is_some());
        }
        T::Timestamp(_, zone) => {
            use arrow::datatypes::TimestampMicrosecondType as Micros;
            let value = leaf.as_primitive::<Micros>().value(row);
            out.timestamp(value, false, zone.is_some());
        }
        T::Binary => out.binary(leaf.as_binary::<i32>().value(row))?,
        T::Utf8 => out.string(leaf.as_string::<i32>().value(row))?,
        T::FixedSizeBinary(_) => out.uuid(leaf.as_fixed_size_binary().value(row)),
        other => return Err(corrupt(&format!("a typed value of type {other}"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
        Float64Array, Int8Array, Int64Array, ListArray, StringArray, Time64MicrosecondArray,
        TimestampMicrosecondArray, TimestampNanosecondArray,
    };
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Field;
    use pyhudi_format::variant::VariantPart;

    const NO_NAMES: &[u8] = &[1, 0, 0];
    /// The names "a" and "b".
    const NAMES: &[u8] = &[1, 2, 0, 1, 2, b'a', b'b'];

    fn structs(parts: Vec<(&str, ArrayRef)>) -> StructArray {
        let nullable = |(name, part): (&str, ArrayRef)| {
            let field = Field::new(name, part.data_type().clone(), true);
            (Arc::new(field), part)
        };
        StructArray::from(parts.into_iter().map(nullable).collect::<Vec<_>>())
    }

    fn texts(values: &[Option<&[u8]>]) -> ArrayRef {
        Arc::new(BinaryArray::from(values.to_vec()))
    }

    fn read(metadata: &[u8], value: Option<&[u8]>, typed: ArrayRef) -> Result<Vec<u8>> {
        let column = structs(vec![
            (METADATA, texts(&[Some(metadata)])),
            (VALUE, texts(&[value])),
            (TYPED_VALUE, typed),
        ]);
        let field = |name| Field::new(name, DataType::Binary, false);
        let fields = Fields::from(vec![field(METADATA), field(VALUE)]);
        assert!(is_shredded(column.fields(), &fields));
        let read = unshred(&column, &fields)?;
        Ok(read
            .as_struct()
            .column(1)
            .as_binary::<i32>()
            .value(0)
            .to_vec())
    }

    #[test]
    fn leaves_become_values_of_their_types() {
        use VariantPart as Part;
        let timestamp = |value, nanos, utc| Part::Timestamp { value, nanos, utc };
        let decimal = Decimal128Array::from(vec![-1250]).with_precision_and_scale(20, 2);
        let id = [7; 16];
        let cases: Vec<(ArrayRef, VariantPart<'_>)> = vec![
            (Arc::new(BooleanArray::from(vec![true])), Part::Bool(true)),
            (Arc::new(Int8Array::from(vec![-3])), Part::Int(-3)),
            (
                Arc::new(Int64Array::from(vec![1 << 40])),
                Part::Int(1 << 40),
            ),
            (Arc::new(Float32Array::from(vec![0.5])), Part::Float(0.5)),
            (
                Arc::new(Float64Array::from(vec![1e300])),
                Part::Double(1e300),
            ),
            (Arc::new(decimal.unwrap()), Part::Decimal(-1250, 2)),
            (Arc::new(Date32Array::from(vec![-1])), Part::Date(-1)),
            (
                Arc::new(Time64MicrosecondArray::from(vec![5])),
                Part::Time(5),
            ),
            (
                Arc::new(TimestampMicrosecondArray::from(vec![6])),
                timestamp(6, false, false),
            ),
            (
                Arc::new(TimestampNanosecondArray::from(vec![7]).with_timezone("UTC")),
                timestamp(7, true, true),
            ),
            (texts(&[Some(b"\xff")]), Part::Binary(b"\xff")),
            (Arc::new(StringArray::from(vec!["x"])), Part::String("x")),
            (
                Arc::new(FixedSizeBinaryArray::try_from_iter([id].into_iter()).unwrap()),
                Part::Uuid(&id),
            ),
        ];
        for (typed, wanted) in cases {
            let bytes = read(NO_NAMES, None, typed).unwrap();
            assert_eq!(VariantPart::parse(&bytes).unwrap(), wanted);
        }
    }

    #[test]
    fn fields_come_from_both_places_and_shredded_ones_count() {
        let a: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let typed = structs(vec![("a", Arc::new(structs(vec![(TYPED_VALUE, a)])))]);
        // {"a": null, "b": true}
        let rest: &[u8] = &[2, 2, 0, 1, 0, 1, 2, 0, 4];
        let bytes = read(NAMES, Some(rest), Arc::new(typed)).unwrap();
        let VariantPart::Object(fields) = VariantPart::parse(&bytes).unwrap() else {
            panic!("no object");
        };
        let fields: Vec<_> = fields
            .into_iter()
            .map(|(name, value)| (name, VariantPart::parse(value).unwrap()))
            .collect();
        assert_eq!(
            fields,
            [(0, VariantPart::Int(1)), (1, VariantPart::Bool(true))]
        );
    }

    #[test]
    fn elements_that_are_nowhere_are_null() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let elements = structs(vec![(VALUE, texts(&[None, None])), (TYPED_VALUE, numbers)]);
        let field = Arc::new(Field::new_list_field(elements.data_type().clone(), false));
        let offsets = OffsetBuffer::from_lengths([2]);
        let list = ListArray::new(field, offsets, Arc::new(elements), None);
        let bytes = read(NO_NAMES, None, Arc::new(list)).unwrap();
        let VariantPart::Array(items) = VariantPart::parse(&bytes).unwrap() else {
            panic!("no array");
        };
        let items: Vec<_> = items.into_iter().map(VariantPart::parse).collect();
        assert_eq!(items.len(), 2);
        assert_eq!(items[0].as_ref().unwrap(), &VariantPart::Int(1));
        assert_eq!(items[1].as_ref().unwrap(), &VariantPart::Null);
    }

    #[test]
    fn contradictions_and_unknown_types_are_refused() {
        let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let both = read(NO_NAMES, Some(&[0]), Arc::clone(&number)).unwrap_err();
        assert!(both.to_string().contains("beside another"), "{both}");
        let field = structs(vec![(TYPED_VALUE, Arc::clone(&number))]);
        let typed: ArrayRef = Arc::new(structs(vec![("a", Arc::new(field))]));
        let nameless = read(NO_NAMES, None, Arc::clone(&typed)).unwrap_err();
        assert!(nameless.to_string().contains("\"a\""), "{nameless}");
        let mixed = read(NAMES, Some(&[0]), typed).unwrap_err();
        assert!(mixed.to_string().contains("no object"), "{mixed}");
        let unsigned: ArrayRef = Arc::new(arrow::array::UInt8Array::from(vec![1]));
        let unknown = read(NO_NAMES, None, unsigned).unwrap_err();
        assert!(matches!(unknown, SliceError::Unsupported { .. }));
        assert!(matches!(read(NO_NAMES, None, number), Ok(bytes) if bytes == [3 << 2, 1]));
    }
}
