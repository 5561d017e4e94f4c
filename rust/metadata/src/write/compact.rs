//! Compaction of the metadata table: all records of a file group merged into one base file.
//!
//! What versions of a record come to is said in `combined`.

use pyhudi_avro::{DatumWriter, Value};
use pyhudi_slice::{BaseFile, Result, SliceError};

use super::base::store_base;
use super::combined::{combined, set};
use crate::records::{Keep, Records, Wanted};
use crate::{MetadataPartition, MetadataSlice};

/// Writes the merged records of a slice of a partition as a base file. All of them are in memory.
///
/// avro_schema: of the records, as JSON, with meta fields.
///
/// # Errors
/// Damaged files, failing storage, a file that exists, bounds of a column that do not compare.
pub fn compact_metadata_group(
    partition: &MetadataPartition,
    slice: &MetadataSlice,
    path: &str,
    avro_schema: &str,
) -> Result<BaseFile> {
    let records = Records::read(partition, slice, &Wanted::All, Keep::All)?;
    let writer =
        DatumWriter::new(avro_schema).map_err(|error| SliceError::Schema(error.to_string()))?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut merged: Vec<(&str, Vec<u8>)> = Vec::new();
    for record in records.iter() {
        let (key, versions) = record?;
        let Some(mut fields) = combined(&versions).map_err(|what| records.damaged(what))? else {
            continue;
        };
        set(&mut fields, "key", Value::Text(""));
        set(&mut fields, "_hoodie_file_name", Value::Text(name));
        let value = writer.write(&fields);
        let value = value.map_err(|error| SliceError::Schema(error.to_string()))?;
        merged.push((key, value));
    }
    let pairs: Vec<(&str, &[u8])> = merged
        .iter()
        .map(|(key, value)| (*key, value.as_slice()))
        .collect();
    store_base(&partition.store, path, &pairs, avro_schema)
}
