//! Checksums of the parts of a Parquet file, as a value in its footer.
//!
//! Parquet has checksums of pages alone. What pyhudi writes has a key `pyhudi.crc32` besides, which other
//! readers ignore: the CRC-32 of all bytes before the page indexes, of the page indexes, of the footer
//! itself with its own digits and those after them as zeros, and of what precedes the file in a log
//! block, which is zero in a base file. They count only where the footer says that pyhudi wrote the
//! file: other writers may hand the key on to a file of theirs.

use memchr::memmem;

/// The key in the footer.
pub const CHECKSUMS_KEY: &str = "pyhudi.crc32";

/// The value before the checksums are known: four numbers of eight hexadecimal digits.
pub const NO_CHECKSUMS: &str = "00000000 00000000 00000000 00000000";

/// The key and what precedes the value, in Thrift's compact form.
const BEFORE_VALUE: &[u8] = b"\x0cpyhudi.crc32\x18\x23";

/// What the name of the writer begins with.
const WRITER: &[u8] = b"pyhudi version ";

/// Digits of a number, and where those of the footer are in the value.
const DIGITS: usize = 8;
const FOOTER_DIGITS: usize = 18;
const HEAD_DIGITS: usize = 27;

/// The length of the footer and the magic bytes, which end a file.
const TAIL: usize = 8;

/// The checksums of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileChecksums {
    /// Of all bytes before the page indexes.
    pub data: u32,
    /// Of the bytes from there to the footer.
    pub indexes: u32,
    /// Of the head of the log block that the file is in; 0 elsewhere.
    pub head: u32,
}

impl FileChecksums {
    /// The checksums in a footer, without its last eight bytes; none if it has none.
    ///
    /// # Errors
    /// What is wrong if the footer does not have its checksum.
    pub fn of_footer(footer: &[u8]) -> Result<Option<Self>, String> {
        let Some(at) = value_at(footer) else {
            return Ok(None);
        };
        let number = |start: usize| {
            let digits = footer.get(at + start..at + start + DIGITS)?;
            let digits = std::str::from_utf8(digits).ok()?;
            let number = u32::from_str_radix(digits, 16).ok()?;
            // Capital letters are flipped bits of small ones.
            (digits == format!("{number:08x}")).then_some(number)
        };
        let found = footer_checksum(footer, at);
        let sums = || {
            // The checksum of the footer covers no byte of the value behind its own digits.
            footer
                .get(at + HEAD_DIGITS - 1)
                .filter(|byte| **byte == b' ')?;
            Some(Self {
                data: number(0)?,
                indexes: number(DIGITS + 1)?,
                head: number(HEAD_DIGITS)?,
            })
        };
        match (sums(), number(FOOTER_DIGITS)) {
            (Some(sums), stored) if stored.is_some() && stored == found => Ok(Some(sums)),
            _ => Err("the footer does not have its checksum".to_owned()),
        }
    }

    /// Puts the checksums into the end of a file: page indexes, footer and the last eight bytes.
    /// [`None`] if the footer has no place for them.
    pub fn write(end: &mut [u8], data: u32) -> Option<()> {
        let (indexes, footer) = split(end)?;
        let at = value_at(footer)?;
        let numbers = format!("{data:08x} {:08x} ", crc32fast::hash(indexes));
        let place = footer.get_mut(at..at + FOOTER_DIGITS)?;
        place.copy_from_slice(numbers.as_bytes());
        let own = format!("{:08x}", footer_checksum(footer, at)?);
        let place = footer.get_mut(at + FOOTER_DIGITS..at + FOOTER_DIGITS + DIGITS)?;
        place.copy_from_slice(own.as_bytes());
        Some(())
    }

    /// Puts the checksum of a log block's head into the file in the block.
    pub(crate) fn write_head(file: &mut [u8], head: u32) -> Option<()> {
        let (_, footer) = split(file)?;
        let at = value_at(footer)? + HEAD_DIGITS;
        let place = footer.get_mut(at..at + DIGITS)?;
        place.copy_from_slice(format!("{head:08x}").as_bytes());
        Some(())
    }
}

/// What precedes the footer at the end of a file, and the footer.
fn split(end: &mut [u8]) -> Option<(&mut [u8], &mut [u8])> {
    let (rest, tail) = end.split_last_chunk_mut::<TAIL>()?;
    let [a, b, c, d, ..] = *tail;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    rest.split_at_mut_checked(rest.len().checked_sub(length)?)
}

/// Where the value is in a footer of pyhudi's.
fn value_at(footer: &[u8]) -> Option<usize> {
    let at = memmem::rfind(footer, BEFORE_VALUE)? + BEFORE_VALUE.len();
    let after = footer.get(at + NO_CHECKSUMS.len()..)?;
    memmem::find(after, WRITER).map(|_| at)
}

/// The checksum of a footer with its own digits and those of the head as zeros.
fn footer_checksum(footer: &[u8], at: usize) -> Option<u32> {
    let own = at + FOOTER_DIGITS;
    let mut sum = crc32fast::Hasher::new();
    sum.update(footer.get(..own)?);
    sum.update(NO_CHECKSUMS.as_bytes().get(FOOTER_DIGITS..)?);
    sum.update(footer.get(at + NO_CHECKSUMS.len()..)?);
    Some(sum.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_end(writer: &str) -> Vec<u8> {
        let mut footer = b"schema".to_vec();
        footer.extend_from_slice(BEFORE_VALUE);
        footer.extend_from_slice(NO_CHECKSUMS.as_bytes());
        footer.extend_from_slice(writer.as_bytes());
        let mut end = b"the page indexes".to_vec();
        end.extend_from_slice(&footer);
        end.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        end.extend_from_slice(b"PAR1");
        end
    }

    #[test]
    fn every_flipped_bit_of_a_footer_is_noticed_or_ends_the_checksums() {
        let mut end = file_end("pyhudi version 1.0");
        FileChecksums::write(&mut end, 0x1234).unwrap();
        let footer = &end[16..end.len() - TAIL];
        let indexes = crc32fast::hash(&end[..16]);
        let sums = FileChecksums {
            data: 0x1234,
            indexes,
            head: 0,
        };
        assert_eq!(FileChecksums::of_footer(footer), Ok(Some(sums)));
        let mut missed = 0;
        for bit in 0..footer.len() * 8 {
            let mut damaged = footer.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match FileChecksums::of_footer(&damaged) {
                Ok(Some(sums)) if sums.head != 0 => {}
                Ok(Some(_)) => panic!("bit {bit}"),
                Ok(None) => missed += 1,
                Err(_) => {}
            }
        }
        // Those of the key and of the writer's name.
        assert_eq!(missed, (BEFORE_VALUE.len() + WRITER.len()) * 8);
    }

    #[test]
    fn checksums_that_another_writer_copied_do_not_count() {
        let mut end = file_end("pyhudi version 1.0");
        FileChecksums::write(&mut end, 1).unwrap();
        let footer = end[16..end.len() - TAIL].to_vec();
        let mut other = footer[..footer.len() - 18].to_vec();
        other.extend_from_slice(b"parquet-mr version 1.15.2");
        assert_eq!(FileChecksums::of_footer(&other), Ok(None));
        assert_eq!(FileChecksums::of_footer(b"nothing"), Ok(None));
        assert!(FileChecksums::write(&mut file_end("parquet-mr"), 1).is_none());
    }
}
