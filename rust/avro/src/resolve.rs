//! Avro schema resolution on decoded columns: from the writer's types to the reader's.
//!
//! Not left to arrow-avro, which compares underlying types only: it would read the
//! milliseconds of the writer's `timestamp-millis` as the reader's microseconds, cannot widen
//! a decimal, and insists on equal names of records.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt32Array, new_empty_array,
    new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::arrow_type::{arrow_fields, data_type};
use crate::cast::{checked_cast, exact_cast};
use crate::conform::check_required;
use crate::datum;
use crate::decode::{DatumDecoder, Resolve};
use crate::error::{AvroError, Result, schema_error, unsupported};
use crate::model::{Record, RecordField, Type, below};
use crate::parse::parse_record;

impl DatumDecoder {
    /// A decoder into the reader's types by Avro's schema resolution: fields by name or reader
    /// alias, the reader's default (null if it has none and is nullable) for fields that the
    /// writer does not have, and Avro's promotions. As in Hudi also: int and long to string, integers
    /// to decimal, decimals to wider ones, and timestamps between millis and micros by value.
    /// Names of records, enums and fixed types are not compared.
    pub fn with_reader_schema(
        writer_schema_json: &str,
        reader_schema_json: &str,
        batch_rows: usize,
    ) -> Result<Self> {
        let writer = parse_record(writer_schema_json)?;
        let reader = parse_record(reader_schema_json)?;
        let (resolution, indices) = Resolution::new(&writer, &reader)?;
        Self::build(&writer, indices, Some(Box::new(resolution)), batch_rows)
    }
}

/// How the columns of a reader's record come from decoded writer columns.
#[derive(Debug)]
struct Resolution {
    schema: SchemaRef,
    columns: Vec<Column>,
}

#[derive(Debug)]
enum Column {
    /// From a decoded column.
    Decoded {
        position: usize,
        from: Type,
        to: Type,
    },
    /// One row that every row repeats.
    Default(ArrayRef),
}

impl Resolution {
    /// The plan, and the indices of the writer's fields it needs, in order.
    fn new(writer: &Record, reader: &Record) -> Result<(Self, Vec<usize>)> {
        let schema = Arc::new(Schema::new(arrow_fields(reader, "")?));
        let mut indices = Vec::new();
        let mut columns = Vec::with_capacity(reader.fields.len());
        for (field, arrow) in reader.fields.iter().zip(schema.fields()) {
            columns.push(match find(writer, field) {
                None => Column::Default(default_row(field, arrow.data_type(), &field.name)?),
                Some((index, source)) => {
                    // On no rows, to refuse what cannot be resolved before any data comes.
                    let from = data_type(source.ty.value_type(), &field.name)?;
                    let empty = new_empty_array(&from);
                    promote(&empty, &source.ty, &field.ty, None, &field.name)?;
                    Column::Decoded {
                        position: position_of(&mut indices, index),
                        from: source.ty.clone(),
                        to: field.ty.clone(),
                    }
                }
            });
        }
        Ok((Self { schema, columns }, indices))
    }
}

impl Resolve for Resolution {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn apply(&self, decoded: &[ArrayRef], rows: usize) -> Result<Vec<ArrayRef>> {
        let parts = self.columns.iter().zip(self.schema.fields());
        let column = |(column, field): (&Column, &Arc<Field>)| match column {
            Column::Default(row) => repeat(row, rows),
            Column::Decoded { position, from, to } => match decoded.get(*position) {
                Some(array) => promote(array, from, to, None, field.name()),
                None => schema_error(format!("column {} was not decoded", field.name())),
            },
        };
        parts.map(column).collect()
    }
}

/// Two reader fields may come from one writer field, through an alias.
fn position_of(indices: &mut Vec<usize>, index: usize) -> usize {
    if let Some(position) = indices.iter().position(|i| *i == index) {
        return position;
    }
    indices.push(index);
    indices.len() - 1
}

fn find<'a>(writer: &'a Record, field: &RecordField) -> Option<(usize, &'a RecordField)> {
    let mut aliases = field.aliases.iter();
    let by_name = writer.field(&field.name);
    by_name.or_else(|| aliases.find_map(|alias| writer.field(alias)))
}

/// `parent` is the validity of the structs around, where an array's own nulls do not count.
fn promote(
    array: &ArrayRef,
    from: &Type,
    to: &Type,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<ArrayRef> {
    if to.optional().is_none() {
        check_required(array, parent, path)?;
    }
    let target = data_type(to.value_type(), path)?;
    match (from.value_type(), to.value_type(), &target) {
        (Type::Record(from), Type::Record(to), _) => records(array, from, to, parent, path),
        (Type::Array(from), Type::Array(to), DataType::List(field)) => {
            let list = array.as_list::<i32>();
            let values = promote(list.values(), from, to, None, &below(path, "items"))?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            let field = Arc::clone(field);
            Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls)?))
        }
        (Type::Map(from), Type::Map(to), DataType::Map(entries, _)) => {
            maps(array, from, to, entries, path)
        }
        (from, to, target) => leaf(array, from, to, target, path),
    }
}

fn records(
    array: &ArrayRef,
    from: &Record,
    to: &Record,
    parent: Option<&NullBuffer>,
    path: &str,
) -> Result<ArrayRef> {
    let array = array.as_struct();
    let valid = NullBuffer::union(parent, array.nulls());
    let fields = arrow_fields(to, path)?;
    let mut columns = Vec::with_capacity(fields.len());
    for (field, arrow) in to.fields.iter().zip(&fields) {
        let path = below(path, &field.name);
        let source = find(from, field);
        let source = source.and_then(|(index, f)| Some((f, array.columns().get(index)?)));
        columns.push(match source {
            Some((source, column)) => {
                promote(column, &source.ty, &field.ty, valid.as_ref(), &path)?
            }
            None => repeat(&default_row(field, arrow.data_type(), &path)?, array.len())?,
        });
    }
    let (nulls, len) = (array.nulls().cloned(), array.len());
    Ok(Arc::new(StructArray::try_new_with_length(
        fields, columns, nulls, len,
    )?))
}

fn maps(
    array: &ArrayRef,
    from: &Type,
    to: &Type,
    entries: &Arc<Field>,
    path: &str,
) -> Result<ArrayRef> {
    let map = array.as_map();
    let values = promote(map.values(), from, to, None, &below(path, "values"))?;
    let DataType::Struct(fields) = entries.data_type() else {
        return schema_error(format!("{path}: a map without entries"));
    };
    let columns = vec![Arc::clone(map.keys()), values];
    let pairs = StructArray::try_new(fields.clone(), columns, None)?;
    let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
    let entries = Arc::clone(entries);
    Ok(Arc::new(MapArray::try_new(
        entries, offsets, pairs, nulls, false,
    )?))
}

fn leaf(
    array: &ArrayRef,
    from: &Type,
    to: &Type,
    target: &DataType,
    path: &str,
) -> Result<ArrayRef> {
    use Type::{
        Bytes, Date, Decimal, Double, Enum, Fixed, Float, Int, Long, String, TimeMicros,
        TimeMillis, Timestamp, Vector,
    };
    match (from, to) {
        (Enum(from), Enum(to)) if from.iter().any(|symbol| !to.contains(symbol)) => unsupported(
            format!("enum with other symbols than the reader's at {path}"),
        ),
        (Enum(_) | String, String) | (Enum(_), Enum(_)) => Ok(Arc::clone(array)),
        // Between a logical type and its base only the name changes: Avro resolves the bytes.
        (Int, Long | Float | Double | String | Decimal(_) | Date | TimeMillis)
        | (Long, Float | Double | String | Decimal(_) | TimeMicros | Timestamp { .. })
        | (Date | TimeMillis, Int)
        | (TimeMicros | Timestamp { .. }, Long)
        | (Float, Double)
        | (String, Bytes)
        | (Bytes, String) => checked_cast(array, target, path),
        (Timestamp { .. }, Timestamp { .. }) => exact_cast(array, target, path),
        (Decimal(from), Decimal(to)) if from.scale <= to.scale => checked_cast(array, target, path),
        (Fixed(from), Fixed(to)) if from == to => Ok(Arc::clone(array)),
        (Vector(from), Vector(to)) if from == to => Ok(Arc::clone(array)),
        _ if array.data_type() == target && from.name() == to.name() => Ok(Arc::clone(array)),
        _ => unsupported(format!(
            "reading {} as {} at {path}",
            from.name(),
            to.name()
        )),
    }
}

fn repeat(row: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    if row.is_null(0) {
        return Ok(new_null_array(row.data_type(), rows));
    }
    Ok(take(row, &UInt32Array::from(vec![0; rows]), None)?)
}

/// The value of a field that the writer does not have, as one row: written with the reader's schema
/// and read back, so that every type that can be decoded can have a default.
fn default_row(field: &RecordField, arrow: &DataType, path: &str) -> Result<ArrayRef> {
    let Some(default) = &field.default else {
        if field.ty.optional().is_some() {
            return Ok(new_null_array(arrow, 1));
        }
        return schema_error(format!(
            "{path}: not in the writer schema and without default"
        ));
    };
    let mut bytes = Vec::new();
    datum::write(&field.ty, default, &mut bytes, path)?;
    let record = Record {
        kind: None,
        fields: vec![RecordField {
            name: field.name.clone(),
            aliases: Vec::new(),
            ty: field.ty.clone(),
            default: None,
        }],
        size: 0,
        depth: 0,
    };
    let mut decoder = DatumDecoder::for_record(&record, 1)?;
    decoder.push(&bytes)?;
    let batch = decoder.flush()?;
    let column = batch.and_then(|batch| batch.columns().first().cloned());
    column.ok_or_else(|| AvroError::Schema(format!("{path}: no default")))
}
