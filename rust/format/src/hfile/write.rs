//! Writing an HFile as Hudi's own writer does (`HFileWriterImpl`, Hudi 1.1 and later).
//!
//! Hudi 0.15 reads this form too. One level of index, no checksums.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::block::{Codec, HEADER, Kind};
use super::trailer::TRAILER;
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

/// How an HFile is written.
#[derive(Debug, Clone)]
pub struct HFileOptions {
    /// A data block is closed when the next pair would make it larger.
    pub block_bytes: usize,
    /// Compress blocks with gzip.
    pub gzip: bool,
}

impl Default for HFileOptions {
    fn default() -> Self {
        Self {
            block_bytes: 1 << 20,
            gzip: true,
        }
    }
}

/// The bytes of an HFile with these pairs, whose keys must rise in byte order.
///
/// infos: facts beside those that every HFile has; Hudi's readers want `schema`.
///
/// # Errors
/// A key does not rise, or is longer than 32767 bytes.
pub fn write_hfile<'p>(
    pairs: impl IntoIterator<Item = (&'p [u8], &'p [u8])>,
    infos: &[(&str, &[u8])],
    options: &HFileOptions,
) -> Result<Vec<u8>> {
    write_hfile_with_metas(pairs, &[], infos, options)
}

/// As [`write_hfile`], with named blocks beside the data. Hudi's base files have one, `bloomFilter`
/// (`HoodieNativeAvroHFileWriter`).
///
/// # Errors
/// As [`write_hfile`].
pub fn write_hfile_with_metas<'p>(
    pairs: impl IntoIterator<Item = (&'p [u8], &'p [u8])>,
    metas: &[(&str, &[u8])],
    infos: &[(&str, &[u8])],
    options: &HFileOptions,
) -> Result<Vec<u8>> {
    let mut writer = Writer::new(options);
    for (key, value) in pairs {
        writer.add(key, value)?;
    }
    writer.close_block()?;
    writer.finish(metas, infos)
}

struct Writer<'o> {
    options: &'o HFileOptions,
    out: Vec<u8>,
    /// The data block being filled, and its first row.
    block: Vec<u8>,
    first: Vec<u8>,
    last: Option<Vec<u8>>,
    index: Vec<u8>,
    blocks: u64,
    entries: u64,
    last_block: u64,
    payload: u64,
    keys: u64,
    values: u64,
}

impl<'o> Writer<'o> {
    fn new(options: &'o HFileOptions) -> Self {
        Self {
            options,
            out: Vec::new(),
            block: Vec::new(),
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

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > ROW_MOST {
            let feature = format!("HFile key of {} bytes", key.len());
            return Err(FormatError::unsupported(feature));
        }
        if self.last.as_deref().is_some_and(|last| last >= key) {
            let key = key.escape_ascii();
            let feature = format!("HFile keys that do not rise ({key})");
            return Err(FormatError::unsupported(feature));
        }
        let size = key.len() + value.len() + PAIR_OVERHEAD + 2;
        if !self.block.is_empty() && self.block.len() + size > self.options.block_bytes {
            self.close_block()?;
        }
        if self.block.is_empty() {
            self.first = key.to_vec();
        }
        let key_len = key.len() + 12;
        self.block.extend((key_len as u32).to_be_bytes());
        self.block.extend((value.len() as u32).to_be_bytes());
        put_row(&mut self.block, key);
        self.block.extend(KEY_END);
        self.block.extend(value);
        self.block.push(0);
        self.entries += 1;
        self.keys += key_len as u64;
        self.values += value.len() as u64;
        self.last = Some(key.to_vec());
        Ok(())
    }

    fn close_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let payload = std::mem::take(&mut self.block);
        let at = self.out.len() as u64;
        let size = self.put_block(Kind::Data, &payload, self.last_block)?;
        self.payload += payload.len() as u64;
        self.index.extend(at.to_be_bytes());
        self.index.extend((size as u32).to_be_bytes());
        put_hadoop_length(&mut self.index, self.first.len() + 2);
        put_row(&mut self.index, &self.first);
        self.last_block = at;
        self.blocks += 1;
        Ok(())
    }

    /// Adds a block, and says how many bytes it has.
    fn put_block(&mut self, kind: Kind, payload: &[u8], previous: u64) -> Result<usize> {
        let data = if self.options.gzip {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            let written = encoder.write_all(payload).and_then(|()| encoder.finish());
            written.map_err(|error| FormatError::Read(Box::new(error)))?
        } else {
            payload.to_vec()
        };
        let summed = HEADER + data.len();
        let sums = summed.div_ceil(BYTES_PER_CHECKSUM) * 4;
        self.out.extend(kind.magic());
        self.out.extend(((data.len() + sums) as u32).to_be_bytes());
        self.out.extend((payload.len() as u32).to_be_bytes());
        self.out.extend(previous.to_be_bytes());
        self.out.push(0);
        self.out.extend((BYTES_PER_CHECKSUM as u32).to_be_bytes());
        self.out.extend((summed as u32).to_be_bytes());
        self.out.extend(&data);
        self.out.resize(self.out.len() + sums, 0);
        Ok(summed + sums)
    }

    fn finish(mut self, metas: &[(&str, &[u8])], infos: &[(&str, &[u8])]) -> Result<Vec<u8>> {
        let meta_index = self.put_metas(metas)?;
        let load_on_open = self.out.len() as u64;
        let index = std::mem::take(&mut self.index);
        self.put_block(Kind::Root, &index, NONE)?;
        self.put_block(Kind::Root, &meta_index, NONE)?;
        let info_at = self.out.len() as u64;
        let info = self.info(infos);
        self.put_block(Kind::FileInfo, &info, NONE)?;
        let trailer = self.trailer(info_at, load_on_open, metas.len() as u64);
        self.out.extend(trailer);
        Ok(self.out)
    }

    /// Adds the named blocks, and gives their index.
    fn put_metas(&mut self, metas: &[(&str, &[u8])]) -> Result<Vec<u8>> {
        let mut index = Vec::new();
        for (name, content) in metas {
            let at = self.out.len() as u64;
            let size = self.put_block(Kind::Meta, content, NONE)?;
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
        let codec = if self.options.gzip {
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
            put_varint(&mut message, number << 3);
            put_varint(&mut message, value);
        }
        put_bytes(&mut message, 11, COMPARATOR.as_bytes());
        put_varint(&mut message, 12 << 3);
        put_varint(&mut message, codec.number());
        let mut out = b"TRABLK\"$".to_vec();
        put_varint(&mut out, message.len() as u64);
        out.extend(message);
        out.resize(TRAILER - 4, 0);
        out.extend(MAJOR.to_be_bytes());
        out
    }
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

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(out, number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}

#[cfg(test)]
mod tests;
