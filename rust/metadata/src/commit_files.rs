//! The files that commits of a timeline name, out of the contents of their completed instants.
//!
//! JSON up to table version 6, an Avro container from 8 on (`HoodieWriteStat`, Hudi 0.15.0 and 1.2.0).
//! The rest of a commit, and what is wrong with one, is not told here.

use std::thread;

use pyhudi_avro::{Datum, DatumReader, container_datum};
use serde_json::Value;

use crate::threads;

/// Bytes that are worth a thread.
const THREAD_BYTES: usize = 1 << 20;

/// A write statistic, as far as it names files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFile {
    /// Partition path.
    pub partition: String,
    /// Relative to the table; empty where only change logs are named.
    pub path: String,
    /// File group.
    pub file_id: String,
    /// Name of the base file of the slice, of a log file.
    pub base_file: Option<String>,
    /// Size of the file in bytes.
    pub size: i64,
    /// Whether there was something to write.
    pub is_written: bool,
    /// Paths and sizes of change logs.
    pub change_logs: Vec<(String, i64)>,
}

/// The files that each of the commits names; none for content that is not as it should be.
pub fn commit_files<C: AsRef<[u8]> + Sync>(contents: &[C]) -> Vec<Option<Vec<CommitFile>>> {
    let bytes: usize = contents.iter().map(|content| content.as_ref().len()).sum();
    let threads = (bytes / THREAD_BYTES).clamp(1, threads());
    let mut parts = contents.chunks(contents.len().div_ceil(threads).max(1));
    let mine = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let running: Vec<_> = parts
            .map(|part| {
                let work = move || decode(part);
                (part, thread::Builder::new().spawn_scoped(scope, work))
            })
            .collect();
        let mut files = decode(mine);
        for (part, theirs) in running {
            files.extend(match theirs {
                Ok(theirs) => theirs.join().unwrap_or_else(|_| vec![None; part.len()]),
                // The system gives no more threads.
                Err(_) => decode(part),
            });
        }
        files
    })
}

fn decode<C: AsRef<[u8]>>(contents: &[C]) -> Vec<Option<Vec<CommitFile>>> {
    let mut reader = None;
    let contents = contents.iter().map(AsRef::as_ref);
    contents
        .map(|content| match content {
            [] => Some(Vec::new()),
            [b'O', ..] => of_avro(content, &mut reader),
            _ => of_json(content),
        })
        .collect()
}

fn of_avro(content: &[u8], reader: &mut Option<(String, DatumReader)>) -> Option<Vec<CommitFile>> {
    let files = |record: &Datum<'_>| {
        let mut files = Vec::new();
        let partitions = match record.field("partitionToWriteStats") {
            Datum::Null => return Some(files),
            Datum::Map(partitions) => partitions,
            _ => return None,
        };
        for (partition, stats) in partitions {
            let Datum::Array(stats) = stats else {
                return None;
            };
            for stat in stats {
                let Datum::Record(_) = stat else {
                    return None;
                };
                let text = |name: &str| match stat.field(name) {
                    Datum::Null => Some(None),
                    Datum::String(text) => Some(Some((*text).to_owned())),
                    _ => None,
                };
                let number = |name: &str| match stat.field(name) {
                    Datum::Null => Some(0),
                    number => number.number(),
                };
                let logs = match stat.field("cdcStats") {
                    Datum::Null => Vec::new(),
                    Datum::Map(logs) => logs
                        .iter()
                        .map(|(path, size)| Some(((*path).to_owned(), size.number()?)))
                        .collect::<Option<_>>()?,
                    _ => return None,
                };
                files.extend(file(partition, text, number, logs)?);
            }
        }
        Some(files)
    };
    container_datum(content, reader, files).ok()?
}

fn of_json(content: &[u8]) -> Option<Vec<CommitFile>> {
    let record: Value = serde_json::from_slice(content).ok()?;
    let mut files = Vec::new();
    let partitions = match record.as_object()?.get("partitionToWriteStats") {
        None | Some(Value::Null) => return Some(files),
        Some(partitions) => partitions.as_object()?,
    };
    for (partition, stats) in partitions {
        for stat in stats.as_array()? {
            let stat = stat.as_object()?;
            let text = |name: &str| match stat.get(name) {
                None | Some(Value::Null) => Some(None),
                Some(text) => text.as_str().map(|text| Some(text.to_owned())),
            };
            let number = |name: &str| match stat.get(name) {
                None | Some(Value::Null) => Some(0),
                Some(number) => number.as_i64(),
            };
            let logs = match stat.get("cdcStats") {
                None | Some(Value::Null) => Vec::new(),
                Some(logs) => logs
                    .as_object()?
                    .iter()
                    .map(|(path, size)| Some((path.clone(), size.as_i64()?)))
                    .collect::<Option<_>>()?,
            };
            files.extend(file(partition, text, number, logs)?);
        }
    }
    Some(files)
}

/// None where a value is of another type; no file where the statistic names none.
#[expect(clippy::option_option, reason = "a value that is wrong, or not there")]
fn file(
    partition: &str,
    text: impl Fn(&str) -> Option<Option<String>>,
    number: impl Fn(&str) -> Option<i64>,
    change_logs: Vec<(String, i64)>,
) -> Option<Option<CommitFile>> {
    let path = text("path")?.unwrap_or_default();
    let (file_id, base_file) = (text("fileId")?.unwrap_or_default(), text("baseFile")?);
    let size = number("fileSizeInBytes")?;
    let is_written = size != 0 || number("numWrites")? != 0 || number("numDeletes")? != 0;
    if path.is_empty() && change_logs.is_empty() {
        return Some(None);
    }
    Some(Some(CommitFile {
        partition: partition.to_owned(),
        path,
        file_id,
        base_file,
        size,
        is_written,
        change_logs,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type": "record", "name": "Commit", "fields": [
        {"name": "partitionToWriteStats", "type": ["null", {"type": "map", "values": {
            "type": "array", "items": {"type": "record", "name": "Stat", "fields": [
                {"name": "fileId", "type": ["null", "string"]},
                {"name": "path", "type": ["null", "string"]},
                {"name": "baseFile", "type": ["null", "string"]},
                {"name": "cdcStats", "type": ["null", {"type": "map", "values": "long"}]},
                {"name": "fileSizeInBytes", "type": ["null", "long"]},
                {"name": "numWrites", "type": ["null", "long"]}]}}}]}]}"#;
    const STATS: &str = r#"{"partitionToWriteStats": {"p": [
        {"fileId": "f", "path": "p/.f.log", "baseFile": "f.parquet", "cdcStats": {"p/c": 7},
         "fileSizeInBytes": null, "numWrites": 2},
        {"fileId": "", "path": null, "baseFile": null, "cdcStats": null,
         "fileSizeInBytes": 9, "numWrites": null}]}}"#;

    fn expected() -> Vec<CommitFile> {
        vec![CommitFile {
            partition: "p".to_owned(),
            path: "p/.f.log".to_owned(),
            file_id: "f".to_owned(),
            base_file: Some("f.parquet".to_owned()),
            size: 0,
            is_written: true,
            change_logs: vec![("p/c".to_owned(), 7)],
        }]
    }

    #[test]
    fn json_and_avro_name_the_same_files() {
        let record: Value = serde_json::from_str(STATS).unwrap();
        let avro = pyhudi_avro::json_to_container(SCHEMA, &[record], [7; 16]).unwrap();
        let contents = [avro.clone(), STATS.as_bytes().to_vec(), Vec::new(), avro];
        let files = commit_files(&contents);
        assert_eq!(
            files,
            [
                Some(expected()),
                Some(expected()),
                Some(vec![]),
                Some(expected())
            ]
        );
    }

    #[test]
    fn wrong_content_names_no_files_and_the_others_do() {
        let wrong = [
            "{",
            "[]",
            "Obj",
            r#"{"partitionToWriteStats": {"p": [{"path": 1}]}}"#,
            r#"{"partitionToWriteStats": {"p": [{"path": "f", "fileSizeInBytes": 1.5}]}}"#,
            STATS,
        ];
        let files = commit_files(&wrong);
        assert_eq!(files, [None, None, None, None, None, Some(expected())]);
    }

    #[test]
    fn many_commits_are_decoded_by_several_threads_in_their_order() {
        let commit = |number: usize| {
            let blanks = " ".repeat(THREAD_BYTES / 4);
            format!(r#"{blanks}{{"partitionToWriteStats": {{"p": [{{"path": "{number}"}}]}}}}"#)
        };
        let files = commit_files(&(0..9).map(commit).collect::<Vec<_>>());
        let paths = files.into_iter().map(|files| files.unwrap().remove(0).path);
        assert!(paths.eq((0..9).map(|number| number.to_string())));
    }
}
