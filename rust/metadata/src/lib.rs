//! The metadata table of Hudi: records by key out of HFile slices, merged by its payload's rules.
//!
//! A metadata partition is a list of file groups; the hash of a key says which one holds it. Base
//! files and log blocks are read by ranges: a lookup of few keys reads few blocks. Which slices
//! count, and what an index means for a query, is decided elsewhere. Rules and layouts:
//! `HoodieMetadataPayload`, `HoodieBackedTableMetadata` (Hudi 0.15.0 and 1.2.0).

mod blooms;
mod commit_files;
mod files;
mod kept;
mod locations;
mod records;
mod secondary;
mod stat_value;
mod stats;
mod write;

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use pyhudi_avro::Datum;
use pyhudi_format::hash::metadata_file_group;
use pyhudi_slice::{BlockFilter, Result, SliceError};
use pyhudi_store::Store;

use self::records::{Keep, Records, Wanted};

pub use self::kept::KeptRecords;

pub use self::blooms::{keys_in_filter, may_contain};
pub use self::commit_files::{CommitFile, commit_files};
pub use self::files::{each_file, file_listing};
pub use self::locations::{KeyLocations, key_locations, possible_locations, record_locations};
pub use self::secondary::{SecondaryKeys, secondary_keys};
pub use self::stats::{StatsSource, column_stats, column_stats_scan};
pub use self::write::{
    ExpressionFilter, ExpressionStats, FileEntry, FileFacts, KeptStats, KnownStats, Location,
    MetadataLogOptions, Recorder, RestOfPartition, WrittenFile, compact_metadata_group,
    expression_filter, expression_stats, file_facts, forget_files, known_stats, locations,
    record_rows_schema, secondary_changes, statistics_gaps, write_metadata_base,
    write_metadata_log,
};

/// The newest slice of one file group.
#[derive(Debug, Clone)]
pub struct MetadataSlice {
    /// Path of the HFile with the compacted records.
    pub base: Option<String>,
    /// Paths of the log files, oldest first.
    pub logs: Vec<String>,
}

/// One partition of the metadata table.
#[derive(Debug, Clone)]
pub struct MetadataPartition {
    /// Where its paths lead.
    pub store: Store,
    /// Its file groups by file id; their number and order are part of the keys' hash.
    pub groups: Vec<MetadataSlice>,
    /// Which log blocks count.
    pub filter: BlockFilter,
    /// What look-ups of keys keep in memory.
    pub kept: Option<Arc<KeptRecords>>,
}

impl MetadataPartition {
    /// Sorts keys into the file groups by the hash of the text that stands for them, with their
    /// place in `keys`. Within a group they rise in byte order.
    fn by_group<'k>(
        &self,
        keys: impl Iterator<Item = (&'k str, String)>,
    ) -> Result<Vec<Vec<(String, usize)>>> {
        let mut sorted = vec![Vec::new(); self.groups.len()];
        for (place, (hashed, key)) in keys.enumerate() {
            let group = metadata_file_group(hashed, self.groups.len() as u32) as usize;
            match sorted.get_mut(group) {
                Some(keys) => keys.push((key, place)),
                None => return Err(self.no_groups()),
            }
        }
        for keys in &mut sorted {
            keys.sort_unstable();
        }
        Ok(sorted)
    }

    /// Hands over each record with one of the keys, or every record: its key and its versions. What
    /// `take` complains of is damage.
    fn each_record(
        &self,
        keys: Option<&[String]>,
        keep: Keep,
        mut take: impl FnMut(&str, &[Datum<'_>]) -> std::result::Result<(), String>,
    ) -> Result<()> {
        let groups = match keys {
            Some(keys) => self.by_group(keys.iter().map(|key| (key.as_str(), key.clone())))?,
            None => vec![Vec::new(); self.groups.len()],
        };
        let texts: Vec<Vec<&str>> = groups
            .iter()
            .map(|group| group.iter().map(|(key, _)| key.as_str()).collect())
            .collect();
        let jobs: Vec<(&MetadataSlice, Wanted<'_>)> = (self.groups.iter().zip(&texts))
            .filter_map(|(slice, texts)| match keys {
                Some(_) if texts.is_empty() => None,
                Some(_) => Some((slice, Wanted::Keys(texts))),
                None => Some((slice, Wanted::All)),
            })
            .collect();
        self.each_slice(&jobs, keep, |records| {
            for record in records.iter() {
                let (key, versions) = record?;
                take(key, &versions).map_err(|what| records.damaged(what))?;
            }
            Ok(())
        })
    }

    /// Hands over what was read of each slice, in their order.
    fn each_slice(
        &self,
        jobs: &[(&MetadataSlice, Wanted<'_>)],
        keep: Keep,
        mut take: impl FnMut(&Records) -> Result<()>,
    ) -> Result<()> {
        let read = |(slice, wanted): &(&MetadataSlice, Wanted<'_>)| match (&self.kept, wanted) {
            (Some(kept), Wanted::Keys(keys)) => Records::read_kept(self, kept, slice, keys, keep),
            _ => Records::read(self, slice, wanted, keep),
        };
        if let [job] = jobs {
            return take(&read(job)?);
        }
        for jobs in jobs.chunks(threads()) {
            for records in side_by_side(jobs, read) {
                take(&records?)?;
            }
        }
        Ok(())
    }

    fn no_groups(&self) -> SliceError {
        SliceError::Corrupt {
            file: self.store.uri().to_owned(),
            offset: None,
            what: "a metadata partition without file groups".to_owned(),
        }
    }
}

/// How many slices are read at a time.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Most of the work is unpacking blocks, so each item gets a thread. What came of them, in their
/// order.
fn side_by_side<I: Sync, T: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = (items.iter())
            .map(|item| {
                let own = thread::Builder::new().spawn_scoped(scope, move || work(item));
                (item, own)
            })
            .collect();
        let gave_up = || Err(SliceError::Schema("a thread gave up".to_owned()));
        let read = running.into_iter().map(|(item, own)| match own {
            Ok(own) => own.join().unwrap_or_else(|_| gave_up()),
            // The system gives no more threads.
            Err(_) => work(item),
        });
        read.collect()
    })
}
