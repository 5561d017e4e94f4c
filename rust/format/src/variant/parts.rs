//! What a VARIANT value is made of, read without trust in its lengths.

use super::{
    ARRAY, BINARY, DATE, DECIMAL4, DECIMAL8, DECIMAL16, DOUBLE, FALSE, FLOAT, INT8, INT16, INT32,
    INT64, NULL, OBJECT, SHORT_STRING, STRING, TIME, TIMESTAMP, TIMESTAMP_NANOS, TIMESTAMP_NTZ,
    TIMESTAMP_NTZ_NANOS, TRUE, UUID, VariantNames,
};
use crate::cursor::Cursor;
use crate::{FormatError, Result};

/// Objects and arrays in one another. Spark's parser of JSON goes as deep.
pub(super) const MAX_DEPTH: usize = 1000;

/// Fields of an object: the number of the name, and the bytes of the value.
pub type VariantFields<'a> = Vec<(u32, &'a [u8])>;

/// A value, one level deep.
#[derive(Debug, Clone, PartialEq)]
pub enum VariantPart<'a> {
    /// JSON's null.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer of any width.
    Int(i64),
    /// A 32-bit floating-point number.
    Float(f32),
    /// A 64-bit floating-point number.
    Double(f64),
    /// The unscaled number and the scale.
    Decimal(i128, u8),
    /// Days since 1970.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Since 1970: the number, whether it counts nanoseconds instead of microseconds, and whether
    /// it is in UTC.
    Timestamp {
        /// The number.
        value: i64,
        /// Nanoseconds instead of microseconds.
        nanos: bool,
        /// A moment in UTC instead of a local time.
        utc: bool,
    },
    /// Bytes.
    Binary(&'a [u8]),
    /// Text.
    String(&'a str),
    /// A UUID.
    Uuid(&'a [u8]),
    /// Numbers of field names, and the fields' values.
    Object(VariantFields<'a>),
    /// The elements.
    Array(Vec<&'a [u8]>),
}

impl<'a> VariantPart<'a> {
    /// The value that `bytes` begin with. The bytes of fields and elements begin with theirs.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let header = cursor.u8()?;
        let high = header >> 2;
        Ok(match header & 3 {
            SHORT_STRING => Self::String(text(&mut cursor, usize::from(high))?),
            OBJECT => Self::Object(object(&mut cursor, high)?),
            ARRAY => Self::Array(array(&mut cursor, high)?),
            _ => primitive(&mut cursor, high)?,
        })
    }
}

/// How many bytes the value that `bytes` begin with takes.
///
/// # Errors
/// The bytes are damaged.
pub fn variant_size(bytes: &[u8]) -> Result<usize> {
    let mut cursor = Cursor::new(bytes);
    let header = cursor.u8()?;
    let high = header >> 2;
    match header & 3 {
        SHORT_STRING => {
            cursor.take(usize::from(high))?;
        }
        OBJECT => {
            let head = Head::object(&mut cursor, high)?;
            cursor.take(head.ids())?;
            head.skip(&mut cursor)?;
        }
        ARRAY => Head::array(&mut cursor, high)?.skip(&mut cursor)?,
        _ => {
            primitive(&mut cursor, high)?;
        }
    }
    Ok(cursor.position())
}

/// The fields of an object by number, each with its own bytes alone; none where the value is no object.
///
/// # Errors
/// The bytes are damaged.
pub fn object_fields(bytes: &[u8]) -> Result<Option<VariantFields<'_>>> {
    let VariantPart::Object(fields) = VariantPart::parse(bytes)? else {
        return Ok(None);
    };
    let exact = fields.into_iter().map(|(id, field)| {
        let size = variant_size(field)?;
        Ok((id, field.get(..size).unwrap_or_default()))
    });
    exact.collect::<Result<_>>().map(Some)
}

/// An error unless `metadata` and `value` are one whole VARIANT.
///
/// # Errors
/// The bytes are damaged, a field has a name that is not in `metadata`, or it nests too deeply.
pub fn check_variant(metadata: &[u8], value: &[u8]) -> Result<()> {
    let names = VariantNames::parse(metadata)?;
    let size = variant_size(value)?;
    if size != value.len() {
        let what = format!("a value of {size} bytes, {} are there", value.len());
        return Err(FormatError::corrupt(size as u64, what));
    }
    // Values may share bytes, so that few bytes can stand for very many values.
    let mut left = value.len();
    check(&names, value, MAX_DEPTH, &mut left)
}

fn check(names: &VariantNames<'_>, value: &[u8], depth: usize, left: &mut usize) -> Result<()> {
    if *left == 0 {
        return Err(FormatError::corrupt(0, "more values than bytes"));
    }
    *left -= 1;
    if depth == 0 {
        let what = format!("VARIANT of more than {MAX_DEPTH} levels");
        return Err(FormatError::unsupported(what));
    }
    match VariantPart::parse(value)? {
        VariantPart::Object(fields) => {
            for (id, field) in fields {
                if names.get(id).is_none() {
                    let what = format!("field name {id} of {}", names.len());
                    return Err(FormatError::corrupt(0, what));
                }
                check(names, field, depth - 1, left)?;
            }
            Ok(())
        }
        VariantPart::Array(items) => items
            .into_iter()
            .try_for_each(|item| check(names, item, depth - 1, left)),
        _ => Ok(()),
    }
}

/// The head of an object or array.
struct Head {
    count: usize,
    id_width: usize,
    offset_width: usize,
}

impl Head {
    fn object(cursor: &mut Cursor<'_>, high: u8) -> Result<Self> {
        let id_width = usize::from(high >> 2 & 3) + 1;
        Self::new(cursor, high, high & 0x10 != 0, id_width)
    }

    fn array(cursor: &mut Cursor<'_>, high: u8) -> Result<Self> {
        Self::new(cursor, high, high & 4 != 0, 0)
    }

    fn new(cursor: &mut Cursor<'_>, high: u8, is_large: bool, id_width: usize) -> Result<Self> {
        let offset_width = usize::from(high & 3) + 1;
        let count = cursor.uint_le(if is_large { 4 } else { 1 })?;
        let room = cursor.remaining() / (id_width + offset_width);
        if count > room {
            return cursor.corrupt(format!("{count} values, room for {room}"));
        }
        Ok(Self {
            count,
            id_width,
            offset_width,
        })
    }

    fn ids(&self) -> usize {
        self.count * self.id_width
    }

    /// The bytes that each value begins with.
    fn values<'a>(&self, cursor: &mut Cursor<'a>) -> Result<Vec<&'a [u8]>> {
        let mut offsets = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            offsets.push(cursor.uint_le(self.offset_width)?);
        }
        let length = cursor.uint_le(self.offset_width)?;
        let at = cursor.offset();
        let bytes = cursor.take(length)?;
        let value = |offset: usize| match bytes.get(offset..) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(FormatError::corrupt(
                at,
                format!("a value at {offset} of {length} bytes"),
            )),
        };
        offsets.into_iter().map(value).collect()
    }

    fn skip(&self, cursor: &mut Cursor<'_>) -> Result<()> {
        cursor.take(self.count * self.offset_width)?;
        let length = cursor.uint_le(self.offset_width)?;
        cursor.take(length)?;
        Ok(())
    }
}

fn object<'a>(cursor: &mut Cursor<'a>, high: u8) -> Result<VariantFields<'a>> {
    let head = Head::object(cursor, high)?;
    let mut ids = Vec::with_capacity(head.count);
    for _ in 0..head.count {
        ids.push(cursor.uint_le(head.id_width)? as u32);
    }
    Ok(ids.into_iter().zip(head.values(cursor)?).collect())
}

fn array<'a>(cursor: &mut Cursor<'a>, high: u8) -> Result<Vec<&'a [u8]>> {
    Head::array(cursor, high)?.values(cursor)
}

fn primitive<'a>(cursor: &mut Cursor<'a>, kind: u8) -> Result<VariantPart<'a>> {
    use VariantPart as Part;
    let timestamp = |value, nanos, utc| Part::Timestamp { value, nanos, utc };
    Ok(match kind {
        NULL => Part::Null,
        TRUE => Part::Bool(true),
        FALSE => Part::Bool(false),
        INT8 => Part::Int(cursor.int_le(1)? as i64),
        INT16 => Part::Int(cursor.int_le(2)? as i64),
        INT32 => Part::Int(cursor.int_le(4)? as i64),
        INT64 => Part::Int(cursor.int_le(8)? as i64),
        DOUBLE => Part::Double(cursor.f64_le()?),
        DECIMAL4 => decimal(cursor, 4)?,
        DECIMAL8 => decimal(cursor, 8)?,
        DECIMAL16 => decimal(cursor, 16)?,
        DATE => Part::Date(cursor.int_le(4)? as i32),
        TIMESTAMP => timestamp(cursor.int_le(8)? as i64, false, true),
        TIMESTAMP_NTZ => timestamp(cursor.int_le(8)? as i64, false, false),
        FLOAT => Part::Float(cursor.f32_le()?),
        BINARY => {
            let length = cursor.uint_le(4)?;
            Part::Binary(cursor.take(length)?)
        }
        STRING => {
            let length = cursor.uint_le(4)?;
            Part::String(text(cursor, length)?)
        }
        TIME => Part::Time(cursor.int_le(8)? as i64),
        TIMESTAMP_NANOS => timestamp(cursor.int_le(8)? as i64, true, true),
        TIMESTAMP_NTZ_NANOS => timestamp(cursor.int_le(8)? as i64, true, false),
        UUID => Part::Uuid(cursor.take(16)?),
        other => {
            return Err(FormatError::unsupported(format!(
                "VARIANT of type number {other}"
            )));
        }
    })
}

fn decimal<'a>(cursor: &mut Cursor<'a>, width: usize) -> Result<VariantPart<'a>> {
    let scale = cursor.u8()?;
    if scale > 38 {
        return cursor.corrupt(format!("a decimal of {scale} digits after the point"));
    }
    Ok(VariantPart::Decimal(cursor.int_le(width)?, scale))
}

fn text<'a>(cursor: &mut Cursor<'a>, length: usize) -> Result<&'a str> {
    let at = cursor.offset();
    let bytes = cursor.take(length)?;
    str::from_utf8(bytes).map_err(|_| FormatError::corrupt(at, "text that is not UTF-8"))
}
