//! The `files` partition: for each data partition the files that it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{BooleanBuilder, Int64Builder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema};
use pyhudi_avro::Datum;
use pyhudi_slice::{Result, SliceError};

use super::MetadataPartition;
use super::records::Keep;

/// Files by key of the `files` partition: columns partition, name, size, is_deleted.
///
/// The key is a partition path, `.` for the path "", or `__all_partitions__`, whose names are the
/// partitions. keys: [`None`] for all. A deleted file is listed only while nothing had listed it
/// before (a tombstone).
pub fn file_listing(partition: &MetadataPartition, keys: Option<&[String]>) -> Result<RecordBatch> {
    let mut listing = Listing::default();
    each_file(partition, keys, |key, name, size, is_deleted| {
        listing.add(key, name, size, is_deleted);
    })?;
    listing.finish()
}

/// Hands over what [`file_listing`] has, row by row: key, name, size, whether it is deleted.
pub fn each_file(
    partition: &MetadataPartition,
    keys: Option<&[String]>,
    mut take: impl FnMut(&str, &str, i64, bool),
) -> Result<()> {
    partition.each_record(keys, Keep::All, |key, versions| {
        for (name, (size, is_deleted)) in merged(versions)? {
            take(key, name, size, is_deleted);
        }
        Ok(())
    })
}

#[derive(Default)]
struct Listing {
    partitions: StringBuilder,
    names: StringBuilder,
    sizes: Int64Builder,
    deleted: BooleanBuilder,
}

impl Listing {
    fn add(&mut self, key: &str, name: &str, size: i64, is_deleted: bool) {
        self.partitions.append_value(key);
        self.names.append_value(name);
        self.sizes.append_value(size);
        self.deleted.append_value(is_deleted);
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let schema = Schema::new(vec![
            Field::new("partition", DataType::Utf8, false),
            Field::new("name", DataType::Utf8, false),
            Field::new("size", DataType::Int64, false),
            Field::new("is_deleted", DataType::Boolean, false),
        ]);
        RecordBatch::try_new(
            Arc::new(schema),
            vec![
                Arc::new(self.partitions.finish()),
                Arc::new(self.names.finish()),
                Arc::new(self.sizes.finish()),
                Arc::new(self.deleted.finish()),
            ],
        )
        .map_err(SliceError::Arrow)
    }
}

pub(super) type Files<'a> = BTreeMap<&'a str, (i64, bool)>;

/// The union of the versions' maps. A deletion takes a live file away, over nothing it stays as a
/// tombstone; of two live entries the greater size holds.
pub(super) fn merged<'a>(versions: &[Datum<'a>]) -> Result<Files<'a>, String> {
    let mut files = Files::new();
    for version in versions {
        let entries = match version.field("filesystemMetadata") {
            Datum::Map(entries) => entries.as_slice(),
            Datum::Null => &[],
            other => return Err(format!("filesystemMetadata is {other:?}")),
        };
        for (name, info) in entries {
            let Some(size) = info.field("size").number() else {
                return Err(format!("the file {name} has no size"));
            };
            let deleted = info.field("isDeleted").is_true();
            match files.get(name) {
                Some((_, false)) if deleted => {
                    files.remove(name);
                }
                Some((known, false)) => {
                    files.insert(name, (size.max(*known), false));
                }
                _ => {
                    files.insert(name, (size, deleted));
                }
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyhudi_avro::DatumReader;

    const SCHEMA: &str = r#"{"type": "record", "name": "r", "fields": [
        {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values":
            {"type": "record", "name": "i", "fields": [
                {"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}]}}]}]}"#;

    /// One version: names of one letter, sizes below 64, and whether deleted.
    fn version(entries: &[(u8, u8, bool)]) -> Vec<u8> {
        let mut bytes = vec![2, entries.len() as u8 * 2];
        for (name, size, deleted) in entries {
            bytes.extend([2, *name, size * 2, u8::from(*deleted)]);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn versions_are_united_and_deletions_take_files_away() {
        let reader = DatumReader::new(SCHEMA).unwrap();
        let stored = [
            version(&[(b'a', 5, false), (b'b', 7, false)]),
            version(&[(b'a', 0, true), (b'b', 3, false), (b'c', 0, true)]),
            version(&[(b'c', 9, false), (b'd', 0, true)]),
        ];
        let versions: Vec<_> = stored.iter().map(|one| reader.read(one).unwrap()).collect();
        let found: Vec<_> = merged(&versions).unwrap().into_iter().collect();
        assert_eq!(
            found,
            [("b", (7, false)), ("c", (9, false)), ("d", (0, true))]
        );
    }
}
