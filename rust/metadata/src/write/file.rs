//! A log file of the metadata table: an HFile block of records, then a block of deleted keys.

use std::io::Write;

use arrow::array::{Array, AsArray, RecordBatch};
use pyhudi_format::hfile::{HFileOptions, write_hfile};
use pyhudi_format::log::{
    BlockType, DeleteRecord, HeaderKey, OrderingValue, delete_content, delete_list, write_block,
};
use pyhudi_slice::{LogFile, Result, SliceError};
use pyhudi_store::{Store, StoreError};

use super::packed_keys::unpack;

/// How a log file of the metadata table is written.
#[derive(Debug, Clone)]
pub struct MetadataLogOptions {
    /// The instant that writes it.
    pub instant: String,
    /// Avro schema of the records as JSON, meta fields included.
    pub avro_schema: String,
    /// Partition of the metadata table.
    pub partition: String,
}

/// Writes one new log file with the record rows of one file group. Of several rows with one key a
/// record beats a deletion: the key left one file and came to another. Without rows it holds an
/// empty delete block, as the log file does that a file group begins with.
///
/// # Errors
/// The file exists, failing storage, keys too long.
pub fn write_metadata_log(
    store: &Store,
    path: &str,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &MetadataLogOptions,
) -> Result<LogFile> {
    let batches = batches.collect::<Result<Vec<_>>>()?;
    let rows = by_key(&batches)?;
    let mut bytes = Vec::new();
    let records = put_records(&mut bytes, path, &rows, options)?;
    let deletes = rows.len() as u64 - records;
    if deletes > 0 || records == 0 {
        put_deletes(&mut bytes, &rows, options);
    }
    let mut out = store.create(path)?;
    out.write_all(&bytes)
        .map_err(|source| SliceError::Store(StoreError::of_stream(path, source)))?;
    let size = out.finish()?;
    Ok(LogFile {
        path: path.to_owned(),
        size,
        records,
        deletes,
    })
}

/// Keys in rising byte order, each once; without a value it is deleted.
pub(super) type Rows<'b> = Vec<(&'b str, Option<&'b [u8]>)>;

pub(super) fn by_key(batches: &[RecordBatch]) -> Result<Rows<'_>> {
    let mut rows = Rows::new();
    for batch in batches {
        let keys = batch
            .column_by_name("key")
            .and_then(|keys| keys.as_string_opt::<i32>());
        let values = batch
            .column_by_name("value")
            .and_then(|values| values.as_binary_opt::<i32>());
        let (Some(keys), Some(values)) = (keys, values) else {
            let what = "rows of the metadata table need key and value";
            return Err(SliceError::Schema(what.to_owned()));
        };
        let packed = batch
            .column_by_name("keys")
            .and_then(|packed| packed.as_binary_opt::<i32>());
        for (row, (key, value)) in keys.iter().zip(values).enumerate() {
            match packed.filter(|packed| packed.is_valid(row)) {
                Some(packed) => {
                    for key in unpack(packed.value(row))? {
                        rows.push((key?, value));
                    }
                }
                None => rows.push((key.unwrap_or_default(), value)),
            }
        }
    }
    sort_by_key(&mut rows);
    // The last record of a key counts, and before a deletion.
    rows.dedup_by(|later, known| {
        let same = later.0 == known.0;
        if same {
            known.1 = later.1.or(known.1);
        }
        same
    });
    Ok(rows)
}

/// Of one key those that came later stay behind. What all keys begin with is not compared, and of the
/// rest as a rule one number.
fn sort_by_key(rows: &mut Rows<'_>) {
    let first = rows.first().map_or("", |(key, _)| *key).as_bytes();
    let common = rows.iter().fold(first, |common, (key, _)| {
        let same = common.iter().zip(key.as_bytes());
        let len = same.take_while(|(a, b)| a == b).count();
        common.get(..len).unwrap_or_default()
    });
    let number = |key: &str| {
        let mut bytes = [0; 8];
        let behind = key.as_bytes().iter().skip(common.len());
        for (byte, of_key) in bytes.iter_mut().zip(behind) {
            *byte = *of_key;
        }
        u64::from_be_bytes(bytes)
    };
    let mut numbered: Vec<_> = (0_u32..)
        .zip(rows.iter())
        .map(|(at, (key, _))| (number(key), at))
        .collect();
    let key_of = |at: u32| rows.get(at as usize).map(|(key, _)| *key);
    numbered.sort_unstable_by(|(a, row), (b, other)| {
        a.cmp(b)
            .then_with(|| key_of(*row).cmp(&key_of(*other)))
            .then_with(|| row.cmp(other))
    });
    *rows = numbered
        .into_iter()
        .filter_map(|(_, at)| rows.get(at as usize).copied())
        .collect();
}

fn put_records(
    out: &mut Vec<u8>,
    path: &str,
    rows: &Rows<'_>,
    options: &MetadataLogOptions,
) -> Result<u64> {
    let pairs: Vec<_> = rows
        .iter()
        .filter_map(|(key, value)| Some((key.as_bytes(), (*value)?)))
        .collect();
    if pairs.is_empty() {
        return Ok(0);
    }
    let infos = [("schema", options.avro_schema.as_bytes())];
    let count = pairs.len() as u64;
    let content = write_hfile(pairs, &infos, &HFileOptions::default())
        .map_err(|error| SliceError::format(path, 0, error))?;
    let header = [
        (HeaderKey::InstantTime, options.instant.as_str()),
        (HeaderKey::Schema, options.avro_schema.as_str()),
    ];
    write_block(out, BlockType::HfileData, &header, &content);
    Ok(count)
}

fn put_deletes(out: &mut Vec<u8>, rows: &Rows<'_>, options: &MetadataLogOptions) {
    let gone = rows.iter().filter(|(_, value)| value.is_none());
    let records = gone.map(|(key, _)| DeleteRecord {
        record_key: (*key).into(),
        partition_path: Some(options.partition.as_str().into()),
        ordering: OrderingValue::Int(0),
    });
    let content = delete_content(&delete_list::encode(records));
    let header = [
        (HeaderKey::InstantTime, options.instant.as_str()),
        (HeaderKey::Schema, options.avro_schema.as_str()),
    ];
    // The block that a file group begins with has no schema.
    let header = if rows.is_empty() {
        header.get(..1).unwrap_or_default()
    } else {
        &header
    };
    write_block(out, BlockType::Delete, header, &content);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryArray, StringArray};

    use super::*;

    #[test]
    fn rows_are_in_the_order_of_their_keys() {
        for keys in [
            &["b", "a", "", "ab", "b", "a\u{0}", "a"][..],
            &[
                "key-0000000012",
                "key-0000000011x",
                "key-0000000011",
                "key-1",
                "key-",
            ],
            &["x12345678b", "x12345678a", "x12345678"],
            &[],
        ] {
            let mut rows: Rows<'_> = keys.iter().map(|key| (*key, None)).collect();
            sort_by_key(&mut rows);
            let mut expected = keys.to_vec();
            expected.sort_unstable();
            let found: Vec<_> = rows.iter().map(|(key, _)| *key).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn of_one_key_the_last_record_counts() {
        let (one, two): (&[u8], &[u8]) = (b"1", b"2");
        let keys = StringArray::from(vec!["k", "k", "k", "gone", "a"]);
        let values = BinaryArray::from(vec![Some(one), Some(two), None, None, Some(one)]);
        let batch = RecordBatch::try_from_iter([
            ("key", Arc::new(keys) as ArrayRef),
            ("value", Arc::new(values) as ArrayRef),
        ]);
        let batches = [batch.unwrap()];
        let rows = by_key(&batches).unwrap();
        assert_eq!(rows, [("a", Some(one)), ("gone", None), ("k", Some(two))]);
    }
}
