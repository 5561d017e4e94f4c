//! Writing an HFile as Hudi's own writer does (`HFileWriterImpl`, Hudi 1.1 and later).
//!
//! Hudi 0.15 reads this form too. One level of index. Blocks have checksums, as those of the HBase writer
//! and unlike those of Hudi's own: CRC-32, which processors have instructions for. Blocks of a file that was
//! written here can be taken over packed, which is most of the work where few pairs change.

use bytes::Bytes;

use super::block::{Codec, HEADER, Kind, Packed};
use super::checksum::Checksum;
use super::deflate::PairAt;
use super::gzip::Gzip;
use super::sums;
use super::trailer::TRAILER;
use crate::proto::{put_bytes, put_number, put_varint};
use crate::{FormatError, Result};

const BYTES_PER_CHECKSUM: usize = 16384;
/// Length of the family (0), timestamp (the greatest) and type (put) behind the row in a key.
const KEY_END: [u8; 10] = [0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4];
/// Lengths and fields around the row and the value of a pair.
const PAIR_OVERHEAD: usize = 21;
const NONE: u64 = u64::MAX;
const MAJOR: u32 = 3;
const COMPARATOR: &str = "org.apache.hudi.io.storage.HoodieHBaseKVComparator";
/// Java reads the length of a row as a signed short.
const ROW_MOST: usize = i16::MAX as usize;
/// Bytes of a key in an error.
const SHOWN: usize = 40;

/// A fact of the files that are written here: keys rise in the order of their bytes. All of Hudi's
/// readers look for a key by its bytes, though its native writer (1.1 and later) sorts by UTF-16.
pub(super) const ORDER: (&str, &[u8]) = ("pyhudi.order", b"bytes");

/// How an HFile is written.
#[derive(Debug, Clone)]
pub struct HFileOptions {
    /// A data block is closed when the next pair would make it larger.
    pub block_bytes: usize,
    /// Compress blocks with gzip.
    pub gzip: bool,
}

impl Default for HFileOptions {
    /// Hudi's blocks have 1 MiB. Smaller ones pack as well, and a look-up unpacks far less; readers
    /// use the index, whatever the size.
    fn default() -> Self {
        Self {
            block_bytes: 32 << 10,
            gzip: true,
        }
    }
}

/// The bytes of an HFile with these pairs, whose keys must rise in byte order.
///
/// infos: entries besides those that every HFile has; Hudi's readers want `schema`.
///
/// # Errors
/// A key does not rise, or is longer than 32767 bytes.
pub fn write_hfile<'p>(
    pairs: impl IntoIterator<Item = (&'p [u8], &'p [u8])>,
    infos: &[(&str, &[u8])],
    options: &HFileOptions,
) -> Result<Vec<u8>> {
    let mut writer = HFileWriter::new(options);
    for (key, value) in pairs {
        writer.add(key, value)?;
    }
    writer.finish(&[], infos)
}

/// Writes an HFile into memory, a pair or a packed block at a time.
#[derive(Debug)]
pub struct HFileWriter {
    block_bytes: usize,
    gzip: Option<Gzip>,
    out: Vec<u8>,
    /// The data block being filled, and its first row.
    block: Vec<u8>,
    pairs: Vec<PairAt>,
    first: Vec<u8>,
    /// The last key; of a block that was taken over its first one.
    last: Option<Vec<u8>>,
    index: Vec<u8>,
    blocks: u64,
    entries: u64,
    last_block: u64,
    payload: u64,
    keys: u64,
    values: u64,
}

impl HFileWriter {
    /// An empty file.
    pub fn new(options: &HFileOptions) -> Self {
        Self {
            block_bytes: options.block_bytes,
            gzip: options.gzip.then(Gzip::new),
            out: Vec::new(),
            block: Vec::new(),
            pairs: Vec::new(),
            first: Vec::new(),
            last: None,
            index: Vec::new(),
            blocks: 0,
            entries: 0,
            last_block: NONE,
            payload: 0,
            keys: 0,
            values: 0,
        }
    }

    /// Adds a pair.
    ///
    /// # Errors
    /// The key does not rise, or is longer than 32767 bytes.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > ROW_MOST {
            let len = key.len();
            let start = key.get(..SHOWN).unwrap_or(key).escape_ascii();
            let feature =
                format!("key of {len} bytes in an HFile, which holds {ROW_MOST} ({start}…)");
            return Err(FormatError::unsupported(feature));
        }
        if self.last.as_deref().is_some_and(|last| last >= key) {
            let key = key.escape_ascii();
            let feature = format!("HFile keys that do not rise ({key})");
            return Err(FormatError::unsupported(feature));
        }
        if !self.block.is_empty() && self.block.len() + pair_len(key, value) > self.block_bytes {
            self.close_block()?;
        }
        if self.block.is_empty() {
            key.clone_into(&mut self.first);
        }
        let key_len = key.len() + 12;
        self.block
            .extend_from_slice(&(key_len as u32).to_be_bytes());
        self.block
            .extend_from_slice(&(value.len() as u32).to_be_bytes());
        put_row(&mut self.block, key);
        let key_end = self.block.len();
        self.block.extend_from_slice(&KEY_END);
        self.pairs.push(PairAt {
            key: key_end - key.len(),
            key_end,
            value: self.block.len(),
            value_end: self.block.len() + value.len(),
        });
        self.block.extend_from_slice(value);
        self.block.push(0);
        self.entries += 1;
        self.keys += key_len as u64;
        self.values += value.len() as u64;
        key.clone_into(self.last.get_or_insert_default());
        Ok(())
    }

    /// Adds pairs as blocks of their own, all of about one size: what is put between blocks that are
    /// taken over stays as large as those.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_run(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.close_block()?;
        let total: usize = pairs.iter().map(|(key, value)| pair_len(key, value)).sum();
        let blocks = (total + self.block_bytes / 2) / self.block_bytes;
        let most = total / blocks.max(1);
        for (key, value) in pairs {
            if self.block.len() >= most {
                self.close_block()?;
            }
            let limit = std::mem::replace(&mut self.block_bytes, usize::MAX);
            let added = self.add(key, value);
            self.block_bytes = limit;
            added?;
        }
        self.close_block()
    }

    /// Takes over a packed block of a file that was written here, with its pairs. Who does it says
    /// in the end how many pairs those were.
    ///
    /// # Errors
    /// Its keys do not come after those before, or it is damaged.
    pub fn take_over(&mut self, block: &PackedBlock) -> Result<()> {
        self.close_block()?;
        if self
            .last
            .as_deref()
            .is_some_and(|last| last >= &*block.first)
        {
            let what = "blocks of an HFile that are not in order";
            return Err(FormatError::corrupt(block.at, what));
        }
        let packed = Packed::of(&block.bytes, block.at)?;
        let (data, unpacked) = (packed.data, packed.uncompressed);
        self.last = Some(block.first.to_vec());
        self.first = block.first.to_vec();
        self.payload += unpacked as u64;
        self.index_block(&data, unpacked);
        Ok(())
    }

    /// Counts pairs of blocks that were taken over. average: bytes of a key and of a value.
    pub fn count(&mut self, pairs: u64, average: (u32, u32)) {
        self.entries += pairs;
        self.keys += pairs * u64::from(average.0);
        self.values += pairs * u64::from(average.1);
    }

    fn close_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let payload = std::mem::take(&mut self.block);
        let pairs = std::mem::take(&mut self.pairs);
        self.payload += payload.len() as u64;
        let data = self.packed(&payload, &pairs)?;
        self.index_block(&data, payload.len());
        // Its memory serves the next one.
        self.block = payload;
        self.block.clear();
        self.pairs = pairs;
        self.pairs.clear();
        Ok(())
    }

    /// Adds a data block whose first key is `first`.
    fn index_block(&mut self, data: &[u8], unpacked: usize) {
        let at = self.out.len() as u64;
        let size = self.put_packed(Kind::Data, data, unpacked, self.last_block);
        self.index.extend(at.to_be_bytes());
        self.index.extend((size as u32).to_be_bytes());
        put_hadoop_length(&mut self.index, self.first.len() + 2);
        put_row(&mut self.index, &self.first);
        self.last_block = at;
        self.blocks += 1;
    }

    fn packed(&mut self, payload: &[u8], pairs: &[PairAt]) -> Result<Vec<u8>> {
        match &mut self.gzip {
            Some(gzip) => gzip.member(payload, pairs),
            None => Ok(payload.to_vec()),
        }
    }

    /// Adds a block, and says how many bytes it has.
    fn put_block(&mut self, kind: Kind, payload: &[u8]) -> Result<usize> {
        let data = self.packed(payload, &[])?;
        Ok(self.put_packed(kind, &data, payload.len(), NONE))
    }

    fn put_packed(&mut self, kind: Kind, data: &[u8], unpacked: usize, previous: u64) -> usize {
        let summed = HEADER + data.len();
        let sums = summed.div_ceil(BYTES_PER_CHECKSUM) * 4;
        let at = self.out.len();
        self.out.extend(kind.magic());
        self.out.extend(((data.len() + sums) as u32).to_be_bytes());
        self.out.extend((unpacked as u32).to_be_bytes());
        self.out.extend(previous.to_be_bytes());
        self.out.push(Checksum::Crc32 as u8);
        self.out.extend((BYTES_PER_CHECKSUM as u32).to_be_bytes());
        self.out.extend((summed as u32).to_be_bytes());
        self.out.extend(data);
        let checked = self.out.get(at..).unwrap_or_default();
        let checksums = checked.chunks(BYTES_PER_CHECKSUM).map(crc32fast::hash);
        let checksums: Vec<u8> = checksums.flat_map(u32::to_be_bytes).collect();
        self.out.extend(checksums);
        summed + sums
    }

    /// The bytes of the file.
    ///
    /// metas: named blocks next to the data; Hudi's base files have one, `bloomFilter`
    /// (`HoodieNativeAvroHFileWriter`). infos: entries besides those that every HFile has.
    ///
    /// # Errors
    /// Compressing fails.
    pub fn finish(mut self, metas: &[(&str, &[u8])], infos: &[(&str, &[u8])]) -> Result<Vec<u8>> {
        self.close_block()?;
        let meta_index = self.put_metas(metas)?;
        let load_on_open = self.out.len() as u64;
        let index = std::mem::take(&mut self.index);
        self.put_block(Kind::Root, &index)?;
        self.put_block(Kind::Root, &meta_index)?;
        let info_at = self.out.len() as u64;
        let info = self.info(infos);
        self.put_block(Kind::FileInfo, &info)?;
        let mut trailer = self.trailer(info_at, load_on_open, metas.len() as u64);
        sums::write(&mut trailer, crc32fast::hash(&self.out));
        self.out.extend(trailer);
        Ok(self.out)
    }

    /// Adds the named blocks, and gives their index.
    fn put_metas(&mut self, metas: &[(&str, &[u8])]) -> Result<Vec<u8>> {
        let mut index = Vec::new();
        for (name, content) in metas {
            let at = self.out.len() as u64;
            let size = self.put_block(Kind::Meta, content)?;
            index.extend(at.to_be_bytes());
            index.extend((size as u32).to_be_bytes());
            put_hadoop_length(&mut index, name.len());
            index.extend(name.as_bytes());
        }
        Ok(index)
    }

    fn info(&self, infos: &[(&str, &[u8])]) -> Vec<u8> {
        let average = |total: u64| {
            let average = total.checked_div(self.entries).unwrap_or(0);
            (average as u32).to_be_bytes()
        };
        let mut last = Vec::new();
        put_row(&mut last, self.last.as_deref().unwrap_or_default());
        let (keys, values) = (average(self.keys), average(self.values));
        let mut facts: Vec<(&str, &[u8])> = vec![
            ("KEY_VALUE_VERSION", &[0, 0, 0, 1]),
            ("MAX_MEMSTORE_TS_KEY", &[0; 8]),
            ("hfile.AVG_KEY_LEN", &keys),
            ("hfile.AVG_VALUE_LEN", &values),
            ("hfile.CREATE_TIME_TS", &[0; 8]),
            ORDER,
        ];
        if self.last.is_some() {
            facts.push(("hfile.LASTKEY", &last));
        }
        facts.extend(infos);
        facts.sort_unstable();
        let mut message = Vec::new();
        for (name, value) in facts {
            let mut pair = Vec::new();
            put_bytes(&mut pair, 1, name.as_bytes());
            put_bytes(&mut pair, 2, value);
            put_bytes(&mut message, 1, &pair);
        }
        let mut out = b"PBUF".to_vec();
        put_varint(&mut out, message.len() as u64);
        out.extend(message);
        out
    }

    fn trailer(&self, info_at: u64, load_on_open: u64, metas: u64) -> Vec<u8> {
        let codec = if self.gzip.is_some() {
            Codec::Gzip
        } else {
            Codec::None
        };
        let first_block = if self.blocks == 0 { NONE } else { 0 };
        let mut message = Vec::new();
        for (number, value) in [
            (1, info_at),
            (2, load_on_open),
            (3, self.payload),
            (5, self.blocks),
            (6, metas),
            (7, self.entries),
            (8, 1),
            (9, first_block),
            (10, self.last_block),
        ] {
            put_number(&mut message, number, value);
        }
        put_bytes(&mut message, 11, COMPARATOR.as_bytes());
        put_number(&mut message, 12, codec.number());
        let mut out = b"TRABLK\"$".to_vec();
        put_varint(&mut out, message.len() as u64);
        out.extend(message);
        out.resize(TRAILER - 4, 0);
        out.extend(MAJOR.to_be_bytes());
        out
    }
}

/// A data block as it stands in a file.
#[derive(Debug, Clone)]
pub struct PackedBlock {
    /// Its first key.
    pub first: Bytes,
    /// The first key of the block after it, [`None`] for the last one.
    pub end: Option<Bytes>,
    pub(super) bytes: Bytes,
    /// Where it starts in its file.
    pub(super) at: u64,
}

fn pair_len(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + PAIR_OVERHEAD + 2
}

fn put_row(out: &mut Vec<u8>, row: &[u8]) {
    out.extend((row.len() as u16).to_be_bytes());
    out.extend(row);
}

/// Hadoop's variable-length int: one byte up to 127, else the number of bytes that follow.
fn put_hadoop_length(out: &mut Vec<u8>, length: usize) {
    if let Ok(short) = i8::try_from(length) {
        out.push(short.cast_unsigned());
        return;
    }
    let bytes = (length as u64).to_be_bytes();
    let skipped = length.leading_zeros() as usize / 8;
    let used = bytes.iter().skip(skipped);
    out.push((-112 - (bytes.len() - skipped) as i8).cast_unsigned());
    out.extend(used);
}

#[cfg(test)]
mod tests;
