//! What look-ups of keys keep of a metadata partition in memory: open files, and unpacked blocks up to
//! a number of bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pyhudi_format::FormatError;
use pyhudi_format::hfile::KeptBlocks;
use pyhudi_slice::{Cache, Result, SliceError};

use super::records::{KeptFiles, Records};
use super::{MetadataPartition, MetadataSlice};

/// Bytes of an open file in memory, at a guess: the keys of its index.
const FILE_BYTES: usize = 16 << 10;

/// The path of a slice's first file, the number of the file or block, and an offset in it.
type Place = (String, usize, u64);

/// The memory of look-ups in one snapshot of a metadata partition.
#[derive(Debug)]
pub struct KeptRecords {
    files: Cache<Place>,
    blocks: Arc<Cache<Place>>,
    reads: Arc<AtomicU64>,
}

impl KeptRecords {
    /// Keeps at most about this number of bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            files: Cache::new(max_bytes / 4),
            blocks: Arc::new(Cache::new(max_bytes / 4 * 3)),
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
