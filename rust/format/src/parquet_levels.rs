//! The nesting depth of the schema in a Parquet footer, found before the footer is decoded.
//!
//! The Parquet crate takes a stack frame for each level, so that a footer of a few kilobytes ends the
//! process. The schema is a list in depth-first order, each group with the number of its children:
//! no recursion is needed to count levels. What cannot be followed is left to the decoder, which
//! says what is wrong with it.

/// Values within values that are skipped on the way; a footer has a handful.
const MAX_SKIPPED: usize = 32;

/// The field of the file's metadata that is its schema, and that of an element which counts its
/// children.
const SCHEMA: i64 = 2;
const CHILDREN: i64 = 5;

/// Whether the schema in a footer, Thrift's compact form, has more than `most` levels.
pub fn nests_deeper(footer: &[u8], most: usize) -> bool {
    let mut thrift = Compact { rest: footer };
    thrift
        .find_schema()
        .is_some_and(|elements| thrift.is_deeper(elements, most).unwrap_or(false))
}

struct Compact<'a> {
    rest: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
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
    /// Goes to the schema's first element; how many there are said to be.
    fn find_schema(&mut self) -> Option<u64> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            if id == SCHEMA && kind == Kind::List {
                let (elements, kind) = self.list()?;
                return (kind == Kind::Struct).then_some(elements);
            }
            self.skip(kind, 0)?;
        }
        None
    }

    fn is_deeper(&mut self, elements: u64, most: usize) -> Option<bool> {
        // Children still to come, of each group around the next element.
        let mut open: Vec<u64> = Vec::new();
        for _ in 0..elements {
            while open.last() == Some(&0) {
                open.pop();
            }
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            if open.len() > most {
                return Some(true);
            }
            let children = self.children()?;
            if children > 0 {
                open.push(children);
            }
        }
        Some(false)
    }

    /// Reads a schema element.
    fn children(&mut self) -> Option<u64> {
        let (mut id, mut children) = (0, 0);
        while let Some(kind) = self.field(&mut id)? {
            if id == CHILDREN && kind == Kind::Int {
                children = u64::try_from(self.zigzag()?).ok()?;
            } else {
                self.skip(kind, 0)?;
            }
        }
        Some(children)
    }

    /// The next field of a struct, none at its end.
    #[expect(clippy::option_option, reason = "no more bytes, and no more fields")]
    fn field(&mut self, id: &mut i64) -> Option<Option<Kind>> {
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

    fn list(&mut self) -> Option<(u64, Kind)> {
        let head = self.byte()?;
        let length = match head >> 4 {
            0xf => self.varint()?,
            short => short.into(),
        };
        Some((length, kind(head & 0xf)?))
    }

    fn skip(&mut self, value: Kind, depth: usize) -> Option<()> {
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

    fn zigzag(&mut self) -> Option<i64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An element: its name, the number of its children, and for a leaf its type.
    fn element(children: Option<u8>) -> Vec<u8> {
        match children {
            Some(children) => vec![0x48, 1, b'g', 0x15, children * 2, 0],
            None => vec![0x15, 2, 0x38, 1, b'x', 0],
        }
    }

    fn footer(elements: &[Option<u8>]) -> Vec<u8> {
        let mut bytes = vec![0x15, 2, 0x19, 0xfc];
        let mut length = elements.len();
        while length >= 0x80 {
            bytes.push(length as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        for one in elements {
            bytes.extend(element(*one));
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn levels_are_counted() {
        for depth in [1, 2, 50, 300] {
            let mut elements = vec![Some(1); depth];
            elements.push(None);
            let bytes = footer(&elements);
            assert!(!nests_deeper(&bytes, depth), "{depth}");
            assert!(nests_deeper(&bytes, depth - 1), "{depth}");
        }
    }

    #[test]
    fn what_follows_a_group_is_no_deeper() {
        let group = [Some(2), None, None];
        let mut elements = vec![Some(100)];
        elements.extend(group.repeat(100));
        let bytes = footer(&elements);
        assert!(!nests_deeper(&bytes, 2));
        assert!(nests_deeper(&bytes, 1));
    }

    #[test]
    fn no_damage_is_followed_beyond_the_bytes() {
        let whole = footer(&[Some(1), Some(2), None, None]);
        for end in 0..whole.len() {
            nests_deeper(&whole[..end], 1);
        }
        for at in 0..whole.len() {
            for value in 0..=u8::MAX {
                let mut damaged = whole.clone();
                damaged[at] = value;
                nests_deeper(&damaged, 1);
            }
        }
    }
}
