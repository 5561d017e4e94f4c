//! New VARIANT values, written part by part.

use super::{
    ARRAY, BINARY, DATE, DECIMAL4, DECIMAL8, DECIMAL16, DOUBLE, FALSE, FLOAT, INT8, INT16, INT32,
    INT64, NULL, OBJECT, PRIMITIVE, SHORT_STRING, STRING, TIME, TIMESTAMP, TIMESTAMP_NANOS,
    TIMESTAMP_NTZ, TIMESTAMP_NTZ_NANOS, TRUE, UUID, VariantNames, width_of,
};
use crate::{FormatError, Result};

/// The longest text that has its length in the first byte.
const MAX_SHORT: usize = 63;

/// Values one after the other in a buffer. Numbers take the fewest bytes, as Spark writes them.
#[derive(Debug, Default)]
pub struct VariantWriter {
    bytes: Vec<u8>,
}

impl VariantWriter {
    /// What was written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes were written so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A value that is encoded already.
    pub fn raw(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
    }

    /// JSON's null.
    pub fn null(&mut self) {
        self.primitive(NULL, &[]);
    }

    /// True or false.
    pub fn bool(&mut self, value: bool) {
        self.primitive(if value { TRUE } else { FALSE }, &[]);
    }

    /// An integer.
    pub fn int(&mut self, value: i64) {
        if let Ok(value) = i8::try_from(value) {
            self.primitive(INT8, &value.to_le_bytes());
        } else if let Ok(value) = i16::try_from(value) {
            self.primitive(INT16, &value.to_le_bytes());
        } else if let Ok(value) = i32::try_from(value) {
            self.primitive(INT32, &value.to_le_bytes());
        } else {
            self.primitive(INT64, &value.to_le_bytes());
        }
    }

    /// A 32-bit floating-point number.
    pub fn float(&mut self, value: f32) {
        self.primitive(FLOAT, &value.to_le_bytes());
    }

    /// A 64-bit floating-point number.
    pub fn double(&mut self, value: f64) {
        self.primitive(DOUBLE, &value.to_le_bytes());
    }

    /// A decimal: the unscaled number and the scale.
    pub fn decimal(&mut self, unscaled: i128, scale: u8) {
        let fits = |digits: u32| {
            u32::from(scale) <= digits && unscaled.unsigned_abs() < 10_u128.pow(digits)
        };
        let kind = match () {
            () if fits(9) => DECIMAL4,
            () if fits(18) => DECIMAL8,
            () => DECIMAL16,
        };
        self.primitive(kind, &[scale]);
        let bytes = unscaled.to_le_bytes();
        let width = match kind {
            DECIMAL4 => 4,
            DECIMAL8 => 8,
            _ => 16,
        };
        self.raw(bytes.get(..width).unwrap_or(&bytes));
    }

    /// Days since 1970.
    pub fn date(&mut self, days: i32) {
        self.primitive(DATE, &days.to_le_bytes());
    }

    /// Microseconds since midnight.
    pub fn time(&mut self, micros: i64) {
        self.primitive(TIME, &micros.to_le_bytes());
    }

    /// Microseconds or nanoseconds since 1970, in UTC or local.
    pub fn timestamp(&mut self, value: i64, nanos: bool, utc: bool) {
        let kind = match (nanos, utc) {
            (false, true) => TIMESTAMP,
            (false, false) => TIMESTAMP_NTZ,
            (true, true) => TIMESTAMP_NANOS,
            (true, false) => TIMESTAMP_NTZ_NANOS,
        };
        self.primitive(kind, &value.to_le_bytes());
    }

    /// Bytes.
    ///
    /// # Errors
    /// There are more than the encoding has numbers for.
    pub fn binary(&mut self, value: &[u8]) -> Result<()> {
        self.primitive(BINARY, &length_of(value)?);
        self.raw(value);
        Ok(())
    }

    /// Text.
    ///
    /// # Errors
    /// It is longer than the encoding has numbers for.
    pub fn string(&mut self, value: &str) -> Result<()> {
        if value.len() <= MAX_SHORT {
            self.bytes.push((value.len() as u8) << 2 | SHORT_STRING);
        } else {
            self.primitive(STRING, &length_of(value.as_bytes())?);
        }
        self.raw(value.as_bytes());
        Ok(())
    }

    /// A UUID of 16 bytes.
    pub fn uuid(&mut self, value: &[u8]) {
        self.primitive(UUID, value);
    }

    /// Makes the values that were written since `start` the elements of an array; `starts` says where
    /// each begins.
    ///
    /// # Errors
    /// They are longer than the encoding has numbers for.
    pub fn array(&mut self, start: usize, starts: &[usize]) -> Result<()> {
        let length = self.bytes.len() - start;
        let (offset_width, is_large) = (offset_width(length)?, starts.len() > 0xff);
        let mut head = Vec::with_capacity(5 + (starts.len() + 1) * offset_width);
        let bits = (offset_width as u8 - 1) | (u8::from(is_large) << 2);
        head.push(bits << 2 | ARRAY);
        put(&mut head, starts.len(), if is_large { 4 } else { 1 });
        for at in starts.iter().map(|at| at - start).chain([length]) {
            put(&mut head, at, offset_width);
        }
        self.bytes.splice(start..start, head);
        Ok(())
    }

    /// Makes the values that were written since `start` the fields of an object; `fields` says which
    /// number each one's name has, and where it begins.
    ///
    /// # Errors
    /// They are longer than the encoding can count, an id is not that of a name, or two fields have
    /// one name.
    pub fn object(
        &mut self,
        names: &VariantNames<'_>,
        start: usize,
        fields: &[(u32, usize)],
    ) -> Result<()> {
        self.object_by(|id| names.get(id), names.len(), start, fields)
    }

    /// As [`Self::object`], of `count` names that `name` gives by their numbers.
    pub(super) fn object_by<'n>(
        &mut self,
        name: impl Fn(u32) -> Option<&'n str>,
        count: usize,
        start: usize,
        fields: &[(u32, usize)],
    ) -> Result<()> {
        let with_names = fields.iter().map(|(id, at)| {
            let name = name(*id);
            let missing = || FormatError::corrupt(0, format!("field name {id} of {count}"));
            Ok((name.ok_or_else(missing)?, *id, at - start))
        });
        let mut fields: Vec<(&str, u32, usize)> = with_names.collect::<Result<_>>()?;
        fields.sort_unstable();
        let twice = |(one, other): (&(&str, u32, usize), &(&str, u32, usize))| one.0 == other.0;
        if fields.iter().zip(fields.iter().skip(1)).any(twice) {
            return Err(FormatError::corrupt(0, "an object with a field twice"));
        }
        let length = self.bytes.len() - start;
        let (offset_width, is_large) = (offset_width(length)?, fields.len() > 0xff);
        let max = fields.iter().map(|(_, id, _)| *id).max().unwrap_or(0);
        let id_width = width_of(max as usize);
        let mut head = Vec::with_capacity(5 + (fields.len() + 1) * (id_width + offset_width));
        let bits =
            (offset_width as u8 - 1) | ((id_width as u8 - 1) << 2) | (u8::from(is_large) << 4);
        head.push(bits << 2 | OBJECT);
        put(&mut head, fields.len(), if is_large { 4 } else { 1 });
        for (_, id, _) in &fields {
            put(&mut head, *id as usize, id_width);
        }
        for at in fields.iter().map(|(_, _, at)| *at).chain([length]) {
            put(&mut head, at, offset_width);
        }
        self.bytes.splice(start..start, head);
        Ok(())
    }

    fn primitive(&mut self, kind: u8, rest: &[u8]) {
        self.bytes.push(kind << 2 | PRIMITIVE);
        self.raw(rest);
    }
}

fn offset_width(length: usize) -> Result<usize> {
    if u32::try_from(length).is_err() {
        return Err(FormatError::unsupported(format!(
            "VARIANT of {length} bytes"
        )));
    }
    Ok(width_of(length))
}

fn length_of(value: &[u8]) -> Result<[u8; 4]> {
    let length = u32::try_from(value.len());
    let too_long = |_| FormatError::unsupported(format!("VARIANT of {} bytes", value.len()));
    Ok(length.map_err(too_long)?.to_le_bytes())
}

/// The lowest bytes of a number, lowest first.
fn put(out: &mut Vec<u8>, number: usize, width: usize) {
    let bytes = (number as u64).to_le_bytes();
    out.extend_from_slice(bytes.get(..width).unwrap_or(&bytes));
}
