//! The field names that a VARIANT's metadata holds.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::cursor::Cursor;
use crate::{FormatError, Result};

const VERSION: u8 = 1;

/// The dictionary of field names, by number.
#[derive(Debug)]
pub struct VariantNames<'a> {
    names: Vec<&'a str>,
    numbers: OnceLock<HashMap<&'a str, u32>>,
}

impl<'a> VariantNames<'a> {
    /// The names in `metadata`.
    ///
    /// # Errors
    /// The bytes are damaged, or of another version of the encoding.
    pub fn parse(metadata: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(metadata);
        let header = cursor.u8()?;
        if header & 0x0f != VERSION {
            let version = header & 0x0f;
            return Err(FormatError::unsupported(format!(
                "VARIANT of version {version}"
            )));
        }
        let width = usize::from(header >> 6) + 1;
        let count = cursor.uint_le(width)?;
        let room = cursor.remaining() / width;
        if count >= room {
            return cursor.corrupt(format!("{count} field names, room for {room} offsets"));
        }
        let mut offsets = Vec::with_capacity(count + 1);
        for _ in 0..=count {
            offsets.push(cursor.uint_le(width)?);
        }
        let start = cursor.position();
        let text = cursor.take(cursor.remaining())?;
        let mut names = Vec::with_capacity(count);
        for (from, to) in offsets.iter().zip(offsets.iter().skip(1)) {
            let name = text.get(*from..*to).and_then(|b| str::from_utf8(b).ok());
            let Some(name) = name else {
                let at = start.saturating_add(*from) as u64;
                return Err(FormatError::corrupt(at, "no field name in UTF-8"));
            };
            names.push(name);
        }
        Ok(Self {
            names,
            numbers: OnceLock::new(),
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name with this number.
    pub fn get(&self, number: u32) -> Option<&'a str> {
        self.names.get(number as usize).copied()
    }

    /// The number of a name.
    pub fn number(&self, name: &str) -> Option<u32> {
        let numbers = self.numbers.get_or_init(|| {
            let numbered = (0..).zip(&self.names);
            numbered.map(|(number, name)| (*name, number)).collect()
        });
        numbers.get(name).copied()
    }
}
