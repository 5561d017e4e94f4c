//! The `record_index` partition: for each record key the file group that holds the record.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, Int64Array, Int64Builder, RecordBatch, StringArray, StringBuilder};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pyhudi_avro::Datum;
use pyhudi_format::hash::metadata_file_group;
use pyhudi_slice::{Result, SliceError};

use super::kept::KeptRecords;
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

/// The file groups in which records of some keys may be, each once: partition path and file id. Keys of
/// the same hash, and earlier locations of a key, count, too.
///
/// # Errors
/// The index is damaged.
pub fn possible_locations(
    partition: &MetadataPartition,
    keys: &[String],
) -> Result<Vec<(String, String)>> {
    let mut locations = match &partition.kept {
        // Other keys may have two places in a file, by the order of its keys.
        Some(kept) if keys.iter().all(|key| key.is_ascii()) => {
            let mut numbers = numbers_of(partition, kept, keys)?;
            numbers.sort_unstable();
            numbers.dedup();
            kept.by_numbers(&numbers)
        }
        _ => {
            let mut locations = Vec::new();
            partition.each_record(Some(keys), Keep::Newest, |key, versions| {
                let newest = versions.last().unwrap_or(&Datum::Null);
                let location = location_of(newest);
                locations.push(location.ok_or_else(|| without_location(key))?);
                Ok(())
            })?;
            locations
        }
    };
    locations.sort_unstable();
    locations.dedup();
    Ok(locations)
}

/// The numbers of locations. Blocks that are not kept are read several at a time.
fn numbers_of(
    partition: &MetadataPartition,
    kept: &Arc<KeptRecords>,
    keys: &[String],
) -> Result<Vec<u32>> {
    let look_up = |key: &String, may_read: bool| -> Result<Option<Vec<u32>>> {
        let group = metadata_file_group(key, partition.groups.len() as u32) as usize;
        let slice = partition.groups.get(group);
        let slice = slice.ok_or_else(|| partition.no_groups())?;
        let files = kept.files(partition, slice)?;
        let first = slice.base.iter().chain(&slice.logs).next();
        let name = first.map_or("", String::as_str);
        files.location_numbers(kept, name, key, may_read)
    };
    let (mut numbers, mut missing) = (Vec::new(), Vec::new());
    for key in keys {
        match look_up(key, keys.len() == 1)? {
            Some(known) => numbers.extend(known),
            None => missing.push(key),
        }
    }
    if missing.is_empty() {
        return Ok(numbers);
    }
    for keys in missing.chunks(threads()) {
        for known in side_by_side(keys, |key| look_up(key, true)) {
            numbers.extend(known?.unwrap_or_default());
        }
    }
    Ok(numbers)
}

/// Where the records of some keys are.
#[derive(Debug)]
pub struct KeyLocations {
    /// For each key the number of its location; null if it is not in the index.
    pub numbers: Int64Array,
    /// Partition path and file id, each pair once.
    pub locations: Vec<(String, String)>,
}

/// Looks keys up in an index of one file group, which all of them hash to.
///
/// # Errors
/// The index has several file groups, or is damaged.
pub fn key_locations(partition: &MetadataPartition, keys: &StringArray) -> Result<KeyLocations> {
    let [slice] = partition.groups.as_slice() else {
        return Err(partition.no_groups());
    };
    let order = byte_order(keys);
    let rising: Vec<&[u8]> = order
        .iter()
        .map(|row| keys.value(*row).as_bytes())
        .collect();
    let mut numbers = vec![None; keys.len()];
    let mut known = KnownLocations::default();
    Records::each_found(partition, slice, &rising, |records, at, schema, value| {
        let number = known.number(records, schema, value)?;
        if let Some(slot) = order.get(at).and_then(|row| numbers.get_mut(*row)) {
            *slot = Some(number);
        }
        Ok(())
    })?;
    Ok(KeyLocations {
        numbers: numbers.into(),
        locations: known.locations,
    })
}

/// The rows of keys in the order of their bytes.
fn byte_order(keys: &StringArray) -> Vec<usize> {
    // As a rule the first bytes tell, without a look at the text.
    let first_bytes = |key: &str| {
        let mut first = [0; 8];
        for (to, from) in first.iter_mut().zip(key.as_bytes()) {
            *to = *from;
        }
        u64::from_be_bytes(first)
    };
    let mut rows: Vec<(u64, usize)> = (0..keys.len())
        .map(|row| (first_bytes(keys.value(row)), row))
        .collect();
    rows.sort_unstable_by(|(first, row), (other_first, other)| {
        first
            .cmp(other_first)
            .then_with(|| keys.value(*row).cmp(keys.value(*other)))
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Records of one location have equal values, so that few of them are decoded.
#[derive(Default)]
struct KnownLocations {
    by_value: HashMap<Vec<u8>, (usize, i64)>,
    by_location: HashMap<(String, String), i64>,
    locations: Vec<(String, String)>,
}

impl KnownLocations {
    fn number(&mut self, records: &Records, schema: usize, value: &[u8]) -> Result<i64> {
        if let Some((known, number)) = self.by_value.get(value)
            && *known == schema
        {
            return Ok(*number);
        }
        let record = records.datum(schema, value)?;
        let (partition, file_id) = place(&record).ok_or_else(|| {
            records.damaged("a record of the record index has no location".into())
        })?;
        let location = (partition.to_owned(), file_id);
        let number = *self
            .by_location
            .entry(location.clone())
            .or_insert(self.locations.len() as i64);
        if number == self.locations.len() as i64 {
            self.locations.push(location);
        }
        if self.by_value.len() < MAX_VALUES {
            self.by_value.insert(value.to_vec(), (schema, number));
        }
        Ok(number)
    }
}

/// Values that are remembered.
const MAX_VALUES: usize = 1 << 16;

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
        let Some((partition, file_id)) = place(record) else {
            return Err(without_location(key));
        };
        let location = record.field("recordIndexMetadata");
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

fn without_location(key: &str) -> String {
    format!("the record index has no location for {key:?}")
}

/// The partition path and the file id of a record's location, on their own.
pub(super) fn location_of(record: &Datum<'_>) -> Option<(String, String)> {
    place(record).map(|(partition, file_id)| (partition.to_owned(), file_id))
}

/// The partition path and the file id of a record's location.
fn place<'r>(record: &Datum<'r>) -> Option<(&'r str, String)> {
    let location = record.field("recordIndexMetadata");
    Some((location.field("partitionName").text()?, file_id(location)?))
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
