//! Thrift's compact form, as far as Parquet's headers and footers are looked at without being decoded.

/// Values within values that are skipped on the way; a footer has a handful.
const MAX_SKIPPED: usize = 32;

/// A cursor over bytes in the compact form. [`None`] where the bytes end, or are none of it.
pub(crate) struct Compact<'a> {
    pub(crate) rest: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Byte,
    Int,
    Double,
    Bytes,
    List,
    Map,
    Struct,
}

impl Compact<'_> {
    /// The next field of a struct, none at its end.
    #[expect(clippy::option_option, reason = "no more bytes, and no more fields")]
    pub(crate) fn field(&mut self, id: &mut i64) -> Option<Option<Kind>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *id = match head >> 4 {
            0 => self.zigzag()?,
            step => id.checked_add(step.into())?,
        };
        Some(Some(kind(head & 0xf)?))
    }

    /// The number of a list's items, and what they are.
    pub(crate) fn list(&mut self) -> Option<(u64, Kind)> {
        let head = self.byte()?;
        let length = match head >> 4 {
            0xf => self.varint()?,
            short => short.into(),
        };
        Some((length, kind(head & 0xf)?))
    }

    /// Skips a value.
    pub(crate) fn skip(&mut self, value: Kind, depth: usize) -> Option<()> {
        if depth > MAX_SKIPPED {
            return None;
        }
        match value {
            // In a struct it is the field's head that tells.
            Kind::Bool => {}
            Kind::Byte => self.take(1)?,
            Kind::Double => self.take(8)?,
            Kind::Int => {
                self.varint()?;
            }
            Kind::Bytes => {
                let length = self.varint()?;
                self.take(length)?;
            }
            Kind::List => {
                let (length, items) = self.list()?;
                self.skip_all(length, &[items], depth)?;
            }
            Kind::Map => {
                let length = self.varint()?;
                if length > 0 {
                    let kinds = self.byte()?;
                    self.skip_all(length, &[kind(kinds >> 4)?, kind(kinds & 0xf)?], depth)?;
                }
            }
            Kind::Struct => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth + 1)?;
                }
            }
        }
        Some(())
    }

    /// Skips as many groups of values; each value has a byte at least, so the bytes bound the loop.
    fn skip_all(&mut self, length: u64, kinds: &[Kind], depth: usize) -> Option<()> {
        for _ in 0..length {
            for one in kinds {
                match one {
                    Kind::Bool => self.take(1)?,
                    other => self.skip(*other, depth + 1)?,
                }
            }
        }
        Some(())
    }

    /// A signed number.
    pub(crate) fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, length: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(length).ok()?..)?;
        Some(())
    }
}

fn kind(code: u8) -> Option<Kind> {
    Some(match code {
        1 | 2 => Kind::Bool,
        3 => Kind::Byte,
        4..=6 => Kind::Int,
        7 => Kind::Double,
        8 => Kind::Bytes,
        9 | 10 => Kind::List,
        11 => Kind::Map,
        12 => Kind::Struct,
        _ => return None,
    })
}
