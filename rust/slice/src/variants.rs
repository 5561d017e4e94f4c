//! VARIANT columns: checked before they are written, made of JSON, and as JSON.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, StringBuilder, StructArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};
use pyhudi_format::FormatError;
use pyhudi_format::variant::{check_variant, variant_from_json, variant_to_json};

use crate::error::{Result, SliceError};

const METADATA: &str = "metadata";
const VALUE: &str = "value";

/// An error unless every value of a column is one whole VARIANT, or null.
///
/// # Errors
/// A value is damaged, or the column is no struct of `metadata` and `value`.
pub fn check_variants(column: &ArrayRef, name: &str) -> Result<()> {
    let variants = Variants::of(column)?;
    for row in 0..column.len() {
        let Some((metadata, value)) = variants.row(row) else {
            continue;
        };
        let (Some(metadata), Some(value)) = (metadata, value) else {
            let what = format!("column '{name}', row {row}: a VARIANT lacks metadata or value");
            return Err(SliceError::Schema(what));
        };
        check_variant(metadata, value).map_err(|error| {
            let what = format!("column '{name}', row {row}: no VARIANT: {error}");
            SliceError::Schema(what)
        })?;
    }
    Ok(())
}

/// VARIANT values of JSON texts, as a struct of `metadata` and `value`; null where a text is null.
///
/// # Errors
/// A text is no JSON, or all of them have too many bytes for one array.
pub fn variants_from_json(texts: &ArrayRef) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::LargeUtf8)?;
    let texts = texts.as_string::<i64>();
    let mut all_metadata = Column::default();
    let mut all_values = Column::default();
    for (row, text) in texts.iter().enumerate() {
        let Some(text) = text else {
            all_metadata.push(&[])?;
            all_values.push(&[])?;
            continue;
        };
        let made = variant_from_json(text).map_err(|error| match error {
            FormatError::Corrupt { offset, what } => {
                SliceError::Schema(format!("row {row} is no JSON: {what} (at byte {offset})"))
            }
            other => SliceError::Schema(format!("row {row}: {other}")),
        });
        let (metadata, value) = made?;
        all_metadata.push(&metadata)?;
        all_values.push(&value)?;
    }
    let field = |name| Field::new(name, DataType::Binary, false);
    let fields = Fields::from(vec![field(METADATA), field(VALUE)]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(all_metadata.bytes.finish()),
        Arc::new(all_values.bytes.finish()),
    ];
    let nulls = texts.nulls().cloned();
    Ok(Arc::new(StructArray::try_new_with_length(
        fields,
        columns,
        nulls,
        texts.len(),
    )?))
}

/// JSON texts of VARIANT values, null where a value is null.
///
/// # Errors
/// A value is damaged, the column is no struct of `metadata` and `value`, or all texts have too many
/// bytes for one array.
pub fn variants_to_json(column: &ArrayRef) -> Result<ArrayRef> {
    let variants = Variants::of(column)?;
    let mut texts = StringBuilder::new();
    let mut size = 0;
    for row in 0..column.len() {
        let Some((metadata, value)) = variants.row(row) else {
            texts.append_null();
            continue;
        };
        let text = variant_to_json(metadata.unwrap_or_default(), value.unwrap_or_default());
        let text = text.map_err(|error| {
            let file = format!("the VARIANT in row {row}");
            SliceError::format(&file, 0, error)
        })?;
        size += text.len();
        check_size(size)?;
        texts.append_value(text);
    }
    Ok(Arc::new(texts.finish()))
}

#[derive(Default)]
struct Column {
    bytes: BinaryBuilder,
    size: usize,
}

impl Column {
    fn push(&mut self, value: &[u8]) -> Result<()> {
        self.size += value.len();
        check_size(self.size)?;
        self.bytes.append_value(value);
        Ok(())
    }
}

fn check_size(size: usize) -> Result<()> {
    if i32::try_from(size).is_ok() {
        return Ok(());
    }
    Err(SliceError::Unsupported {
        feature: "VARIANT values of more than 2 GiB in one array".to_owned(),
    })
}

type Parts<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

struct Variants {
    metadata: BinaryArray,
    value: BinaryArray,
    nulls: Option<NullBuffer>,
}

impl Variants {
    fn of(column: &ArrayRef) -> Result<Self> {
        let odd = || {
            let kind = column.data_type();
            SliceError::Schema(format!(
                "{kind} is no VARIANT: no struct of metadata and value"
            ))
        };
        let parts = column.as_struct_opt().ok_or_else(odd)?;
        let part = |name| -> Result<BinaryArray> {
            let part = parts.column_by_name(name).ok_or_else(odd)?;
            match part.data_type() {
                DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                    Ok(cast(part, &DataType::Binary)?.as_binary::<i32>().clone())
                }
                _ => Err(odd()),
            }
        };
        if parts.num_columns() != 2 {
            return Err(odd());
        }
        Ok(Self {
            metadata: part(METADATA)?,
            value: part(VALUE)?,
            nulls: parts.nulls().cloned(),
        })
    }

    /// Metadata and value of a row, none where the whole is null.
    fn row(&self, row: usize) -> Option<Parts<'_>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        Some((at(&self.metadata, row), at(&self.value, row)))
    }
}

fn at(column: &BinaryArray, row: usize) -> Option<&[u8]> {
    column.is_valid(row).then(|| column.value(row))
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;

    use super::*;

    #[test]
    fn json_survives_the_way_there_and_back() {
        let texts = vec![Some(r#"{"b":[1,"x",null],"a":1.5}"#), None, Some("true")];
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let variants = variants_from_json(&texts).unwrap();
        check_variants(&variants, "v").unwrap();
        let back = variants_to_json(&variants).unwrap();
        let wanted = vec![Some(r#"{"a":1.5,"b":[1,"x",null]}"#), None, Some("true")];
        assert_eq!(back.as_string::<i32>(), &StringArray::from(wanted));
    }

    #[test]
    fn errors_name_the_row() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["1", "{"]));
        let error = variants_from_json(&texts).unwrap_err();
        assert!(error.to_string().starts_with("row 1 is no JSON"), "{error}");
        let binary = |values: Vec<&[u8]>| -> ArrayRef { Arc::new(BinaryArray::from(values)) };
        let fields = [METADATA, VALUE].map(|name| Field::new(name, DataType::Binary, true));
        let damaged = StructArray::new(
            fields.to_vec().into(),
            vec![binary(vec![&[1, 0, 0]; 2]), binary(vec![&[0], &[0xff]])],
            None,
        );
        let damaged: ArrayRef = Arc::new(damaged);
        let error = check_variants(&damaged, "v").unwrap_err();
        assert!(
            error.to_string().starts_with("column 'v', row 1"),
            "{error}"
        );
        let error = variants_to_json(&damaged).unwrap_err();
        assert!(matches!(error, SliceError::Corrupt { .. }), "{error}");
        assert!(check_variants(&texts, "v").is_err());
    }
}
