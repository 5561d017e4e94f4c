//! A column of a row group without some of its rows: pages that lose none are copied, the others
//! are unpacked, cut and packed again. No value is decoded. A dictionary stays as it is, but for
//! values that no row has any more: they are blanked, since a user may delete rows to erase them.

mod bounds;
mod dictionary;
mod hybrid;
mod unpacked;
mod values;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::BooleanBuffer;
use bytes::{Buf, Bytes};
use parquet::basic::{BoundaryOrder, Compression, Encoding, Type};
use parquet::column::page::{CompressedPage, Page, PageReader};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnChunkMetaDataBuilder, ColumnIndexBuilder, LevelHistogram,
    OffsetIndexBuilder,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::writer::TrackedWrite;

use self::bounds::{Bounds, Order};
pub(crate) use self::dictionary::Dictionary;
pub(crate) use self::unpacked::{TakenRows, UnpackedPage};
use self::values::Values;
use crate::base_options::Codec;
use crate::column_encoder::write_page;

/// A column of a row group.
pub(super) struct Chunk<'a> {
    pub(super) metadata: &'a ColumnChunkMetaData,
    /// All of its pages.
    pub(super) pages: Bytes,
    pub(super) offsets: &'a OffsetIndexMetaData,
    pub(super) index: Option<&'a ColumnIndexMetaData>,
}

/// Whether pages of the column can be cut and packed in the codec, as far as the footer says.
pub(super) fn is_spliceable(column: &ColumnChunkMetaData, codec: Codec) -> bool {
    let same_codec = matches!(
        (codec, column.compression()),
        (Codec::Uncompressed, Compression::UNCOMPRESSED)
            | (Codec::Snappy, Compression::SNAPPY)
            | (Codec::Zstd, Compression::ZSTD(_))
    );
    same_codec && column.column_descr().max_rep_level() == 0
}

/// The pages of a column, and what the footer says of them.
pub(super) type Spliced = (Bytes, ColumnCloseResult);

impl Chunk<'_> {
    /// The column with those of its rows that stay. None where this cannot be done without decoding
    /// it, or not in the codec.
    pub(super) fn splice(&self, stay: &BooleanBuffer, codec: Codec) -> Result<Option<Spliced>> {
        if !is_spliceable(self.metadata, codec) {
            return Ok(None);
        }
        let Some(mut packer) = Packer::of(codec)? else {
            return Ok(None);
        };
        let order = self.index.and(Order::of(self.metadata.column_descr()));
        if order.is_none() && (self.index.is_some() || self.is_bounded()) {
            return Ok(None);
        }
        let mut out = Out::new(self, stay, order)?;
        let done = out.write_all(&mut packer)?;
        if done.is_none() || out.has_bounds_of_removed_values() {
            return Ok(None);
        }
        out.finish().map(Some)
    }

    fn is_bounded(&self) -> bool {
        let statistics = self.metadata.statistics();
        statistics.is_some_and(|one| one.min_bytes_opt().is_some())
    }

    fn begin(&self) -> u64 {
        self.metadata.byte_range().0
    }
}

/// What the footer says of a page.
struct PageNote {
    rows: usize,
    bytes: i32,
    nulls: i64,
    nans: Option<i64>,
    bounds: Option<Bounds>,
    levels: Option<Vec<i64>>,
    text_bytes: Option<i64>,
}

/// What is gone of a column.
#[derive(Default)]
struct Gone {
    nulls: i64,
    nans: i64,
    text_bytes: i64,
    /// Rows by definition level.
    levels: Vec<i64>,
    /// Bytes of pages before and after, unpacked.
    before: usize,
    after: usize,
}

struct Out<'a> {
    chunk: &'a Chunk<'a>,
    stay: &'a BooleanBuffer,
    order: Option<Order>,
    ty: Type,
    reader: SerializedPageReader<Part>,
    sink: TrackedWrite<Vec<u8>>,
    dictionary_bytes: usize,
    notes: Vec<(i64, PageNote)>,
    /// Bounds of the pages that there were.
    before: Vec<Option<Bounds>>,
    gone: Gone,
    /// How the pages that are cut use each value of the dictionary.
    uses: Vec<Use>,
    /// Which pages are copied.
    copied: Vec<bool>,
}

/// Whether rows have a value of the dictionary.
#[derive(Clone, Copy, Default)]
struct Use {
    /// A row that stays.
    by_kept: bool,
    /// A row that is removed.
    by_removed: bool,
}

impl Use {
    fn is_over(self) -> bool {
        self.by_removed && !self.by_kept
    }
}

impl<'a> Out<'a> {
    fn new(chunk: &'a Chunk<'a>, stay: &'a BooleanBuffer, order: Option<Order>) -> Result<Self> {
        let part = Part {
            begin: chunk.begin(),
            bytes: chunk.pages.clone(),
        };
        let locations = chunk.offsets.page_locations().clone();
        let (part, metadata) = (Arc::new(part), chunk.metadata);
        let levels = metadata.column_descr().max_def_level();
        Ok(Self {
            chunk,
            stay,
            order,
            ty: metadata.column_type(),
            reader: SerializedPageReader::new(part, metadata, stay.len(), Some(locations))?,
            uses: Vec::new(),
            copied: Vec::new(),
            sink: TrackedWrite::new(Vec::with_capacity(chunk.pages.len())),
            dictionary_bytes: 0,
            notes: Vec::new(),
            before: Vec::new(),
            gone: Gone {
                levels: vec![0; usize::try_from(levels).unwrap_or(0) + 1],
                ..Gone::default()
            },
        })
    }

    /// None where a page is of another form.
    fn write_all(&mut self, packer: &mut Packer) -> Result<Option<()>> {
        let locations = self.chunk.offsets.page_locations();
        let Some(first) = locations.first() else {
            return Ok(None);
        };
        let begin = self.chunk.begin();
        let Some(dictionary_bytes) = (first.offset as u64).checked_sub(begin) else {
            return Ok(None);
        };
        self.dictionary_bytes = dictionary_bytes as usize;
        let dictionary_page = if dictionary_bytes > 0 {
            self.reader.get_next_page()?
        } else {
            None
        };
        let Some(head) = self.chunk.pages.get(..self.dictionary_bytes) else {
            return Ok(None);
        };
        self.sink.write_all(head)?;
        let dictionary = match dictionary_page {
            Some(Page::DictionaryPage {
                buf, num_values, ..
            }) => {
                let Some(values) = self.plain(buf, num_values as usize) else {
                    return Ok(None);
                };
                self.uses = vec![Use::default(); values.len()];
                Some(values)
            }
            Some(_) => return Ok(None),
            None => None,
        };
        let mut row = 0;
        for (number, location) in locations.iter().enumerate() {
            let end = locations.get(number + 1).map(|next| next.first_row_index);
            let end = end.map_or(self.stay.len(), |end| end as usize);
            if location.first_row_index as usize != row || end <= row || end > self.stay.len() {
                return Ok(None);
            }
            let rows = self.stay.slice(row, end - row);
            row = end;
            let note = self.note(number, rows.len());
            self.before.push(note.bounds.clone());
            let is_whole = rows.count_set_bits() == rows.len();
            self.copied.push(is_whole);
            let written = if is_whole {
                self.copy(location.offset as u64, note)?
            } else {
                self.cut(&rows, note, dictionary.as_ref(), packer)?
            };
            if written.is_none() {
                return Ok(None);
            }
        }
        if row != self.stay.len() {
            return Ok(None);
        }
        match dictionary {
            Some(dictionary) => self.blank_unused(&dictionary, packer),
            None => Ok(Some(())),
        }
    }

    /// Blanks the values of the dictionary that only removed rows had.
    fn blank_unused(&mut self, dictionary: &Values<'_>, packer: &mut Packer) -> Result<Option<()>> {
        if !self.uses.iter().any(|each| each.is_over()) {
            return Ok(Some(()));
        }
        if self.count_uses_of_copied_pages(dictionary)?.is_none() {
            return Ok(None);
        }
        let is_over: Vec<bool> = self.uses.iter().map(|each| each.is_over()).collect();
        if !is_over.contains(&true) {
            return Ok(Some(()));
        }
        let Some(values) = dictionary.blank(&is_over) else {
            return Ok(None);
        };
        let page = Page::DictionaryPage {
            buf: packer.pack(&values)?,
            num_values: dictionary.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let page = CompressedPage::new(page, values.len());
        let mut sink = TrackedWrite::new(Vec::with_capacity(self.chunk.pages.len()));
        let written = write_page(&mut sink, page)?;
        self.gone.before += dictionary.plain_size();
        self.gone.after += values.len();
        let old = std::mem::replace(&mut self.sink, sink).into_inner()?;
        let pages = old.get(self.dictionary_bytes..).unwrap_or_default();
        let end = written.bytes_written;
        self.sink.write_all(pages)?;
        for (offset, _) in &mut self.notes {
            *offset += end as i64 - self.dictionary_bytes as i64;
        }
        self.dictionary_bytes = end as usize;
        Ok(Some(()))
    }

    /// Reads the pages that were copied for the values that they use.
    fn count_uses_of_copied_pages(&mut self, dictionary: &Values<'_>) -> Result<Option<()>> {
        let part = Part {
            begin: self.chunk.begin(),
            bytes: self.chunk.pages.clone(),
        };
        let locations = Some(self.chunk.offsets.page_locations().clone());
        let metadata = self.chunk.metadata;
        let mut reader =
            SerializedPageReader::new(Arc::new(part), metadata, self.stay.len(), locations)?;
        reader.get_next_page()?;
        let most = metadata.column_descr().max_def_level() as u32;
        for is_copied in &self.copied {
            if !is_copied {
                reader.skip_next_page()?;
                continue;
            }
            let Some(Page::DataPage {
                buf,
                num_values,
                encoding,
                ..
            }) = reader.get_next_page()?
            else {
                return Ok(None);
            };
            if encoding == Encoding::PLAIN {
                continue;
            }
            let Some(indexes) = indexes_of(buf, num_values as usize, most, dictionary) else {
                return Ok(None);
            };
            let all = 0..indexes.len();
            indexes.mark(&[all], &mut self.uses, |each| each.by_kept = true);
        }
        Ok(Some(()))
    }

    /// Whether bounds of the column, which are not those of its pages, may be of removed values.
    fn has_bounds_of_removed_values(&self) -> bool {
        let (Some(order), Some(statistics)) = (self.order, self.chunk.metadata.statistics()) else {
            return false;
        };
        let bounds = (statistics.min_bytes_opt(), statistics.max_bytes_opt());
        bounds::may_be_of_removed(bounds, &self.before, &self.after(), order)
    }

    /// Bounds of the pages that there are now.
    fn after(&self) -> Vec<Option<Bounds>> {
        let notes = self.notes.iter();
        notes.map(|(_, note)| note.bounds.clone()).collect()
    }

    fn plain(&self, bytes: Bytes, count: usize) -> Option<Values<'static>> {
        let width = self.chunk.metadata.column_descr().type_length();
        Values::plain(bytes, self.ty, width, count)
    }

    /// What the footer says of a page that there was.
    fn note(&self, page: usize, rows: usize) -> PageNote {
        let location = self.chunk.offsets.page_locations().get(page);
        let index = self
            .chunk
            .index
            .filter(|index| (page as u64) < index.num_pages());
        let texts = self.chunk.offsets.unencoded_byte_array_data_bytes();
        let levels = index.and_then(|index| index.definition_level_histogram(page));
        PageNote {
            rows,
            bytes: location.map_or(0, |location| location.compressed_page_size),
            nulls: index.and_then(|index| index.null_count(page)).unwrap_or(0),
            nans: index.and_then(|index| index.nan_count(page)),
            bounds: index.and_then(|index| bounds::of_page(index, page)),
            levels: levels.map(<[i64]>::to_vec),
            text_bytes: texts.and_then(|texts| texts.get(page).copied()),
        }
    }

    /// A page as it is.
    fn copy(&mut self, offset: u64, note: PageNote) -> Result<Option<()>> {
        let begin = offset.checked_sub(self.chunk.begin());
        let end = begin.and_then(|begin| begin.checked_add(u64::try_from(note.bytes).ok()?));
        let page = begin
            .zip(end)
            .map(|(begin, end)| begin as usize..end as usize);
        let Some(page) = page.and_then(|range| self.chunk.pages.get(range)) else {
            return Ok(None);
        };
        self.reader.skip_next_page()?;
        let at = self.sink.bytes_written() as i64;
        self.sink.write_all(page)?;
        self.notes.push((at, note));
        Ok(Some(()))
    }

    /// A page without some of its rows.
    fn cut(
        &mut self,
        rows: &BooleanBuffer,
        mut note: PageNote,
        dictionary: Option<&Values<'_>>,
        packer: &mut Packer,
    ) -> Result<Option<()>> {
        let Some(Page::DataPage {
            buf,
            num_values,
            encoding,
            def_level_encoding,
            rep_level_encoding,
            ..
        }) = self.reader.get_next_page()?
        else {
            return Ok(None);
        };
        let unpacked = buf.len();
        let cut = if num_values as usize == rows.len() && def_level_encoding == Encoding::RLE {
            self.cut_rows(rows, buf, encoding, &mut note, dictionary)
        } else {
            None
        };
        let Some(data) = cut else {
            return Ok(None);
        };
        if note.rows == 0 {
            self.gone.before += unpacked;
            return Ok(Some(()));
        }
        let page = Page::DataPage {
            buf: packer.pack(&data)?,
            num_values: note.rows as u32,
            encoding,
            def_level_encoding,
            rep_level_encoding,
            statistics: None,
        };
        let page = CompressedPage::new(page, data.len());
        let written = write_page(&mut self.sink, page)?;
        self.gone.before += unpacked;
        self.gone.after += data.len();
        note.bytes = written.compressed_size as i32;
        self.notes.push((written.offset as i64, note));
        Ok(Some(()))
    }

    /// The content of a page without some of its rows, and what the footer says of it.
    fn cut_rows(
        &mut self,
        rows: &BooleanBuffer,
        mut page: Bytes,
        encoding: Encoding,
        note: &mut PageNote,
        dictionary: Option<&Values<'_>>,
    ) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(page.len());
        let (stay, gone) = runs(rows);
        note.rows = rows.count_set_bits();
        let most = self.chunk.metadata.column_descr().max_def_level() as u32;
        let (values, stay, gone) = if most == 0 {
            self.count_levels(note, 0, rows.len() - note.rows);
            (rows.len(), stay, gone)
        } else {
            let (levels, width) = take_levels(&mut page, most)?;
            let at = out.len();
            out.extend([0; 4]);
            let cut = if hybrid::constant(&levels, width, rows.len()) == Some(most) {
                self.count_levels(note, most as usize, rows.len() - note.rows);
                hybrid::encode(&vec![most; note.rows], width, &mut out);
                (rows.len(), stay, gone)
            } else {
                let levels = hybrid::decode(&levels, width, rows.len())?;
                let cut = self.cut_levels(&levels, rows, most, note)?;
                hybrid::encode(&cut.0, width, &mut out);
                (cut.1, cut.2, cut.3)
            };
            let length = (out.len() - at - 4) as u32;
            out.get_mut(at..at + 4)?
                .copy_from_slice(&length.to_le_bytes());
            cut
        };
        let values = match encoding {
            Encoding::PLAIN => self.plain(page, values)?,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                Values::indexes(&page, values, dictionary?)?
            }
            _ => return None,
        };
        values.keep(&stay, &mut out)?;
        values.mark(&stay, &mut self.uses, |each| each.by_kept = true);
        values.mark(&gone, &mut self.uses, |each| each.by_removed = true);
        self.leave(&values, &gone, note);
        if let Some(bounds) = &note.bounds
            && bounds::are_cut_short(bounds, &values, &gone)
        {
            return None;
        }
        note.bounds = match (note.bounds.take(), self.order) {
            (Some(bounds), Some(order)) => bounds::narrowed(bounds, &values, &stay, &gone, order),
            _ => None,
        };
        Some(out)
    }

    /// The levels that stay, how many values there are, and runs of those that stay and that do not.
    #[expect(clippy::type_complexity, reason = "a list of parts for one caller")]
    fn cut_levels(
        &mut self,
        levels: &[u32],
        rows: &BooleanBuffer,
        most: u32,
        note: &mut PageNote,
    ) -> Option<(Vec<u32>, usize, Vec<Range<usize>>, Vec<Range<usize>>)> {
        let mut kept = Vec::with_capacity(note.rows);
        let mut value = 0;
        let (mut stay, mut gone): (Vec<Range<usize>>, Vec<Range<usize>>) = <_>::default();
        for (level, stays) in levels.iter().zip(rows) {
            if *level > most {
                return None;
            }
            if stays {
                kept.push(*level);
            } else {
                self.count_levels(note, *level as usize, 1);
                if *level < most {
                    self.gone.nulls += 1;
                    note.nulls -= 1;
                }
            }
            if *level == most {
                let runs = if stays { &mut stay } else { &mut gone };
                match runs.last_mut() {
                    Some(last) if last.end == value => last.end += 1,
                    _ => runs.push(value..value + 1),
                }
                value += 1;
            }
        }
        Some((kept, value, stay, gone))
    }

    fn count_levels(&mut self, note: &mut PageNote, level: usize, rows: usize) {
        let levels = note
            .levels
            .as_mut()
            .and_then(|levels| levels.get_mut(level));
        if let Some(count) = levels {
            *count -= rows as i64;
        }
        if let Some(count) = self.gone.levels.get_mut(level) {
            *count += rows as i64;
        }
    }

    /// Counts values that are gone.
    fn leave(&mut self, values: &Values<'_>, gone: &[Range<usize>], note: &mut PageNote) {
        let all = || {
            gone.iter()
                .flat_map(Range::clone)
                .filter_map(|at| values.value(at))
        };
        match self.ty {
            Type::BYTE_ARRAY => {
                let bytes = all().map(<[u8]>::len).sum::<usize>() as i64;
                self.gone.text_bytes += bytes;
                note.text_bytes = note.text_bytes.map(|all| all - bytes);
            }
            Type::FLOAT | Type::DOUBLE => {
                let nans = all().filter(|value| bounds::is_nan(value)).count() as i64;
                self.gone.nans += nans;
                note.nans = note.nans.map(|all| all - nans);
            }
            _ => {}
        }
    }

    fn finish(self) -> Result<Spliced> {
        let rows = self.stay.count_set_bits();
        let after = self.after();
        let mut offsets = OffsetIndexBuilder::new();
        for (offset, note) in &self.notes {
            offsets.append_row_count(note.rows as i64);
            offsets.append_offset_and_size(*offset, note.bytes);
            offsets.append_unencoded_byte_array_data_bytes(note.text_bytes);
        }
        let index = match self.chunk.index {
            Some(_) => Some(self.column_index(&after)?),
            None => None,
        };
        let metadata = self.metadata(rows, &after);
        let bytes: Bytes = self.sink.into_inner()?.into();
        let metadata = metadata.set_total_compressed_size(bytes.len() as i64);
        let closed = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: index,
            offset_index: Some(offsets.build()),
        };
        Ok((bytes, closed))
    }

    fn column_index(&self, after: &[Option<Bounds>]) -> Result<ColumnIndexMetaData> {
        let mut index = ColumnIndexBuilder::new(self.ty);
        index.set_boundary_order(match self.order {
            Some(order) => bounds::boundary_order(after, order),
            None => BoundaryOrder::UNORDERED,
        });
        for (_, note) in &self.notes {
            let (least, greatest) = note.bounds.clone().unwrap_or_default();
            index.append(
                note.bounds.is_none(),
                least,
                greatest,
                note.nulls,
                note.nans,
            );
            let levels = note.levels.clone().map(LevelHistogram::from);
            index.append_histograms(&None, &levels);
        }
        index.build()
    }

    fn metadata(&self, rows: usize, after: &[Option<Bounds>]) -> ColumnChunkMetaDataBuilder {
        let (old, gone) = (self.chunk.metadata, &self.gone);
        let unpacked = if old.compression() == Compression::UNCOMPRESSED {
            self.sink.bytes_written() as i64
        } else {
            old.uncompressed_size() + gone.after as i64 - gone.before as i64
        };
        let texts = old.unencoded_byte_array_data_bytes();
        let levels = old.definition_level_histogram().map(|old| {
            let left = old.values().iter().zip(&gone.levels);
            LevelHistogram::from(left.map(|(all, gone)| all - gone).collect::<Vec<_>>())
        });
        let begin = self.dictionary_bytes as i64;
        let builder = old
            .clone()
            .into_builder()
            .set_num_values(rows as i64)
            .set_total_uncompressed_size(unpacked)
            .set_data_page_offset(begin)
            .set_dictionary_page_offset((begin > 0).then_some(0))
            .set_unencoded_byte_array_data_bytes(texts.map(|all| all - gone.text_bytes))
            .set_definition_level_histogram(levels);
        let Some(statistics) = old.statistics() else {
            return builder;
        };
        let bounds = (statistics.min_bytes_opt(), statistics.max_bytes_opt());
        let bounds = match self.order {
            Some(order) => bounds::of_column(bounds, &self.before, after, order),
            None => (None, None),
        };
        let less = |all: Option<u64>, gone: i64| all.map(|all| all.saturating_sub(gone as u64));
        let nulls = less(statistics.null_count_opt(), gone.nulls);
        let nans = less(statistics.nan_count_opt(), gone.nans);
        builder.set_statistics(bounds::statistics(statistics, &bounds, nulls, nans))
    }
}

/// The indexes of a page whose values are in a dictionary. most: the definition level of values.
fn indexes_of<'a>(
    mut page: Bytes,
    rows: usize,
    most: u32,
    dictionary: &'a Values<'_>,
) -> Option<Values<'a>> {
    let values = count_values(&mut page, rows, most)?;
    Values::indexes(&page, values, dictionary)
}

/// Takes the definition levels off a page and counts the rows that have a value.
fn count_values(page: &mut Bytes, rows: usize, most: u32) -> Option<usize> {
    if most == 0 {
        return Some(rows);
    }
    let (levels, width) = take_levels(page, most)?;
    if hybrid::constant(&levels, width, rows) == Some(most) {
        return Some(rows);
    }
    let levels = hybrid::decode(&levels, width, rows)?;
    Some(levels.iter().filter(|level| **level == most).count())
}

/// Takes the definition levels off a page: their bytes, and the bits of each. most: the level of values.
fn take_levels(page: &mut Bytes, most: u32) -> Option<(Bytes, u8)> {
    let length = u32::from_le_bytes(*page.first_chunk::<4>()?) as usize;
    page.advance(4);
    (length <= page.len()).then(|| (page.split_to(length), bits(most)))
}

/// The bits of a level. most: the greatest level.
fn bits(most: u32) -> u8 {
    (u32::BITS - most.leading_zeros()) as u8
}

/// Runs of rows that stay, and of those that do not.
fn runs(rows: &BooleanBuffer) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let stay: Vec<Range<usize>> = rows.set_slices().map(|(begin, end)| begin..end).collect();
    let mut gone = Vec::with_capacity(stay.len() + 1);
    let mut at = 0;
    for run in &stay {
        if run.start > at {
            gone.push(at..run.start);
        }
        at = run.end;
    }
    if at < rows.len() {
        gone.push(at..rows.len());
    }
    (stay, gone)
}

/// Some bytes of a file, by their place there.
struct Part {
    begin: u64,
    bytes: Bytes,
}

impl Part {
    fn at(&self, start: u64) -> Result<Bytes> {
        let at = start.checked_sub(self.begin).map(|at| at as usize);
        let at = at.filter(|at| *at <= self.bytes.len());
        at.map(|at| self.bytes.slice(at..))
            .ok_or_else(|| ParquetError::EOF(format!("byte {start} is in no page of the column")))
    }
}

impl Length for Part {
    fn len(&self) -> u64 {
        self.begin + self.bytes.len() as u64
    }
}

impl ChunkReader for Part {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.at(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut bytes = self.at(start)?;
        if length > bytes.len() {
            let what = format!("a page at byte {start} ends beyond its column");
            return Err(ParquetError::EOF(what));
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// Packs pages in the codec of their column.
enum Packer {
    Plain,
    Snappy(Box<snap::raw::Encoder>),
    Zstd(Box<zstd::bulk::Compressor<'static>>),
}

impl Packer {
    /// None for codecs that are slow to pack.
    fn of(codec: Codec) -> Result<Option<Self>> {
        Ok(Some(match codec {
            Codec::Uncompressed => Self::Plain,
            Codec::Snappy => Self::Snappy(Box::new(snap::raw::Encoder::new())),
            Codec::Zstd => {
                let level = parquet::basic::ZstdLevel::default().compression_level();
                Self::Zstd(Box::new(zstd::bulk::Compressor::new(level)?))
            }
            Codec::Gzip | Codec::Lz4Raw | Codec::Brotli => return Ok(None),
        }))
    }

    fn pack(&mut self, page: &[u8]) -> Result<Bytes> {
        Ok(match self {
            Self::Plain => page.to_vec().into(),
            Self::Snappy(encoder) => {
                let packed = encoder.compress_vec(page);
                packed
                    .map_err(|error| ParquetError::External(Box::new(error)))?
                    .into()
            }
            Self::Zstd(compressor) => compressor.compress(page)?.into(),
        })
    }
}
