//! Compaction of the metadata table: all records of a file group merged into one base file.
//!
//! What versions of a record come to is said in `combined`. Of a base file that was written here
//! only those blocks are unpacked that hold a key of the log files, and the first and last: the rest
//! is taken over as it stands. Its records go on naming the base file that they came with, which
//! no reader uses. So is the block of a log file that has most keys of a record index: otherwise a
//! commit soon after a bulk load would decode them all.

use bytes::Bytes;
use pyhudi_avro::{Datum, DatumWriter, Value, with_text};
use pyhudi_format::bloom::BloomFilter;
use pyhudi_format::hfile::{HFileOptions, HFileWriter};
use pyhudi_format::{FormatError, HFile, ReadAt};
use pyhudi_slice::{BaseFile, Result, SliceError};
use pyhudi_store::StoreFile;

use super::base::{FILTER, finish, growing, passing, store_base, store_whole};
use super::combined::{combined, set};
use crate::records::{Keep, Records, Section, Versions, Wanted};
use crate::{MetadataPartition, MetadataSlice};

/// Writes the merged records of a slice of a partition as a base file. In memory are the records of
/// its log files and the new file; for a base file of another writer, all records.
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
    let into = Into {
        writer: DatumWriter::new(avro_schema)
            .map_err(|error| SliceError::Schema(error.to_string()))?,
        schema: avro_schema,
        name: path.rsplit('/').next().unwrap_or(path),
    };
    if let Some(base) = &slice.base {
        let damaged = |error| SliceError::format(base, 0, error);
        let file = HFile::open(partition.store.file(base)?).map_err(damaged)?;
        if let Some(filter) = filter_of_own(&file, avro_schema).map_err(damaged)? {
            let logs = Records::of_logs(partition, slice)?;
            let base = Base::new(base, file, logs, avro_schema)?;
            if let Some(merged) = base.merged(&into, filter)? {
                return merged.stored(partition, path);
            }
        }
    } else if let Some(merged) = first_load(partition, slice, &into)? {
        return merged.stored(partition, path);
    }
    let records = Records::read(partition, slice, &Wanted::All, Keep::All)?;
    let mut merged: Vec<(&str, Vec<u8>)> = Vec::new();
    for (key, versions) in records.stored() {
        if let Some(value) = into.stored(&records, versions)? {
            merged.push((records.text(key)?, value));
        }
    }
    let pairs: Vec<(&str, &[u8])> = merged
        .iter()
        .map(|(key, value)| (*key, value.as_slice()))
        .collect();
    store_base(&partition.store, path, &pairs, avro_schema)
}

/// The key filter of a base file whose blocks can be taken over.
fn filter_of_own(
    file: &HFile<StoreFile>,
    avro_schema: &str,
) -> Result<Option<BloomFilter>, FormatError> {
    if !file.can_be_taken_over() || file.schema() != Some(avro_schema) || file.entry_count() == 0 {
        return Ok(None);
    }
    match file.meta_block(FILTER)? {
        Some(text) => growing(&text).map(Some),
        None => Ok(None),
    }
}

/// The first records of a record index as the base file that they become: most of a table's keys, which
/// one write added. None for other slices.
fn first_load(
    partition: &MetadataPartition,
    slice: &MetadataSlice,
    into: &Into<'_>,
) -> Result<Option<Merged>> {
    let takes = |file: &HFile<Section>| {
        let is_own = file.can_be_taken_over() && file.schema() == Some(into.schema);
        if !is_own || file.entry_count() < FIRST_LOAD {
            return Ok(false);
        }
        let first = file.scan().next().transpose()?;
        Ok(first.is_some_and(|(_, value)| location_named(&value, into.name).is_some()))
    };
    let Some((file, newer)) = Records::oldest_block(partition, slice, takes)? else {
        return Ok(None);
    };
    let name = slice.logs.first().map_or("", String::as_str);
    Base::new(name, file, newer, into.schema)?.merged(into, passing())
}

/// Records for which it pays to take over blocks of a log file.
const FIRST_LOAD: u64 = 10_000;

/// What becomes of a record in the new file.
struct Into<'a> {
    writer: DatumWriter,
    schema: &'a str,
    name: &'a str,
}

impl Into<'_> {
    /// The record that stored versions come to; None where it is gone.
    fn stored(&self, records: &Records, versions: &Versions) -> Result<Option<Vec<u8>>> {
        // Of locations the newest counts as it is, and there are as many as rows in the table.
        let newest = versions.stored.last();
        if let Some(value) = newest.and_then(|newest| records.value_of(newest, self.schema))
            && let Some(named) = location_named(value, self.name)
        {
            return Ok(Some(named));
        }
        self.value(records, &records.decoded(&versions.stored)?)
    }

    /// The record that versions come to; None where it is gone.
    fn value(&self, records: &Records, versions: &[Datum<'_>]) -> Result<Option<Vec<u8>>> {
        let Some(mut fields) = combined(versions).map_err(|what| records.damaged(what))? else {
            return Ok(None);
        };
        set(&mut fields, "key", Value::Text(""));
        set(&mut fields, "_hoodie_file_name", Value::Text(self.name));
        let value = self.writer.write(&fields);
        let value = value.map_err(|error| SliceError::Schema(error.to_string()))?;
        Ok(Some(value))
    }
}

/// The meta fields that a record begins with, each null or text; the last one names its file.
const META_FIELDS: usize = 5;
/// A record of the record index (`MetadataPartitionType`), as Avro writes the number.
const LOCATION: u8 = 5 << 1;

/// A record of the record index with the name of its file, without decoding it. None for any other.
fn location_named(value: &[u8], name: &str) -> Option<Vec<u8>> {
    let (named, place) = with_text(value, META_FIELDS - 1, name)?;
    // An empty key, because the file has it next to the record; then the kind.
    (named.get(place..place + 2)? == [0, LOCATION]).then_some(named)
}

/// A base file that was written here, or the first block of records, and what the log files say of its keys and others.
struct Base<'p, R> {
    path: &'p str,
    file: HFile<R>,
    logs: Records,
    /// Of the base file's records.
    schema: usize,
}

impl<'p, R: ReadAt> Base<'p, R> {
    fn new(path: &'p str, file: HFile<R>, mut logs: Records, avro_schema: &str) -> Result<Self> {
        let schema = logs.schema(avro_schema);
        Ok(Self {
            path,
            file,
            schema: schema.map_err(|error| SliceError::avro(path, 0, error))?,
            logs,
        })
    }

    /// None where all records of the last block went, which leaves the last key unknown.
    fn merged(&self, into: &Into<'_>, mut filter: BloomFilter) -> Result<Option<Merged>> {
        let damaged = |error| SliceError::format(self.path, 0, error);
        let mut writer = HFileWriter::new(&HFileOptions::default());
        let mut changes = self.logs.stored().peekable();
        let (mut read, mut rows) = (0, 0);
        let (mut first, mut last): (Option<Bytes>, Option<Bytes>) = (None, None);
        for (number, block) in self.file.packed_blocks().enumerate() {
            let block = block.map_err(damaged)?;
            let before_end = |key: &Bytes| block.end.as_ref().is_none_or(|end| key < end);
            let mut within = Vec::new();
            while let Some(change) = changes.next_if(|(key, _)| before_end(key)) {
                within.push(change);
            }
            let is_edge = number == 0 || block.end.is_none();
            if within.is_empty() && !is_edge {
                writer.take_over(&block).map_err(damaged)?;
                first.get_or_insert(block.first);
                last = None;
                continue;
            }
            let stored = self.file.pairs_of(&block).map_err(damaged)?;
            read += stored.len() as u64;
            let run = self.joined(into, stored, within, &mut filter)?;
            rows += run.len() as u64;
            if let (Some((least, _)), Some((greatest, _))) = (run.first(), run.last()) {
                first.get_or_insert_with(|| least.clone());
                last = Some(greatest.clone());
            }
            let run: Vec<(&[u8], &[u8])> =
                run.iter().map(|(key, value)| (&**key, &**value)).collect();
            writer.add_run(&run).map_err(damaged)?;
        }
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(None);
        };
        let Some(untouched) = self.file.entry_count().checked_sub(read) else {
            return Err(self
                .logs
                .damaged(format!("{read} records and more in {}", self.path)));
        };
        writer.count(untouched, self.file.averages());
        let keys = (
            self.logs.text(&first)?.to_owned(),
            self.logs.text(&last)?.to_owned(),
        );
        let schema = self.file.schema().unwrap_or_default();
        let ends = Some((keys.0.as_str(), keys.1.as_str()));
        Ok(Some(Merged {
            bytes: finish(writer, &filter, ends, schema).map_err(damaged)?,
            rows: rows + untouched,
            keys,
        }))
    }

    /// The records of a block with what the log files say of keys there. The filter gets new ones.
    fn joined(
        &self,
        into: &Into<'_>,
        stored: Vec<(Bytes, Bytes)>,
        changes: Vec<(&Bytes, &Versions)>,
        filter: &mut BloomFilter,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let mut run = Vec::with_capacity(stored.len() + changes.len());
        let mut stored = stored.into_iter().peekable();
        for (key, change) in changes {
            while let Some(pair) = stored.next_if(|(known, _)| known < key) {
                run.push(pair);
            }
            let known = stored.next_if(|(known, _)| known == key);
            if known.is_none() && !change.stored.is_empty() {
                filter.add(key);
            }
            if let Some(value) = self.combined(into, known.as_ref(), change)? {
                run.push((key.clone(), Bytes::from(value)));
            }
        }
        run.extend(stored);
        Ok(run)
    }

    fn combined(
        &self,
        into: &Into<'_>,
        known: Option<&(Bytes, Bytes)>,
        change: &Versions,
    ) -> Result<Option<Vec<u8>>> {
        let mut versions = match known {
            Some((_, value)) if !change.anew => vec![self.logs.datum(self.schema, value)?],
            _ => return into.stored(&self.logs, change),
        };
        versions.extend(self.logs.decoded(&change.stored)?);
        into.value(&self.logs, &versions)
    }
}

struct Merged {
    bytes: Vec<u8>,
    rows: u64,
    /// The first and the last.
    keys: (String, String),
}

impl Merged {
    fn stored(self, partition: &MetadataPartition, path: &str) -> Result<BaseFile> {
        Ok(BaseFile {
            path: path.to_owned(),
            size: store_whole(&partition.store, path, &self.bytes)?,
            rows: self.rows,
            keys: Some(self.keys),
        })
    }
}
