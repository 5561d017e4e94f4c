//! The schema text given to arrow-avro: same bytes on the wire, names of our own.
//!
//! Why not the real text: arrow-avro borrows names from it (an escaped character is an error),
//! looks up references again in projected schemas, turns enums into dictionaries and `uuid`
//! strings into 16 bytes, and refuses repeated names. Here every type is written out where it
//! is used, each with a number for a name, and an enum is the int that it is on the wire.

use std::fmt::Write as _;

use arrow::datatypes::TimeUnit;

use crate::model::{Decimal, Record, Type};

/// The text for a record.
pub(crate) fn canonical_record(record: &Record) -> String {
    let mut writer = Writer::default();
    writer.record(record);
    writer.text
}

/// The name of the field at an index, in the text and in Arrow structs made for it.
pub(crate) fn field_name(index: usize) -> String {
    format!("f{index}")
}

#[derive(Default)]
struct Writer {
    text: String,
    named: usize,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn name(&mut self) {
        // Writing to a String cannot fail.
        let _ = write!(self.text, "\"name\":\"n{}\"", self.named);
        self.named += 1;
    }

    fn record(&mut self, record: &Record) {
        self.put("{\"type\":\"record\",");
        self.name();
        self.put(",\"fields\":[");
        for (index, field) in record.fields.iter().enumerate() {
            if index > 0 {
                self.put(",");
            }
            let _ = write!(self.text, "{{\"name\":\"{}\",\"type\":", field_name(index));
            self.ty(&field.ty);
            self.put("}");
        }
        self.put("]}");
    }

    fn ty(&mut self, ty: &Type) {
        match ty {
            Type::Null => self.put("\"null\""),
            Type::Boolean => self.put("\"boolean\""),
            Type::Int | Type::Enum(_) => self.put("\"int\""),
            Type::Long => self.put("\"long\""),
            Type::Float => self.put("\"float\""),
            Type::Double => self.put("\"double\""),
            Type::Bytes => self.put("\"bytes\""),
            Type::String => self.put("\"string\""),
            Type::Date => self.logical("int", "date"),
            Type::TimeMillis => self.logical("int", "time-millis"),
            Type::TimeMicros => self.logical("long", "time-micros"),
            Type::Timestamp { unit, utc } => self.timestamp(*unit, *utc),
            Type::Decimal(decimal) => self.decimal(*decimal),
            Type::Fixed(size) => self.fixed(*size, ""),
            Type::Vector(vector) => self.fixed(vector.size(), ""),
            Type::Array(items) => self.wrapped("{\"type\":\"array\",\"items\":", items, "}"),
            Type::Map(values) => self.wrapped("{\"type\":\"map\",\"values\":", values, "}"),
            Type::Record(record) => self.record(record),
            Type::Union(branches) => self.union(branches, ty.optional().is_some()),
        }
    }

    fn wrapped(&mut self, before: &str, ty: &Type, after: &str) {
        self.put(before);
        self.ty(ty);
        self.put(after);
    }

    fn logical(&mut self, base: &str, logical: &str) {
        let _ = write!(
            self.text,
            "{{\"type\":\"{base}\",\"logicalType\":\"{logical}\"}}"
        );
    }

    fn timestamp(&mut self, unit: TimeUnit, utc: bool) {
        let logical = match (unit, utc) {
            (TimeUnit::Millisecond, true) => "timestamp-millis",
            (TimeUnit::Millisecond, false) => "local-timestamp-millis",
            (_, true) => "timestamp-micros",
            (_, false) => "local-timestamp-micros",
        };
        self.logical("long", logical);
    }

    fn decimal(&mut self, decimal: Decimal) {
        let Decimal {
            precision, scale, ..
        } = decimal;
        let attributes =
            format!(",\"logicalType\":\"decimal\",\"precision\":{precision},\"scale\":{scale}");
        match decimal.size {
            Some(size) => self.fixed(size, &attributes),
            None => {
                let _ = write!(self.text, "{{\"type\":\"bytes\"{attributes}}}");
            }
        }
    }

    fn fixed(&mut self, size: usize, attributes: &str) {
        self.put("{\"type\":\"fixed\",");
        self.name();
        let _ = write!(self.text, ",\"size\":{size}{attributes}}}");
    }

    fn union(&mut self, branches: &[Type], optional: bool) {
        self.put("[");
        for (index, branch) in branches.iter().enumerate() {
            if index > 0 {
                self.put(",");
            }
            match branch {
                // Two ints in one union would not be a union. Only ever skipped, so the
                // symbols do not matter.
                Type::Enum(_) if !optional => {
                    self.put("{\"type\":\"enum\",");
                    self.name();
                    self.put(",\"symbols\":[\"s\"]}");
                }
                branch => self.ty(branch),
            }
        }
        self.put("]");
    }
}
