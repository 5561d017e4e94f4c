//! Columns of a row group that need no encoder: those of one value, as Hudi's own columns often are in a file,
//! and those that equal the record key.
//!
//! Of a column of one value two pages are encoded, and the first stands in the row group as often as the
//! rows need it. A column that equals the record key gets the key's pages.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_writer::compute_leaves;
use parquet::basic::{BoundaryOrder, PageType, Type as Physical};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnChunkMetaDataBuilder, ColumnIndexBuilder, LevelHistogram,
    OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::{ColumnDescPtr, Type};

use crate::RECORD_KEY;
use crate::column_encoder::{ColumnEncoder, ColumnEncoders, EncodedColumn};
use crate::error::SliceError;
use crate::meta::repeated;

/// Rows of a page of one value; the crate ends no page before.
const PAGE_ROWS: usize = 16 << 10;

/// A row group that begins with fewer rows is encoded as it is.
const LEAST_ROWS: usize = 2048;

/// Where the pages of a column come from.
#[derive(Debug, Clone)]
pub(crate) enum Pages {
    /// Its own encoder.
    Encoded,
    /// A page of the value of this column, which all rows have so far.
    OneValue(StringArray),
    /// The record key, which all rows have so far.
    RecordKey,
}

/// The columns of a row group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repeats {
    fields: Vec<Pages>,
    key: Option<usize>,
}

impl Repeats {
    /// Of a row group that begins with a batch.
    pub(crate) fn of(batch: &RecordBatch) -> Self {
        let schema = batch.schema();
        let key = schema.index_of(RECORD_KEY).ok();
        let keys = key.and_then(|key| strings(batch.column(key)));
        let pages_of = |(at, column): (usize, &ArrayRef)| match strings(column) {
            Some(values) if Some(at) != key && batch.num_rows() >= LEAST_ROWS => {
                if has_one_value(values) {
                    Pages::OneValue(values.clone())
                } else if key < Some(at)
                    && same_levels(&schema, key, at)
                    && keys.is_some_and(|keys| same_values(values, keys))
                {
                    Pages::RecordKey
                } else {
                    Pages::Encoded
                }
            }
            _ => Pages::Encoded,
        };
        Self {
            fields: batch.columns().iter().enumerate().map(pages_of).collect(),
            key,
        }
    }

    pub(crate) fn pages(&self, field: usize) -> &Pages {
        self.fields.get(field).unwrap_or(&Pages::Encoded)
    }

    /// The record key, if another column has its pages.
    pub(crate) fn copied(&self) -> Option<usize> {
        let copied = |pages: &Pages| matches!(pages, Pages::RecordKey);
        self.key.filter(|_| self.fields.iter().any(copied))
    }

    /// Whether the columns that equal the record key do so in these rows.
    pub(crate) fn keys_go_on(&self, batch: &RecordBatch) -> bool {
        let Some(key) = self.copied() else {
            return true;
        };
        let keys = strings(batch.column(key));
        let mut fields = self.fields.iter().zip(batch.columns());
        fields.all(|(pages, column)| match pages {
            Pages::RecordKey => keys
                .zip(strings(column))
                .is_some_and(|(keys, values)| same_values(values, keys)),
            _ => true,
        })
    }

    /// Columns of one value that have another one in these rows: they get their encoder from now on.
    pub(crate) fn take_ended(&mut self, batch: &RecordBatch) -> Vec<(usize, StringArray)> {
        let mut ended = Vec::new();
        for (field, (pages, column)) in self.fields.iter_mut().zip(batch.columns()).enumerate() {
            if let Pages::OneValue(value) = pages {
                let goes_on = strings(column)
                    .is_some_and(|values| has_one_value(values) && values.slice(0, 1) == *value);
                if !goes_on && batch.num_rows() > 0 {
                    ended.push((field, value.clone()));
                    *pages = Pages::Encoded;
                }
            }
        }
        ended
    }
}

/// Whether two columns can have the same pages.
fn same_levels(schema: &Schema, key: Option<usize>, at: usize) -> bool {
    key.is_some_and(|key| schema.field(key).is_nullable() == schema.field(at).is_nullable())
}

fn strings(column: &ArrayRef) -> Option<&StringArray> {
    match column.data_type() {
        DataType::Utf8 => column
            .as_string_opt::<i32>()
            .filter(|strings| strings.null_count() == 0),
        _ => None,
    }
}

fn has_one_value(strings: &StringArray) -> bool {
    let rows = strings.len();
    if rows == 0 || strings.value(0) != strings.value(rows - 1) {
        return false;
    }
    let (offsets, len) = (strings.value_offsets(), strings.value_length(0));
    let equal_lengths = offsets.windows(2).all(|pair| match pair {
        [start, end] => end - start == len,
        _ => false,
    });
    let all = text(strings);
    equal_lengths && all.get(len as usize..) == all.get(..all.len() - len as usize)
}

/// Whether one column is the first rows of the other in memory.
fn begins(strings: &StringArray, part: &StringArray) -> bool {
    part.len() <= strings.len()
        && part.value_offsets().as_ptr() == strings.value_offsets().as_ptr()
        && part.values().as_ptr() == strings.values().as_ptr()
}

fn same_values(some: &StringArray, others: &StringArray) -> bool {
    let (offsets, other) = (some.offsets(), others.offsets());
    if some.len() == others.len() && begins(some, others) {
        return true;
    }
    let start = |strings: &StringArray| strings.value_offsets().first().copied().unwrap_or(0);
    let (first, other_first) = (start(some), start(others));
    let mut both = offsets.iter().zip(other.iter());
    offsets.len() == other.len()
        && both.all(|(a, b)| a - first == b - other_first)
        && text(some) == text(others)
}

/// The bytes of all values.
fn text(strings: &StringArray) -> &[u8] {
    let offsets = strings.value_offsets();
    let ends = offsets.first().zip(offsets.last());
    let ends = ends.map_or(0..0, |(start, end)| *start as usize..*end as usize);
    strings.values().get(ends).unwrap_or_default()
}

/// A column of a file on its own.
pub(crate) struct OneColumn {
    pub(crate) descriptor: ColumnDescPtr,
    pub(crate) properties: WriterPropertiesPtr,
    /// Of the file's schema.
    pub(crate) root: Type,
    pub(crate) field: Arc<Field>,
}

impl OneColumn {
    /// A column of this number of rows, all with this value.
    pub(crate) fn of_one_value(&self, value: &str, rows: usize) -> Result<ColumnChunk> {
        let last_rows = (rows - 1) % PAGE_ROWS + 1;
        let times = (rows - last_rows) / PAGE_ROWS;
        if times > 1 {
            let (page, last) = (
                self.encoded(value, PAGE_ROWS)?,
                self.encoded(value, last_rows)?,
            );
            if let Some(chunk) = self.repeated(&page, times, &last, rows)? {
                return Ok(chunk);
            }
        }
        self.encoded(value, rows)
    }

    fn encoded(&self, value: &str, rows: usize) -> Result<ColumnChunk> {
        let schema = Arc::new(Schema::new(vec![Arc::clone(&self.field)]));
        let properties = self.properties.as_ref().clone();
        let encoders = ColumnEncoders::of_columns(self.root.clone(), schema, properties)?;
        let mut encoder = encoders
            .create(0)?
            .into_iter()
            .next()
            .ok_or_else(no_column)?;
        write_value(&mut encoder, &self.field, value, rows)?;
        Ok(ColumnChunk::of(&encoder.close()?))
    }

    /// `times` times the page of a column, then the page of another. [`None`] if one has more pages.
    fn repeated(
        &self,
        page: &ColumnChunk,
        times: usize,
        last: &ColumnChunk,
        rows: usize,
    ) -> Result<Option<ColumnChunk>> {
        let (Some(dictionary), Some(last_dictionary)) = (page.dictionary(), last.dictionary())
        else {
            return Ok(None);
        };
        if dictionary != last_dictionary {
            return Ok(None);
        }
        let ending = last.bytes.get(dictionary.len()..).unwrap_or_default();
        let repeated = page.bytes.get(dictionary.len()..).unwrap_or_default();
        let mut bytes = dictionary.to_vec();
        let mut offsets = OffsetIndexBuilder::new();
        let unencoded = page.metadata.unencoded_byte_array_data_bytes();
        let last_unencoded = last.metadata.unencoded_byte_array_data_bytes();
        let pages = std::iter::repeat_n((repeated, PAGE_ROWS, unencoded), times);
        for (page, rows, unencoded) in
            pages.chain([(ending, rows - times * PAGE_ROWS, last_unencoded)])
        {
            offsets.append_row_count(rows as i64);
            offsets.append_offset_and_size(bytes.len() as i64, page.len() as i32);
            offsets.append_unencoded_byte_array_data_bytes(unencoded);
            bytes.extend_from_slice(page);
        }
        let sum = |page: i64, last: i64| page * times as i64 + last;
        let of_dictionary = uncompressed_size(dictionary) * times as i64;
        let uncompressed = sum(
            page.metadata.uncompressed_size(),
            last.metadata.uncompressed_size(),
        );
        let data_at = dictionary.len() as i64;
        let mut metadata = copy_of(&page.metadata, &self.descriptor)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(uncompressed - of_dictionary)
            .set_num_values(rows as i64)
            .set_dictionary_page_offset((data_at > 0).then_some(0))
            .set_data_page_offset(data_at)
            .set_unencoded_byte_array_data_bytes(
                unencoded
                    .zip(last_unencoded)
                    .map(|(page, last)| sum(page, last)),
            )
            .set_definition_level_histogram(summed(
                page.metadata.definition_level_histogram(),
                last.metadata.definition_level_histogram(),
                times,
            ))
            .set_repetition_level_histogram(summed(
                page.metadata.repetition_level_histogram(),
                last.metadata.repetition_level_histogram(),
                times,
            ));
        if let Some(counts) = page.metadata.page_encoding_stats() {
            let counts = counts.iter().map(|count| PageEncodingStats {
                count: match count.page_type {
                    PageType::DICTIONARY_PAGE => count.count,
                    _ => times as i32 + 1,
                },
                ..count.clone()
            });
            metadata = metadata.set_page_encoding_stats(counts.collect());
        }
        Ok(Some(ColumnChunk {
            bytes: bytes.into(),
            rows: rows as u64,
            metadata: metadata.build()?,
            column_index: repeated_bounds(page, times, last)?,
            offset_index: Some(offsets.build()),
        }))
    }
}

/// Gives the encoder of a column rows of one value.
pub(crate) fn write_value(
    encoder: &mut ColumnEncoder,
    field: &Field,
    value: &str,
    rows: usize,
) -> Result<()> {
    let other = |error: SliceError| ParquetError::External(Box::new(error));
    let part = repeated(value, rows.min(PAGE_ROWS)).map_err(other)?;
    let mut left = rows;
    while left > 0 {
        let part: ArrayRef = Arc::new(part.slice(0, left.min(part.len())));
        for leaf in compute_leaves(field, &part)? {
            encoder.write(&leaf)?;
        }
        left -= part.len();
    }
    Ok(())
}

/// An encoded column of a row group.
pub(crate) struct ColumnChunk {
    pub(crate) bytes: Bytes,
    rows: u64,
    metadata: ColumnChunkMetaData,
    column_index: Option<ColumnIndexMetaData>,
    offset_index: Option<OffsetIndexMetaData>,
}

impl ColumnChunk {
    pub(crate) fn of(column: &EncodedColumn) -> Self {
        let closed = &column.closed;
        Self {
            bytes: column.bytes(),
            rows: closed.rows_written,
            metadata: closed.metadata.clone(),
            column_index: closed.column_index.clone(),
            offset_index: closed.offset_index.clone(),
        }
    }

    /// What a row group records of it as that column, for `bytes`.
    pub(crate) fn closed(&self, as_column: &ColumnDescPtr) -> Result<ColumnCloseResult> {
        let (start, _) = self.metadata.byte_range();
        let at = |offset: i64| offset - start as i64;
        let metadata = copy_of(&self.metadata, as_column)
            .set_dictionary_page_offset(self.metadata.dictionary_page_offset().map(at))
            .set_data_page_offset(at(self.metadata.data_page_offset()));
        let mut offset_index = self.offset_index.clone();
        if let Some(index) = &mut offset_index {
            // The pages follow each other, behind the dictionary.
            let mut offset = at(self.metadata.data_page_offset());
            for location in &mut index.page_locations {
                location.offset = offset;
                offset += i64::from(location.compressed_page_size);
            }
        }
        Ok(ColumnCloseResult {
            bytes_written: self.bytes.len() as u64,
            rows_written: self.rows,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: self.column_index.clone(),
            offset_index,
        })
    }

    /// The dictionary page, empty if there is none. [`None`] unless one data page follows.
    fn dictionary(&self) -> Option<&[u8]> {
        let pages = self.offset_index.as_ref()?.page_locations().len();
        let (start, _) = self.metadata.byte_range();
        let end = self.metadata.data_page_offset() - start as i64;
        self.bytes.get(..end as usize).filter(|_| pages == 1)
    }
}

fn no_column() -> ParquetError {
    ParquetError::General("the file has no such column".to_owned())
}

/// The metadata of a column as that of another one.
fn copy_of(
    metadata: &ColumnChunkMetaData,
    as_column: &ColumnDescPtr,
) -> ColumnChunkMetaDataBuilder {
    let mut copy = ColumnChunkMetaData::builder(Arc::clone(as_column))
        .set_compression_codec(metadata.compression_codec())
        .set_encodings_mask(*metadata.encodings_mask())
        .set_total_compressed_size(metadata.compressed_size())
        .set_total_uncompressed_size(metadata.uncompressed_size())
        .set_num_values(metadata.num_values())
        .set_dictionary_page_offset(metadata.dictionary_page_offset())
        .set_data_page_offset(metadata.data_page_offset())
        .set_unencoded_byte_array_data_bytes(metadata.unencoded_byte_array_data_bytes())
        .set_repetition_level_histogram(metadata.repetition_level_histogram().cloned())
        .set_definition_level_histogram(metadata.definition_level_histogram().cloned());
    if let Some(statistics) = metadata.statistics() {
        copy = copy.set_statistics(statistics.clone());
    }
    if let Some(counts) = metadata.page_encoding_stats() {
        copy = copy.set_page_encoding_stats(counts.clone());
    }
    copy
}

fn summed(
    page: Option<&LevelHistogram>,
    last: Option<&LevelHistogram>,
    times: usize,
) -> Option<LevelHistogram> {
    let (page, last) = page.zip(last)?;
    let both = page.values().iter().zip(last.values());
    let sums: Vec<i64> = both
        .map(|(page, last)| page * times as i64 + last)
        .collect();
    Some(sums.into())
}

/// The bounds of all pages.
fn repeated_bounds(
    page: &ColumnChunk,
    times: usize,
    last: &ColumnChunk,
) -> Result<Option<ColumnIndexMetaData>> {
    let (
        Some(ColumnIndexMetaData::BYTE_ARRAY(bounds)),
        Some(ColumnIndexMetaData::BYTE_ARRAY(last_bounds)),
    ) = (&page.column_index, &last.column_index)
    else {
        return Ok(None);
    };
    let mut index = ColumnIndexBuilder::new(Physical::BYTE_ARRAY);
    index.set_boundary_order(BoundaryOrder::ASCENDING);
    for bounds in std::iter::repeat_n(bounds, times).chain([last_bounds]) {
        let (Some(min), Some(max)) = (bounds.min_value(0), bounds.max_value(0)) else {
            return Ok(None);
        };
        let nulls = bounds.null_count(0).unwrap_or_default();
        index.append(false, min.to_vec(), max.to_vec(), nulls, None);
        let levels = |counts: Option<&[i64]>| counts.map(|one| LevelHistogram::from(one.to_vec()));
        index.append_histograms(
            &levels(bounds.repetition_level_histogram(0)),
            &levels(bounds.definition_level_histogram(0)),
        );
    }
    index.build().map(Some)
}

/// The bytes of a page before it was compressed, with its header: that is a struct of Thrift's compact protocol,
/// whose second and third field are the sizes.
fn uncompressed_size(page: &[u8]) -> i64 {
    let mut bytes = page.iter();
    let mut field = || {
        // The field's type comes first.
        bytes.next()?;
        let (mut number, mut shift) = (0_i64, 0);
        loop {
            let byte = *bytes.next()?;
            number |= i64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift > 28 {
                return Some(number >> 1);
            }
        }
    };
    let (_, uncompressed, compressed) = (field(), field(), field());
    let sizes = uncompressed.zip(compressed);
    sizes.map_or(0, |(uncompressed, compressed)| {
        page.len() as i64 - compressed + uncompressed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_value_are_recognized() {
        for (values, one) in [
            (&["ab"; 5][..], true),
            (&[""; 3], true),
            (&["ab", "ab", "cb", "ab"], false),
            (&["ab", "a", "bab", "ab"], false),
            (&["a"], true),
            (&[], false),
        ] {
            assert_eq!(
                has_one_value(&StringArray::from(values.to_vec())),
                one,
                "{values:?}"
            );
        }
        let part = StringArray::from(vec!["x", "ab", "ab", "y"]).slice(1, 2);
        assert!(has_one_value(&part));
    }

    #[test]
    fn equal_columns_are_recognized() {
        let all = StringArray::from(vec!["x", "ab", "", "y"]);
        let part = StringArray::from(vec!["ab", ""]);
        assert!(same_values(&all.slice(1, 2), &part));
        assert!(same_values(&all, &all.clone()));
        for other in [vec!["a", "b"], vec!["ab"], vec!["ab", "x"]] {
            assert!(!same_values(&part, &StringArray::from(other)));
        }
    }
}
