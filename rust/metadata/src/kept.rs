//! What look-ups of keys keep of a metadata partition in memory: open files, unpacked blocks, and the
//! locations of the keys in blocks of a record index, up to a number of bytes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use pyhudi_format::FormatError;
use pyhudi_format::hfile::KeptBlocks;
use pyhudi_slice::{ByHash, Cache, Result, SliceError};

use super::records::{KeptFiles, Records};
use super::{MetadataPartition, MetadataSlice};

/// Bytes of an open file in memory, at a guess: the keys of its index.
const FILE_BYTES: usize = 16 << 10;

/// Bytes of what is kept of a block besides its content.
const ENTRY_BYTES: usize = 128;

/// The path of a slice's first file, the number of the file or block, and an offset in it.
pub(super) type Place = (String, usize, u64);

/// The memory of look-ups in one snapshot of a metadata partition.
#[derive(Debug)]
pub struct KeptRecords {
    files: Cache<Place>,
    blocks: Arc<Cache<Place>>,
    locations: Cache<Place>,
    numbers: Mutex<Numbers>,
    reads: Arc<AtomicU64>,
}

/// Partition path and file id.
pub(super) type Location = (String, String);

/// Locations by number: a table has few of them.
#[derive(Debug, Default)]
struct Numbers {
    by_location: HashMap<Location, u32>,
    locations: Vec<Location>,
}

impl KeptRecords {
    /// Keeps at most about this number of bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            files: Cache::new(max_bytes / 8),
            blocks: Arc::new(Cache::new(max_bytes / 8)),
            locations: Cache::new(max_bytes / 4 * 3),
            numbers: Mutex::default(),
            reads: Arc::default(),
        }
    }

    /// How often something was read from storage so far.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// The files of a slice.
    pub(super) fn files(
        &self,
        partition: &MetadataPartition,
        slice: &MetadataSlice,
    ) -> Result<Arc<KeptFiles>> {
        let first = slice.base.iter().chain(&slice.logs).next();
        let name = first.cloned().unwrap_or_default();
        self.files.get(&(name.clone(), 0, 0), || {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let keeping = |file| {
                Arc::new(BlocksOfFile {
                    blocks: Arc::clone(&self.blocks),
                    place: (name.clone(), file),
                }) as Arc<dyn KeptBlocks>
            };
            let files = Records::kept_files(partition, slice, &self.reads, &keeping)?;
            let bytes = files.len() * FILE_BYTES;
            Ok::<_, SliceError>((files, bytes))
        })
    }
}

impl KeptRecords {
    /// The numbers of the locations in a block by the hash of their keys. None if the block is not
    /// kept, and `read` is not given.
    pub(super) fn locations(
        &self,
        place: &Place,
        read: Option<&mut dyn FnMut() -> Result<ByHash<u32>>>,
    ) -> Result<Option<Arc<ByHash<u32>>>> {
        let Some(read) = read else {
            return Ok(self.locations.find(place));
        };
        let block = self.locations.get(place, || {
            let block = read()?;
            let bytes = block.bytes() + place.0.len() + ENTRY_BYTES;
            Ok::<_, SliceError>((block, bytes))
        });
        block.map(Some)
    }

    pub(super) fn number(&self, location: Location) -> u32 {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = numbers.by_location.get(&location) {
            return *known;
        }
        let number = numbers.locations.len() as u32;
        numbers.locations.push(location.clone());
        numbers.by_location.insert(location, number);
        number
    }

    pub(super) fn by_numbers(&self, numbers: &[u32]) -> Vec<Location> {
        let known = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let locations = numbers.iter();
        let locations = locations.filter_map(|number| known.locations.get(*number as usize));
        locations.cloned().collect()
    }
}

#[derive(Debug)]
struct BlocksOfFile {
    blocks: Arc<Cache<Place>>,
    place: (String, usize),
}

impl KeptBlocks for BlocksOfFile {
    fn block(
        &self,
        offset: u64,
        read: &mut dyn FnMut() -> Result<Bytes, FormatError>,
    ) -> Result<Bytes, FormatError> {
        let (name, file) = &self.place;
        let block = self.blocks.get(&(name.clone(), *file, offset), || {
            let block = read()?;
            let bytes = block.len();
            Ok::<_, FormatError>((block, bytes))
        })?;
        Ok(Bytes::clone(&block))
    }
}
