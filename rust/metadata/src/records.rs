//! The records of one file group by key: versions in the order in which they were written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pyhudi_avro::{AvroError, Datum, DatumReader};
use pyhudi_format::hfile::KeptBlocks;
use pyhudi_format::log::{BlockType, DeleteBody, LogBlock, delete_body, delete_list};
use pyhudi_format::{FormatError, HFile, ReadAt};
use pyhudi_slice::{ByHash, ChosenBlock, LogSource, Result, SliceError, choose_blocks, key_hash};
use pyhudi_store::{Store, StoreFile};

use super::kept::KeptRecords;
use super::locations::location_of;
use super::{MetadataPartition, MetadataSlice};

/// Bytes of a block with one record: the trailer and the schema.
const WITHOUT_RECORDS: u64 = 8 << 10;

/// Which records to read.
pub(super) enum Wanted<'w> {
    All,
    /// In rising byte order.
    Keys(&'w [&'w str]),
    Prefixes(&'w [String]),
}

impl Wanted<'_> {
    fn includes(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Keys(keys) => keys.binary_search(&key).is_ok(),
            Self::Prefixes(prefixes) => prefixes.iter().any(|prefix| key.starts_with(prefix)),
        }
    }
}

/// How many versions of a record matter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Newest,
    All,
}

/// A version of a record, as stored.
pub(super) struct Version {
    /// Number of its schema.
    schema: usize,
    value: Bytes,
}

/// What log files say of one key.
#[derive(Default)]
pub(super) struct Versions {
    /// Whether it was deleted before the first of the versions: older ones do not count.
    pub(super) anew: bool,
    /// Oldest first; none where the record is gone.
    pub(super) stored: Vec<Version>,
}

/// Records by key.
///
/// Where the newest version is all that matters, files and blocks are read from the newest on, and
/// no key is looked up beyond the one that shows it.
pub(super) struct Records {
    keep: Keep,
    schemas: Vec<(String, Arc<DatumReader>)>,
    by_key: BTreeMap<Bytes, Versions>,
    /// Of errors.
    file: String,
}

impl Records {
    /// Reads the wanted records of a slice.
    pub(super) fn read(
        partition: &MetadataPartition,
        slice: &MetadataSlice,
        wanted: &Wanted<'_>,
        keep: Keep,
    ) -> Result<Self> {
        let mut records = Self::none(slice, keep);
        let (logs, base) = open_all(partition, slice)?;
        let read_base = |records: &mut Self| match base {
            Some(base) => records.read_base(base, wanted),
            None => Ok(()),
        };
        match keep {
            Keep::Newest => {
                records.read_logs(partition, &logs, wanted)?;
                if !records.is_complete(wanted) {
                    read_base(&mut records)?;
                }
            }
            Keep::All => {
                read_base(&mut records)?;
                records.read_logs(partition, &logs, wanted)?;
            }
        }
        Ok(records)
    }

    /// Reads the records with the keys, as [`read`](Self::read) does, out of what is kept in memory.
    pub(super) fn read_kept(
        partition: &MetadataPartition,
        kept: &Arc<KeptRecords>,
        slice: &MetadataSlice,
        keys: &[&str],
        keep: Keep,
    ) -> Result<Self> {
        let files = kept.files(partition, slice)?;
        let mut records = Self::none(slice, keep);
        records.schemas.clone_from(&files.schemas);
        let wanted = Wanted::Keys(keys);
        let newest_first = files.newest_first.iter();
        let ordered: Vec<&KeptFile> = match keep {
            Keep::Newest => newest_first.collect(),
            Keep::All => newest_first.rev().collect(),
        };
        for file in ordered {
            if keep == Keep::Newest && records.is_complete(&wanted) {
                break;
            }
            match file {
                KeptFile::Records(at, file, schema) => records
                    .add(file, *schema, &wanted)
                    .map_err(|error| SliceError::format(&at.0, at.1, error))?,
                KeptFile::Deletes(deleted) => {
                    for key in keys.iter().filter(|key| deleted.contains(**key)) {
                        records.note(Bytes::copy_from_slice(key.as_bytes()), None);
                    }
                }
            }
        }
        Ok(records)
    }

    /// The files of a slice for [`read_kept`](Self::read_kept).
    pub(super) fn kept_files(
        partition: &MetadataPartition,
        slice: &MetadataSlice,
        reads: &Arc<AtomicU64>,
        keeping: &dyn Fn(usize) -> Arc<dyn KeptBlocks>,
    ) -> Result<KeptFiles> {
        let mut records = Self::none(slice, Keep::Newest);
        let (logs, base) = open_all(partition, slice)?;
        let mut newest_first = Vec::new();
        for chosen in records.blocks(partition, &logs)? {
            let (source, block) = (chosen.source, &chosen.block);
            if is_delete(source, block)? {
                let mut deleted = HashSet::new();
                each_deleted(source, block, |key| {
                    deleted.insert(key.to_owned());
                })?;
                newest_first.push(KeptFile::Deletes(deleted));
                continue;
            }
            let (_, schema) = records.open_block(source, block)?;
            let at = (source.path.clone(), block.content_offset);
            let part = OnDemand {
                store: partition.store.clone(),
                path: source.path.clone(),
                start: block.content_offset,
                len: block.content_len,
                reads: Arc::clone(reads),
            };
            let file = HFile::open(part).map_err(|error| SliceError::format(&at.0, at.1, error))?;
            let file = file.keeping(keeping(newest_first.len()));
            newest_first.push(KeptFile::Records(at, file, schema));
        }
        if let Some(source) = base {
            let part = OnDemand {
                store: partition.store.clone(),
                path: source.path.clone(),
                start: 0,
                len: source.file.size(),
                reads: Arc::clone(reads),
            };
            let at = (source.path.clone(), 0);
            if let Some((_, schema)) = records.open_base(source)? {
                let file =
                    HFile::open(part).map_err(|error| SliceError::format(&at.0, 0, error))?;
                let file = file.keeping(keeping(newest_first.len()));
                newest_first.push(KeptFile::Records(at, file, schema));
            }
        }
        Ok(KeptFiles {
            newest_first,
            schemas: records.schemas,
        })
    }

    /// Hands over the newest version of each record with one of the keys, which rise in byte order:
    /// the number of its key, and its schema and value. Deleted keys have none. Nothing is kept.
    pub(super) fn each_found(
        partition: &MetadataPartition,
        slice: &MetadataSlice,
        keys: &[&[u8]],
        mut take: impl FnMut(&Self, usize, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut records = Self::none(slice, Keep::Newest);
        let (logs, base) = open_all(partition, slice)?;
        let mut pending = Pending::of(keys);
        for chosen in records.blocks(partition, &logs)? {
            if pending.keys.is_empty() {
                return Ok(());
            }
            let (source, block) = (chosen.source, &chosen.block);
            if is_delete(source, block)? {
                let mut deleted = HashSet::new();
                each_deleted(source, block, |key| {
                    deleted.insert(key.as_bytes().to_vec());
                })?;
                pending.retain(|_, key| !deleted.contains(key));
                continue;
            }
            let (file, schema) = records.open_block(source, block)?;
            let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
            let mut given = |number, value: &[u8]| take(&records, number, schema, value);
            pending.settle(&file, &mut given).map_err(damaged)??;
        }
        if let Some(source) = base
            && !pending.keys.is_empty()
            && let Some((file, schema)) = records.open_base(source)?
        {
            let mut given = |number, value: &[u8]| take(&records, number, schema, value);
            let settled = pending.settle(&file, &mut given);
            settled.map_err(|error| records.in_file(error))??;
        }
        Ok(())
    }

    /// Hands over the newest version of each record of a slice, from the newest block on. No more is
    /// held than keys that older ones may contain, too. What `take` refuses is damage.
    pub(super) fn each_newest(
        partition: &MetadataPartition,
        slice: &MetadataSlice,
        mut take: impl FnMut(&str, &Datum<'_>) -> Result<(), String>,
    ) -> Result<()> {
        let mut records = Self::none(slice, Keep::Newest);
        let (logs, base) = open_all(partition, slice)?;
        let mut seen = HashSet::new();
        let mut blocks = records.blocks(partition, &logs)?.into_iter().peekable();
        while let Some(chosen) = blocks.next() {
            let (source, block) = (chosen.source, &chosen.block);
            if is_delete(source, block)? {
                each_deleted(source, block, |key| {
                    seen.insert(Bytes::copy_from_slice(key.as_bytes()));
                })?;
                continue;
            }
            let (file, schema) = records.open_block(source, block)?;
            let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
            let older = base.is_some() || blocks.peek().is_some();
            for pair in file.scan() {
                let (key, value) = pair.map_err(damaged)?;
                if records.give(schema, (&key, &value), &seen, &mut take)? && older {
                    seen.insert(Bytes::copy_from_slice(&key));
                }
            }
        }
        if let Some(source) = base
            && let Some((file, schema)) = records.open_base(source)?
        {
            for pair in file.scan() {
                let (key, value) = pair.map_err(|error| records.in_file(error))?;
                records.give(schema, (&key, &value), &seen, &mut take)?;
            }
        }
        Ok(())
    }

    /// Hands a stored record over, unless it is one of a deleted key, which has no value. Whether its
    /// key is not in newer blocks.
    fn give(
        &self,
        schema: usize,
        (key, value): (&[u8], &[u8]),
        seen: &HashSet<Bytes>,
        take: &mut impl FnMut(&str, &Datum<'_>) -> Result<(), String>,
    ) -> Result<bool> {
        if seen.contains(key) {
            return Ok(false);
        }
        if !value.is_empty() {
            let record = self.datum(schema, value)?;
            take(self.text(key)?, &record).map_err(|what| self.damaged(what))?;
        }
        Ok(true)
    }

    /// The records of a slice's log files, to be merged with its base file.
    pub(super) fn of_logs(partition: &MetadataPartition, slice: &MetadataSlice) -> Result<Self> {
        let mut records = Self::none(slice, Keep::All);
        let logs = LogSource::open_all(&partition.store, &slice.logs)?;
        records.read_logs(partition, &logs, &Wanted::All)?;
        Ok(records)
    }

    /// The oldest block of records of a slice without base file, if `takes` it and it is larger than all
    /// newer blocks together; with it what those have.
    pub(super) fn oldest_block(
        partition: &MetadataPartition,
        slice: &MetadataSlice,
        takes: impl FnOnce(&HFile<Section>) -> Result<bool, FormatError>,
    ) -> Result<Option<(HFile<Section>, Self)>> {
        let mut records = Self::none(slice, Keep::All);
        let logs = LogSource::open_all(&partition.store, &slice.logs)?;
        let mut blocks = records.blocks(partition, &logs)?.into_iter();
        // What was deleted before the first record existed nowhere.
        let mut oldest = None;
        for chosen in blocks.by_ref() {
            if !is_delete(chosen.source, &chosen.block)? {
                oldest = Some(chosen);
                break;
            }
        }
        let Some(ChosenBlock { source, block }) = oldest else {
            return Ok(None);
        };
        let newer: u64 = (blocks.as_slice().iter())
            .map(|chosen| chosen.block.content_len.saturating_sub(WITHOUT_RECORDS))
            .sum();
        if block.content_len <= newer {
            return Ok(None);
        }
        let (file, _) = records.open_block(source, &block)?;
        let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
        if !takes(&file).map_err(damaged)? {
            return Ok(None);
        }
        for chosen in blocks {
            records.read_block(&chosen, &Wanted::All)?;
        }
        Ok(Some((file, records)))
    }

    fn none(slice: &MetadataSlice, keep: Keep) -> Self {
        let mut files = slice.base.iter().chain(&slice.logs);
        Self {
            keep,
            schemas: Vec::new(),
            by_key: BTreeMap::new(),
            file: files.next().cloned().unwrap_or_default(),
        }
    }

    /// Keys in byte order with what is known of each.
    pub(super) fn stored(&self) -> impl Iterator<Item = (&Bytes, &Versions)> {
        self.by_key.iter()
    }

    /// Keys in byte order with their versions, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<(&str, Vec<Datum<'_>>)>> {
        let there = |pair: &(&Bytes, &Versions)| !pair.1.stored.is_empty();
        self.by_key
            .iter()
            .filter(there)
            .map(|(key, versions)| Ok((self.text(key)?, self.decoded(&versions.stored)?)))
    }

    /// A key as text.
    pub(super) fn text<'k>(&self, key: &'k [u8]) -> Result<&'k str> {
        std::str::from_utf8(key).map_err(|error| self.damaged(error.to_string()))
    }

    /// The versions of a key, oldest first; none when it is not there.
    pub(super) fn get(&self, key: &str) -> Result<Vec<Datum<'_>>> {
        match self.by_key.get(key.as_bytes()) {
            Some(versions) => self.decoded(&versions.stored),
            None => Ok(Vec::new()),
        }
    }

    /// Damage that no single byte can be named for.
    pub(super) fn damaged(&self, what: String) -> SliceError {
        SliceError::Corrupt {
            file: self.file.clone(),
            offset: None,
            what,
        }
    }

    pub(super) fn decoded<'r>(&'r self, versions: &'r [Version]) -> Result<Vec<Datum<'r>>> {
        let one = |version: &'r Version| self.datum(version.schema, &version.value);
        versions.iter().map(one).collect()
    }

    /// The bytes of a version that is of this very schema.
    pub(super) fn value_of<'v>(&self, version: &'v Version, schema: &str) -> Option<&'v [u8]> {
        let (known, _) = self.schemas.get(version.schema)?;
        (known == schema).then_some(&*version.value)
    }

    /// A record of a schema that [`schema`](Self::schema) gave.
    pub(super) fn datum<'r>(&'r self, schema: usize, value: &'r [u8]) -> Result<Datum<'r>> {
        match self.schemas.get(schema) {
            Some((_, reader)) => reader
                .read(value)
                .map_err(|error| SliceError::avro(&self.file, 0, error)),
            None => Err(self.damaged("a record without a schema".to_owned())),
        }
    }

    fn read_base(&mut self, source: LogSource, wanted: &Wanted<'_>) -> Result<()> {
        match self.open_base(source)? {
            Some((file, schema)) => self
                .add(&file, schema, wanted)
                .map_err(|error| self.in_file(error)),
            None => Ok(()),
        }
    }

    /// The base file with the number of its schema; none for one without records.
    fn open_base(&mut self, source: LogSource) -> Result<Option<(HFile<StoreFile>, usize)>> {
        let path = &*source.path;
        let file = HFile::open(source.file).map_err(|error| SliceError::format(path, 0, error))?;
        if file.entry_count() == 0 {
            return Ok(None);
        }
        let Some(schema) = file.schema() else {
            return Err(SliceError::Corrupt {
                file: path.to_owned(),
                offset: None,
                what: "an HFile without a schema".to_owned(),
            });
        };
        let schema = self
            .schema(schema)
            .map_err(|error| SliceError::avro(path, 0, error))?;
        Ok(Some((file, schema)))
    }

    /// Damage of the slice's base file.
    fn in_file(&self, error: FormatError) -> SliceError {
        SliceError::format(&self.file, 0, error)
    }

    fn read_logs(
        &mut self,
        partition: &MetadataPartition,
        logs: &[LogSource],
        wanted: &Wanted<'_>,
    ) -> Result<()> {
        for chosen in self.blocks(partition, logs)? {
            if self.is_complete(wanted) {
                break;
            }
            self.read_block(&chosen, wanted)?;
        }
        Ok(())
    }

    fn read_block(&mut self, chosen: &ChosenBlock<'_>, wanted: &Wanted<'_>) -> Result<()> {
        let (source, block) = (chosen.source, &chosen.block);
        if is_delete(source, block)? {
            return each_deleted(source, block, |key| {
                if wanted.includes(key) {
                    self.note(Bytes::copy_from_slice(key.as_bytes()), None);
                }
            });
        }
        let (file, schema) = self.open_block(source, block)?;
        let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
        self.add(&file, schema, wanted).map_err(damaged)
    }

    /// The blocks that count, in the order in which they are read.
    fn blocks<'l>(
        &self,
        partition: &MetadataPartition,
        logs: &'l [LogSource],
    ) -> Result<Vec<ChosenBlock<'l>>> {
        let (mut blocks, counts) = choose_blocks(logs, &partition.filter)?;
        if counts.corrupt > 0 {
            return Err(self.damaged(format!("{} log blocks are damaged", counts.corrupt)));
        }
        if self.keep == Keep::Newest {
            blocks.reverse();
        }
        Ok(blocks)
    }

    /// The HFile in a block with the number of its schema.
    fn open_block(
        &mut self,
        source: &LogSource,
        block: &LogBlock,
    ) -> Result<(HFile<Section>, usize)> {
        let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
        let avro = |error: AvroError| SliceError::avro(&source.path, block.content_offset, error);
        let section = Section {
            file: source.file.clone(),
            start: block.content_offset,
            len: block.content_len,
        };
        let file = HFile::open(section).map_err(damaged)?;
        let Some(schema) = block.schema() else {
            return Err(SliceError::Corrupt {
                file: source.path.clone(),
                offset: Some(block.offset),
                what: "a data block without SCHEMA".to_owned(),
            });
        };
        let schema = self.schema(schema).map_err(avro)?;
        Ok((file, schema))
    }

    fn add<R: ReadAt>(
        &mut self,
        file: &HFile<R>,
        schema: usize,
        wanted: &Wanted<'_>,
    ) -> Result<(), FormatError> {
        match wanted {
            Wanted::All => self.extend(schema, file.scan()),
            Wanted::Keys(keys) => self.extend(schema, file.lookup(self.unsettled(keys))),
            Wanted::Prefixes(prefixes) => prefixes.iter().try_for_each(|prefix| {
                self.extend(schema, file.prefix(prefix.as_bytes()).map(copied))
            }),
        }
    }

    fn extend(
        &mut self,
        schema: usize,
        pairs: impl Iterator<Item = Result<(Bytes, Bytes), FormatError>>,
    ) -> Result<(), FormatError> {
        for pair in pairs {
            let (key, value) = pair?;
            // An empty value is a deleted record.
            let version = (!value.is_empty()).then_some(Version { schema, value });
            self.note(key, version);
        }
        Ok(())
    }

    /// Notes the next version that was read of a key; none if it was deleted.
    fn note(&mut self, key: Bytes, version: Option<Version>) {
        match (self.keep, version) {
            (Keep::Newest, version) => {
                let known = self.by_key.entry(key);
                known.or_insert_with(|| Versions {
                    anew: version.is_none(),
                    stored: version.into_iter().collect(),
                });
            }
            (Keep::All, Some(version)) => self.by_key.entry(key).or_default().stored.push(version),
            (Keep::All, None) => {
                let stored = Vec::new();
                self.by_key.insert(key, Versions { anew: true, stored });
            }
        }
    }

    /// Whether older blocks cannot change a thing.
    fn is_complete(&self, wanted: &Wanted<'_>) -> bool {
        matches!(wanted, Wanted::Keys(keys) if self.unsettled(keys).is_empty())
    }

    /// The keys that have to be looked for in older blocks.
    fn unsettled<'k>(&self, keys: &[&'k str]) -> Vec<&'k [u8]> {
        let all = keys.iter().map(|key| key.as_bytes());
        match self.keep {
            Keep::Newest => all.filter(|key| !self.by_key.contains_key(*key)).collect(),
            Keep::All => all.collect(),
        }
    }

    /// The number of a schema.
    pub(super) fn schema(&mut self, text: &str) -> Result<usize, AvroError> {
        if let Some(known) = self.schemas.iter().position(|(known, _)| known == text) {
            return Ok(known);
        }
        self.schemas
            .push((text.to_owned(), Arc::new(DatumReader::new(text)?)));
        Ok(self.schemas.len() - 1)
    }
}

/// The keys that no newer block has, with their numbers.
struct Pending<'k> {
    numbers: Vec<usize>,
    keys: Vec<&'k [u8]>,
}

impl<'k> Pending<'k> {
    fn of(keys: &[&'k [u8]]) -> Self {
        Self {
            numbers: (0..keys.len()).collect(),
            keys: keys.to_vec(),
        }
    }

    /// Hands over what a file has of the keys, which are pending no longer.
    fn settle<R: ReadAt>(
        &mut self,
        file: &HFile<R>,
        take: &mut impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<Result<()>, FormatError> {
        let mut settled = vec![false; self.keys.len()];
        let mut taken = Ok(());
        file.each_value(&self.keys, |at, value| {
            if let Some(settled) = settled.get_mut(at) {
                *settled = true;
            }
            // An empty value is a deleted record.
            if let (Some(number), Ok(()), false) = (self.numbers.get(at), &taken, value.is_empty())
            {
                taken = take(*number, value);
            }
        })?;
        self.retain(|at, _| settled.get(at) != Some(&true));
        Ok(taken)
    }

    fn retain(&mut self, keep: impl Fn(usize, &[u8]) -> bool) {
        let pairs = self.numbers.iter().copied().zip(self.keys.iter().copied());
        let kept = pairs.enumerate().filter(|(at, (_, key))| keep(*at, key));
        (self.numbers, self.keys) = kept.map(|(_, pair)| pair).unzip();
    }
}

/// Whether a block has deleted keys, else it has records.
fn is_delete(source: &LogSource, block: &LogBlock) -> Result<bool> {
    match block.block_type {
        BlockType::HfileData => Ok(false),
        BlockType::Delete => Ok(true),
        other => Err(SliceError::Unsupported {
            feature: format!("log block type {} ({})", other.name(), source.path),
        }),
    }
}

/// Hands over the keys of a delete block.
fn each_deleted(source: &LogSource, block: &LogBlock, mut forget: impl FnMut(&str)) -> Result<()> {
    let damaged = |error| SliceError::format(&source.path, block.content_offset, error);
    let content = block.content(&source.file).map_err(damaged)?;
    match delete_body(&content).map_err(damaged)? {
        DeleteBody::Kryo(records) => {
            for record in &records {
                forget(&record.record_key);
            }
        }
        DeleteBody::Avro(list) => {
            for record in delete_list::decode(&list).map_err(damaged)? {
                forget(&record.map_err(damaged)?.record_key);
            }
        }
    }
    Ok(())
}

/// The log files of a slice, and its base file: most look-ups end there, so it is opened with them.
fn open_all(
    partition: &MetadataPartition,
    slice: &MetadataSlice,
) -> Result<(Vec<LogSource>, Option<LogSource>)> {
    let paths = slice.logs.iter().chain(&slice.base);
    let mut logs = LogSource::open_all(&partition.store, &paths.cloned().collect::<Vec<_>>())?;
    let base = logs.split_off(slice.logs.len()).pop();
    Ok((logs, base))
}

/// A key and its value are parts of an unpacked block, which few of them would keep in memory.
fn copied(pair: Result<(Bytes, Bytes), FormatError>) -> Result<(Bytes, Bytes), FormatError> {
    pair.map(|(key, value)| (Bytes::copy_from_slice(&key), Bytes::copy_from_slice(&value)))
}

/// The files of a slice, open for look-ups of keys.
pub(super) struct KeptFiles {
    newest_first: Vec<KeptFile>,
    schemas: Vec<(String, Arc<DatumReader>)>,
}

impl KeptFiles {
    /// How many blocks there are, the base file included.
    pub(super) fn len(&self) -> usize {
        self.newest_first.len()
    }

    /// The numbers of the locations that blocks have for keys with the hash of this one. None if one
    /// of the blocks is not kept, and nothing may be read.
    pub(super) fn location_numbers(
        &self,
        kept: &KeptRecords,
        name: &str,
        key: &str,
        may_read: bool,
    ) -> Result<Option<Vec<u32>>> {
        let mut numbers = Vec::new();
        for (number, file) in self.newest_first.iter().enumerate() {
            // The rows decide: a key that was deleted since has none.
            let KeptFile::Records(at, file, schema) = file else {
                continue;
            };
            let damaged = |error| SliceError::format(&at.0, at.1, error);
            let Some(block) = file.block_of(key.as_bytes()).map_err(damaged)? else {
                continue;
            };
            let place = (name.to_owned(), number, block.offset());
            let mut read = || {
                let pairs = file.pairs_in(&block).map_err(damaged)?;
                self.locations_in(kept, &at.0, *schema, &pairs)
            };
            let read: &mut dyn FnMut() -> Result<ByHash<u32>> = &mut read;
            let Some(known) = kept.locations(&place, may_read.then_some(read))? else {
                return Ok(None);
            };
            numbers.extend(known.of(&[key_hash(key)]));
        }
        Ok(Some(numbers))
    }

    /// The locations of a block, whose values repeat: few of them are decoded.
    fn locations_in(
        &self,
        kept: &KeptRecords,
        path: &str,
        schema: usize,
        pairs: &[(Bytes, Bytes)],
    ) -> Result<ByHash<u32>> {
        let damaged = |what: String| SliceError::Corrupt {
            file: path.to_owned(),
            offset: None,
            what,
        };
        let Some((_, reader)) = self.schemas.get(schema) else {
            return Err(damaged("a record without a schema".to_owned()));
        };
        let (mut entries, mut known) = (Vec::with_capacity(pairs.len()), HashMap::new());
        for (key, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
            let key = std::str::from_utf8(key).map_err(|error| damaged(error.to_string()))?;
            let number = if let Some(number) = known.get(value) {
                *number
            } else {
                let record = reader.read(value);
                let record = record.map_err(|error| SliceError::avro(path, 0, error))?;
                let location = location_of(&record).ok_or_else(|| {
                    damaged(format!("the record index has no location for {key:?}"))
                })?;
                let number = kept.number(location);
                known.insert(value.clone(), number);
                number
            };
            entries.push((key_hash(key), number));
        }
        Ok(ByHash::new(&entries))
    }
}

enum KeptFile {
    /// An HFile with the number of its schema, and where it is.
    Records((String, u64), HFile<OnDemand>, usize),
    Deletes(HashSet<String>),
}

/// A part of a file that is opened for each read, so that no descriptor is kept.
struct OnDemand {
    store: Store,
    path: String,
    start: u64,
    len: u64,
    /// How often such a file was read.
    reads: Arc<AtomicU64>,
}

impl ReadAt for OnDemand {
    fn size(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, FormatError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let file = self.store.file_with_size(&self.path, self.start + self.len);
        let (start, len_of_part) = (self.start, self.len);
        Section {
            file,
            start,
            len: len_of_part,
        }
        .read_at(offset, len)
    }
}

/// The HFile inside a log block.
pub(super) struct Section {
    file: StoreFile,
    start: u64,
    len: u64,
}

impl ReadAt for Section {
    fn size(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Bytes, FormatError> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.len => self.file.read_at(self.start + offset, len),
            _ => Err(FormatError::Corrupt {
                offset,
                what: format!("{len} bytes wanted, the block has {}", self.len),
            }),
        }
    }
}
