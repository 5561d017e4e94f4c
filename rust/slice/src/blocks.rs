//! Which log blocks of a slice count, and in which order. Reads frames and headers, no contents.
//!
//! The scan of `BaseHoodieLogRecordReader` (Hudi 1.2.0): blocks of one instant stay together where the
//! instant first appears, a rollback removes what came before it, and a log-compacted block counts
//! in for the blocks it lists.

use std::collections::{HashMap, HashSet};

use pyhudi_format::log::{BlockType, Corruption, LogBlock, LogScanner};
use pyhudi_store::{Store, StoreFile};

use crate::error::{Result, SliceError};

/// Which instants count.
#[derive(Debug, Clone, Default)]
pub struct BlockFilter {
    /// Blocks of later instants are passed over.
    pub max_instant: Option<String>,
    /// When set, a block counts only if its instant is among these or before the timeline's start.
    pub valid_instants: Option<HashSet<String>>,
    /// First instant of the active timeline.
    pub timeline_start: Option<String>,
    /// A log-compacted block that stands for none of the blocks that count drops out: it only repeats what
    /// others wrote, and they are not asked for (an incremental read in Hudi 1.2.0).
    pub drops_repeated: bool,
}

impl BlockFilter {
    fn admits(&self, instant: &str) -> bool {
        if self.max_instant.as_deref().is_some_and(|max| instant > max) {
            return false;
        }
        self.valid_instants.as_ref().is_none_or(|valid| {
            valid.contains(instant)
                || self
                    .timeline_start
                    .as_deref()
                    .is_some_and(|start| instant < start)
        })
    }
}

/// What a scan met, in blocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockCounts {
    /// All but the corrupt ones.
    pub read: u64,
    /// Damaged or cut off.
    pub corrupt: u64,
    /// That take others away.
    pub rollback: u64,
}

/// A log file that is being read.
#[derive(Debug)]
pub struct LogSource {
    /// Where.
    pub path: String,
    /// Its bytes.
    pub file: StoreFile,
}

impl LogSource {
    /// Opens a log file.
    pub fn open(store: &Store, path: &str) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: store.file(path)?,
        })
    }

    /// Opens log files, together where each waits for a server.
    pub fn open_all(store: &Store, paths: &[String]) -> Result<Vec<Self>> {
        let files = paths.iter().cloned().zip(store.files(paths)?);
        Ok(files.map(|(path, file)| Self { path, file }).collect())
    }

    pub(crate) fn scan(&self) -> LogScanner<StoreFile> {
        LogScanner::new(self.file.clone(), Corruption::Check)
    }
}

/// A block that counts, and where it is.
#[derive(Debug)]
pub struct ChosenBlock<'a> {
    /// The file that it is in.
    pub source: &'a LogSource,
    /// What its frame and header say.
    pub block: LogBlock,
}

/// The blocks of a slice that count, oldest first. `sources` come in log-file order.
pub fn choose_blocks<'a>(
    sources: &'a [LogSource],
    filter: &BlockFilter,
) -> Result<(Vec<ChosenBlock<'a>>, BlockCounts)> {
    let mut instants = Instants::default();
    let mut counts = BlockCounts::default();
    for source in sources {
        for block in source.scan() {
            let block = block.map_err(|error| SliceError::format(&source.path, 0, error))?;
            counts.read += u64::from(block.block_type != BlockType::Corrupt);
            match block.block_type {
                BlockType::Corrupt => counts.corrupt += 1,
                BlockType::CdcData => {}
                BlockType::Command => {
                    counts.rollback += 1;
                    instants.roll_back(source, &block)?;
                }
                _ => instants.add(source, block, filter)?,
            }
        }
    }
    Ok((instants.resolve(filter.drops_repeated), counts))
}

/// Blocks by instant, instants in the order first seen.
#[derive(Default)]
struct Instants<'a> {
    order: Vec<String>,
    blocks: HashMap<String, Vec<ChosenBlock<'a>>>,
}

impl<'a> Instants<'a> {
    fn add(&mut self, source: &'a LogSource, block: LogBlock, filter: &BlockFilter) -> Result<()> {
        let Some(instant) = block.instant_time().map(str::to_owned) else {
            return Err(SliceError::Corrupt {
                file: source.path.clone(),
                offset: Some(block.offset),
                what: "a data block without INSTANT_TIME".to_owned(),
            });
        };
        if !filter.admits(&instant) {
            return Ok(());
        }
        if !self.blocks.contains_key(&instant) {
            self.order.push(instant.clone());
        }
        let chosen = ChosenBlock { source, block };
        self.blocks.entry(instant).or_default().push(chosen);
        Ok(())
    }

    fn roll_back(&mut self, source: &LogSource, block: &LogBlock) -> Result<()> {
        let target = block
            .rollback_target()
            .map_err(|error| SliceError::format(&source.path, 0, error))?;
        if let Some(target) = target
            && self.blocks.remove(target).is_some()
        {
            self.order.retain(|instant| instant != target);
        }
        Ok(())
    }

    /// Puts log-compacted blocks in the place of the newest block they stand for.
    fn resolve(mut self, drops_repeated: bool) -> Vec<ChosenBlock<'a>> {
        let mut stands_for: HashMap<String, String> = HashMap::new();
        let mut newest_first: Vec<String> = Vec::new();
        for instant in self.order.iter().rev() {
            let compacted: Vec<String> = self
                .blocks
                .get(instant)
                .and_then(|blocks| blocks.first())
                .map(|first| {
                    first
                        .block
                        .compacted_instants()
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default();
            let by = stands_for.get(instant).unwrap_or(instant).clone();
            if !compacted.is_empty() {
                stands_for.extend(compacted.into_iter().map(|replaced| (replaced, by.clone())));
            } else if !newest_first.contains(&by) {
                newest_first.push(by);
            }
        }
        if !drops_repeated {
            // A compacted block none of whose inputs is there still holds its records.
            let orphans = self.order.iter().rev().filter(|instant| {
                !stands_for.contains_key(*instant) && !newest_first.contains(instant)
            });
            let orphans: Vec<String> = orphans.cloned().collect();
            newest_first.extend(orphans);
        }
        let oldest_first = newest_first.iter().rev();
        oldest_first
            .filter_map(|instant| self.blocks.remove(instant))
            .flatten()
            .collect()
    }
}

/// Whether any block of these log files holds records of some columns only.
///
/// # Errors
/// A file is missing or does not start with a log block.
pub fn has_partial_records(store: &Store, paths: &[String]) -> Result<bool> {
    for path in paths {
        for block in LogSource::open(store, path)?.scan() {
            let block = block.map_err(|error| SliceError::format(path, 0, error))?;
            if block.is_partial() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Describes a log file's block for users.
#[derive(Debug, Clone)]
pub struct BlockInfo {
    /// Hudi's name of the type.
    pub block_type: &'static str,
    /// First byte of the block.
    pub offset: u64,
    /// Bytes of the whole block.
    pub size: u64,
    /// First byte of the content.
    pub content_offset: u64,
    /// Bytes of the content.
    pub content_size: u64,
    /// Header entries by name; unknown ones by number.
    pub header: Vec<(String, String)>,
}

/// The blocks of one log file, in file order.
///
/// # Errors
/// The file is missing or does not start with a log block.
pub fn list_blocks(store: &Store, path: &str) -> Result<Vec<BlockInfo>> {
    let source = LogSource::open(store, path)?;
    let infos = source.scan().map(|block| {
        let block = block.map_err(|error| SliceError::format(path, 0, error))?;
        Ok(BlockInfo {
            block_type: block.block_type.name(),
            offset: block.offset,
            size: block.end - block.offset,
            content_offset: block.content_offset,
            content_size: block.content_len,
            header: block.header.iter().map(named).collect(),
        })
    });
    infos.collect()
}

fn named((key, value): (u32, &str)) -> (String, String) {
    let name = pyhudi_format::log::HeaderKey::from_ordinal(key)
        .map_or_else(|| key.to_string(), |known| known.name().to_owned());
    (name, value.to_owned())
}
