//! What a base file is like that is to be written.

/// Size and kind of the bloom filter (`hoodie.index.bloom.*`, `hoodie.bloom.index.filter.*`).
#[derive(Debug, Clone, Copy)]
pub struct BloomOptions {
    /// Keys a row of the filter is made for.
    pub entries: u32,
    /// A file with fewer keys has a filter for those.
    pub by_keys: bool,
    /// False-positive probability.
    pub fpp: f64,
    /// Keys after which the filter stops growing; none for a filter of one row (SIMPLE).
    pub max_entries: Option<u32>,
}

/// How a base file is written.
#[derive(Debug, Clone)]
pub struct BaseFileOptions {
    /// Avro schema of the rows as JSON, meta fields included.
    pub avro_schema: String,
    /// Value of the column `_hoodie_file_name`.
    pub file_name: Option<String>,
    /// Column that the key range and the bloom filter are made of.
    pub key_column: Option<String>,
    /// Compression.
    pub codec: Codec,
    /// Bytes after which a row group ends, or a stripe.
    pub row_group_bytes: usize,
    /// Bytes after which a page ends (`hoodie.parquet.page.size`). As all that follows but the bloom
    /// filter, Parquet's alone.
    pub page_bytes: usize,
    /// Dictionary encoding (`hoodie.parquet.dictionary.enabled`).
    pub dictionary: bool,
    /// Lists as Hudi writes them by default, which hold no null elements
    /// (`parquet.avro.write-old-list-structure`).
    pub old_lists: bool,
    /// Another thread may encode some of the columns, as long as fewer files are open than there
    /// are processors.
    pub two_threads: bool,
    /// None leaves out the bloom filter and the key range.
    pub bloom: Option<BloomOptions>,
}

/// Compression of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Codec {
    Gzip,
    Snappy,
    Zstd,
    Lz4Raw,
    Brotli,
    Uncompressed,
}
