//! One unframed Avro record as a tree of borrowed values: for the metadata table's records.
//!
//! Their unions of many branches have no Arrow form, and a lookup wants a few records, not
//! columns. Rows of tables go through [`DatumDecoder`](crate::DatumDecoder).

use std::sync::Arc;

use crate::error::{Result, corrupt, unsupported};
use crate::model::{Record, Type};
use crate::parse::parse_record;

/// A value. Logical types come as what they are on the wire.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum<'a> {
    /// Null.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An int.
    Int(i32),
    /// A long.
    Long(i64),
    /// A float.
    Float(f32),
    /// A double.
    Double(f64),
    /// Bytes or a fixed.
    Bytes(&'a [u8]),
    /// A string, or the symbol of an enum.
    String(&'a str),
    /// An array.
    Array(Vec<Datum<'a>>),
    /// A map, in the order of the bytes.
    Map(Vec<(&'a str, Datum<'a>)>),
    /// A record.
    Record(Fields<'a>),
    /// The value of a union that is more than "or null", with the number of its branch.
    Branch(usize, Box<Datum<'a>>),
}

impl<'a> Datum<'a> {
    /// A field of a record; null when this is no record or has no such field.
    pub fn field(&self, name: &str) -> &Datum<'a> {
        match self {
            Self::Record(fields) => fields.get(name).unwrap_or(&Datum::Null),
            _ => &Datum::Null,
        }
    }

    /// The text of a string.
    pub fn text(&self) -> Option<&'a str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number in an int or a long.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(i64::from(*number)),
            Self::Long(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether this is the boolean true.
    pub fn is_true(&self) -> bool {
        matches!(self, Self::Boolean(true))
    }
}

/// The values of a record with the names that its schema gives them.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    names: &'a Record,
    values: Vec<Datum<'a>>,
}

impl PartialEq for Fields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl<'a> Fields<'a> {
    fn get(&self, name: &str) -> Option<&Datum<'a>> {
        self.values.get(self.names.field(name)?.0)
    }

    /// Names and values in the order of the schema.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &Datum<'a>)> {
        let names = self.names.fields.iter().map(|field| field.name.as_str());
        names.zip(&self.values)
    }
}

/// Reads records of one schema.
#[derive(Debug)]
pub struct DatumReader(Arc<Record>);

impl DatumReader {
    /// For the schema of a record, as JSON.
    pub fn new(schema_json: &str) -> Result<Self> {
        parse_record(schema_json).map(Self)
    }

    /// The record that `bytes` hold, and nothing else.
    pub fn read<'a>(&'a self, bytes: &'a [u8]) -> Result<Datum<'a>> {
        let mut input = Input { rest: bytes };
        let value = input.record(&self.0)?;
        match input.rest.len() {
            0 => Ok(value),
            left => corrupt(format!("{left} bytes left over after a record")),
        }
    }
}

/// Whether a value stands at the front of the bytes, with no length that goes beyond them.
///
/// For those who take memory by what a length says before they look for the bytes.
pub(crate) fn check(ty: &Type, bytes: &[u8]) -> Result<()> {
    Input { rest: bytes }.value(ty).map(drop)
}

/// The value at the front of the bytes, which are moved on behind it.
pub(crate) fn read<'a>(ty: &'a Type, bytes: &mut &'a [u8]) -> Result<Datum<'a>> {
    let mut input = Input { rest: bytes };
    let value = input.value(ty)?;
    *bytes = input.rest;
    Ok(value)
}

/// What follows a field that is null or text at the front of a record; None for any other field.
pub(crate) fn behind_text(record: &[u8]) -> Option<&[u8]> {
    let mut input = Input { rest: record };
    match input.long().ok()? {
        0 => {}
        1 => drop(input.bytes().ok()?),
        _ => return None,
    }
    Some(input.rest)
}

/// The bytes not read yet. Lengths are bounded by them, so nothing larger is ever allocated.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(len) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => corrupt(format!("{len} bytes wanted, {} left", self.rest.len())),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn long(&mut self) -> Result<i64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let group = u64::from(byte & 0x7f);
            if shift == 63 && group > 1 {
                break;
            }
            value |= group << shift;
            if byte < 0x80 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        corrupt("a number longer than 64 bits")
    }

    fn int(&mut self) -> Result<i32> {
        let value = self.long()?;
        i32::try_from(value).or_else(|_| corrupt(format!("the int {value}")))
    }

    fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.long()?;
        match usize::try_from(length) {
            Ok(length) => self.take(length),
            Err(_) => corrupt(format!("the length {length}")),
        }
    }

    fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).or_else(|error| corrupt(format!("a string: {error}")))
    }

    fn record(&mut self, record: &'a Record) -> Result<Datum<'a>> {
        let values = record.fields.iter().map(|field| self.value(&field.ty));
        Ok(Datum::Record(Fields {
            names: record,
            values: values.collect::<Result<_>>()?,
        }))
    }

    fn value(&mut self, ty: &'a Type) -> Result<Datum<'a>> {
        Ok(match ty {
            Type::Null => Datum::Null,
            Type::Boolean => match self.array()? {
                [0] => Datum::Boolean(false),
                [1] => Datum::Boolean(true),
                [other] => return corrupt(format!("the boolean {other}")),
            },
            Type::Int | Type::Date | Type::TimeMillis => Datum::Int(self.int()?),
            Type::Long | Type::TimeMicros | Type::Timestamp { .. } => Datum::Long(self.long()?),
            Type::Float => Datum::Float(f32::from_le_bytes(self.array()?)),
            Type::Double => Datum::Double(f64::from_le_bytes(self.array()?)),
            Type::Bytes => Datum::Bytes(self.bytes()?),
            Type::Decimal(decimal) => Datum::Bytes(match decimal.size {
                Some(size) => self.take(size)?,
                None => self.bytes()?,
            }),
            Type::String => Datum::String(self.text()?),
            Type::Fixed(size) => Datum::Bytes(self.take(*size)?),
            Type::Vector(vector) => Datum::Bytes(self.take(vector.size())?),
            Type::Enum(symbols) => {
                let number = self.int()?;
                match usize::try_from(number).ok().and_then(|n| symbols.get(n)) {
                    Some(symbol) => Datum::String(symbol),
                    None => return corrupt(format!("the symbol {number}")),
                }
            }
            Type::Array(items) => Datum::Array(self.items(items, |input| input.value(items))?),
            Type::Map(values) => {
                let entry = |input: &mut Self| Ok((input.text()?, input.value(values)?));
                Datum::Map(self.items(&Type::String, entry)?)
            }
            Type::Record(record) => self.record(record)?,
            Type::Union(branches) => return self.union(ty, branches),
        })
    }

    fn union(&mut self, ty: &'a Type, branches: &'a [Type]) -> Result<Datum<'a>> {
        let number = self.long()?;
        let found = usize::try_from(number).ok();
        let Some((number, branch)) = found.and_then(|n| Some((n, branches.get(n)?))) else {
            return corrupt(format!("branch {number} of a union of {}", branches.len()));
        };
        let value = self.value(branch)?;
        Ok(match value {
            Datum::Null => Datum::Null,
            value if ty.optional().is_some() => value,
            value => Datum::Branch(number, Box::new(value)),
        })
    }

    /// The items of an array or a map, in blocks that each begin with their count.
    fn items<T>(
        &mut self,
        item: &Type,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        if item.is_zero_width() {
            return unsupported("avro array of values without bytes");
        }
        let mut found = Vec::new();
        loop {
            let mut count = self.long()?;
            if count == 0 {
                return Ok(found);
            }
            if count < 0 {
                // The size of the block in bytes follows, for those who skip it.
                self.long()?;
                count = count.saturating_neg();
            }
            for _ in 0..count {
                found.push(read(self)?);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type": "record", "name": "r", "fields": [
        {"name": "sizes", "type": ["null", {"type": "map", "values": "long"}]},
        {"name": "least", "type": ["null",
            {"type": "record", "name": "I", "fields": [{"name": "value", "type": "int"}]},
            {"type": "record", "name": "S", "fields": [{"name": "value", "type": "string"}]}]},
        {"name": "tight", "type": "boolean"}]}"#;

    #[test]
    fn unions_keep_the_number_of_their_branch_and_optional_values_do_not() {
        let reader = DatumReader::new(SCHEMA).unwrap();
        let bytes = [2, 1, 6, 2, b'a', 8, 0, 4, 4, b'h', b'i', 1];
        let record = reader.read(&bytes).unwrap();
        assert_eq!(
            record.field("sizes"),
            &Datum::Map(vec![("a", Datum::Long(4))])
        );
        let Datum::Branch(2, least) = record.field("least") else {
            panic!("{record:?}");
        };
        assert_eq!(least.field("value").text(), Some("hi"));
        assert!(record.field("tight").is_true());
        assert_eq!(record.field("absent"), &Datum::Null);
    }

    #[test]
    fn damage_is_an_error() {
        let reader = DatumReader::new(SCHEMA).unwrap();
        for bytes in [
            &[0, 0][..],
            &[0, 0, 2],
            &[0, 0, 1, 0],
            &[4, 0, 1],
            &[1, 0, 1],
            &[2, 0x7e, 2, b'a'],
            &[2, 2, 0xff, 0xff, 0xff, 0xff, 0x0f],
            &[0, 4, 2, 0xff, 1],
        ] {
            assert!(reader.read(bytes).is_err(), "{bytes:?}");
        }
    }
}
