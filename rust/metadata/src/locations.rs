//! The `record_index` partition: for each record key the file group that holds the record.

use std::sync::Arc;

use arrow::array::{Int64Builder, RecordBatch, StringBuilder};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pyhudi_avro::Datum;
use pyhudi_slice::{Result, SliceError};

use super::records::{Keep, Records};
use super::{MetadataPartition, MetadataSlice, side_by_side, threads};

/// Where records are: columns key, partition, file_id, instant (of the write, epoch milliseconds).
///
/// keys: [`None`] for all; those that are not in the index are left out.
pub fn record_locations(
    partition: &MetadataPartition,
    keys: Option<&[String]>,
) -> Result<RecordBatch> {
    if keys.is_none() {
        return all_locations(partition);
    }
    let mut found = Locations::default();
    partition.each_record(keys, Keep::Newest, |key, versions| {
        found.add(key, versions.last().unwrap_or(&Datum::Null))
    })?;
    found.finish()
}

/// As many as the table has rows: no more is held of them than is given.
fn all_locations(partition: &MetadataPartition) -> Result<RecordBatch> {
    let read = |slice: &MetadataSlice| {
        let mut found = Locations::default();
        Records::each_newest(partition, slice, |key, record| found.add(key, record))?;
        found.finish()
    };
    let mut parts = Vec::with_capacity(partition.groups.len());
    for groups in partition.groups.chunks(threads()) {
        let found = side_by_side(groups, read);
        parts.extend(found.into_iter().collect::<Result<Vec<_>>>()?);
    }
    match <[RecordBatch; 1]>::try_from(parts) {
        Ok([one]) => Ok(one),
        Err(parts) => Ok(concat_batches(&schema(), &parts)?),
    }
}

#[derive(Default)]
struct Locations {
    keys: StringBuilder,
    partitions: StringBuilder,
    file_ids: StringBuilder,
    instants: Int64Builder,
}

impl Locations {
    fn add(&mut self, key: &str, record: &Datum<'_>) -> Result<(), String> {
        let location = record.field("recordIndexMetadata");
        let partition = location.field("partitionName").text();
        let (Some(partition), Some(file_id)) = (partition, file_id(location)) else {
            return Err(format!("the record index has no location for {key:?}"));
        };
        self.keys.append_value(key);
        self.partitions.append_value(partition);
        self.file_ids.append_value(file_id);
        self.instants
            .append_option(location.field("instantTime").number());
        Ok(())
    }

    fn finish(mut self) -> Result<RecordBatch> {
        RecordBatch::try_new(
            schema(),
            vec![
                Arc::new(self.keys.finish()),
                Arc::new(self.partitions.finish()),
                Arc::new(self.file_ids.finish()),
                Arc::new(self.instants.finish()),
            ],
        )
        .map_err(SliceError::Arrow)
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("partition", DataType::Utf8, false),
        Field::new("file_id", DataType::Utf8, false),
        Field::new("instant", DataType::Int64, true),
    ]))
}

/// The file id: as text (encoding 1), or as a UUID's two halves with the number behind it, -1 for
/// none (encoding 0; `HoodieTableMetadataUtil.getLocationFromRecordIndexInfo`).
fn file_id(location: &Datum<'_>) -> Option<String> {
    match location.field("fileIdEncoding").number().unwrap_or(0) {
        0 => {
            let high = location.field("fileIdHighBits").number()?;
            let low = location.field("fileIdLowBits").number()?;
            let bits = u128::from(high.cast_unsigned()) << 64 | u128::from(low.cast_unsigned());
            let mut text = format!("{bits:032x}");
            for place in [20, 16, 12, 8] {
                text.insert(place, '-');
            }
            Some(match location.field("fileIndex").number()? {
                -1 => text,
                number => format!("{text}-{number}"),
            })
        }
        1 => location.field("fileId").text().map(str::to_owned),
        _ => None,
    }
}
