//! Rows of a slice out of the footer, the pages and the dictionaries that are in memory.
//!
//! Nothing is read, and no reader of columns is built: readers take hundreds of small blocks of memory
//! for a row, and a row takes one for all of its values.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{
    ArrayData, ArrayRef, NullBufferBuilder, RecordBatch, make_array, new_null_array,
};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::{DataType, SchemaRef};
use parquet::basic::Type;
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::types::ColumnDescriptor;

use super::blocks::{BlockKeys, Logs};
use super::pages::{MAX_ROWS, locations, page_of};
use super::rows::{Footer, KeyRows};
use super::{Item, Lookup};
use crate::RECORD_KEY;
use crate::adapt::{adapt_column, with_schema};
use crate::base::{Dictionary, UnpackedPage, has_old_calendar, is_parquet};
use crate::names::select;
use crate::request::SliceRead;

/// Where values of any type may begin.
const ALIGNMENT: usize = 16;

/// Room for a value, at first.
const VALUE_BYTES: usize = 32;

/// What is known of a slice whose base file has all columns, under the table's names.
pub(super) struct InMemory {
    base: Arc<str>,
    logs: Arc<[String]>,
    schema: SchemaRef,
    /// Of the footer that was used last.
    columns: Mutex<Option<Arc<FileColumns>>>,
}

/// The columns of a schema in a file.
struct FileColumns {
    /// The number of the footer.
    footer: u64,
    /// None for a column that the file does not have. None for all if a reader is needed.
    columns: Option<Vec<Option<Column>>>,
    /// The least and the greatest key of each row group, if they are known.
    bounds: Vec<Option<(Vec<u8>, Vec<u8>)>>,
}

struct Column {
    leaf: usize,
    /// As the file has it.
    data_type: DataType,
    form: Form,
}

/// How values of the encoding PLAIN become those of Arrow.
#[derive(Clone, Copy)]
enum Form {
    /// They are the same, of so many bytes.
    Same(usize),
    Bit,
    Text,
    /// A decimal number, of the bytes with the least first or last.
    LittleEndian,
    BigEndian,
}

/// A row group, and a row of it.
type Row = (usize, usize);

impl InMemory {
    /// None for a slice whose base file gives other rows than the table has.
    pub(super) fn new(read: &SliceRead) -> Option<Self> {
        let base = read.base.as_deref().filter(|path| is_parquet(path))?;
        let is_renamed = read.evolution.as_ref().and_then(|e| e.at(&e.base));
        (read.bootstrap.is_none() && is_renamed.is_none()).then_some(())?;
        Some(Self {
            base: base.into(),
            logs: read.logs.as_slice().into(),
            schema: select(&read.schema, &read.columns).ok()?,
            columns: Mutex::default(),
        })
    }

    /// The rows that may have one of the keys, in at most one batch; none if a reader is needed.
    pub(super) fn rows(&self, lookup: &Lookup, keys: &[String]) -> Option<Vec<RecordBatch>> {
        if !lookup.has_no_log_records(&self.logs)? {
            return None;
        }
        let footer = lookup
            .cache
            .find::<Footer>(&Item::Footer(Arc::clone(&self.base)))?;
        let file = self.file_columns(&footer);
        let columns = file.columns.as_ref()?;
        let rows = self.rows_of_keys(lookup, keys, &file)?;
        if rows.is_empty() {
            return Some(Vec::new());
        }
        let (mut values, mut parts) = (Values::of(rows.len() * columns.len()), Vec::new());
        for column in columns.iter().flatten() {
            let mut values = values.column(column.form, rows.len());
            lookup.each_value(&footer, column.leaf, &rows, |value| values.push(value))?;
            parts.push(values.finish());
        }
        let (buffer, mut parts) = (Buffer::from(values.0), parts.into_iter());
        let arrays = columns
            .iter()
            .zip(self.schema.fields())
            .map(|(column, field)| {
                let Some(column) = column else {
                    return Some(new_null_array(field.data_type(), rows.len()));
                };
                let array = parts
                    .next()?
                    .array(&buffer, &column.data_type, rows.len())?;
                adapt_column(&array, field).ok()
            });
        let arrays = arrays.collect::<Option<Vec<_>>>()?;
        let batch = with_schema(arrays, &self.schema, rows.len());
        Some(vec![batch.ok()?])
    }

    /// The rows of the file that may have one of the keys, in order; none if they are not known.
    fn rows_of_keys(
        &self,
        lookup: &Lookup,
        keys: &[String],
        file: &FileColumns,
    ) -> Option<Vec<Row>> {
        let mut found = Vec::new();
        for (group, bounds) in file.bounds.iter().enumerate() {
            let item = Item::Rows(Arc::clone(&self.base), group);
            let Some(rows) = lookup.cache.find::<KeyRows>(&item) else {
                // The keys of this row group were never read.
                let (least, greatest) = bounds.as_ref()?;
                let within = |key: &String| (least.as_slice()..=greatest).contains(&key.as_bytes());
                if keys.iter().any(within) {
                    return None;
                }
                continue;
            };
            let mut rows = rows.of(&lookup.hashes);
            rows.dedup();
            found.extend(rows.into_iter().map(|row| (group, row as usize)));
        }
        (found.len() <= MAX_ROWS).then_some(found)
    }

    fn file_columns(&self, footer: &Footer) -> Arc<FileColumns> {
        let mut kept = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(columns) if columns.footer == footer.id => Arc::clone(columns),
            _ => {
                let columns = Arc::new(FileColumns::of(footer, &self.schema));
                *kept = Some(Arc::clone(&columns));
                columns
            }
        }
    }
}

impl FileColumns {
    fn of(footer: &Footer, schema: &SchemaRef) -> Self {
        let metadata = footer.arrow.metadata();
        let of_field = |name: &str| match footer.arrow.schema().fields().find(name) {
            Some((root, field)) => Column::of(footer, root, field.data_type()).map(Some),
            None => Some(None),
        };
        let columns = schema.fields().iter().map(|field| of_field(field.name()));
        let key = footer.arrow.schema().index_of(RECORD_KEY).ok();
        let key = key.and_then(|root| leaf_of(footer, root));
        let bounds = |group| key_bounds(group, key?);
        Self {
            footer: footer.id,
            columns: columns
                .collect::<Option<_>>()
                .filter(|_| !has_old_calendar(metadata)),
            bounds: metadata.row_groups().iter().map(bounds).collect(),
        }
    }
}

impl Column {
    /// None if its values take a reader.
    fn of(footer: &Footer, root: usize, data_type: &DataType) -> Option<Self> {
        let leaf = leaf_of(footer, root)?;
        let form = Form::of(&footer.arrow.parquet_schema().column(leaf), data_type)?;
        Some(Self {
            leaf,
            data_type: data_type.clone(),
            form,
        })
    }
}

/// The leaf of a top-level column that is not nested.
fn leaf_of(footer: &Footer, root: usize) -> Option<usize> {
    let schema = footer.arrow.parquet_schema();
    let is_plain = schema.root_schema().get_fields().get(root)?.is_primitive();
    let mut leaves = 0..schema.num_columns();
    let leaf = leaves.find(|leaf| schema.get_column_root_idx(*leaf) == root)?;
    is_plain.then_some(leaf)
}

fn key_bounds(group: &RowGroupMetaData, leaf: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let statistics = group.columns().get(leaf)?.statistics()?;
    // The old fields order texts as signed bytes.
    if statistics.is_min_max_deprecated() {
        return None;
    }
    let (least, greatest) = (statistics.min_bytes_opt()?, statistics.max_bytes_opt()?);
    Some((least.to_vec(), greatest.to_vec()))
}

impl Form {
    /// None if the values take a reader.
    fn of(column: &ColumnDescriptor, data_type: &DataType) -> Option<Self> {
        use DataType as T;
        if column.max_rep_level() > 0 {
            return None;
        }
        Some(match (column.physical_type(), data_type) {
            (Type::BOOLEAN, T::Boolean) => Self::Bit,
            (Type::INT32, T::Int32 | T::UInt32 | T::Date32 | T::Time32(_))
            | (Type::FLOAT, T::Float32) => Self::Same(4),
            (Type::INT64, T::Int64 | T::UInt64 | T::Timestamp(..) | T::Time64(_))
            | (Type::DOUBLE, T::Float64) => Self::Same(8),
            (Type::FIXED_LEN_BYTE_ARRAY, T::FixedSizeBinary(width)) => {
                Self::Same(usize::try_from(*width).ok()?)
            }
            (Type::BYTE_ARRAY, T::Utf8 | T::Binary) => Self::Text,
            (Type::INT32 | Type::INT64, T::Decimal128(..)) => Self::LittleEndian,
            (Type::FIXED_LEN_BYTE_ARRAY, T::Decimal128(..)) => Self::BigEndian,
            _ => return None,
        })
    }
}

/// Values of columns one after the other, in the form of Arrow.
struct Values(Vec<u8>);

impl Values {
    fn of(count: usize) -> Self {
        Self(Vec::with_capacity(count * VALUE_BYTES))
    }

    fn column(&mut self, form: Form, rows: usize) -> ColumnValues<'_> {
        let bytes = &mut self.0;
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        let begin = bytes.len();
        if matches!(form, Form::Text) {
            bytes.resize(begin + (rows + 1) * size_of::<i32>(), 0);
        }
        ColumnValues {
            begin,
            values: bytes.len(),
            bytes,
            form,
            rows: 0,
            nulls: NullBufferBuilder::new(rows),
        }
    }
}

/// The values of one column.
struct ColumnValues<'v> {
    bytes: &'v mut Vec<u8>,
    /// Where they begin; of texts their ends.
    begin: usize,
    /// Where they begin.
    values: usize,
    form: Form,
    rows: usize,
    nulls: NullBufferBuilder,
}

impl ColumnValues<'_> {
    /// None for a value of another length than the others.
    fn push(&mut self, value: Option<&[u8]>) -> Option<()> {
        self.nulls.append(value.is_some());
        let row = self.rows;
        self.rows += 1;
        match self.form {
            Form::Same(width) => {
                let end = self.bytes.len() + width;
                self.bytes.extend_from_slice(value.unwrap_or_default());
                if value.is_none() {
                    self.bytes.resize(end, 0);
                }
                (self.bytes.len() == end).then_some(())
            }
            Form::Bit => {
                if row.is_multiple_of(8) {
                    self.bytes.push(0);
                }
                let bit = u8::from(value == Some([1].as_slice()));
                *self.bytes.last_mut()? |= bit << (row % 8);
                Some(())
            }
            Form::Text => {
                self.bytes.extend_from_slice(value.unwrap_or_default());
                let end = i32::try_from(self.bytes.len() - self.values).ok()?;
                let at = self.begin + self.rows * size_of::<i32>();
                let place = self.bytes.get_mut(at..)?.first_chunk_mut()?;
                *place = end.to_le_bytes();
                Some(())
            }
            Form::LittleEndian => {
                let is_negative = value
                    .and_then(<[u8]>::last)
                    .is_some_and(|last| *last > 0x7f);
                self.push_decimal(value.unwrap_or_default().iter(), is_negative)
            }
            Form::BigEndian => {
                let is_negative = value
                    .and_then(<[u8]>::first)
                    .is_some_and(|first| *first > 0x7f);
                self.push_decimal(value.unwrap_or_default().iter().rev(), is_negative)
            }
        }
    }

    /// digits: bytes, the least first.
    fn push_decimal<'d>(
        &mut self,
        digits: impl ExactSizeIterator<Item = &'d u8>,
        is_negative: bool,
    ) -> Option<()> {
        let mut number = [if is_negative { 0xff } else { 0 }; size_of::<i128>()];
        (digits.len() <= number.len()).then_some(())?;
        for (to, from) in number.iter_mut().zip(digits) {
            *to = *from;
        }
        self.bytes.extend_from_slice(&number);
        Some(())
    }

    fn finish(mut self) -> ColumnPart {
        let is_text = matches!(self.form, Form::Text);
        ColumnPart {
            ends: is_text.then_some(self.begin..self.values),
            values: self.values..self.bytes.len(),
            nulls: self.nulls.finish(),
        }
    }
}

/// Where the values of a column are.
struct ColumnPart {
    /// Of texts.
    ends: Option<Range<usize>>,
    values: Range<usize>,
    nulls: Option<NullBuffer>,
}

impl ColumnPart {
    /// None for values that are none of the type: texts that are not UTF-8, say.
    fn array(self, buffer: &Buffer, data_type: &DataType, rows: usize) -> Option<ArrayRef> {
        let part = |range: Range<usize>| buffer.slice_with_length(range.start, range.len());
        let buffers = self.ends.into_iter().chain([self.values]).map(part);
        let data = ArrayData::builder(data_type.clone())
            .len(rows)
            .nulls(self.nulls)
            .buffers(buffers.collect())
            .build();
        data.ok().map(make_array)
    }
}

impl Lookup {
    /// Whether no log block has a record of the keys; none if that is not known.
    fn has_no_log_records(&self, paths: &Arc<[String]>) -> Option<bool> {
        if paths.is_empty() {
            return Some(true);
        }
        let item = Item::Logs(Arc::clone(paths), self.snapshot);
        for (file, block) in &self.cache.find::<Logs>(&item)?.blocks {
            let item = Item::Block(paths.get(*file)?.clone(), block.content_offset);
            let keys = self.cache.find::<BlockKeys>(&item)?;
            if !Option::as_ref(&keys)?.of(&self.hashes).is_empty() {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Gives the value of a column in each row; none if one is not in memory, or if `add` gives none.
    fn each_value(
        &self,
        footer: &Footer,
        leaf: usize,
        rows: &[Row],
        mut add: impl FnMut(Option<&[u8]>) -> Option<()>,
    ) -> Option<()> {
        for (group, row) in rows {
            let chunk = (*group, leaf);
            let locations = locations(footer.arrow.metadata(), chunk)?;
            let (page, row) = page_of(locations, *row)?;
            let page = self
                .cache
                .find::<UnpackedPage>(&Item::Page(footer.id, chunk, page))?;
            let dictionary = if page.has_indexes() {
                let item = Item::Dictionary(footer.id, chunk);
                Some(self.cache.find::<Dictionary>(&item)?)
            } else {
                None
            };
            add(page.value(row, dictionary.as_deref())?)?;
        }
        Some(())
    }
}
