//! The form of a Parquet file that is to be written, a base file or a log block: schema, encoding
//! and compression. Writing the rows is `write_base.rs`'s and `log_content.rs`'s part.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowWriterOptions, PageStoreFactory};
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::SchemaDescPtr;
use pyhudi_avro::{record_name, vector_columns};

use crate::base_options::{BaseFileOptions, Codec};
use crate::error::{Result, SliceError};
use crate::parquet_schema::{parquet_schema, with_vector_bytes, writer_schema};
use crate::{COMMIT_SEQNO, RECORD_KEY};

/// The schema and the properties of a Parquet file that is to be written.
pub(crate) struct ParquetForm {
    schema: SchemaRef,
    parquet: SchemaDescPtr,
    properties: WriterProperties,
    vectors: Option<String>,
    /// Another thread may encode some of the columns.
    pub(crate) two_threads: bool,
}

impl ParquetForm {
    /// Of a base file.
    pub(crate) fn of_file(options: &BaseFileOptions) -> Result<Self> {
        let properties = properties(options.codec)
            .set_max_row_group_bytes(Some(options.row_group_bytes))
            .set_data_page_size_limit(options.page_bytes)
            .set_dictionary_enabled(options.dictionary)
            // Of values that are all different a dictionary only takes time.
            .set_column_dictionary_enabled(COMMIT_SEQNO.into(), false)
            .set_column_dictionary_enabled(RECORD_KEY.into(), false)
            .build();
        let form = Self::new(&options.avro_schema, properties, options.old_lists)?;
        Ok(Self {
            two_threads: options.two_threads,
            ..form
        })
    }

    /// Of a log block: one row group.
    pub(crate) fn of_block(avro_schema: &str, codec: Codec, old_lists: bool) -> Result<Self> {
        Self::new(avro_schema, properties(codec).build(), old_lists)
    }

    fn new(avro_schema: &str, properties: WriterProperties, old_lists: bool) -> Result<Self> {
        let avro = |error| SliceError::Schema(format!("the table's Avro schema: {error}"));
        let table = with_vector_bytes(&pyhudi_avro::arrow_schema(avro_schema).map_err(avro)?);
        let vectors = vector_columns(avro_schema).map_err(avro)?;
        let root = record_name(avro_schema).map_err(avro)?;
        let schema = if old_lists {
            writer_schema(&table)
        } else {
            Arc::new(table)
        };
        let parquet = parquet_schema(&schema, &root, old_lists)?;
        Ok(Self {
            schema,
            parquet,
            properties,
            vectors,
            two_threads: false,
        })
    }

    /// Schema of the file.
    pub(crate) fn parquet(&self) -> &SchemaDescPtr {
        &self.parquet
    }

    /// Schema of the batches to be written.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// What the footer contains besides rows: the Avro schema, and which columns are VECTORs.
    pub(crate) fn footers<'a>(
        &'a self,
        avro_schema: &'a str,
    ) -> impl Iterator<Item = (&'static str, String)> + 'a {
        let always = [
            ("parquet.avro.schema", avro_schema.to_owned()),
            ("writer.model.name", "avro".to_owned()),
        ];
        let vectors = self.vectors.iter().cloned();
        always
            .into_iter()
            .chain(vectors.map(|told| ("hoodie.vector.columns", told)))
    }

    /// stores: get the pages.
    pub(crate) fn options(&self, stores: Arc<dyn PageStoreFactory>) -> ArrowWriterOptions {
        ArrowWriterOptions::new()
            .with_page_store_factory(stores)
            .with_properties(self.properties.clone())
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(self.parquet.as_ref().clone())
    }
}

fn properties(codec: Codec) -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(compression(codec))
        .set_max_row_group_row_count(None)
        .set_created_by(concat!("pyhudi version ", env!("CARGO_PKG_VERSION")).to_owned())
}

fn compression(codec: Codec) -> Compression {
    match codec {
        Codec::Gzip => Compression::GZIP(GzipLevel::default()),
        Codec::Snappy => Compression::SNAPPY,
        Codec::Zstd => Compression::ZSTD(ZstdLevel::default()),
        Codec::Lz4Raw => Compression::LZ4_RAW,
        Codec::Brotli => Compression::BROTLI(BrotliLevel::default()),
        Codec::Uncompressed => Compression::UNCOMPRESSED,
    }
}
