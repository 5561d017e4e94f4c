//! Opening a file: trailer, indexes, file info. Nothing of the data is read.

use std::sync::Arc;

use bytes::Bytes;

use super::block::{Block, Codec, Kind};
use super::index::{self, Entry, Walk};
use super::info::Info;
use super::iter::{Entries, Lookup};
use super::trailer::{TRAILER, Trailer};
use crate::{FormatError, ReadAt, Result};

/// Read at the end of a file at once: as a rule the trailer and all that is needed to open.
const TAIL_READ: u64 = 64 << 10;

/// An open HFile. Holds its indexes; data blocks are read, checked and decompressed on demand.
///
/// ```text
/// data blocks (and inner index blocks) | meta blocks | root data index | meta index | file info
///   | trailer 4096                       load-on-open section: from the root data index
/// ```
///
/// An empty file is legal: a metadata table partition without records.
#[derive(Debug)]
pub struct HFile<R> {
    pub(super) source: R,
    pub(super) codec: Codec,
    pub(super) mvcc: bool,
    entry_count: u64,
    data_index: Arc<[Entry]>,
    index_levels: u64,
    meta_index: Vec<Entry>,
    info: Info,
}

impl<R: ReadAt> HFile<R> {
    /// Reads trailer, root indexes and file info.
    pub fn open(source: R) -> Result<Self> {
        let size = source.size();
        let Some(trailer_at) = size.checked_sub(TRAILER as u64) else {
            return Err(FormatError::corrupt(
                0,
                format!("{size} bytes are too few for an HFile"),
            ));
        };
        let tail_at = size.saturating_sub(TAIL_READ);
        let tail = source.read_at(tail_at, (size - tail_at) as usize)?;
        let trailer = Trailer::decode(&tail.slice((trailer_at - tail_at) as usize..), trailer_at)?;
        let start = trailer.load_on_open_offset;
        if start > trailer_at {
            return Err(FormatError::corrupt(
                trailer_at,
                "HFile indexes after the trailer",
            ));
        }
        let section = match start.checked_sub(tail_at) {
            Some(skip) => tail.slice(skip as usize..(trailer_at - tail_at) as usize),
            None => source.read_at(start, (trailer_at - start) as usize)?,
        };
        Self::load(source, &trailer, &section)
    }

    fn load(source: R, trailer: &Trailer, section: &Bytes) -> Result<Self> {
        let start = trailer.load_on_open_offset;
        let codec = trailer.codec;
        let block = |offset: u64, kind| {
            let skip = offset
                .checked_sub(start)
                .filter(|skip| *skip <= section.len() as u64);
            match skip {
                Some(skip) => Block::decode(&section.slice(skip as usize..), offset, kind, codec),
                None => Err(FormatError::corrupt(
                    offset,
                    "HFile block outside its section",
                )),
            }
        };
        let data_root = block(start, Kind::Root)?;
        let data_index = index::data_root(
            &data_root.payload,
            trailer.data_index_count,
            start,
            trailer.index_levels,
        )?;
        let meta_at = data_root.end;
        let meta_root = block(meta_at, Kind::Root)?;
        let meta_index = index::meta_root(&meta_root.payload, trailer.meta_index_count, meta_at)?;
        let info_at = trailer.file_info_offset;
        let info = Info::decode(&block(info_at, Kind::FileInfo)?.payload, info_at)?;
        check_cells(&info)?;
        Ok(Self {
            source,
            codec,
            mvcc: info.get(b"KEY_VALUE_VERSION") == Some(&[0, 0, 0, 1]),
            entry_count: trailer.entry_count,
            data_index: data_index.into(),
            index_levels: trailer.index_levels,
            meta_index,
            info,
        })
    }

    /// Number of key-value pairs, as the trailer says.
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// A fact of the file info block by its name, such as `minRecordKey`.
    pub fn info(&self, name: &str) -> Option<&[u8]> {
        self.info.get(name.as_bytes())
    }

    /// All facts of the file info block.
    pub fn infos(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.info.iter()
    }

    /// Avro schema of the values, as JSON.
    pub fn schema(&self) -> Option<&str> {
        std::str::from_utf8(self.info("schema")?).ok()
    }

    /// A meta block by its name, such as `bloomFilter`.
    pub fn meta_block(&self, name: &str) -> Result<Option<Bytes>> {
        let Some(entry) = self.meta_index.iter().find(|entry| entry.key == name) else {
            return Ok(None);
        };
        let Entry { offset, size, .. } = *entry;
        let block = Block::read(&self.source, offset, size, Kind::Meta, self.codec)?;
        Ok(Some(block.payload))
    }

    /// All pairs in key order.
    pub fn scan(&self) -> Entries<'_, R> {
        Entries::new(self, None)
    }

    /// The pairs whose key starts with `prefix`, in key order.
    pub fn prefix(&self, prefix: &[u8]) -> Entries<'_, R> {
        Entries::new(self, Some(Bytes::copy_from_slice(prefix)))
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let pair = self.lookup(std::iter::once(key)).next().transpose()?;
        Ok(pair.map(|(_, value)| value))
    }

    /// The pairs of those `keys` that are in the file. While keys rise in byte order, each data
    /// block is read at most once; other orders work and cost more reads.
    pub fn lookup<'k, I>(&self, keys: I) -> Lookup<'_, 'k, R, I::IntoIter>
    where
        I: IntoIterator<Item = &'k [u8]>,
    {
        Lookup::new(self, keys.into_iter())
    }

    pub(super) fn walk(&self) -> Result<Walk> {
        Walk::new(Arc::clone(&self.data_index), self.index_levels)
    }

    pub(super) fn data_block(&self, entry: &Entry) -> Result<super::entry::Pairs> {
        let Entry { offset, size, .. } = *entry;
        let block = Block::read(&self.source, offset, size, Kind::Data, self.codec)?;
        Ok(super::entry::Pairs::new(block.payload, offset, self.mvcc))
    }
}

/// Refuses cells that carry more than Hudi writes.
fn check_cells(info: &Info) -> Result<()> {
    for (name, feature) in [
        ("hfile.MAX_TAGS_LEN", "HFile cells with tags"),
        ("DATA_BLOCK_ENCODING", "encoded HFile data blocks"),
    ] {
        match info.get(name.as_bytes()) {
            None | Some(b"NONE") => {}
            Some(_) => return Err(FormatError::unsupported(feature)),
        }
    }
    match info.get(b"MAX_MEMSTORE_TS_KEY") {
        None | Some([0, 0, 0, 0, 0, 0, 0, 0]) => Ok(()),
        Some(_) => Err(FormatError::unsupported("HFile cells with MVCC numbers")),
    }
}
