//! The data files of a table by file group.

use std::cmp::Ordering;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use crate::names::{Extension, FileName, parse_name};
use crate::strings::Strings;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A base file.
    Base(Extension),
    /// A log file.
    Log,
    /// A change log.
    ChangeLog,
}

/// A data file. Strings are numbers, the file id a part of one long string.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    pub id_start: u64,
    pub id_len: u32,
    pub partition: u32,
    pub instant: u32,
    pub token: u32,
    pub size: i64,
    /// Digits of a log file's version.
    pub version: u32,
    pub kind: Kind,
}

/// A data file with its strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupFile<'a> {
    /// File group.
    pub file_id: &'a str,
    /// Instant in its name.
    pub instant: &'a str,
    /// Write token, empty if the name has none.
    pub token: &'a str,
    /// Version of a log file in digits.
    pub version: &'a str,
    /// Bytes.
    pub size: i64,
    /// What it is.
    pub kind: Kind,
}

impl GroupFile<'_> {
    /// Writes the name, as it was listed.
    pub fn write_name(&self, out: &mut impl Write) {
        let Self {
            file_id,
            instant,
            token,
            version,
            ..
        } = self;
        // Writing to a string cannot fail.
        let _ = match self.kind {
            Kind::Base(extension) => {
                write!(out, "{file_id}_{token}_{instant}.{}", extension.text())
            }
            _ if token.is_empty() => write!(out, ".{file_id}_{instant}.log.{version}"),
            Kind::Log => write!(out, ".{file_id}_{instant}.log.{version}_{token}"),
            Kind::ChangeLog => write!(out, ".{file_id}_{instant}.log.{version}_{token}.cdc"),
        };
    }

    /// The name, as it was listed.
    pub fn name(&self) -> String {
        let mut name = String::new();
        self.write_name(&mut name);
        name
    }

    /// Oldest log file first (`HoodieLogFile.LogFileComparator`, Hudi 1.2.0).
    pub(crate) fn log_order(&self, other: &Self) -> Ordering {
        (self.instant.cmp(other.instant))
            .then_with(|| number(self.version).cmp(&number(other.version)))
            .then_with(|| self.token.cmp(other.token))
            .then_with(|| (self.kind == Kind::ChangeLog).cmp(&(other.kind == Kind::ChangeLog)))
    }

    /// The order of the names of one file group's base files.
    pub(crate) fn base_order(&self, other: &Self) -> Ordering {
        let rest = |file: &Self| {
            let mut rest = String::new();
            let extension = match file.kind {
                Kind::Base(extension) => extension.text(),
                _ => "",
            };
            let _ = write!(rest, "{}_{}.{extension}", file.token, file.instant);
            rest
        };
        rest(self).cmp(&rest(other))
    }
}

/// Data files as they are listed, in any order.
#[derive(Debug, Default)]
pub struct FileGroupsBuilder {
    listed: Listed,
}

impl FileGroupsBuilder {
    /// extension: that of base files; none for any format of data tables.
    pub fn new(extension: Option<Extension>) -> Self {
        let listed = Listed {
            extension,
            ..Listed::default()
        };
        Self { listed }
    }

    /// Adds a partition, which need not have files. Returns its number.
    pub fn add_partition(&mut self, path: &str) -> u32 {
        self.listed.partitions.add(path)
    }

    /// Adds a file of a partition; false if its name refers to an unsupported format. Other files than
    /// data files are ignored.
    #[must_use]
    pub fn add_file(&mut self, partition: u32, name: &str, size: i64) -> bool {
        let (file_id, token, instant, version, kind) = match parse_name(name, self.listed.extension)
        {
            FileName::Unsupported => return false,
            FileName::Other => return true,
            FileName::Base {
                file_id,
                token,
                instant,
                extension,
            } => (file_id, token, instant, "", Kind::Base(extension)),
            FileName::Log {
                file_id,
                instant,
                version,
                token,
                is_change_log,
            } => {
                let kind = if is_change_log {
                    Kind::ChangeLog
                } else {
                    Kind::Log
                };
                (file_id, token, instant, version, kind)
            }
        };
        // A group with change logs alone is a group too.
        let listed = &mut self.listed;
        let file = File {
            id_start: listed.ids.len() as u64,
            id_len: file_id.len() as u32,
            partition,
            instant: listed.instants.add(instant),
            token: listed.tokens.add(token),
            size,
            version: listed.versions.add(version),
            kind,
        };
        listed.ids.push_str(file_id);
        listed.files.push(file);
        true
    }

    /// The groups of all files.
    pub fn finish(self) -> FileGroups {
        let mut listed = self.listed;
        let mut files = std::mem::take(&mut listed.files);
        let ranks = listed.partitions.ranks();
        let rank = |file: &File| ranks.get(file.partition as usize).copied();
        let order = |a: &File, b: &File| {
            (rank(a).cmp(&rank(b))).then_with(|| listed.id_of(a).cmp(listed.id_of(b)))
        };
        // Stable, and fast for what is sorted already: files are listed by partition and name.
        files.sort_by(order);
        let mut starts = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let before = number.checked_sub(1).and_then(|before| files.get(before));
            if before.is_none_or(|before| order(before, file).is_ne()) {
                starts.push(number as u32);
            }
        }
        starts.shrink_to_fit();
        (listed.files, listed.starts) = (files, starts);
        FileGroups {
            listed: Arc::new(listed),
            change_logs: false,
        }
    }
}

/// Sorts as the number that the digits are.
fn number(digits: &str) -> (usize, &str) {
    let digits = digits.trim_start_matches('0');
    (digits.len(), digits)
}

/// File groups by partition path and file id, each with its files in the order of their listing. Cheap
/// to clone.
#[derive(Debug, Clone)]
pub struct FileGroups {
    listed: Arc<Listed>,
    change_logs: bool,
}

#[derive(Debug, Default)]
struct Listed {
    extension: Option<Extension>,
    partitions: Strings,
    instants: Strings,
    tokens: Strings,
    versions: Strings,
    ids: String,
    files: Vec<File>,
    /// Of each group, the number of its first file. Empty while files are added.
    starts: Vec<u32>,
}

impl Listed {
    fn id_of(&self, file: &File) -> &str {
        let start = file.id_start as usize;
        self.ids
            .get(start..start + file.id_len as usize)
            .unwrap_or_default()
    }
}

impl FileGroups {
    /// The same groups, with change logs among their files or without.
    #[must_use]
    pub fn with_change_logs(&self, change_logs: bool) -> Self {
        Self {
            listed: Arc::clone(&self.listed),
            change_logs,
        }
    }

    /// Number of file groups.
    pub fn len(&self) -> usize {
        self.listed.starts.len()
    }

    /// Whether there is no file group.
    pub fn is_empty(&self) -> bool {
        self.listed.starts.is_empty()
    }

    /// Paths of all partitions, sorted.
    pub fn partitions(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.listed.partitions.iter().collect();
        paths.sort_unstable();
        paths
    }

    pub(crate) fn instants(&self) -> &Strings {
        &self.listed.instants
    }

    /// Partition path and file id of a group.
    pub fn key(&self, group: u32) -> (&str, &str) {
        let first = self.numbers(group).start;
        self.listed
            .files
            .get(first as usize)
            .map_or(("", ""), |file| {
                (
                    self.listed.partitions.get(file.partition),
                    self.listed.id_of(file),
                )
            })
    }

    /// The number of a group.
    pub fn find(&self, partition: &str, file_id: &str) -> Option<u32> {
        self.listed.partitions.find(partition)?;
        let at = self.first_from((partition, file_id));
        ((at as usize) < self.len() && self.key(at) == (partition, file_id)).then_some(at)
    }

    /// The number of the first group whose key is not less.
    fn first_from(&self, key: (&str, &str)) -> u32 {
        let (mut low, mut high) = (0, self.len() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// A group's files with their numbers.
    pub fn files(&self, group: u32) -> impl Iterator<Item = (u32, GroupFile<'_>)> {
        self.numbers(group)
            .filter_map(|number| Some((number, self.file(number)?)))
            .filter(|(_, file)| self.includes(file.kind))
    }

    pub(crate) fn numbers(&self, group: u32) -> Range<u32> {
        let at = group as usize;
        let end = self.listed.files.len() as u32;
        let start = self.listed.starts.get(at).copied().unwrap_or(end);
        start..self.listed.starts.get(at + 1).copied().unwrap_or(end)
    }

    /// A file.
    pub fn file(&self, number: u32) -> Option<GroupFile<'_>> {
        let file = self.listed.files.get(number as usize)?;
        Some(GroupFile {
            file_id: self.listed.id_of(file),
            instant: self.listed.instants.get(file.instant),
            token: self.listed.tokens.get(file.token),
            version: self.listed.versions.get(file.version),
            size: file.size,
            kind: file.kind,
        })
    }

    pub(crate) fn raw(&self, number: u32) -> Option<&File> {
        self.listed.files.get(number as usize)
    }

    pub(crate) fn partition_paths(&self) -> impl Iterator<Item = &str> {
        self.listed.partitions.iter()
    }

    pub(crate) fn partition(&self, path: &str) -> Option<u32> {
        self.listed.partitions.find(path)
    }

    pub(crate) fn partition_number(&self, group: u32) -> u32 {
        let first = self.numbers(group).start;
        self.raw(first).map_or(0, |file| file.partition)
    }

    /// Whether a partition has a data file of this name.
    pub fn contains(&self, partition: &str, name: &str) -> bool {
        let (FileName::Base {
            file_id, instant, ..
        }
        | FileName::Log {
            file_id, instant, ..
        }) = parse_name(name, self.listed.extension)
        else {
            return false;
        };
        let (Some(group), Some(instant)) = (
            self.find(partition, file_id),
            self.listed.instants.find(instant),
        ) else {
            return false;
        };
        // A slice may have hundreds of log files, few of one instant.
        (self.numbers(group))
            .filter(|number| {
                self.raw(*number)
                    .is_some_and(|file| file.instant == instant)
            })
            .filter_map(|number| self.file(number))
            .any(|file| self.includes(file.kind) && file.name() == name)
    }

    /// Whether there is a data file of this path.
    pub fn has_path(&self, path: &str) -> bool {
        let (partition, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.contains(partition, name)
    }

    /// Number of data files, and their bytes.
    pub fn total(&self) -> (usize, i64) {
        let included = self
            .listed
            .files
            .iter()
            .filter(|file| self.includes(file.kind));
        included.fold((0, 0), |(files, bytes), file| {
            (files + 1, bytes + file.size)
        })
    }

    /// Number of a partition's data files.
    pub fn files_in(&self, partition: &str) -> usize {
        let Some(number) = self.listed.partitions.find(partition) else {
            return 0;
        };
        let first = self.numbers(self.first_from((partition, ""))).start as usize;
        let rest = self.listed.files.get(first..).unwrap_or_default();
        rest.iter()
            .take_while(|file| file.partition == number)
            .filter(|file| self.includes(file.kind))
            .count()
    }

    pub(crate) fn includes(&self, kind: Kind) -> bool {
        self.change_logs || kind != Kind::ChangeLog
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(files: &[(&str, &str)], change_logs: bool) -> FileGroups {
        let mut builder = FileGroupsBuilder::new(Some(Extension::Parquet));
        for (partition, name) in files {
            let partition = builder.add_partition(partition);
            assert!(builder.add_file(partition, name, 7));
        }
        builder.finish().with_change_logs(change_logs)
    }

    const FILES: [(&str, &str); 6] = [
        ("b", "f1_0-1-2_2.parquet"),
        ("b", ".f1_2.log.1_0-1-2"),
        ("b", ".f2_2.log.1_0-1-2.cdc"),
        ("a", "f2_0-1-2_2.parquet"),
        ("a", "f1_0-1-2_2.parquet"),
        ("a", ".hoodie_partition_metadata"),
    ];

    #[test]
    fn groups_are_sorted_by_partition_and_file_id() {
        let groups = groups(&FILES, false);
        let keys: Vec<_> = (0..groups.len() as u32)
            .map(|one| groups.key(one))
            .collect();
        assert_eq!(keys, [("a", "f1"), ("a", "f2"), ("b", "f1"), ("b", "f2")]);
        assert_eq!(groups.find("b", "f1"), Some(2));
        assert_eq!(groups.find("b", "f3"), None);
        assert_eq!(groups.find("c", "f1"), None);
        assert_eq!(groups.partitions(), ["a", "b"]);
    }

    #[test]
    fn change_logs_make_a_group_but_are_no_files_of_it() {
        let without = groups(&FILES, false);
        assert_eq!((without.total(), without.files_in("b")), ((4, 28), 2));
        assert_eq!(without.files(3).count(), 0);
        assert!(!without.contains("b", ".f2_2.log.1_0-1-2.cdc"));
        let with = groups(&FILES, true);
        assert_eq!((with.total(), with.files_in("b")), ((5, 35), 3));
        assert!(with.contains("b", ".f2_2.log.1_0-1-2.cdc"));
        assert_eq!((with.files_in("a"), with.files_in("c")), (2, 0));
    }

    #[test]
    fn names_are_built_as_they_were_listed() {
        for name in [
            "f_0-1-2_3.parquet",
            ".f_3.log.01",
            ".f_3.log.1_0-1-2",
            ".f_3.log.1_0-1-2.cdc",
        ] {
            let groups = groups(&[("", name)], true);
            let names: Vec<_> = groups.files(0).map(|(_, file)| file.name()).collect();
            assert_eq!(names, [name]);
        }
    }
}
