//! Our types as a schema of apache-avro's: written out where they are used, names of our own.
//!
//! Why not `Schema::parse_str` of the text: an alias or an empty namespace can make it take a
//! type for one that holds itself, and reading then ends the stack. It also refuses names and
//! defaults that Java's container reader lets pass.

use apache_avro::schema::{Name, RecordField};
use apache_avro::{AvroResult, Schema};

use crate::model::{Record, Type};

/// Logical types are left off: each value comes as what it is on the wire.
pub(super) fn schema(ty: &Type) -> AvroResult<Schema> {
    Builder { named: 0 }.ty(ty)
}

struct Builder {
    named: usize,
}

impl Builder {
    fn name(&mut self) -> AvroResult<Name> {
        self.named += 1;
        Name::new(format!("n{}", self.named))
    }

    fn ty(&mut self, ty: &Type) -> AvroResult<Schema> {
        Ok(match ty {
            Type::Null => Schema::Null,
            Type::Boolean => Schema::Boolean,
            Type::Int | Type::Date | Type::TimeMillis => Schema::Int,
            Type::Long | Type::TimeMicros | Type::Timestamp { .. } => Schema::Long,
            Type::Float => Schema::Float,
            Type::Double => Schema::Double,
            Type::Bytes => Schema::Bytes,
            Type::String => Schema::String,
            Type::Decimal(decimal) => match decimal.size {
                Some(size) => Schema::fixed(self.name()?, size).build(),
                None => Schema::Bytes,
            },
            Type::Fixed(size) => Schema::fixed(self.name()?, *size).build(),
            Type::Vector(vector) => Schema::fixed(self.name()?, vector.size()).build(),
            Type::Enum(symbols) => Schema::r#enum(self.name()?, symbols.to_vec()).build(),
            Type::Array(items) => Schema::array(self.ty(items)?).build(),
            Type::Map(values) => Schema::map(self.ty(values)?).build(),
            Type::Record(record) => self.record(record)?,
            Type::Union(branches) => {
                let branches: AvroResult<_> = branches.iter().map(|b| self.ty(b)).collect();
                Schema::union(branches?)?
            }
        })
    }

    fn record(&mut self, record: &Record) -> AvroResult<Schema> {
        let name = self.name()?;
        let mut fields = Vec::with_capacity(record.fields.len());
        for field in &record.fields {
            let builder = RecordField::builder().name(field.name.as_str());
            fields.push(builder.schema(self.ty(&field.ty)?).build());
        }
        Ok(Schema::record(name).fields(fields).build())
    }
}
