//! The nesting depth of the schema in a Parquet footer, found before the footer is decoded.
//!
//! The Parquet crate takes a stack frame for each level, so that a footer of a few kilobytes ends the
//! process. The schema is a list in depth-first order, each group with the number of its children:
//! no recursion is needed to count levels. What cannot be followed is left to the decoder, which
//! says what is wrong with it.

use crate::thrift::{Compact, Kind};

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
