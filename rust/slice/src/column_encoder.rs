//! Encoders of columns whose pages have checksums.
//!
//! The Parquet crate verifies the CRC-32 of pages but writes none. An encoder gives each page, as header and
//! content, to a store that its user can choose: the store here adds the checksum to the header. Lengths and
//! offsets that the crate counted are corrected when the column ends, and the column is then appended
//! as if its pages came from another file.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use bytes::{Buf, Bytes};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowLeafColumn, ArrowRowGroupWriterFactory, ArrowWriterOptions, PageKey,
    PageStore, PageStoreArgs, PageStoreFactory,
};
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::{SchemaDescriptor, Type};
use pyhudi_format::{PageHeader, with_checksum};

/// Makes the encoders of columns that follow each other.
pub(crate) struct ColumnEncoders {
    encoders: ArrowRowGroupWriterFactory,
    stores: Arc<Stores>,
}

impl ColumnEncoders {
    /// For the columns of a file. The writer of the file is made with `stores`.
    pub(crate) fn of_file(encoders: ArrowRowGroupWriterFactory, stores: Arc<Stores>) -> Self {
        Self { encoders, stores }
    }

    /// For columns on their own. root: the group of their types.
    pub(crate) fn of_columns(
        root: Type,
        schema: SchemaRef,
        properties: WriterProperties,
    ) -> Result<Self> {
        let stores = Arc::new(Stores::default());
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(SchemaDescriptor::new(Arc::new(root)))
            .with_page_store_factory(Arc::clone(&stores) as Arc<dyn PageStoreFactory>);
        // Encoders are made for a file: this one is never written.
        let file = ArrowWriter::try_new_with_options(io::sink(), schema, options)?;
        let (_, encoders) = file.into_serialized_writer()?;
        Ok(Self { encoders, stores })
    }

    /// Encoders of the leaves, for a row group of that number.
    pub(crate) fn create(&self, row_group: usize) -> Result<Vec<ColumnEncoder>> {
        let writers = self.encoders.create_column_writers(row_group)?;
        let pages = std::mem::take(&mut *locked(&self.stores.created));
        if pages.len() != writers.len() {
            let what = format!("{} page stores of {} columns", pages.len(), writers.len());
            return Err(ParquetError::General(what));
        }
        let both = writers.into_iter().zip(pages);
        Ok(both
            .map(|(writer, pages)| ColumnEncoder { writer, pages })
            .collect())
    }
}

/// The encoder of one column of a row group.
pub(crate) struct ColumnEncoder {
    writer: ArrowColumnWriter,
    pages: Arc<Mutex<Pages>>,
}

impl ColumnEncoder {
    /// Adds values.
    pub(crate) fn write(&mut self, values: &ArrowLeafColumn) -> Result<()> {
        self.writer.write(values)
    }

    /// How large the column is in the file, by estimate.
    pub(crate) fn bytes(&self) -> usize {
        self.writer.get_estimated_total_bytes() + locked(&self.pages).growth
    }

    /// Ends the column.
    pub(crate) fn close(self) -> Result<EncodedColumn> {
        let mut closed = self.writer.close()?.close().clone();
        let pages = std::mem::take(&mut *locked(&self.pages));
        let dictionary: usize = pages.dictionary.iter().map(Bytes::len).sum();
        let growth = pages.growth;
        if let Some(index) = closed.offset_index.as_mut() {
            let mut offset = dictionary as i64;
            for (location, added) in index.page_locations.iter_mut().zip(&pages.added) {
                location.offset = offset;
                location.compressed_page_size += *added as i32;
                offset += i64::from(location.compressed_page_size);
            }
        }
        let metadata = closed.metadata;
        let sizes = (metadata.compressed_size(), metadata.uncompressed_size());
        closed.metadata = metadata
            .into_builder()
            .set_dictionary_page_offset((dictionary > 0).then_some(0))
            .set_data_page_offset(dictionary as i64)
            .set_total_compressed_size(sizes.0 + growth as i64)
            .set_total_uncompressed_size(sizes.1 + growth as i64)
            .build()?;
        closed.bytes_written += growth as u64;
        let mut parts = pages.dictionary;
        parts.extend(pages.data);
        Ok(EncodedColumn { parts, closed })
    }
}

/// The pages of one column of a row group.
pub(crate) struct EncodedColumn {
    /// Headers and contents of pages in their order.
    parts: Vec<Bytes>,
    pub(crate) closed: ColumnCloseResult,
}

impl EncodedColumn {
    pub(crate) fn append_to<W: Write + Send>(
        self,
        row_group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        row_group.append_column(&Parts(self.parts), self.closed)
    }

    /// All pages as one piece.
    pub(crate) fn bytes(&self) -> Bytes {
        self.parts.concat().into()
    }
}

/// Pages that the crate reads from their beginning.
#[derive(Clone)]
struct Parts(Vec<Bytes>);

impl Length for Parts {
    fn len(&self) -> u64 {
        self.0.iter().map(|part| part.len() as u64).sum()
    }
}

impl ChunkReader for Parts {
    type T = PartsReader;

    fn get_read(&self, start: u64) -> Result<PartsReader> {
        if start > 0 {
            let what = format!("byte {start} begins no column");
            return Err(ParquetError::General(what));
        }
        Ok(PartsReader {
            rest: self.0.clone().into_iter(),
            part: Bytes::new(),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut bytes = vec![0; length];
        self.get_read(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

struct PartsReader {
    rest: std::vec::IntoIter<Bytes>,
    part: Bytes,
}

impl Read for PartsReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.rest.next() {
                Some(part) => self.part = part,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.part.len());
        let (into, _) = buffer.split_at_mut(count);
        self.part.copy_to_slice(into);
        Ok(count)
    }
}

/// The pages of the columns whose encoders were made last.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    created: Mutex<Vec<Arc<Mutex<Pages>>>>,
}

impl PageStoreFactory for Stores {
    fn create(&self, _args: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        let pages = Arc::<Mutex<Pages>>::default();
        locked(&self.created).push(Arc::clone(&pages));
        Ok(Box::new(ChecksumStore {
            pages,
            header: None,
        }))
    }
}

/// Pages of a column, each as a header and a content.
#[derive(Debug, Default)]
struct Pages {
    dictionary: Vec<Bytes>,
    /// Bytes that all headers got longer.
    growth: usize,
    data: Vec<Bytes>,
    /// Bytes that the header of each data page got longer.
    added: Vec<usize>,
    /// Of all of them.
    bytes: usize,
}

/// Gets the header of a page, then its content.
struct ChecksumStore {
    pages: Arc<Mutex<Pages>>,
    header: Option<Bytes>,
}

impl PageStore for ChecksumStore {
    fn put(&mut self, value: Bytes) -> Result<PageKey> {
        let Some(header) = self.header.take() else {
            self.header = Some(value);
            return Ok(PageKey::new(0));
        };
        let (sealed, is_dictionary) = sealed(&header, &value)?;
        let added = sealed.len() - header.len();
        let mut pages = locked(&self.pages);
        pages.bytes += sealed.len() + value.len();
        pages.growth += added;
        if is_dictionary {
            pages.dictionary.extend([sealed.into(), value]);
        } else {
            pages.added.push(added);
            pages.data.extend([sealed.into(), value]);
        }
        Ok(PageKey::new(0))
    }

    fn take(&mut self, _key: PageKey) -> Result<Bytes> {
        let what = "pages with checksums are not taken one by one";
        Err(ParquetError::General(what.to_owned()))
    }

    fn memory_size(&self) -> usize {
        locked(&self.pages).bytes
    }
}

/// The header of a page with the checksum of its content, and whether the page is a dictionary.
fn sealed(header: &[u8], content: &[u8]) -> Result<(Vec<u8>, bool)> {
    let sealed = with_checksum(header, crc32fast::hash(content));
    let known = PageHeader::decode(header).filter(|known| known.size == content.len());
    sealed
        .zip(known)
        .map(|(sealed, known)| (sealed, known.is_dictionary))
        .ok_or_else(|| ParquetError::General("a page header of another form".to_owned()))
}

/// Writes a page with its checksum.
pub(crate) fn write_page(
    sink: &mut TrackedWrite<Vec<u8>>,
    page: CompressedPage,
) -> Result<PageWriteSpec> {
    let offset = sink.bytes_written() as u64;
    let size = page.compressed_size();
    let mut plain = TrackedWrite::new(Vec::with_capacity(size + 64));
    let mut written = SerializedPageWriter::new(&mut plain).write_page(page)?;
    let plain = plain.into_inner()?;
    let (header, content) = plain.split_at(plain.len() - size);
    let (header, added) = {
        let (sealed, _) = sealed(header, content)?;
        let added = sealed.len() - header.len();
        (sealed, added)
    };
    sink.write_all(&header)?;
    sink.write_all(content)?;
    written.offset = offset;
    written.compressed_size += added;
    written.uncompressed_size += added;
    written.bytes_written += added as u64;
    Ok(written)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
