//! Partitions of a metadata table on disk, made of commits.

use std::collections::{BTreeSet, HashMap};

use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use pyhudi_metadata::{
    MetadataLogOptions, MetadataPartition, MetadataSlice, compact_metadata_group,
    write_metadata_log,
};
use pyhudi_slice::BlockFilter;
use pyhudi_store::Store;

/// Schemas of records in tables of version 9 and 8.
pub const SCHEMA: &str =
    include_str!("../../../../python/pyhudi/metadata/schemas/HoodieMetadataRecord_v9.avsc");
pub const SCHEMA_V8: &str =
    include_str!("../../../../python/pyhudi/metadata/schemas/HoodieMetadataRecord_v8.avsc");

/// The file groups of a partition of the metadata table.
pub struct Groups<'a> {
    pub store: &'a Store,
    pub partition: &'a str,
    pub count: u32,
    pub schema: &'a str,
}

/// The rows of each file group by their routes.
fn by_group(rows: &RecordBatch) -> HashMap<String, RecordBatch> {
    let routes = rows.column_by_name("route").unwrap().as_string::<i32>();
    let mut groups = HashMap::new();
    for route in routes.iter().flatten().collect::<BTreeSet<_>>() {
        let here = (0..rows.num_rows())
            .filter(|row| routes.value(*row) == route)
            .map(|row| row as u32);
        let rows = take_record_batch(rows, &UInt32Array::from_iter_values(here)).unwrap();
        groups.insert(route.to_owned(), rows);
    }
    groups
}

impl Groups<'_> {
    /// The partition with a log file for each commit. Compactions follow the commits of these numbers.
    pub fn write(
        &self,
        commits: &[RecordBatch],
        compactions: &BTreeSet<usize>,
    ) -> MetadataPartition {
        let commits: Vec<_> = commits.iter().map(by_group).collect();
        let mut partition = MetadataPartition {
            store: self.store.clone(),
            groups: Vec::new(),
            filter: BlockFilter::default(),
            kept: None,
        };
        for group in 0..self.count {
            let slice = self.slice(group, &commits, compactions, &partition);
            partition.groups.push(slice);
        }
        partition
    }

    fn slice(
        &self,
        group: u32,
        commits: &[HashMap<String, RecordBatch>],
        compactions: &BTreeSet<usize>,
        partition: &MetadataPartition,
    ) -> MetadataSlice {
        let mut slice = MetadataSlice {
            base: None,
            logs: Vec::new(),
        };
        let route = format!("{}/{group}", self.partition);
        for (number, rows) in commits.iter().enumerate() {
            if let Some(rows) = rows.get(&route) {
                let path = format!(".{}-{group}.log.{number}", self.partition);
                let options = MetadataLogOptions {
                    instant: format!("{number:017}"),
                    avro_schema: self.schema.to_owned(),
                    partition: self.partition.to_owned(),
                };
                let rows = std::iter::once(Ok(rows.clone()));
                write_metadata_log(self.store, &path, rows, &options).unwrap();
                slice.logs.push(path);
            }
            if compactions.contains(&number) {
                let path = format!("{}-{group}_{number}.hfile", self.partition);
                compact_metadata_group(partition, &slice, &path, self.schema).unwrap();
                slice = MetadataSlice {
                    base: Some(path),
                    logs: Vec::new(),
                };
            }
        }
        slice
    }
}
