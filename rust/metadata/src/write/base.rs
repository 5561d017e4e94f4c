//! A base file of the metadata table: an HFile of records.
//!
//! Form of the file: `HoodieNativeAvroHFileWriter` (Hudi 1.2.0), which older releases read too.

use std::io::Write;

use arrow::array::RecordBatch;
use pyhudi_format::FormatError;
use pyhudi_format::bloom::BloomFilter;
use pyhudi_format::hfile::{HFileOptions, HFileWriter};
use pyhudi_slice::{BaseFile, Result, SliceError};
use pyhudi_store::{Store, StoreError};

use super::file::by_key;

/// The number of keys for which Hudi sizes the filter of such a file.
const BLOOM_ENTRIES: u32 = 10_000;
const BLOOM_MOST: u32 = 100_000;
const BLOOM_FPP: f64 = 1e-9;
/// Name of the block that holds it.
pub(super) const FILTER: &str = "bloomFilter";

/// Writes a new base file with the record rows of one file group. Rows that delete leave nothing.
///
/// avro_schema: of the records as JSON, meta fields included.
///
/// # Errors
/// The file exists, failing storage, keys too long.
pub fn write_metadata_base(
    store: &Store,
    path: &str,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    avro_schema: &str,
) -> Result<BaseFile> {
    let batches = batches.collect::<Result<Vec<_>>>()?;
    let rows = by_key(&batches)?;
    let pairs: Vec<(&str, &[u8])> = rows
        .iter()
        .filter_map(|(key, value)| Some((*key, (*value)?)))
        .collect();
    store_base(store, path, &pairs, avro_schema)
}

/// Writes keys, in their order, and values as a base file.
pub(super) fn store_base(
    store: &Store,
    path: &str,
    pairs: &[(&str, &[u8])],
    avro_schema: &str,
) -> Result<BaseFile> {
    let bytes = hfile(pairs, avro_schema).map_err(|error| SliceError::format(path, 0, error))?;
    let size = store_whole(store, path, &bytes)?;
    let keys = pairs.first().zip(pairs.last());
    Ok(BaseFile {
        path: path.to_owned(),
        size,
        rows: pairs.len() as u64,
        keys: keys.map(|(first, last)| (first.0.to_owned(), last.0.to_owned())),
    })
}

fn hfile(pairs: &[(&str, &[u8])], schema: &str) -> Result<Vec<u8>, FormatError> {
    let mut filter = BloomFilter::dynamic(BLOOM_ENTRIES, BLOOM_FPP, BLOOM_MOST);
    filter.add_all(pairs.iter().map(|(key, _)| key.as_bytes()));
    let mut writer = HFileWriter::new(&HFileOptions::default());
    for (key, value) in pairs {
        writer.add(key.as_bytes(), value)?;
    }
    let ends = pairs.first().zip(pairs.last());
    finish(
        writer,
        &filter,
        ends.map(|(first, last)| (first.0, last.0)),
        schema,
    )
}

/// The stored filter of such a file, to which keys are added.
pub(super) fn growing(text: &[u8]) -> Result<BloomFilter, FormatError> {
    let filter = BloomFilter::from_base64(&String::from_utf8_lossy(text))?;
    Ok(filter.growing_to(BLOOM_MOST))
}

/// A filter of keys that were not read: every key passes. None of Hudi's readers looks keys up by it
/// unless an option says so.
pub(super) fn passing() -> BloomFilter {
    let mut filter = BloomFilter::dynamic(BLOOM_ENTRIES, BLOOM_FPP, BLOOM_MOST);
    filter.fill();
    filter
}

/// The bytes of the file. ends: its first key and its last.
pub(super) fn finish(
    writer: HFileWriter,
    filter: &BloomFilter,
    ends: Option<(&str, &str)>,
    schema: &str,
) -> Result<Vec<u8>, FormatError> {
    let text = filter.to_base64();
    let mut infos = vec![
        ("schema", schema.as_bytes()),
        ("bloomFilterTypeCode", filter.type_code().as_bytes()),
    ];
    if let Some((least, greatest)) = ends {
        infos.push(("minRecordKey", least.as_bytes()));
        infos.push(("maxRecordKey", greatest.as_bytes()));
    }
    writer.finish(&[(FILTER, text.as_bytes())], &infos)
}

pub(super) fn store_whole(store: &Store, path: &str, bytes: &[u8]) -> Result<u64> {
    let mut out = store.create(path)?;
    out.write_all(bytes).map_err(|source| {
        SliceError::Store(StoreError::Io {
            path: path.to_owned(),
            source,
        })
    })?;
    Ok(out.finish()?)
}
