//! The header of a Parquet page, as far as the page's checksum needs it (`PageHeader` of parquet-format).
//!
//! The header is a struct in Thrift's compact form: type (field 1), size before compression (2), size (3),
//! CRC-32 of the bytes after the header (4), then one struct that depends on the type.

use crate::thrift::{Compact, Kind};

/// Numbers of fields.
const TYPE: i64 = 1;
const SIZE: i64 = 3;
const CHECKSUM: i64 = 4;

/// The type of a dictionary page.
const DICTIONARY: i64 = 2;

/// The first byte of a field that is a number, one after the last field.
const NEXT_NUMBER: u8 = 0x15;

/// What the header of a page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// Bytes of the header.
    pub length: usize,
    /// Bytes that follow it.
    pub size: usize,
    /// CRC-32 of those bytes, if the header has it.
    pub checksum: Option<u32>,
    /// Whether the page is a dictionary.
    pub is_dictionary: bool,
}

impl PageHeader {
    /// The header at the start of `bytes`; [`None`] if there is none, or not all of it.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut thrift = Compact { rest: bytes };
        let (mut id, mut size, mut checksum, mut is_dictionary) = (0, None, None, false);
        while let Some(kind) = thrift.field(&mut id)? {
            match (id, kind) {
                (TYPE, Kind::Int) => is_dictionary = thrift.zigzag()? == DICTIONARY,
                (SIZE, Kind::Int) => size = Some(usize::try_from(thrift.zigzag()?).ok()?),
                (CHECKSUM, Kind::Int) => checksum = Some(thrift.zigzag()? as u32),
                _ => thrift.skip(kind, 0)?,
            }
        }
        Some(Self {
            length: bytes.len() - thrift.rest.len(),
            size: size?,
            checksum,
            is_dictionary,
        })
    }
}

/// A header that has no checksum yet, with one. [`None`] if it has one, or is no header.
pub fn with_checksum(header: &[u8], checksum: u32) -> Option<Vec<u8>> {
    let mut thrift = Compact { rest: header };
    let mut id = 0;
    while id < SIZE {
        match thrift.field(&mut id)? {
            Some(Kind::Int) => thrift.zigzag()?,
            _ => return None,
        };
    }
    let (sizes, rest) = header.split_at(header.len() - thrift.rest.len());
    let (next, rest) = rest.split_first()?;
    // The field that follows counts from the checksum from now on.
    let step = (next >> 4).checked_sub(1).filter(|step| *step > 0)?;
    let mut out = Vec::with_capacity(header.len() + 6);
    out.extend_from_slice(sizes);
    out.push(NEXT_NUMBER);
    let signed = checksum as i32;
    let mut zigzag = ((signed << 1) ^ (signed >> 31)) as u32;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
    out.push(step << 4 | next & 0xf);
    out.extend_from_slice(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dictionary page of 300 bytes, of five values.
    const HEADER: [u8; 14] = [
        0x15, 4, 0x15, 0xb0, 9, 0x15, 0xd8, 4, 0x4c, 0x15, 10, 0x15, 0, 0,
    ];

    fn header() -> Vec<u8> {
        let mut header = HEADER.to_vec();
        header.push(0);
        header
    }

    #[test]
    fn checksums_survive_the_round_trip() {
        let plain = PageHeader::decode(&header()).unwrap();
        assert_eq!((plain.length, plain.size), (15, 300));
        assert!(plain.is_dictionary && plain.checksum.is_none());
        for sum in [
            0,
            1,
            63,
            64,
            0x7fff_ffff,
            0x8000_0000,
            u32::MAX,
            0xcbf4_3926,
        ] {
            let bytes = with_checksum(&header(), sum).unwrap();
            let summed = PageHeader::decode(&bytes).unwrap();
            assert_eq!(summed.checksum, Some(sum));
            assert_eq!((summed.length, summed.size), (bytes.len(), 300));
            assert_eq!(with_checksum(&bytes, 1), None, "it has one");
        }
    }

    #[test]
    fn damaged_headers_are_none() {
        let whole = with_checksum(&header(), 77).unwrap();
        for end in 0..whole.len() {
            assert_eq!(PageHeader::decode(&whole[..end]), None);
        }
        for at in 0..whole.len() {
            for value in 0..=u8::MAX {
                let mut damaged = whole.clone();
                damaged[at] = value;
                PageHeader::decode(&damaged);
                with_checksum(&damaged, 1);
            }
        }
    }
}
