//! File slices: the versions of a file group, by the instants of a timeline.
//!
//! The two ways in which a log file finds its slice are the largest difference between table versions:
//! up to 6 its name has the slice's base instant; from 8 on it belongs to the newest slice whose base
//! instant is not after the log's completion (`HoodieFileGroup`, `AbstractTableFileSystemView`, Hudi
//! 1.2.0).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, BooleanBuilder, DictionaryArray, Int64Array, Int64Builder,
    ListBuilder, RecordBatch, StringArray, StringBuilder, UInt32Array,
};
use arrow::datatypes::{DataType, Field, Schema, UInt32Type};
use arrow::error::ArrowError;
use hashbrown::{HashMap, HashSet};

use crate::groups::{FileGroups, GroupFile, Kind};
use crate::strings::Strings;

const NONE: u32 = u32::MAX;

/// What slices need of the timeline.
pub trait Timeline {
    /// Why an answer cannot be given.
    type Error;

    /// Whether an instant is committed.
    fn is_committed(&self, instant: &str) -> Result<bool, Self::Error>;

    /// When a committed instant was completed. Called only if the result matters.
    fn completion_time(&self, instant: &str) -> Result<String, Self::Error>;
}

/// Which slices of each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// The slice that a snapshot reads.
    Snapshot,
    /// The newest base file alone.
    BaseFiles,
    /// The newest slice, to which log files are appended.
    Newest,
    /// Every committed slice, newest first.
    All,
}

/// Finds the slices of groups on a timeline.
#[derive(Debug)]
pub struct SliceFinder<T> {
    groups: FileGroups,
    timeline: T,
    by_name: bool,
    /// Instants of files, then those of compactions.
    instants: Arc<Strings>,
    compactions: HashMap<u32, u32>,
    /// What the timeline answered, by instant.
    committed: HashMap<u32, bool>,
    completed: HashMap<u32, String>,
}

#[derive(Debug, Clone, Copy)]
struct Slice {
    group: u32,
    instant: u32,
    base: u32,
    first_log: u32,
    logs: u32,
}

/// A slice of one group while it is found.
#[derive(Debug, Clone)]
struct Draft {
    instant: u32,
    base: u32,
    logs: Vec<u32>,
}

impl Draft {
    fn is_filled(&self) -> bool {
        self.base != NONE || !self.logs.is_empty()
    }
}

impl<T: Timeline> SliceFinder<T> {
    /// logs_named_by_base_instant: up to table version 6. compactions: partition path and file id of
    /// groups with a pending compaction, and its instant.
    pub fn new(
        groups: FileGroups,
        timeline: T,
        logs_named_by_base_instant: bool,
        compactions: &[((String, String), String)],
    ) -> Self {
        let mut instants = groups.instants().clone();
        let compactions = (compactions.iter())
            .filter_map(|((partition, file_id), instant)| {
                Some((groups.find(partition, file_id)?, instants.add(instant)))
            })
            .collect();
        Self {
            groups,
            timeline,
            by_name: logs_named_by_base_instant,
            instants: Arc::new(instants),
            compactions,
            committed: HashMap::new(),
            completed: HashMap::new(),
        }
    }

    /// Slices of all groups, in their order. without: partition path and file id of groups to leave
    /// out.
    pub fn find_all(
        &mut self,
        selection: Selection,
        without: &[(String, String)],
    ) -> Result<FileSlices, T::Error> {
        let groups = self.all_but(without);
        self.find(&groups, selection)
    }

    /// All slices of the groups that may have more than one, and of those in `also`.
    pub fn find_versions(
        &mut self,
        without: &[(String, String)],
        also: &[(String, String)],
    ) -> Result<FileSlices, T::Error> {
        let also = self.numbers(also);
        let mut groups = self.all_but(without);
        groups.retain(|group| {
            let several = self.groups.files(*group).nth(1).is_some();
            several || self.compactions.contains_key(group) || also.contains(group)
        });
        self.find(&groups, Selection::All)
    }

    /// Every slice of one group.
    pub fn find_one(&mut self, partition: &str, file_id: &str) -> Result<FileSlices, T::Error> {
        let group = self.groups.find(partition, file_id);
        self.find(group.as_slice(), Selection::All)
    }

    fn all_but(&self, without: &[(String, String)]) -> Vec<u32> {
        let without = self.numbers(without);
        (0..self.groups.len() as u32)
            .filter(|group| !without.contains(group))
            .collect()
    }

    fn numbers(&self, keys: &[(String, String)]) -> HashSet<u32> {
        (keys.iter())
            .filter_map(|(partition, file_id)| self.groups.find(partition, file_id))
            .collect()
    }

    /// Slices of some groups, in this order.
    fn find(&mut self, groups: &[u32], selection: Selection) -> Result<FileSlices, T::Error> {
        let mut slices = Vec::with_capacity(groups.len());
        let mut logs = Vec::new();
        for &group in groups {
            for draft in self.selected(group, selection)? {
                slices.push(Slice {
                    group,
                    instant: draft.instant,
                    base: draft.base,
                    first_log: logs.len() as u32,
                    logs: draft.logs.len() as u32,
                });
                logs.extend(draft.logs);
            }
        }
        slices.shrink_to_fit();
        Ok(FileSlices {
            groups: self.groups.clone(),
            instants: Arc::clone(&self.instants),
            slices,
            logs: Arc::new(logs),
        })
    }

    fn selected(&mut self, group: u32, selection: Selection) -> Result<Vec<Draft>, T::Error> {
        let mut drafts = self.committed_slices(group)?;
        Ok(match selection {
            Selection::All => drafts,
            Selection::Newest => {
                drafts.truncate(1);
                drafts
            }
            Selection::BaseFiles => (drafts.into_iter())
                .find(|draft| draft.base != NONE)
                .map(|draft| Draft {
                    logs: Vec::new(),
                    ..draft
                })
                .into_iter()
                .collect(),
            Selection::Snapshot => self.snapshot(group, drafts).into_iter().collect(),
        })
    }

    /// The newest slice with files. Until a pending compaction is done, its slice has no base file, so
    /// the slice before is joined with it.
    fn snapshot(&self, group: u32, drafts: Vec<Draft>) -> Option<Draft> {
        let mut filled = drafts.into_iter().filter(Draft::is_filled);
        let newest = filled.next()?;
        let is_planned = self.compactions.get(&group) == Some(&newest.instant);
        if !is_planned || newest.base != NONE {
            return Some(newest);
        }
        let Some(mut before) = filled.next() else {
            return Some(newest);
        };
        before.logs.extend(newest.logs);
        self.sort_logs(&mut before.logs);
        Some(before)
    }

    /// A group's committed slices, newest first. A pending compaction opens a slice without base file,
    /// which may have no log files yet.
    fn committed_slices(&mut self, group: u32) -> Result<Vec<Draft>, T::Error> {
        let (mut bases, mut logs): (Vec<(u32, u32)>, Vec<u32>) = (Vec::new(), Vec::new());
        for number in self.groups.numbers(group) {
            let Some(file) = self.groups.raw(number) else {
                continue;
            };
            let (kind, instant) = (file.kind, file.instant);
            if kind != Kind::Log && kind != Kind::ChangeLog {
                if self.is_committed(instant)? {
                    bases.push((instant, number));
                }
            } else if self.groups.includes(kind) {
                logs.push(number);
            }
        }
        if bases.len() > 1 {
            let groups = &self.groups;
            bases.sort_by(|(_, a), (_, b)| match (groups.file(*a), groups.file(*b)) {
                (Some(a), Some(b)) => a.base_order(&b),
                _ => a.cmp(b),
            });
        }
        // Of several base files of one instant the last by name counts.
        let mut drafts: Vec<Draft> = Vec::new();
        for (instant, base) in bases {
            match drafts.iter_mut().find(|draft| draft.instant == instant) {
                Some(draft) => draft.base = base,
                None => drafts.push(Draft {
                    instant,
                    base,
                    logs: Vec::new(),
                }),
            }
        }
        if let Some(&compaction) = self.compactions.get(&group) {
            slice_at(&mut drafts, compaction);
        }
        if !logs.is_empty() {
            self.sort_logs(&mut logs);
            self.assign_logs(group, &logs, &mut drafts)?;
        }
        drafts.sort_by(|a, b| self.text(b.instant).cmp(self.text(a.instant)));
        Ok(drafts)
    }

    fn assign_logs(
        &mut self,
        group: u32,
        logs: &[u32],
        drafts: &mut Vec<Draft>,
    ) -> Result<(), T::Error> {
        let compaction = self.compactions.get(&group).copied();
        for &log in logs {
            let Some(instant) = self.groups.raw(log).map(|file| file.instant) else {
                continue;
            };
            let start = if self.by_name {
                if compaction != Some(instant) && !self.is_committed(instant)? {
                    continue;
                }
                Some(self.start_by_name(instant, drafts))
            } else {
                self.start_by_completion(instant, drafts)?
            };
            if let Some(start) = start {
                slice_at(drafts, start).logs.push(log);
            }
        }
        Ok(())
    }

    /// The newest opening that is not after a log's instant; that instant if there is none.
    ///
    /// A log file here has blocks of several commits; its reader checks whether each is committed. In
    /// a table that was downgraded from version 8 or 9 an old log file is named by its own instant: no
    /// slice has that, and it belongs to the one before.
    fn start_by_name(&self, instant: u32, openings: &[Draft]) -> u32 {
        let own = self.text(instant);
        (openings.iter().map(|draft| draft.instant))
            .filter(|opening| self.text(*opening) <= own)
            .max_by_key(|opening| self.text(*opening))
            .unwrap_or(instant)
    }

    /// The base instant of the slice that a log joins; none if the log's instant is not committed. If
    /// no slice matches, the log opens one at its own instant.
    ///
    /// Times of different lengths do not compare, so there the log's instant replaces its completion
    /// time. A log file from before an upgrade is named by the base instant itself, which may not be in
    /// any archive: Hudi's downgrades leave none (1.2.0).
    fn start_by_completion(
        &mut self,
        instant: u32,
        openings: &[Draft],
    ) -> Result<Option<u32>, T::Error> {
        if !self.is_committed(instant)? {
            return Ok(None);
        }
        let mut newest_first: Vec<u32> = openings.iter().map(|draft| draft.instant).collect();
        if newest_first.contains(&instant) {
            return Ok(Some(instant));
        }
        newest_first.sort_by(|a, b| self.text(*b).cmp(self.text(*a)));
        for opening in newest_first {
            if self.text(opening) <= self.text(instant) {
                return Ok(Some(opening));
            }
            if self.text(opening).len() == self.text(instant).len() {
                if !self.completed.contains_key(&instant) {
                    let time = self.timeline.completion_time(self.text(instant))?;
                    self.completed.insert(instant, time);
                }
                let time = self.completed.get(&instant).map_or("", String::as_str);
                let opening_time = self.text(opening);
                if time.len() == opening_time.len() && opening_time <= time {
                    return Ok(Some(opening));
                }
            }
        }
        Ok(Some(instant))
    }

    fn sort_logs(&self, logs: &mut [u32]) {
        if logs.len() < 2 {
            return;
        }
        logs.sort_by(|a, b| match (self.groups.file(*a), self.groups.file(*b)) {
            (Some(a), Some(b)) => a.log_order(&b),
            _ => a.cmp(b),
        });
    }

    /// The instant of the newest committed base file of a group.
    pub fn newest_base(
        &mut self,
        partition: &str,
        file_id: &str,
    ) -> Result<Option<String>, T::Error> {
        let Some(group) = self.groups.find(partition, file_id) else {
            return Ok(None);
        };
        let mut bases: Vec<u32> = (self.groups.numbers(group))
            .filter_map(|number| self.groups.raw(number))
            .filter(|file| matches!(file.kind, Kind::Base(_)))
            .map(|file| file.instant)
            .collect();
        bases.sort_by(|a, b| self.text(*b).cmp(self.text(*a)));
        for instant in bases {
            if self.is_committed(instant)? {
                return Ok(Some(self.text(instant).to_owned()));
            }
        }
        Ok(None)
    }

    fn is_committed(&mut self, instant: u32) -> Result<bool, T::Error> {
        if let Some(is_committed) = self.committed.get(&instant) {
            return Ok(*is_committed);
        }
        let is_committed = self.timeline.is_committed(self.text(instant))?;
        self.committed.insert(instant, is_committed);
        Ok(is_committed)
    }

    fn text(&self, instant: u32) -> &str {
        self.instants.get(instant)
    }
}

/// The slice of an instant, which is added if there is none.
fn slice_at(drafts: &mut Vec<Draft>, instant: u32) -> &mut Draft {
    let listed = drafts.iter().position(|draft| draft.instant == instant);
    let at = listed.unwrap_or_else(|| {
        drafts.push(Draft {
            instant,
            base: NONE,
            logs: Vec::new(),
        });
        drafts.len() - 1
    });
    #[expect(clippy::indexing_slicing, reason = "found or added just before")]
    &mut drafts[at]
}

/// File slices, as numbers of their files.
#[derive(Debug, Clone)]
pub struct FileSlices {
    groups: FileGroups,
    instants: Arc<Strings>,
    slices: Vec<Slice>,
    logs: Arc<Vec<u32>>,
}

/// A slice with its strings.
#[derive(Debug)]
pub struct SliceParts<'a> {
    /// Partition path.
    pub partition: &'a str,
    /// File group.
    pub file_id: &'a str,
    /// Base instant.
    pub instant: &'a str,
    /// Base file.
    pub base: Option<GroupFile<'a>>,
    /// Log files, oldest first.
    pub logs: Vec<GroupFile<'a>>,
}

impl FileSlices {
    /// Number of slices.
    pub fn len(&self) -> usize {
        self.slices.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// One slice.
    pub fn get(&self, at: usize) -> Option<SliceParts<'_>> {
        let slice = self.slices.get(at)?;
        let (partition, file_id) = self.groups.key(slice.group);
        Some(SliceParts {
            partition,
            file_id,
            instant: self.instants.get(slice.instant),
            base: self.base(slice),
            logs: self.logs(slice).collect(),
        })
    }

    fn base(&self, slice: &Slice) -> Option<GroupFile<'_>> {
        self.groups.file(slice.base)
    }

    fn logs(&self, slice: &Slice) -> impl Iterator<Item = GroupFile<'_>> {
        let first = slice.first_log as usize;
        let logs = self.logs.get(first..first + slice.logs as usize);
        (logs.unwrap_or_default().iter()).filter_map(|log| self.groups.file(*log))
    }

    fn log_size(&self, slice: &Slice) -> i64 {
        if slice.logs == 0 {
            return 0;
        }
        self.logs(slice).map(|log| log.size).sum()
    }

    /// The slices of these numbers, in their order.
    #[must_use]
    pub fn take(&self, numbers: impl Iterator<Item = usize>) -> Self {
        self.with(
            numbers
                .filter_map(|at| self.slices.get(at).copied())
                .collect(),
        )
    }

    /// The slices whose flag is set; null is not.
    #[must_use]
    pub fn filter(&self, keep: &BooleanArray) -> Self {
        let kept = self.slices.iter().zip(keep.iter());
        let kept = kept.filter(|(_, keep)| *keep == Some(true));
        self.with(kept.map(|(slice, _)| *slice).collect())
    }

    /// The slices with log files.
    #[must_use]
    pub fn with_logs(&self) -> Self {
        let slices = self.slices.iter().filter(|slice| slice.logs > 0);
        self.with(slices.copied().collect())
    }

    fn with(&self, slices: Vec<Slice>) -> Self {
        Self {
            groups: self.groups.clone(),
            instants: Arc::clone(&self.instants),
            slices,
            logs: Arc::clone(&self.logs),
        }
    }

    /// Paths of the partitions with a slice, sorted.
    pub fn partitions(&self) -> Vec<&str> {
        let mut seen = HashMap::new();
        for slice in &self.slices {
            seen.entry(self.groups.partition_number(slice.group))
                .or_insert_with(|| self.groups.key(slice.group).0);
        }
        let mut paths: Vec<&str> = seen.into_values().collect();
        paths.sort_unstable();
        paths
    }

    /// Number of base files and their bytes, number of log files and their bytes.
    pub fn totals(&self) -> (usize, i64, usize, i64) {
        let mut totals = (0, 0, 0, 0);
        for slice in &self.slices {
            if let Some(base) = self.base(slice) {
                totals.0 += 1;
                totals.1 += base.size;
            }
            totals.2 += slice.logs as usize;
            totals.3 += self.log_size(slice);
        }
        totals
    }

    /// Whether each slice is of one of these file groups, by partition path and file id.
    pub fn in_groups(&self, keys: &[(String, String)]) -> BooleanArray {
        let groups: HashSet<u32> = (keys.iter())
            .filter_map(|(partition, file_id)| self.groups.find(partition, file_id))
            .collect();
        let slices = self.slices.iter();
        slices
            .map(|slice| Some(groups.contains(&slice.group)))
            .collect()
    }

    /// Whether each slice is in one of these partitions.
    pub fn in_partitions(&self, paths: &[String]) -> BooleanArray {
        let numbers: HashSet<u32> = (paths.iter())
            .filter_map(|path| self.groups.partition(path))
            .collect();
        let partitions = self.slices.iter().map(|slice| slice.group);
        partitions
            .map(|group| Some(numbers.contains(&self.groups.partition_number(group))))
            .collect()
    }

    /// File ids of the slices.
    pub fn file_ids(&self) -> StringArray {
        let groups = self.slices.iter().map(|slice| slice.group);
        StringArray::from_iter_values(groups.map(|group| self.groups.key(group).1))
    }

    /// Whether each slice has log files.
    pub fn have_logs(&self) -> BooleanArray {
        let slices = self.slices.iter();
        slices.map(|slice| Some(slice.logs > 0)).collect()
    }

    /// All files of the slices: columns slice (its number), partition, name.
    pub fn files(&self) -> Result<RecordBatch, ArrowError> {
        let (mut numbers, mut partitions, mut names) =
            (Vec::new(), StringBuilder::new(), StringBuilder::new());
        for (number, slice) in self.slices.iter().enumerate() {
            let partition = self.groups.key(slice.group).0;
            for file in self.base(slice).into_iter().chain(self.logs(slice)) {
                numbers.push(number as u32);
                partitions.append_value(partition);
                file.write_name(&mut names);
                names.append_value("");
            }
        }
        batch([
            ("slice", Arc::new(UInt32Array::from(numbers)) as ArrayRef),
            ("partition", Arc::new(partitions.finish())),
            ("name", Arc::new(names.finish())),
        ])
    }

    /// Whether each slice has a file whose flag is set. flags: of the rows of `files`.
    pub fn any_file(&self, flags: &BooleanArray) -> BooleanArray {
        let mut at = 0;
        let mut any = BooleanBuilder::with_capacity(self.len());
        for slice in &self.slices {
            let files = slice.logs as usize + usize::from(slice.base != NONE);
            let end = (at + files).min(flags.len());
            any.append_value((at..end).any(|at| flags.is_valid(at) && flags.value(at)));
            at = end;
        }
        any.finish()
    }

    /// Sizes of the slices: columns partition (a dictionary), base_size (null without base file), logs (their number), log_size.
    pub fn sizes(&self) -> Result<RecordBatch, ArrowError> {
        let bases: Int64Array = (self.slices.iter())
            .map(|slice| self.base(slice).map(|base| base.size))
            .collect();
        let logs: UInt32Array = self.slices.iter().map(|slice| Some(slice.logs)).collect();
        let sizes: Int64Array = (self.slices.iter())
            .map(|slice| Some(self.log_size(slice)))
            .collect();
        let partitions =
            (self.slices.iter()).map(|slice| self.groups.partition_number(slice.group));
        let partitions = DictionaryArray::<UInt32Type>::try_new(
            UInt32Array::from_iter_values(partitions),
            Arc::new(StringArray::from_iter_values(self.groups.partition_paths())),
        )?;
        batch([
            ("partition", Arc::new(partitions) as ArrayRef),
            ("base_size", Arc::new(bases)),
            ("logs", Arc::new(logs)),
            ("log_size", Arc::new(sizes)),
        ])
    }

    /// The slices from `start` up to `end` as rows: columns partition, file_id, base_instant, base_file,
    /// base_size, log_files, log_size.
    pub fn rows(&self, start: usize, end: usize) -> Result<RecordBatch, ArrowError> {
        let slices = self.slices.get(start..end.min(self.len()));
        let slices = slices.unwrap_or_default();
        let (mut partitions, mut ids) = (StringBuilder::new(), StringBuilder::new());
        let (mut instants, mut bases) = (StringBuilder::new(), StringBuilder::new());
        let (mut base_sizes, mut log_sizes) = (Int64Builder::new(), Int64Builder::new());
        let mut logs = ListBuilder::new(StringBuilder::new());
        for slice in slices {
            let (partition, file_id) = self.groups.key(slice.group);
            partitions.append_value(partition);
            ids.append_value(file_id);
            instants.append_value(self.instants.get(slice.instant));
            if let Some(base) = self.base(slice) {
                base.write_name(&mut bases);
                bases.append_value("");
                base_sizes.append_value(base.size);
            } else {
                bases.append_null();
                base_sizes.append_null();
            }
            for log in self.logs(slice) {
                log.write_name(logs.values());
                logs.values().append_value("");
            }
            logs.append(true);
            log_sizes.append_value(self.log_size(slice));
        }
        batch([
            ("partition", Arc::new(partitions.finish()) as ArrayRef),
            ("file_id", Arc::new(ids.finish())),
            ("base_instant", Arc::new(instants.finish())),
            ("base_file", Arc::new(bases.finish())),
            ("base_size", Arc::new(base_sizes.finish())),
            ("log_files", Arc::new(logs.finish())),
            ("log_size", Arc::new(log_sizes.finish())),
        ])
    }
}

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<RecordBatch, ArrowError> {
    let fields: Vec<Field> = (columns.iter())
        .map(|(name, column)| {
            let data_type: &DataType = column.data_type();
            Field::new(*name, data_type.clone(), true)
        })
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Extension, FileGroupsBuilder};

    /// Instants up to 5 are committed, each completed three later.
    struct UpToFive;

    impl Timeline for UpToFive {
        type Error = ();

        fn is_committed(&self, instant: &str) -> Result<bool, ()> {
            Ok(instant <= "5")
        }

        fn completion_time(&self, instant: &str) -> Result<String, ()> {
            let number: u32 = instant.parse().map_err(|_| ())?;
            Ok((number + 3).to_string())
        }
    }

    fn finder(names: &[&str], by_name: bool, compaction: Option<&str>) -> SliceFinder<UpToFive> {
        let mut builder = FileGroupsBuilder::new(Some(Extension::Parquet));
        let partition = builder.add_partition("p");
        for name in names {
            assert!(builder.add_file(partition, name, 1));
        }
        let key = ("p".to_owned(), "f".to_owned());
        let compactions: Vec<_> = (compaction.into_iter())
            .map(|instant| (key.clone(), instant.to_owned()))
            .collect();
        SliceFinder::new(builder.finish(), UpToFive, by_name, &compactions)
    }

    fn slices(finder: &mut SliceFinder<UpToFive>, selection: Selection) -> Vec<String> {
        let found = finder.find_all(selection, &[]).unwrap();
        let text = |at: usize| {
            let slice = found.get(at).unwrap();
            let base = slice.base.map_or("-", |base| base.instant);
            let logs: Vec<_> = slice.logs.iter().map(|log| log.instant).collect();
            format!("{}: {base} {}", slice.instant, logs.join(","))
        };
        (0..found.len()).map(text).collect()
    }

    const NAMES: [&str; 5] = [
        "f_0-1-2_1.parquet",
        "f_0-1-2_4.parquet",
        "f_0-1-2_6.parquet",
        ".f_2.log.1_0-1-2",
        ".f_5.log.1_0-1-2",
    ];

    #[test]
    fn logs_join_the_newest_slice_before_their_completion() {
        let mut finder = finder(&NAMES, false, None);
        assert_eq!(slices(&mut finder, Selection::All), ["4: 4 2,5", "1: 1 "]);
        assert_eq!(slices(&mut finder, Selection::BaseFiles), ["4: 4 "]);
        assert_eq!(finder.newest_base("p", "f"), Ok(Some("4".to_owned())));
    }

    #[test]
    fn logs_named_by_base_instant_join_the_slice_at_or_before_it() {
        let mut finder = finder(&NAMES, true, None);
        assert_eq!(slices(&mut finder, Selection::All), ["4: 4 5", "1: 1 2"]);
    }

    #[test]
    fn snapshots_join_the_slice_of_a_pending_compaction_with_the_one_before() {
        let names = ["f_0-1-2_1.parquet", ".f_2.log.1_0-1-2", ".f_7.log.1_0-1-2"];
        let mut finder = finder(&names, true, Some("7"));
        assert_eq!(slices(&mut finder, Selection::All), ["7: - 7", "1: 1 2"]);
        assert_eq!(slices(&mut finder, Selection::Snapshot), ["1: 1 2,7"]);
        assert_eq!(slices(&mut finder, Selection::Newest), ["7: - 7"]);
    }

    #[test]
    fn flags_of_files_decide_for_their_slices() {
        let mut finder = finder(&NAMES, false, None);
        let found = finder.find_all(Selection::All, &[]).unwrap();
        let files = found.files().unwrap();
        assert_eq!(files.num_rows(), 4);
        let flags = BooleanArray::from(vec![Some(false), None, Some(true), Some(false)]);
        let any: Vec<_> = found.any_file(&flags).iter().collect();
        assert_eq!(any, [Some(true), Some(false)]);
        assert_eq!(found.filter(&found.have_logs()).len(), 1);
        assert_eq!(found.totals(), (2, 2, 2, 2));
    }
}
