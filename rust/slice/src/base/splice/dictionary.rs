//! A dictionary that outlives the read of its column: pages get its values in place of indexes, so
//! that a read of few rows need not copy all of it.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::schema::types::ColumnDescriptor;

use super::count_values;
use super::values::Values;

/// A dictionary, decompressed.
pub(crate) struct Dictionary {
    page: Page,
    values: Values<'static>,
    /// The definition level of values.
    most: u32,
}

impl Dictionary {
    /// None if the page is no dictionary of the column, or if rows of the column have several values.
    pub(crate) fn of(page: Page, column: &ColumnDescriptor) -> Option<Self> {
        let Page::DictionaryPage {
            buf, num_values, ..
        } = &page
        else {
            return None;
        };
        if column.max_rep_level() > 0 {
            return None;
        }
        let count = usize::try_from(*num_values).ok()?;
        let (ty, width) = (column.physical_type(), column.type_length());
        let values = Values::plain(buf.clone(), ty, width, count)?;
        let most = u32::try_from(column.max_def_level()).ok()?;
        Some(Self { page, values, most })
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let places = match &self.values {
            Values::Texts(_, begins) => begins.len(),
            _ => 0,
        };
        self.values.plain_size() + places * size_of::<usize>()
    }

    pub(crate) fn page(&self) -> Page {
        self.page.clone()
    }

    /// The page with its values; as it is if they take more space than the dictionary, or if it has
    /// no indexes.
    pub(crate) fn fill(&self, page: Page) -> Page {
        match &page {
            Page::DataPage {
                buf,
                num_values,
                encoding: Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY,
                def_level_encoding,
                rep_level_encoding,
                ..
            } if *def_level_encoding == Encoding::RLE || self.most == 0 => {
                match self.filled(buf, *num_values as usize) {
                    Some(buf) => Page::DataPage {
                        buf: buf.into(),
                        num_values: *num_values,
                        encoding: Encoding::PLAIN,
                        def_level_encoding: *def_level_encoding,
                        rep_level_encoding: *rep_level_encoding,
                        statistics: None,
                    },
                    None => page,
                }
            }
            _ => page,
        }
    }

    /// The levels of a page, then its values.
    fn filled(&self, page: &Bytes, rows: usize) -> Option<Vec<u8>> {
        let mut indexes = page.clone();
        let count = count_values(&mut indexes, rows, self.most)?;
        let values = Values::indexes(&indexes, count, &self.values)?;
        let levels = page.get(..page.len() - indexes.len())?;
        values.filled(levels, self.values.plain_size())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::Type;
    use parquet::schema::types::{ColumnPath, Type as SchemaType};

    use super::super::hybrid;
    use super::*;

    fn column(ty: Type, most: i16) -> ColumnDescriptor {
        let schema = SchemaType::primitive_type_builder("v", ty).build().unwrap();
        ColumnDescriptor::new(Arc::new(schema), most, 0, ColumnPath::from("v"))
    }

    fn dictionary(bytes: Vec<u8>, count: u32, column: &ColumnDescriptor) -> Dictionary {
        let page = Page::DictionaryPage {
            buf: bytes.into(),
            num_values: count,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        Dictionary::of(page, column).unwrap()
    }

    fn indexes(numbers: &[u32], levels: Option<&[u32]>) -> Page {
        let mut buf = Vec::new();
        if let Some(levels) = levels {
            let mut encoded = Vec::new();
            hybrid::encode(levels, 1, &mut encoded);
            buf.extend((encoded.len() as u32).to_le_bytes());
            buf.extend(encoded);
        }
        buf.push(3);
        hybrid::encode(numbers, 3, &mut buf);
        Page::DataPage {
            buf: buf.into(),
            num_values: levels.map_or(numbers, |levels| levels).len() as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn pages_get_the_values_of_their_indexes() {
        let fixed = column(Type::INT32, 0);
        let bytes = (10..18_i32).flat_map(i32::to_le_bytes).collect();
        let page = dictionary(bytes, 8, &fixed).fill(indexes(&[7, 0, 2], None));
        assert_eq!(page.encoding(), Encoding::PLAIN);
        let expected: Vec<u8> = [17_i32, 10, 12]
            .into_iter()
            .flat_map(i32::to_le_bytes)
            .collect();
        assert_eq!(page.buffer().as_ref(), expected);

        let texts = column(Type::BYTE_ARRAY, 1);
        let bytes = b"\x01\0\0\0a\x02\0\0\0bc\x0a\0\0\0abcdefghij".to_vec();
        let known = dictionary(bytes, 3, &texts);
        let page = known.fill(indexes(&[1, 0], Some(&[1, 0, 1])));
        let (levels, values) = page.buffer().split_at(page.buffer().len() - 11);
        assert_eq!(values, b"\x02\0\0\0bc\x01\0\0\0a");
        assert_eq!(hybrid::decode(&levels[4..], 1, 3).unwrap(), [1, 0, 1]);
        assert_eq!(page.num_values(), 3);
    }

    #[test]
    fn large_and_damaged_pages_keep_their_indexes() {
        let fixed = column(Type::INT32, 0);
        let bytes: Vec<u8> = (10..12_i32).flat_map(i32::to_le_bytes).collect();
        let known = dictionary(bytes, 2, &fixed);
        for numbers in [&[0, 1, 0][..], &[5]] {
            let page = known.fill(indexes(numbers, None));
            assert_eq!(page.encoding(), Encoding::RLE_DICTIONARY);
        }
    }
}
