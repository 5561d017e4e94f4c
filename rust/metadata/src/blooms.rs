//! The `bloom_filters` partition: for each base file a filter over its record keys.

use arrow::array::{Array, BooleanArray, StringArray};
use pyhudi_avro::Datum;
use pyhudi_format::BloomFilter;
use pyhudi_format::hash::{text_hash64, text_md5};
use pyhudi_slice::{Result, SliceError};

use super::MetadataPartition;
use super::records::{Keep, Records, Wanted};

/// For each file whether it may hold any of the keys; null where there is no filter.
///
/// partitions, files: of equal length. The partition path "" stands in keys as `.`.
pub fn may_contain(
    partition: &MetadataPartition,
    partitions: &StringArray,
    files: &StringArray,
    keys: &[String],
) -> Result<BooleanArray> {
    let names: Vec<String> = partitions
        .iter()
        .zip(files)
        .map(|(path, file)| filter_key(path.unwrap_or_default(), file.unwrap_or_default()))
        .collect();
    let mut answers = vec![None; files.len()];
    let groups = partition.by_group(names.iter().map(|name| (name.as_str(), name.clone())))?;
    for (slice, group) in partition.groups.iter().zip(groups) {
        // Filters are large, so they are read and dropped one by one.
        for (name, place) in group {
            let records = Records::read(partition, slice, &Wanted::Keys(&[&name]), Keep::Newest)?;
            let versions = records.get(&name)?;
            let filter = versions.last().map_or(Ok(None), filter).map_err(|error| {
                let format = SliceError::format(&name, 0, error);
                records.damaged(format.to_string())
            })?;
            if let (Some(filter), Some(answer)) = (filter, answers.get_mut(place)) {
                *answer = Some(keys.iter().any(|key| filter.contains(key.as_bytes())));
            }
        }
    }
    Ok(BooleanArray::from(answers))
}

/// For each key whether a file may hold it, false for a null; none where the file has no filter.
pub fn keys_in_filter(
    partition: &MetadataPartition,
    path: &str,
    file: &str,
    keys: &StringArray,
) -> Result<Option<BooleanArray>> {
    let name = filter_key(path, file);
    let groups = partition.by_group(std::iter::once((name.as_str(), name.clone())))?;
    for (slice, _) in partition
        .groups
        .iter()
        .zip(&groups)
        .filter(|g| !g.1.is_empty())
    {
        let records = Records::read(partition, slice, &Wanted::Keys(&[&name]), Keep::Newest)?;
        let versions = records.get(&name)?;
        let found = versions.last().map_or(Ok(None), filter).map_err(|error| {
            let format = SliceError::format(&name, 0, error);
            records.damaged(format.to_string())
        })?;
        if let Some(found) = found {
            let may = |key: &str| found.contains(key.as_bytes());
            return Ok(Some(
                keys.iter().map(|key| Some(key.is_some_and(may))).collect(),
            ));
        }
    }
    Ok(None)
}

/// `HoodieMetadataPayload.getBloomFilterIndexKey`.
fn filter_key(partition: &str, file: &str) -> String {
    let partition = if partition.is_empty() { "." } else { partition };
    text_hash64(partition) + &text_md5(file)
}

fn filter(record: &Datum<'_>) -> Result<Option<BloomFilter>, pyhudi_format::FormatError> {
    let stored = record.field("BloomFilterMetadata");
    match stored.field("bloomFilter") {
        Datum::Bytes(bytes) if !bytes.is_empty() && !stored.field("isDeleted").is_true() => {
            // The field holds the filter's Base64 text.
            BloomFilter::from_base64(&String::from_utf8_lossy(bytes)).map(Some)
        }
        _ => Ok(None),
    }
}
