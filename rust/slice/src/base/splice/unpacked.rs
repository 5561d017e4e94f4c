//! Pages that stay unpacked in memory, and single rows out of them: no other row is decoded.

use bytes::{Buf, Bytes};
use parquet::basic::{Encoding, Type};
use parquet::column::page::Page;
use parquet::schema::types::ColumnDescriptor;

use super::dictionary::Dictionary;
use super::hybrid;

/// A value among so many is looked for from the nearest one whose place is known.
const STRIDE: usize = 16;

/// Bytes of a page in memory besides its content.
const PAGE_BYTES: usize = 256;

/// A data page, decompressed.
pub(crate) struct UnpackedPage {
    /// Rows, nulls included; of a list the number of its elements.
    entries: usize,
    /// None where each entry begins a row.
    repetition: Option<Levels>,
    /// None where each entry has a value.
    definition: Option<Levels>,
    /// The definition level of values.
    max_level: u32,
    values: Stored,
}

/// What a row is.
enum Place {
    /// The number of its value.
    Value(usize),
    /// A null of this definition level.
    Null(u32),
}

/// Encoded levels, and the bits of each.
struct Levels(Bytes, u8);

enum Stored {
    /// Of this number of bytes each.
    Fixed(Bytes, usize),
    Bits(Bytes),
    /// Each after its length, and where every [`STRIDE`]th begins.
    Texts(Bytes, Vec<u32>),
    /// Places in a dictionary, and the bits of each.
    Indexes(Bytes, u8),
}

impl UnpackedPage {
    /// None if the page has another encoding than those that Hudi's writers use.
    pub(crate) fn of(page: Page, column: &ColumnDescriptor) -> Option<Self> {
        let Page::DataPage {
            mut buf,
            num_values,
            encoding,
            def_level_encoding,
            rep_level_encoding,
            ..
        } = page
        else {
            return None;
        };
        let entries = num_values as usize;
        let repetition = take_levels(&mut buf, column.max_rep_level(), rep_level_encoding)?;
        let definition = take_levels(&mut buf, column.max_def_level(), def_level_encoding)?;
        let max_level = u32::try_from(column.max_def_level()).ok()?;
        let all_set =
            |levels: &Levels| hybrid::constant(&levels.0, levels.1, entries) == Some(max_level);
        let values = match encoding {
            Encoding::PLAIN => Stored::plain(buf, column)?,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                let width = buf.first().copied().unwrap_or(0);
                buf.advance(buf.len().min(1));
                Stored::Indexes(buf, width)
            }
            _ => return None,
        };
        Some(Self {
            entries,
            repetition,
            definition: definition.filter(|levels| !all_set(levels)),
            max_level,
            values,
        })
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let levels = [&self.repetition, &self.definition];
        let levels = levels.into_iter().flatten().map(|levels| levels.0.len());
        let values = match &self.values {
            Stored::Fixed(bytes, _) | Stored::Bits(bytes) | Stored::Indexes(bytes, _) => {
                bytes.len()
            }
            Stored::Texts(bytes, begins) => bytes.len() + begins.len() * size_of::<u32>(),
        };
        PAGE_BYTES + values + levels.sum::<usize>()
    }

    /// Whether its values are in a dictionary.
    pub(crate) fn has_indexes(&self) -> bool {
        matches!(self.values, Stored::Indexes(..))
    }

    /// The text of each row, none for a null. The outer none is for a column of something else, and
    /// for a damaged page.
    pub(crate) fn texts<'a>(
        &'a self,
        dictionary: Option<&'a Dictionary>,
    ) -> Option<Vec<Option<&'a [u8]>>> {
        if self.repetition.is_some() {
            return None;
        }
        let levels = match &self.definition {
            Some(levels) => hybrid::decode(&levels.0, levels.1, self.entries)?,
            None => vec![self.max_level; self.entries],
        };
        let count = levels.iter().filter(|level| **level == self.max_level);
        let mut values = self
            .values
            .first_texts(count.count(), dictionary)?
            .into_iter();
        let texts = levels.iter().map(|level| {
            let has_value = *level == self.max_level;
            if has_value {
                values.next().map(Some)
            } else {
                Some(None)
            }
        });
        texts.collect()
    }

    /// Takes rows, which rise, out of the page; none where the page does not have them.
    pub(crate) fn take(
        &self,
        rows: &[usize],
        dictionary: Option<&Dictionary>,
        out: &mut TakenRows,
    ) -> Option<()> {
        if let Some(repetition) = &self.repetition {
            return self.take_lists(repetition, rows, dictionary, out);
        }
        for row in rows {
            match self.place(*row)? {
                Place::Null(level) => out.definition.push(level),
                Place::Value(at) => {
                    out.definition.push(self.max_level);
                    out.push(self.values.get(at, dictionary)?);
                }
            }
        }
        Some(())
    }

    /// The value of a row, a text without its length; the inner none is a null. None where the page does
    /// not have the row, or is of a column of lists.
    #[expect(clippy::option_option, reason = "none is no value")]
    pub(crate) fn value<'a>(
        &'a self,
        row: usize,
        dictionary: Option<&'a Dictionary>,
    ) -> Option<Option<&'a [u8]>> {
        if self.repetition.is_some() {
            return None;
        }
        match self.place(row)? {
            Place::Null(_) => Some(None),
            Place::Value(at) => self.values.get(at, dictionary).map(Some),
        }
    }

    /// Where the value of a row is, in a page without lists; none where the page does not have the row.
    fn place(&self, row: usize) -> Option<Place> {
        if row >= self.entries {
            return None;
        }
        let Some(levels) = &self.definition else {
            return Some(Place::Value(row));
        };
        let level = hybrid::number_at(&levels.0, levels.1, row)?;
        if level != self.max_level {
            return Some(Place::Null(level));
        }
        hybrid::occurrences(&levels.0, levels.1, row, level).map(Place::Value)
    }

    fn take_lists(
        &self,
        repetition: &Levels,
        rows: &[usize],
        dictionary: Option<&Dictionary>,
        out: &mut TakenRows,
    ) -> Option<()> {
        let repetition = hybrid::decode(&repetition.0, repetition.1, self.entries)?;
        let definition = match &self.definition {
            Some(levels) => hybrid::decode(&levels.0, levels.1, self.entries)?,
            None => vec![self.max_level; self.entries],
        };
        let mut rows = rows.iter().peekable();
        let (mut begun, mut value, mut taken) = (0_usize, 0, 0);
        for (repetition, definition) in repetition.into_iter().zip(definition) {
            if repetition == 0 {
                begun += 1;
                while rows.next_if(|row| **row + 1 < begun).is_some() {}
            }
            let has_value = definition == self.max_level;
            if rows.peek().is_some_and(|row| **row + 1 == begun) {
                taken += usize::from(repetition == 0);
                out.repetition.push(repetition);
                out.definition.push(definition);
                if has_value {
                    out.push(self.values.get(value, dictionary)?);
                }
            }
            value += usize::from(has_value);
        }
        out.lists += taken;
        Some(())
    }
}

impl Stored {
    fn plain(bytes: Bytes, column: &ColumnDescriptor) -> Option<Self> {
        let width = match column.physical_type() {
            Type::BOOLEAN => return Some(Self::Bits(bytes)),
            Type::BYTE_ARRAY => return Self::texts(bytes),
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).ok()?,
        };
        Some(Self::Fixed(bytes, width))
    }

    fn texts(bytes: Bytes) -> Option<Self> {
        let mut begins = Vec::new();
        let (mut at, mut count) = (0_usize, 0_usize);
        while at < bytes.len() {
            if count.is_multiple_of(STRIDE) {
                begins.push(u32::try_from(at).ok()?);
            }
            at = text_end(&bytes, at)?;
            count += 1;
        }
        begins.shrink_to_fit();
        (at == bytes.len()).then_some(Self::Texts(bytes, begins))
    }

    /// The first values of a column of texts.
    fn first_texts<'a>(
        &'a self,
        count: usize,
        dictionary: Option<&'a Dictionary>,
    ) -> Option<Vec<&'a [u8]>> {
        match self {
            Self::Texts(bytes, _) => {
                let mut begin = 0;
                let texts = (0..count).map(|_| {
                    let end = text_end(bytes, begin)?;
                    let text = bytes.get(begin + 4..end);
                    begin = end;
                    text
                });
                texts.collect()
            }
            Self::Indexes(bytes, width) => {
                let indexes = hybrid::decode(bytes, *width, count)?.into_iter();
                let texts = indexes.map(|index| dictionary?.text(index as usize));
                texts.collect()
            }
            Self::Fixed(..) | Self::Bits(_) => None,
        }
    }

    /// The bytes of a value, without its length; of a bit one byte.
    fn get<'a>(&'a self, at: usize, dictionary: Option<&'a Dictionary>) -> Option<&'a [u8]> {
        match self {
            Self::Fixed(bytes, width) => {
                let begin = at.checked_mul(*width)?;
                bytes.get(begin..begin.checked_add(*width)?)
            }
            Self::Bits(bytes) => {
                let bit = bytes.get(at / 8)? >> (at % 8) & 1;
                Some(if bit == 1 { &[1] } else { &[0] })
            }
            Self::Texts(bytes, begins) => {
                let mut begin = *begins.get(at / STRIDE)? as usize;
                for _ in 0..at % STRIDE {
                    begin = text_end(bytes, begin)?;
                }
                bytes.get(begin + 4..text_end(bytes, begin)?)
            }
            Self::Indexes(bytes, width) => {
                let index = hybrid::number_at(bytes, *width, at)?;
                dictionary?.value(index as usize)
            }
        }
    }
}

/// Where a text ends that begins with its length.
fn text_end(bytes: &[u8], begin: usize) -> Option<usize> {
    let length = bytes.get(begin..)?.first_chunk::<4>()?;
    begin
        .checked_add(4)?
        .checked_add(u32::from_le_bytes(*length) as usize)
}

/// Takes levels off a page: none where a level of 0 is all that there is. The outer none is for an
/// encoding that no page of Hudi's has.
#[expect(clippy::option_option, reason = "none is a page without levels")]
fn take_levels(page: &mut Bytes, max_level: i16, encoding: Encoding) -> Option<Option<Levels>> {
    if max_level == 0 {
        return Some(None);
    }
    if encoding != Encoding::RLE {
        return None;
    }
    let (levels, width) = super::take_levels(page, u32::try_from(max_level).ok()?)?;
    Some(Some(Levels(levels, width)))
}

/// Rows of a column that were taken out of pages.
pub(crate) struct TakenRows {
    has_bits: bool,
    has_lengths: bool,
    max_repetition: u32,
    max_definition: u32,
    repetition: Vec<u32>,
    definition: Vec<u32>,
    values: Vec<u8>,
    /// Rows of a column with repetition.
    lists: usize,
}

impl TakenRows {
    pub(crate) fn new(column: &ColumnDescriptor) -> Self {
        Self {
            has_bits: column.physical_type() == Type::BOOLEAN,
            has_lengths: column.physical_type() == Type::BYTE_ARRAY,
            max_repetition: u32::try_from(column.max_rep_level()).unwrap_or(0),
            max_definition: u32::try_from(column.max_def_level()).unwrap_or(0),
            repetition: Vec::new(),
            definition: Vec::new(),
            values: Vec::new(),
            lists: 0,
        }
    }

    /// Adds a value in the encoding PLAIN, a bit as a byte.
    fn push(&mut self, value: &[u8]) {
        if self.has_lengths {
            self.values.extend((value.len() as u32).to_le_bytes());
        }
        self.values.extend_from_slice(value);
    }

    /// How many rows were taken.
    pub(crate) fn rows(&self) -> usize {
        if self.max_repetition > 0 {
            self.lists
        } else {
            self.definition.len()
        }
    }

    /// One page of them, in the encoding PLAIN.
    pub(crate) fn page(self) -> Page {
        let mut buf = Vec::with_capacity(self.values.len() + 16);
        for (levels, max_level) in [
            (&self.repetition, self.max_repetition),
            (&self.definition, self.max_definition),
        ] {
            if max_level > 0 {
                let at = buf.len();
                buf.extend([0; 4]);
                hybrid::encode(levels, super::bits(max_level), &mut buf);
                let length = (buf.len() - at - 4) as u32;
                for (to, from) in buf.iter_mut().skip(at).zip(length.to_le_bytes()) {
                    *to = from;
                }
            }
        }
        if self.has_bits {
            let bytes = self.values.chunks(8).map(|bits| {
                let bits = bits.iter().zip(0_u32..);
                bits.fold(0, |byte, (bit, at)| byte | bit << at)
            });
            buf.extend(bytes);
        } else {
            buf.extend(&self.values);
        }
        Page::DataPage {
            buf: buf.into(),
            num_values: self.definition.len() as u32,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::schema::types::{ColumnPath, Type as SchemaType};

    use super::*;

    fn column(ty: Type, definition: i16, repetition: i16) -> ColumnDescriptor {
        let schema = SchemaType::primitive_type_builder("v", ty).build().unwrap();
        let path = ColumnPath::from("v");
        ColumnDescriptor::new(Arc::new(schema), definition, repetition, path)
    }

    /// A page of levels, by their greatest, and of encoded values.
    fn page(levels: &[(&[u32], u32)], count: usize, encoding: Encoding, values: &[u8]) -> Page {
        let mut buf = Vec::new();
        for (levels, max_level) in levels {
            let mut encoded = Vec::new();
            hybrid::encode(levels, super::super::bits(*max_level), &mut encoded);
            buf.extend((encoded.len() as u32).to_le_bytes());
            buf.extend(encoded);
        }
        buf.extend(values);
        Page::DataPage {
            buf: buf.into(),
            num_values: count as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    fn texts(values: &[&str]) -> Vec<u8> {
        let text = |value: &&str| {
            let length = (value.len() as u32).to_le_bytes();
            length.into_iter().chain(value.bytes()).collect::<Vec<_>>()
        };
        values.iter().flat_map(text).collect()
    }

    #[test]
    fn rows_are_taken_with_their_nulls() {
        let texts_column = column(Type::BYTE_ARRAY, 1, 0);
        let levels: Vec<u32> = (0..100).map(|row| u32::from(row % 3 != 0)).collect();
        let values: Vec<String> = (0..100)
            .filter(|row| row % 3 != 0)
            .map(|row| row.to_string())
            .collect();
        let values = texts(&values.iter().map(String::as_str).collect::<Vec<_>>());
        let stored = page(&[(&levels, 1)], 100, Encoding::PLAIN, &values);
        let unpacked = UnpackedPage::of(stored, &texts_column).unwrap();
        let mut taken = TakenRows::new(&texts_column);
        unpacked
            .take(&[0, 1, 50, 98, 99], None, &mut taken)
            .unwrap();
        assert_eq!(taken.rows(), 5);
        let expected = page(
            &[(&[0, 1, 1, 1, 0], 1)],
            5,
            Encoding::PLAIN,
            &texts(&["1", "50", "98"]),
        );
        assert_eq!(taken.page().buffer(), expected.buffer());
        assert!(
            unpacked
                .take(&[100], None, &mut TakenRows::new(&texts_column))
                .is_none()
        );
    }

    #[test]
    fn texts_are_those_of_the_rows() {
        let texts_column = column(Type::BYTE_ARRAY, 1, 0);
        let stored = page(&[(&[1, 0, 1], 1)], 3, Encoding::PLAIN, &texts(&["a", "bc"]));
        let unpacked = UnpackedPage::of(stored, &texts_column).unwrap();
        let expected: [Option<&[u8]>; 3] = [Some(b"a"), None, Some(b"bc")];
        assert_eq!(unpacked.texts(None).unwrap(), expected);
        let dictionary = Page::DictionaryPage {
            buf: texts(&["x", "", "yz"]).into(),
            num_values: 3,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let dictionary = Dictionary::of(dictionary, &texts_column).unwrap();
        for (indexes, expected) in [
            (&[2, 1], Some([Some(b"yz".as_slice()), None, Some(b"")])),
            (&[2, 3], None),
        ] {
            let mut values = vec![2];
            hybrid::encode(indexes, 2, &mut values);
            let stored = page(&[(&[1, 0, 1], 1)], 3, Encoding::RLE_DICTIONARY, &values);
            let unpacked = UnpackedPage::of(stored, &texts_column).unwrap();
            let found = unpacked.texts(Some(&dictionary));
            assert_eq!(found.as_deref(), expected.as_ref().map(<[_; 3]>::as_slice));
            assert!(unpacked.texts(None).is_none());
        }
        let fixed = column(Type::INT64, 0, 0);
        let stored = page(&[], 1, Encoding::PLAIN, &[0; 8]);
        let unpacked = UnpackedPage::of(stored, &fixed).unwrap();
        assert!(unpacked.texts(None).is_none());
    }

    #[test]
    fn rows_are_taken_out_of_a_dictionary() {
        let fixed = column(Type::INT32, 0, 0);
        let bytes: Vec<u8> = (10..18_i32).flat_map(i32::to_le_bytes).collect();
        let dictionary = Page::DictionaryPage {
            buf: bytes.into(),
            num_values: 8,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let dictionary = Dictionary::of(dictionary, &fixed).unwrap();
        let mut indexes = vec![3];
        hybrid::encode(&[7, 0, 2, 2], 3, &mut indexes);
        let stored = page(&[], 4, Encoding::RLE_DICTIONARY, &indexes);
        let unpacked = UnpackedPage::of(stored, &fixed).unwrap();
        assert!(unpacked.has_indexes());
        let mut taken = TakenRows::new(&fixed);
        unpacked
            .take(&[0, 2], Some(&dictionary), &mut taken)
            .unwrap();
        let expected: Vec<u8> = [17_i32, 12]
            .into_iter()
            .flat_map(i32::to_le_bytes)
            .collect();
        assert_eq!(taken.page().buffer(), &expected);
        assert!(
            unpacked
                .take(&[1], None, &mut TakenRows::new(&fixed))
                .is_none()
        );
    }

    #[test]
    fn lists_and_bits_are_taken_whole() {
        let lists = column(Type::BOOLEAN, 2, 1);
        // [t f], [], [t], [f t t]
        let repetition = [0, 1, 0, 0, 0, 1, 1];
        let definition = [2, 2, 0, 2, 2, 2, 2];
        let stored = page(
            &[(&repetition, 1), (&definition, 2)],
            7,
            Encoding::PLAIN,
            &[0b11_0101],
        );
        let unpacked = UnpackedPage::of(stored, &lists).unwrap();
        let mut taken = TakenRows::new(&lists);
        unpacked.take(&[1, 3], None, &mut taken).unwrap();
        assert_eq!(taken.rows(), 2);
        let levels: [(&[u32], u32); 2] = [(&[0, 0, 1, 1], 1), (&[0, 2, 2, 2], 2)];
        let expected = page(&levels, 4, Encoding::PLAIN, &[0b110]);
        assert_eq!(taken.page().buffer(), expected.buffer());
    }

    #[test]
    fn damaged_pages_have_no_rows() {
        let texts_column = column(Type::BYTE_ARRAY, 0, 0);
        let whole = texts(&["a", "bc"]);
        for length in 1..whole.len() {
            let stored = page(&[], 2, Encoding::PLAIN, &whole[..length]);
            let taken = UnpackedPage::of(stored, &texts_column)
                .and_then(|page| page.take(&[1], None, &mut TakenRows::new(&texts_column)));
            assert!(taken.is_none(), "{length} bytes");
        }
        let stored = page(&[], 9, Encoding::DELTA_BYTE_ARRAY, &whole);
        assert!(UnpackedPage::of(stored, &texts_column).is_none());
        let fixed = column(Type::INT64, 1, 0);
        let stored = page(&[(&[1, 1], 1)], 2, Encoding::PLAIN, &[0; 15]);
        let unpacked = UnpackedPage::of(stored, &fixed).unwrap();
        assert!(
            unpacked
                .take(&[1], None, &mut TakenRows::new(&fixed))
                .is_none()
        );
    }
}
