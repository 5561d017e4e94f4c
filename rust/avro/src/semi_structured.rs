//! BLOB and VARIANT columns of Hudi 1.2: records with a logical type, structs in Arrow.

use arrow::datatypes::{DataType, Field, Fields};
use serde_json::{Value, json};

use crate::model::{RecordField, Type};
use crate::vector::HUDI_TYPE;

/// A type of Hudi 1.2 that is a record with a logical type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SemiStructured {
    Blob,
    Variant,
}

impl SemiStructured {
    /// Hudi's name for the type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Blob => "BLOB",
            Self::Variant => "VARIANT",
        }
    }

    /// The type that a record with this logical type is; none where it has other fields.
    pub(crate) fn of_record(logical: Option<&str>, fields: &[RecordField]) -> Option<Self> {
        let has = |name: &str, test: fn(&Type) -> bool| {
            let mut fields = fields.iter();
            fields.any(|field| field.name == name && test(field.ty.value_type()))
        };
        let is_bytes = |ty: &Type| matches!(ty, Type::Bytes);
        match logical {
            Some("variant") => {
                let is_plain = fields.len() == 2 && has("metadata", is_bytes);
                (is_plain && has("value", is_bytes)).then_some(Self::Variant)
            }
            Some("blob") => {
                let has_type = has("type", |ty| matches!(ty, Type::Enum(_)));
                let has_reference = has("reference", |ty| matches!(ty, Type::Record(_)));
                (has_type && has("data", is_bytes) && has_reference).then_some(Self::Blob)
            }
            _ => None,
        }
    }

    /// The type that an Arrow field is; none where its metadata or its type say otherwise.
    pub(crate) fn of_field(field: &Field) -> Option<Self> {
        let DataType::Struct(fields) = field.data_type() else {
            return None;
        };
        let told = field.metadata().get(HUDI_TYPE)?.to_uppercase();
        match told.as_str() {
            "BLOB" if has_fields(fields, &["type", "data", "reference"]) => Some(Self::Blob),
            "VARIANT" if has_fields(fields, &["metadata", "value"]) => Some(Self::Variant),
            _ => None,
        }
    }

    /// The type in an Avro schema (`HoodieSchema.createBlob`, `createVariant`, Hudi 1.2.0).
    pub(crate) fn avro(self) -> Value {
        match self {
            Self::Blob => json!({
                "type": "record",
                "name": "blob",
                "namespace": "",
                "fields": [
                    {"name": "type", "type": {
                        "type": "enum",
                        "name": "blob_storage_type",
                        "symbols": ["INLINE", "OUT_OF_LINE"],
                    }},
                    {"name": "data", "type": ["null", "bytes"], "default": null},
                    {"name": "reference", "type": ["null", {
                        "type": "record",
                        "name": "reference",
                        "fields": [
                            {"name": "external_path", "type": "string"},
                            {"name": "offset", "type": ["null", "long"]},
                            {"name": "length", "type": ["null", "long"]},
                            {"name": "managed", "type": "boolean"},
                        ],
                    }], "default": null},
                ],
                "logicalType": "blob",
            }),
            Self::Variant => json!({
                "type": "record",
                "name": "variant",
                "namespace": "",
                "fields": [
                    {"name": "metadata", "type": "bytes", "doc": "Variant metadata component"},
                    {"name": "value", "type": "bytes", "doc": "Variant value component"},
                ],
                "logicalType": "variant",
            }),
        }
    }
}

fn has_fields(fields: &Fields, names: &[&str]) -> bool {
    fields.len() == names.len() && names.iter().all(|name| fields.find(name).is_some())
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;

    use super::*;
    use crate::schema::{arrow_schema, avro_schema};

    fn column(name: &str, kind: SemiStructured, fields: Vec<Field>) -> Field {
        let told = [(HUDI_TYPE.to_owned(), kind.name().to_owned())];
        Field::new(name, DataType::Struct(fields.into()), true).with_metadata(told)
    }

    fn variant(name: &str) -> Field {
        let bytes = |name| Field::new(name, DataType::Binary, false);
        let fields = vec![bytes("metadata"), bytes("value")];
        column(name, SemiStructured::Variant, fields)
    }

    fn blob(name: &str) -> Field {
        let reference = vec![
            Field::new("external_path", DataType::Utf8, false),
            Field::new("offset", DataType::Int64, true),
            Field::new("length", DataType::Int64, true),
            Field::new("managed", DataType::Boolean, false),
        ];
        let fields = vec![
            Field::new("type", DataType::Utf8, false),
            Field::new("data", DataType::Binary, true),
            Field::new("reference", DataType::Struct(reference.into()), true),
        ];
        column(name, SemiStructured::Blob, fields)
    }

    #[test]
    fn columns_survive_the_way_to_avro_and_back() {
        let schema = Schema::new(vec![variant("v"), blob("b"), variant("w"), blob("c")]);
        let avro = avro_schema(&schema, "r", "hoodie.t").unwrap();
        // A type is defined once.
        assert_eq!(avro.matches("Variant value component").count(), 1);
        assert_eq!(avro.matches("blob_storage_type").count(), 1);
        assert_eq!(arrow_schema(&avro).unwrap(), schema);
    }

    #[test]
    fn structs_that_only_say_so_stay_structs() {
        let other = vec![Field::new("value", DataType::Binary, false)];
        let schema = Schema::new(vec![column("v", SemiStructured::Variant, other)]);
        let avro = avro_schema(&schema, "r", "hoodie.t").unwrap();
        assert!(!avro.contains("logicalType"), "{avro}");
        let odd = r#"{"type":"record","name":"r","fields":[{"name":"v","type":
            {"type":"record","name":"s","fields":[{"name":"value","type":"bytes"}],
             "logicalType":"variant"}}]}"#;
        assert!(arrow_schema(odd).unwrap().field(0).metadata().is_empty());
    }
}
