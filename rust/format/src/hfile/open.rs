//! Opening a file: trailer, indexes, file info. Nothing of the data is read.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use super::ahead::Ahead;
use super::block::{Block, Codec, Kind, Unpacking};
use super::entry::{Pairs, Search};
use super::index::{self, Entry, Walk};
use super::info::Info;
use super::iter::{Entries, Lookup};
use super::order::{KeyOrder, Orders};
use super::trailer::{TRAILER, Trailer};
use super::write::{ORDER, PackedBlock};
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
    /// Where data blocks end at the latest.
    data_end: u64,
    data_index: Arc<[Entry]>,
    index_levels: u64,
    /// The orders that its keys may have, by those of the root index.
    pub(super) orders: Orders,
    meta_index: Vec<Entry>,
    info: Info,
    kept: Option<Arc<dyn KeptBlocks>>,
}

/// A data block that the index of a file names.
#[derive(Debug)]
pub struct DataBlock(Entry);

impl DataBlock {
    /// Where it begins in the file.
    pub fn offset(&self) -> u64 {
        self.0.offset
    }
}

/// Unpacked data blocks that look-ups in a file need again.
pub trait KeptBlocks: Debug + Send + Sync {
    /// The block at an offset, which `read` gives where it is not kept.
    ///
    /// # Errors
    /// Those of `read`.
    fn block(&self, offset: u64, read: &mut dyn FnMut() -> Result<Bytes>) -> Result<Bytes>;
}

impl<R: ReadAt> HFile<R> {
    /// Has look-ups of keys take data blocks from there.
    #[must_use]
    pub fn keeping(self, blocks: Arc<dyn KeptBlocks>) -> Self {
        Self {
            kept: Some(blocks),
            ..self
        }
    }

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
        let mut orders = marked(&info);
        index::pass_all(&data_index, &mut orders, start)?;
        Ok(Self {
            source,
            codec,
            mvcc: info.get(b"KEY_VALUE_VERSION") == Some(&[0, 0, 0, 1]),
            entry_count: trailer.entry_count,
            data_end: start,
            data_index: data_index.into(),
            index_levels: trailer.index_levels,
            orders,
            meta_index,
            info,
            kept: None,
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

    /// The order that the keys have where they would stand otherwise in the other one; [`None`] where
    /// both are the same. Reads the whole file.
    pub fn key_order(&self) -> Result<Option<KeyOrder>> {
        let mut orders = Orders::ANY;
        let mut last = Bytes::new();
        for pair in self.scan() {
            let (key, _) = pair?;
            orders.pass(&last, &key, self.data_end)?;
            last = key;
        }
        Ok(orders.one())
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

    /// Hands over the values of those `keys` that are in the file, with their numbers, as
    /// [`lookup`](Self::lookup) finds them, but without a copy.
    pub fn each_value(&self, keys: &[&[u8]], mut take: impl FnMut(usize, &[u8])) -> Result<()> {
        let mut lookup = self.lookup(keys.iter().copied());
        while let Some((number, value)) = lookup.value()? {
            take(number, value);
        }
        Ok(())
    }

    pub(super) fn walk(&self, order: KeyOrder) -> Result<Walk> {
        Walk::new(Arc::clone(&self.data_index), self.index_levels, order)
    }

    /// What reads data blocks one after the other.
    pub(super) fn ahead(&self) -> Ahead {
        Ahead::new(self.data_end)
    }

    /// Whether the file was written here, so that its blocks can be taken over: in the order of
    /// keys by their bytes, packed, and named by the root.
    pub fn can_be_taken_over(&self) -> bool {
        self.info(ORDER.0) == Some(ORDER.1)
            && self.codec == Codec::Gzip
            && self.mvcc
            && self.index_levels == 1
    }

    /// Bytes of a key, with what surrounds it, and of a value, as the file says.
    pub fn averages(&self) -> (u32, u32) {
        let number = |name| {
            let bytes = self.info(name).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_be_bytes)
        };
        (number("hfile.AVG_KEY_LEN"), number("hfile.AVG_VALUE_LEN"))
    }

    /// The data blocks of a file that [can be taken over](Self::can_be_taken_over), as they stand
    /// in it.
    pub fn packed_blocks(&self) -> impl Iterator<Item = Result<PackedBlock>> + '_ {
        let mut ahead = self.ahead();
        let ends = self
            .data_index
            .iter()
            .skip(1)
            .map(|next| Some(next.key.clone()));
        let entries = self.data_index.iter().zip(ends.chain([None]));
        entries.map(move |(entry, end)| {
            Ok(PackedBlock {
                first: entry.key.clone(),
                end,
                bytes: ahead.block(&self.source, entry)?,
                at: entry.offset,
            })
        })
    }

    /// The pairs of a packed block of this file, in their order.
    ///
    /// # Errors
    /// Damage; keys that do not rise.
    pub fn pairs_of(&self, block: &PackedBlock) -> Result<Vec<(Bytes, Bytes)>> {
        let mut pairs = self.unpacked(&block.bytes, block.at)?;
        let mut found: Vec<(Bytes, Bytes)> = Vec::new();
        while let Some(pair) = pairs.next()? {
            let rises = found.last().is_none_or(|(last, _)| *last < pair.0);
            let within = block.end.as_ref().is_none_or(|end| pair.0 < *end);
            if !rises || !within || pair.0 < block.first {
                return Err(FormatError::corrupt(
                    block.at,
                    "HFile keys that do not rise",
                ));
            }
            found.push(pair);
        }
        Ok(found)
    }

    /// The only data block that may have a key, which has no byte from 0xEE on: such keys have the same
    /// place in each order. None if the key is before all that the file has.
    pub fn block_of(&self, key: &[u8]) -> Result<Option<DataBlock>> {
        let mut orders = self.orders;
        let mut walk = self.walk(orders.first())?;
        let entry = walk.seek_forward(&self.source, self.codec, key, &mut orders)?;
        Ok(entry.map(DataBlock))
    }

    /// The pairs of a data block, which is read and unpacked.
    pub fn pairs_in(&self, block: &DataBlock) -> Result<Vec<(Bytes, Bytes)>> {
        let mut pairs = self.data_block(&block.0)?;
        let (mut found, mut orders) = (Vec::<(Bytes, Bytes)>::new(), self.orders);
        while let Some(pair) = pairs.next()? {
            if let Some((last, _)) = found.last() {
                orders.pass(last, &pair.0, pairs.at())?;
            }
            found.push(pair);
        }
        Ok(found)
    }

    pub(super) fn data_block(&self, entry: &Entry) -> Result<Pairs> {
        let Entry { offset, size, .. } = *entry;
        let block = Block::read(&self.source, offset, size, Kind::Data, self.codec)?;
        Ok(Pairs::new(block.payload, offset, self.mvcc))
    }

    /// A data block in which keys are looked for. `memory` is used again.
    pub(super) fn searched(&self, entry: &Entry, memory: Vec<u8>) -> Result<Search> {
        let Entry { offset, size, .. } = *entry;
        let content = match &self.kept {
            None => Unpacking::read(&self.source, offset, size, self.codec, memory)?,
            Some(kept) => {
                let mut read = || {
                    let block = Block::read(&self.source, offset, size, Kind::Data, self.codec)?;
                    Ok(block.payload)
                };
                Unpacking::unpacked(kept.block(offset, &mut read)?, offset)
            }
        };
        Ok(Search::new(content, offset, self.mvcc))
    }

    /// The pairs of a data block that was read together with others.
    pub(super) fn data_block_of(&self, entry: &Entry, ahead: &mut Ahead) -> Result<Pairs> {
        let bytes = ahead.block(&self.source, entry)?;
        self.unpacked(&bytes, entry.offset)
    }

    fn unpacked(&self, bytes: &Bytes, at: u64) -> Result<Pairs> {
        let block = Block::whole(bytes, at, Kind::Data, self.codec)?;
        Ok(Pairs::new(block.payload, at, self.mvcc))
    }
}

/// The orders that a file may have by what pyhudi wrote into it; the keys are checked against it.
fn marked(info: &Info) -> Orders {
    match info.get(ORDER.0.as_bytes()) {
        Some(mark) if mark == ORDER.1 => Orders::only(KeyOrder::Bytes),
        _ => Orders::ANY,
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
