//! Records of the partitions `files` and `record_index`.

use std::collections::BTreeMap;

use arrow::array::{RecordBatch, StringArray};
use pyhudi_avro::Value;
use pyhudi_slice::{Result, SliceError};

use super::recorder::{Recorder, packed_rows};

const FILES: &str = "files";
const RECORD_INDEX: &str = "record_index";
/// Kinds of records (`MetadataPartitionType`).
const KIND_ALL_PARTITIONS: i64 = 1;
const KIND_FILES: i64 = 2;
const KIND_LOCATION: i64 = 5;
/// Key of the record that names all partitions (`RECORDKEY_PARTITION_LIST`).
const ALL_PARTITIONS: &str = "__all_partitions__";

/// A file, or under the key of all partitions a partition, that is there or gone.
#[derive(Debug, Clone)]
pub struct FileEntry {
    /// Key of the record.
    pub key: String,
    /// Name of the file or partition.
    pub name: String,
    /// Bytes; 0 for what is gone and for partitions.
    pub size: i64,
    /// Whether it is gone.
    pub deleted: bool,
}

impl Recorder {
    /// Records of `files`, one for each key, with all entries of the key. keys: those that have a
    /// record also without entries.
    ///
    /// # Errors
    /// The metadata table has no such partition.
    pub fn files(&self, entries: &[FileEntry], keys: &[String]) -> Result<RecordBatch> {
        let mut by_key: BTreeMap<&str, Vec<&FileEntry>> = BTreeMap::new();
        for key in keys {
            by_key.entry(key).or_default();
        }
        for entry in entries {
            by_key.entry(&entry.key).or_default().push(entry);
        }
        let mut rows = self.rows(FILES)?;
        for (key, entries) in by_key {
            let kind = if key == ALL_PARTITIONS {
                KIND_ALL_PARTITIONS
            } else {
                KIND_FILES
            };
            let infos = entries.iter().map(|entry| {
                let info = vec![
                    ("size", Value::Whole(entry.size)),
                    ("isDeleted", Value::Boolean(entry.deleted)),
                ];
                (entry.name.as_str(), Value::Record(info))
            });
            let infos = Value::Map(infos.collect());
            rows.put(
                key,
                &[("type", Value::Whole(kind)), ("filesystemMetadata", infos)],
            )?;
        }
        rows.finish()
    }
}

/// Where records are from now on.
#[derive(Debug, Clone)]
pub struct Location {
    /// Partition path of the data table.
    pub partition: String,
    /// File group.
    pub file_id: String,
    /// Instant of the write, epoch milliseconds.
    pub instant_ms: i64,
    /// Of an index by data partition: the number of the partition's first file group, and how many
    /// it has. [`None`] where all file groups hold keys of all partitions.
    pub groups: Option<(u32, u32)>,
}

/// Records of `record_index`: keys that came to a file group, and keys that left the table.
///
/// # Errors
/// The metadata table has no such partition, or no such file groups.
pub fn locations(
    recorder: &Recorder,
    location: &Location,
    added: &StringArray,
    removed: &StringArray,
) -> Result<RecordBatch> {
    let all = recorder.groups(RECORD_INDEX)?;
    let (first, groups) = location.groups.unwrap_or((0, all));
    if groups == 0 || first.checked_add(groups).is_none_or(|end| end > all) {
        let what = format!(
            "the record index has no file groups of {}",
            location.partition
        );
        return Err(SliceError::Schema(what));
    }
    let mut fields = vec![
        ("partitionName", Value::Text(&location.partition)),
        ("instantTime", Value::Whole(location.instant_ms)),
    ];
    match uuid_and_number(&location.file_id) {
        Some((bits, number)) => fields.extend([
            (
                "fileIdHighBits",
                Value::Whole(((bits >> 64) as u64).cast_signed()),
            ),
            ("fileIdLowBits", Value::Whole((bits as u64).cast_signed())),
            ("fileIndex", Value::Whole(number)),
            ("fileId", Value::Text("")),
            ("fileIdEncoding", Value::Whole(0)),
        ]),
        None => fields.extend([
            ("fileIdHighBits", Value::Whole(-1)),
            ("fileIdLowBits", Value::Whole(-1)),
            ("fileIndex", Value::Whole(-1)),
            ("fileId", Value::Text(&location.file_id)),
            ("fileIdEncoding", Value::Whole(1)),
        ]),
    }
    let fields = [
        ("type", Value::Whole(KIND_LOCATION)),
        ("recordIndexMetadata", Value::Record(fields)),
    ];
    // They differ in their keys alone.
    let value = recorder.value(&fields)?;
    let keys_by_value = [(Some(value.as_slice()), added), (None, removed)];
    packed_rows(RECORD_INDEX, (first, groups), &keys_by_value)
}

/// A file id `<uuid>-<number>` or `<uuid>` parsed; the number is -1 if there is none
/// (`HoodieMetadataPayload.createRecordIndexUpdate`). None for any other file id, also for one whose
/// number has another text: reading would make a different file id.
fn uuid_and_number(file_id: &str) -> Option<(u128, i64)> {
    let (uuid, number) = match file_id.split_at_checked(36)? {
        (uuid, "") => (uuid, -1),
        (uuid, rest) => {
            let text = rest.strip_prefix('-')?;
            let number = text.parse::<i32>().ok().filter(|number| *number >= 0)?;
            (uuid, (number.to_string() == text).then_some(number)?.into())
        }
    };
    let mut digits = String::with_capacity(32);
    for (place, one) in uuid.chars().enumerate() {
        match (place, one) {
            (8 | 13 | 18 | 23, '-') => {}
            (8 | 13 | 18 | 23, _) => return None,
            (_, '0'..='9' | 'a'..='f') => digits.push(one),
            _ => return None,
        }
    }
    Some((u128::from_str_radix(&digits, 16).ok()?, number))
}

#[cfg(test)]
mod tests {
    use super::uuid_and_number;

    #[test]
    fn numbers_with_another_text_stay_in_the_file_id() {
        let uuid = "00000003-cc25-4a03-a6fe-c551a9035643";
        for number in ["+5", "007", "-0", "-1", "", "2147483648", "4294967295"] {
            assert_eq!(
                uuid_and_number(&format!("{uuid}-{number}")),
                None,
                "{number}"
            );
        }
        let (_, number) = uuid_and_number(&format!("{uuid}-2147483647")).unwrap();
        assert_eq!(number, 2_147_483_647);
    }

    #[test]
    fn only_uuids_are_taken_apart() {
        let uuid = "00000003-cc25-4a03-a6fe-c551a9035643";
        let bits = 0x0000_0003_cc25_4a03_a6fe_c551_a903_5643;
        assert_eq!(uuid_and_number(uuid), Some((bits, -1)));
        assert_eq!(uuid_and_number(&format!("{uuid}-12")), Some((bits, 12)));
        for other in ["files-0000-0", &uuid.to_uppercase(), &format!("{uuid}-x")] {
            assert_eq!(uuid_and_number(other), None);
        }
    }
}
