//! VECTOR columns of Hudi 1.2: a fixed number of numbers, which Avro and Parquet hold as fixed bytes,
//! lowest byte first, and Arrow as a list of a fixed size.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeBinaryArray, FixedSizeListArray,
    PrimitiveArray,
};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Int8Type};

use crate::error::{Result, schema_error};
use crate::model::Type;
use crate::parse::parse_record;

/// Key of an Arrow field's metadata that tells a VECTOR from another list: Spark's columns have it too.
pub(crate) const HUDI_TYPE: &str = "hudi_type";

/// What the numbers of a VECTOR are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Float,
    Double,
    Int8,
}

/// A VECTOR type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vector {
    pub dimension: usize,
    pub element: Element,
}

impl Element {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "FLOAT" => Self::Float,
            "DOUBLE" => Self::Double,
            "INT8" => Self::Int8,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::Int8 => "INT8",
        }
    }

    fn width(self) -> usize {
        match self {
            Self::Float => 4,
            Self::Double => 8,
            Self::Int8 => 1,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Int8 => DataType::Int8,
        }
    }

    fn of(kind: &DataType) -> Option<Self> {
        let all = [Self::Float, Self::Double, Self::Int8];
        all.into_iter().find(|one| &one.data_type() == kind)
    }
}

impl Vector {
    /// Bytes of a value.
    pub(crate) fn size(self) -> usize {
        self.dimension * self.element.width()
    }

    /// The VECTOR that an Arrow field is; none where it is another list or no list.
    pub(crate) fn of(field: &Field) -> Option<Self> {
        let DataType::FixedSizeList(item, dimension) = field.data_type() else {
            return None;
        };
        let told = field.metadata().get(HUDI_TYPE)?;
        let vector = Self {
            dimension: usize::try_from(*dimension).ok().filter(|size| *size > 0)?,
            element: Element::of(item.data_type())?,
        };
        told.to_uppercase().starts_with("VECTOR").then_some(vector)
    }

    /// Hudi's name for the type, as it stands in footers of Parquet files.
    pub(crate) fn text(self) -> String {
        let Self { dimension, element } = self;
        match element {
            Element::Float => format!("VECTOR({dimension})"),
            other => format!("VECTOR({dimension}, {})", other.name()),
        }
    }

    pub(crate) fn data_type(self) -> DataType {
        let item = Field::new_list_field(self.element.data_type(), true);
        DataType::FixedSizeList(Arc::new(item), self.dimension as i32)
    }

    /// The type in an Avro schema (`HoodieSchema.createVector`, Hudi 1.2.0).
    pub(crate) fn avro(self) -> serde_json::Value {
        let element = self.element.name();
        serde_json::json!({
            "type": "fixed",
            "name": format!("vector_{}_{}", element.to_lowercase(), self.dimension),
            "namespace": "",
            "size": self.size(),
            "logicalType": "vector",
            "dimension": self.dimension,
            "elementType": element,
            "storageBacking": "FIXED_BYTES",
        })
    }
}

/// The VECTOR columns of an Avro schema as footers of Parquet files name them; none without any.
///
/// # Errors
/// The schema cannot be understood.
pub fn vector_columns(avro_json: &str) -> Result<Option<String>> {
    if !avro_json.contains("vector") {
        return Ok(None);
    }
    let record = parse_record(avro_json)?;
    let fields = record.fields.iter();
    let named = fields.filter_map(|field| match field.ty.value_type() {
        Type::Vector(vector) => Some(format!("{}:{}", field.name, vector.text())),
        _ => None,
    });
    let named: Vec<_> = named.collect();
    Ok((!named.is_empty()).then(|| named.join(",")))
}

/// The fixed bytes of a list of a fixed size, which has no null elements.
///
/// # Errors
/// It has other elements than a VECTOR, or null ones.
pub fn vector_bytes(list: &FixedSizeListArray, path: &str) -> Result<FixedSizeBinaryArray> {
    let values = list.values();
    let element = Element::of(values.data_type());
    let bytes = match element {
        Some(Element::Float) => bytes::<Float32Type, 4>(values, f32::to_le_bytes),
        Some(Element::Double) => bytes::<Float64Type, 8>(values, f64::to_le_bytes),
        Some(Element::Int8) => bytes::<Int8Type, 1>(values, i8::to_le_bytes),
        None => {
            let kind = values.data_type();
            return schema_error(format!("{path}: a VECTOR of {kind}"));
        }
    };
    let size = list.value_length() as usize;
    if values.null_count() > 0 {
        let is_hole = |row: usize| list.is_valid(row) && list.value(row).null_count() > 0;
        if (0..list.len()).any(is_hole) {
            return schema_error(format!("{path}: a VECTOR with a null element"));
        }
    }
    let width = size * element.map_or(0, Element::width);
    Ok(FixedSizeBinaryArray::try_new(
        width as i32,
        Buffer::from_vec(bytes),
        list.nulls().cloned(),
    )?)
}

/// The list of a fixed size, of type `to`, that fixed bytes stand for.
///
/// # Errors
/// `to` is not the type of a VECTOR with this number of bytes.
pub fn vector_list(bytes: &FixedSizeBinaryArray, to: &DataType, path: &str) -> Result<ArrayRef> {
    let mismatch = || {
        schema_error(format!(
            "{path}: {} bytes do not fit {to}",
            bytes.value_length()
        ))
    };
    let DataType::FixedSizeList(item, dimension) = to else {
        return mismatch();
    };
    let Some(element) = Element::of(item.data_type()) else {
        return mismatch();
    };
    if i64::from(bytes.value_length()) != i64::from(*dimension) * element.width() as i64 {
        return mismatch();
    }
    let data = bytes.value_data();
    let values: ArrayRef = match element {
        Element::Float => numbers::<Float32Type, 4>(data, f32::from_le_bytes),
        Element::Double => numbers::<Float64Type, 8>(data, f64::from_le_bytes),
        Element::Int8 => numbers::<Int8Type, 1>(data, i8::from_le_bytes),
    };
    Ok(Arc::new(FixedSizeListArray::try_new(
        Arc::clone(item),
        *dimension,
        values,
        bytes.nulls().cloned(),
    )?))
}

fn bytes<T: ArrowPrimitiveType, const N: usize>(
    values: &ArrayRef,
    write: impl Fn(T::Native) -> [u8; N],
) -> Vec<u8> {
    let values = values.as_primitive::<T>().values();
    values.iter().flat_map(|value| write(*value)).collect()
}

fn numbers<T: ArrowPrimitiveType, const N: usize>(
    bytes: &[u8],
    read: impl Fn([u8; N]) -> T::Native,
) -> ArrayRef {
    let (chunks, _) = bytes.as_chunks::<N>();
    let values = chunks.iter().map(|chunk| read(*chunk));
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}
