//! Avro binary to JSON values. Every length and count is checked against what is left.

use serde_json::{Map, Number, Value};

use crate::error::{Result, corrupt};
use crate::model::Type;

/// Reads values from the front of a slice.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        match self.bytes.split_at_checked(len) {
            Some((taken, rest)) => {
                self.bytes = rest;
                Ok(taken)
            }
            None => corrupt(format!("{len} bytes wanted, {} are left", self.bytes.len())),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn long(&mut self) -> Result<i64> {
        let mut raw = 0_u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.array()?;
            if shift == 63 && byte > 1 {
                break;
            }
            raw |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((raw >> 1) as i64 ^ -((raw & 1) as i64));
            }
        }
        corrupt("a number of more than 64 bits")
    }

    fn int(&mut self) -> Result<i32> {
        let long = self.long()?;
        i32::try_from(long).or_else(|_| corrupt(format!("{long} as int")))
    }

    fn size(&mut self) -> Result<usize> {
        let size = self.long()?;
        usize::try_from(size).or_else(|_| corrupt(format!("a length of {size}")))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.size()?;
        self.take(len)
    }

    pub(crate) fn string(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).or_else(|_| corrupt("a string that is not UTF-8"))
    }

    /// The next block's count of items; zero at the end. No item is without bytes.
    pub(crate) fn block(&mut self) -> Result<usize> {
        let count = self.long()?;
        if count < 0 {
            self.size()?;
        }
        let items = count.unsigned_abs();
        if items > self.bytes.len() as u64 {
            return corrupt(format!("{items} items in {} bytes", self.bytes.len()));
        }
        Ok(items as usize)
    }

    pub(crate) fn value(&mut self, ty: &Type) -> Result<Value> {
        Ok(match ty {
            Type::Null => Value::Null,
            Type::Boolean => match self.array()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                [byte] => return corrupt(format!("{byte} as boolean")),
            },
            Type::Int | Type::Date | Type::TimeMillis => self.int()?.into(),
            Type::Long | Type::TimeMicros | Type::Timestamp { .. } => self.long()?.into(),
            Type::Float => float(f64::from(f32::from_le_bytes(self.array()?))),
            Type::Double => float(f64::from_le_bytes(self.array()?)),
            Type::Bytes => latin1(self.bytes()?),
            Type::Fixed(size) => latin1(self.take(*size)?),
            Type::Decimal(decimal) => latin1(match decimal.size {
                Some(size) => self.take(size)?,
                None => self.bytes()?,
            }),
            Type::String => self.string()?.into(),
            Type::Enum(symbols) => match symbols.get(self.size()?) {
                Some(symbol) => symbol.as_str().into(),
                None => return corrupt("an enum symbol out of range"),
            },
            Type::Array(items) => self.list(items)?,
            Type::Map(values) => self.map(values)?,
            Type::Record(record) => {
                let mut object = Map::with_capacity(record.fields.len());
                for field in &record.fields {
                    object.insert(field.name.clone(), self.value(&field.ty)?);
                }
                Value::Object(object)
            }
            Type::Union(branches) => match branches.get(self.size()?) {
                Some(branch) => self.value(branch)?,
                None => return corrupt("a union branch out of range"),
            },
        })
    }

    fn list(&mut self, items: &Type) -> Result<Value> {
        let mut list = Vec::new();
        loop {
            match self.block()? {
                0 => return Ok(Value::Array(list)),
                count => {
                    for _ in 0..count {
                        list.push(self.value(items)?);
                    }
                }
            }
        }
    }

    fn map(&mut self, values: &Type) -> Result<Value> {
        let mut map = Map::new();
        loop {
            match self.block()? {
                0 => return Ok(Value::Object(map)),
                count => {
                    for _ in 0..count {
                        let key = self.string()?.to_owned();
                        map.insert(key, self.value(values)?);
                    }
                }
            }
        }
    }
}

fn latin1(bytes: &[u8]) -> Value {
    bytes
        .iter()
        .map(|b| char::from(*b))
        .collect::<String>()
        .into()
}

fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None if value > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}
