//! Writing rows as a Parquet file, with bounds of floating numbers that every reader takes right.
//!
//! The crate bounds floating numbers in the total order of IEEE 754, which leaves NaN out and tells
//! zeros apart. parquet-java does not know that order: it takes bounds only where both are the same,
//! and then loses NaN and the other zero, and Hudi takes zeros for all other bounds when it makes
//! statistics out of footers. So footers name the order of the type here, and its rules hold: where
//! there is NaN there are no bounds, and a zero is -0.0 as least and 0.0 as greatest value.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Neg;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{PageStoreFactory, compute_leaves};
use parquet::basic::{BoundaryOrder, Type};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnIndexBuilder, KeyValue, LevelHistogram};
use parquet::file::page_index::column_index::{ColumnIndexMetaData, PrimitiveColumnIndex};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{SchemaDescriptor, Type as SchemaType};

use pyhudi_format::{CHECKSUMS_KEY, FileChecksums, NO_CHECKSUMS};

use crate::base::{KeptColumn, KeptGroup};
use crate::column_encoder::{ColumnEncoder, ColumnEncoders, EncodedColumn, Stores};
use crate::column_parts::{ColumnPart, column_parts};
use crate::leaf_writers::{Helped, write_leaves};
use crate::parquet_form::ParquetForm;
use crate::repeats::{ColumnChunk, OneColumn, Pages, Repeats, write_value};

/// How much larger rows are in memory than in a file, before a row group tells.
const GUESSED_RATIO: usize = 4;

/// A Parquet file that is being written.
pub(crate) struct ParquetFile<W: Write + Send> {
    file: SerializedFileWriter<Held<W>>,
    /// One, or several where the table is wide.
    parts: Vec<ColumnPart>,
    schema: SchemaRef,
    group: Option<Group>,
    /// Bytes of rows in memory for which the finished row groups of a wide table were written.
    waited: usize,
    helped: Option<Helped>,
}

/// The row group that is being filled. It has rows.
struct Group {
    content: Content,
    rows: usize,
}

enum Content {
    /// The rows are encoded as they come, but for columns that repeat.
    Encoded(Vec<ColumnEncoder>, Repeats),
    /// The rows of a wide table are encoded when the row group ends, one part of the columns after
    /// the other: encoders of all columns would take more memory than the rows.
    Waiting(Vec<RecordBatch>, usize),
}

impl Group {
    /// In memory.
    fn bytes(&self) -> usize {
        match &self.content {
            Content::Encoded(columns, _) => columns.iter().map(ColumnEncoder::bytes).sum(),
            Content::Waiting(_, bytes) => *bytes,
        }
    }
}

impl<W: Write + Send> ParquetFile<W> {
    pub(crate) fn create(to: W, form: &ParquetForm) -> Result<Self> {
        let schema = Arc::clone(form.schema());
        let to = Held {
            to,
            data: crc32fast::Hasher::new(),
            end: None,
        };
        let stores = Arc::new(Stores::default());
        let options = form.options(Arc::clone(&stores) as Arc<dyn PageStoreFactory>);
        let writer = ArrowWriter::try_new_with_options(to, Arc::clone(&schema), options)?;
        let (file, columns) = writer.into_serialized_writer()?;
        let columns = ColumnEncoders::of_file(columns, stores);
        Ok(Self {
            parts: column_parts(&file, columns, &schema)?,
            file,
            schema,
            group: None,
            waited: 0,
            helped: form.two_threads.then(Helped::new),
        })
    }

    /// Adds rows of the form's schema.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let rows = self.rows_that_fit(rest.num_rows());
            if rows > 0 {
                self.add(&rest.slice(0, rows))?;
                rest = rest.slice(rows, rest.num_rows() - rows);
            }
            if rows == 0 || self.is_full() {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Adds a row group of another file of this schema as it stands, but for a column that gets
    /// these texts, again and again.
    pub(crate) fn keep(
        &mut self,
        group: KeptGroup,
        own: Option<(usize, &StringArray)>,
    ) -> Result<()> {
        self.end_group()?;
        let mut fresh = HashMap::new();
        if let Some((column, texts)) = own {
            let repeated = (0..group.rows).step_by(texts.len().max(1)).map(|row| {
                let left = usize::try_from(group.rows - row).unwrap_or(usize::MAX);
                Ok(Arc::new(texts.slice(0, left.min(texts.len()))) as ArrayRef)
            });
            fresh.extend(self.encoded(column, repeated)?);
        }
        for (column, batches) in group.decoded {
            let values = batches.map(|batch| {
                let batch = batch.map_err(|error| ParquetError::External(Box::new(error)))?;
                Ok(Arc::clone(batch.column(0)))
            });
            fresh.extend(self.encoded(column, values)?);
        }
        let mut row_group = self.file.next_row_group()?;
        for (leaf, column) in group.columns.into_iter().enumerate() {
            match (fresh.remove(&leaf), column) {
                (Some(column), _) => column.append_to(&mut row_group)?,
                (None, KeptColumn::Copied(pages, closed)) => {
                    row_group.append_column(&pages, *closed)?;
                }
                (None, KeptColumn::Spliced(pages, closed)) => {
                    row_group.append_column(&pages, *closed)?;
                }
                (None, KeptColumn::Written) => {
                    let what = format!("no values of column {leaf}");
                    return Err(ParquetError::General(what));
                }
            }
        }
        row_group.close()?;
        Ok(())
    }

    /// The leaves of a column that has these values, by number.
    fn encoded(
        &self,
        column: usize,
        values: impl Iterator<Item = Result<ArrayRef>>,
    ) -> Result<Vec<(usize, EncodedColumn)>> {
        let schema = self.file.schema_descr();
        let leaves: Vec<usize> = (0..schema.num_columns())
            .filter(|leaf| schema.get_column_root_idx(*leaf) == column)
            .collect();
        let unknown = || ParquetError::General(format!("the file has no column {column}"));
        let first = *leaves.first().ok_or_else(unknown)?;
        let part = self.parts.iter().find(|part| part.leaves.contains(&first));
        let part = part.ok_or_else(unknown)?;
        let mut writers = part.writers(self.file.flushed_row_groups().len())?;
        let mut writers: Vec<_> = writers
            .drain(first - part.leaves.start..)
            .take(leaves.len())
            .collect();
        for values in values {
            let levels = compute_leaves(self.schema.field(column), &values?)?;
            for (writer, leaf) in writers.iter_mut().zip(levels) {
                writer.write(&leaf)?;
            }
        }
        let chunks = leaves.into_iter().zip(writers).map(|(leaf, writer)| {
            let mut column = writer.close()?;
            bound_by_type(&mut column.closed)?;
            Ok((leaf, column))
        });
        chunks.collect()
    }

    /// How large the file is so far, by estimate.
    pub(crate) fn bytes(&self) -> usize {
        let written = self.file.bytes_written();
        written
            + self.group.as_ref().map_or(0, |group| match &group.content {
                Content::Encoded(..) => group.bytes(),
                Content::Waiting(_, bytes) if self.waited == 0 => bytes / GUESSED_RATIO,
                Content::Waiting(_, bytes) => {
                    let ratio = written as f64 / self.waited as f64;
                    (*bytes as f64 * ratio) as usize
                }
            })
    }

    pub(crate) fn footer(&mut self, key: &str, value: String) {
        self.file
            .append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }

    /// Writes the footer, and gives back what the file was written to.
    pub(crate) fn finish(mut self) -> Result<W> {
        self.end_group()?;
        self.footer(CHECKSUMS_KEY, NO_CHECKSUMS.to_owned());
        self.file.flush()?;
        self.file.inner_mut().end = Some(Vec::new());
        let columns = self.file.schema_descr().num_columns();
        let Held { mut to, data, end } = self.file.into_inner()?;
        let mut end = end.unwrap_or_default();
        name_order_of_type(&mut end, columns)?;
        FileChecksums::write(&mut end, data.finalize()).ok_or_else(|| {
            ParquetError::General("the footer has no place for checksums".to_owned())
        })?;
        to.write_all(&end)?;
        Ok(to)
    }

    /// How many of `rows` rows fit into the row group, if they are as large as those in it.
    fn rows_that_fit(&self, rows: usize) -> usize {
        let (Some(limit), Some(group)) = (self.group_bytes(), &self.group) else {
            return rows;
        };
        let bytes = group.bytes();
        let fit = limit.saturating_sub(bytes).checked_div(bytes / group.rows);
        fit.map_or(rows, |fit| fit.min(rows))
    }

    fn is_full(&self) -> bool {
        match (self.group_bytes(), &self.group) {
            (Some(limit), Some(group)) => group.bytes() >= limit,
            _ => false,
        }
    }

    fn group_bytes(&self) -> Option<usize> {
        self.file.properties().max_row_group_bytes()
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        if let Some(Group {
            content: Content::Encoded(_, repeats),
            ..
        }) = &self.group
            && !repeats.keys_go_on(batch)
        {
            self.end_group()?;
        }
        let group = match &mut self.group {
            Some(group) => group,
            none => {
                let content = match self.parts.as_slice() {
                    [all] => Content::Encoded(
                        all.writers(self.file.flushed_row_groups().len())?,
                        Repeats::of(batch),
                    ),
                    _ => Content::Waiting(Vec::new(), 0),
                };
                none.insert(Group { content, rows: 0 })
            }
        };
        let rows = group.rows;
        group.rows += batch.num_rows();
        match &mut group.content {
            Content::Encoded(columns, repeats) => {
                for (field, value) in repeats.take_ended(batch) {
                    let leaves = self.file.schema_descr();
                    let leaf = |leaf: &usize| leaves.get_column_root_idx(*leaf) == field;
                    let column = (0..columns.len()).find(leaf);
                    if let Some(column) = column.and_then(|leaf| columns.get_mut(leaf)) {
                        write_value(column, self.schema.field(field), value.value(0), rows)?;
                    }
                }
                write_leaves(columns, &self.schema, batch, self.helped.as_ref(), repeats)
            }
            Content::Waiting(batches, bytes) => {
                for column in batch.columns() {
                    // Of a slice, not of what it is a slice of.
                    *bytes += column.to_data().get_slice_memory_size()?;
                }
                batches.push(batch.clone());
                Ok(())
            }
        }
    }

    fn end_group(&mut self) -> Result<()> {
        let Some(group) = self.group.take() else {
            return Ok(());
        };
        let number = self.file.flushed_row_groups().len();
        let leaves = self.file.schema_descr().clone();
        let properties = Arc::clone(self.file.properties());
        let mut row_group = self.file.next_row_group()?;
        match group.content {
            Content::Encoded(columns, repeats) => {
                let described = Described {
                    schema: &self.schema,
                    leaves,
                    properties,
                };
                append_repeated(&mut row_group, columns, &repeats, &described, group.rows)?;
            }
            Content::Waiting(batches, bytes) => {
                self.waited += bytes;
                for part in &self.parts {
                    let mut columns = part.writers(number)?;
                    for batch in &batches {
                        let batch = part.columns_of(batch)?;
                        let schema = batch.schema();
                        let none = Repeats::default();
                        write_leaves(&mut columns, &schema, &batch, self.helped.as_ref(), &none)?;
                    }
                    append(&mut row_group, columns)?;
                }
            }
        }
        row_group.close()?;
        Ok(())
    }
}

fn append<W: Write + Send>(
    row_group: &mut SerializedRowGroupWriter<'_, W>,
    columns: Vec<ColumnEncoder>,
) -> Result<()> {
    for column in columns {
        let mut column = column.close()?;
        bound_by_type(&mut column.closed)?;
        column.append_to(row_group)?;
    }
    Ok(())
}

/// The columns of a file.
struct Described<'a> {
    schema: &'a SchemaRef,
    leaves: SchemaDescriptor,
    properties: WriterPropertiesPtr,
}

impl Described<'_> {
    fn column(&self, leaf: usize) -> Result<OneColumn> {
        let (root, field) = (
            self.leaves.root_schema(),
            self.leaves.get_column_root_idx(leaf),
        );
        let own = vec![self.leaves.get_column_root_ptr(leaf)];
        Ok(OneColumn {
            descriptor: self.leaves.column(leaf),
            properties: Arc::clone(&self.properties),
            root: SchemaType::group_type_builder(root.name())
                .with_fields(own)
                .build()?,
            field: Arc::new(self.schema.field(field).clone()),
        })
    }
}

/// Appends columns, of which some repeat one value or are those of the record key.
fn append_repeated<W: Write + Send>(
    row_group: &mut SerializedRowGroupWriter<'_, W>,
    columns: Vec<ColumnEncoder>,
    repeats: &Repeats,
    described: &Described<'_>,
    rows: usize,
) -> Result<()> {
    let mut keys: Option<ColumnChunk> = None;
    for (leaf, column) in columns.into_iter().enumerate() {
        let field = described.leaves.get_column_root_idx(leaf);
        let chunk = match repeats.pages(field) {
            Pages::Encoded if repeats.copied() == Some(field) => {
                &*keys.insert(ColumnChunk::of(&column.close()?))
            }
            Pages::Encoded => {
                append(row_group, vec![column])?;
                continue;
            }
            Pages::OneValue(value) => {
                &described.column(leaf)?.of_one_value(value.value(0), rows)?
            }
            Pages::RecordKey => keys.as_ref().ok_or_else(|| {
                ParquetError::General("the record key comes after its copy".to_owned())
            })?,
        };
        let closed = chunk.closed(&described.leaves.column(leaf))?;
        row_group.append_column(&chunk.bytes, closed)?;
    }
    Ok(())
}

/// Sums what is written, and keeps page indexes and footer back once it is asked to.
struct Held<W> {
    to: W,
    /// The checksum of what was written.
    data: crc32fast::Hasher,
    end: Option<Vec<u8>>,
}

impl<W: Write> Write for Held<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if let Some(end) = &mut self.end {
            return end.write(buf);
        }
        let count = self.to.write(buf)?;
        self.data.update(buf.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The length of the footer and the magic bytes, after the byte that ends the metadata.
const AFTER_ORDERS: usize = 9;
const ORDER_OF_TYPE: u8 = 0x1c;
const ORDER_OF_IEEE_754: u8 = 0x2c;

/// The last field of the metadata (`FileMetaData.column_orders`) has three bytes a column: an empty
/// struct, under a number that identifies the order. The crate has no option for it.
fn name_order_of_type(footer: &mut [u8], columns: usize) -> Result<()> {
    let unknown = || ParquetError::General("the footer has no orders of columns".to_owned());
    let (rest, end) = footer
        .split_at_mut_checked(footer.len().saturating_sub(AFTER_ORDERS))
        .ok_or_else(unknown)?;
    let (_, orders) = rest
        .split_at_mut_checked(rest.len().saturating_sub(3 * columns))
        .ok_or_else(unknown)?;
    let known = |order: &[u8]| matches!(order, [kind, 0, 0] if kind & 0x0f == 0x0c);
    if end.first() != Some(&0) || !orders.chunks(3).all(known) {
        return Err(unknown());
    }
    for order in orders.chunks_mut(3) {
        if let [kind, ..] = order
            && *kind == ORDER_OF_IEEE_754
        {
            *kind = ORDER_OF_TYPE;
        }
    }
    Ok(())
}

/// Makes bounds of floating numbers such as the order of their type asks for.
fn bound_by_type(chunk: &mut ColumnCloseResult) -> Result<()> {
    let statistics: Statistics = match chunk.metadata.statistics() {
        Some(Statistics::Float(found)) => chunk_bounds(found).into(),
        Some(Statistics::Double(found)) => chunk_bounds(found).into(),
        _ => return Ok(()),
    };
    let bounded = statistics.min_bytes_opt().is_some();
    let builder = chunk.metadata.clone().into_builder();
    chunk.metadata = builder.set_statistics(statistics).build()?;
    let pages = chunk.column_index.take().filter(|_| bounded);
    chunk.column_index = pages.map(page_bounds).transpose()?;
    Ok(())
}

fn chunk_bounds<T: Floating>(found: &ValueStatistics<T>) -> ValueStatistics<T> {
    let counts = (found.distinct_count(), found.null_count_opt());
    let without_nan = found.nan_count_opt().is_none_or(|count| count == 0);
    let bounds = found.min_opt().zip(found.max_opt());
    let (min, max) = bounds
        .filter(|_| without_nan)
        .map(|(min, max)| (least(*min), greatest(*max)))
        .unzip();
    ValueStatistics::new(min, max, counts.0, counts.1, false).with_nan_count(found.nan_count_opt())
}

fn page_bounds(index: ColumnIndexMetaData) -> Result<ColumnIndexMetaData> {
    let order = index
        .get_boundary_order()
        .unwrap_or(BoundaryOrder::UNORDERED);
    match &index {
        ColumnIndexMetaData::FLOAT(pages) => rebuilt(pages, order, Type::FLOAT),
        ColumnIndexMetaData::DOUBLE(pages) => rebuilt(pages, order, Type::DOUBLE),
        _ => Ok(index),
    }
}

fn rebuilt<T: Floating>(
    pages: &PrimitiveColumnIndex<T>,
    order: BoundaryOrder,
    ty: Type,
) -> Result<ColumnIndexMetaData> {
    let levels = |counts: Option<&[i64]>| counts.map(|one| LevelHistogram::from(one.to_vec()));
    let bytes = |bound: Option<T>| bound.map(T::bytes).unwrap_or_default();
    let mut index = ColumnIndexBuilder::new(ty);
    index.set_boundary_order(order);
    for page in 0..pages.num_pages() as usize {
        index.append(
            pages.is_null_page(page),
            bytes(pages.min_value(page).copied().map(least)),
            bytes(pages.max_value(page).copied().map(greatest)),
            pages.null_count(page).unwrap_or_default(),
            pages.nan_count(page),
        );
        index.append_histograms(
            &levels(pages.repetition_level_histogram(page)),
            &levels(pages.definition_level_histogram(page)),
        );
    }
    index.build()
}

trait Floating: Copy + Default + PartialEq + Neg<Output = Self> {
    fn bytes(self) -> Vec<u8>;
}

impl Floating for f32 {
    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Floating for f64 {
    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

/// -0.0 for both zeros.
fn least<T: Floating>(value: T) -> T {
    if value == T::default() {
        -T::default()
    } else {
        value
    }
}

/// 0.0 for both zeros.
fn greatest<T: Floating>(value: T) -> T {
    if value == T::default() {
        T::default()
    } else {
        value
    }
}
