//! Index blocks: for each block below, where it is and the first key it may hold.

use std::sync::Arc;

use bytes::Bytes;

use super::block::{Block, Codec, Kind};
use super::order::{KeyOrder, Orders};
use crate::cursor::Cursor;
use crate::{FormatError, ReadAt, Result};

/// HBase splits an index only when it is large; more levels than this are damage.
const LEVELS_MOST: u64 = 8;

/// Where HBase finds the middle of a file, at the end of a data root above other levels.
const MIDDLE: usize = 16;

/// A block that an index names.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) offset: u64,
    pub(super) size: usize,
    /// Row of the first key, or a shorter one between it and the block before; for the meta
    /// index the name of the block.
    pub(super) key: Bytes,
}

/// ```text
/// root:   count × ( offset 8 | on-disk size 4 | key length, Hadoop variable int | key )
/// leaf, intermediate:   count 4 | (count + 1) × relative offset 4 | count × ( offset 8 | size 4 | key )
/// data root above other levels:   root, then   middle leaf: offset 8 | size 4 | entry 4
/// key in a data index:   row length 2 | row | (HBase: family length 1, timestamp 8, type 1)
/// ```
///
/// `HFileBlockIndex` of HBase; Hudi's own writer makes a root only. The count of a root stands in
/// the trailer.
pub(super) fn data_root(payload: &Bytes, count: u64, at: u64, levels: u64) -> Result<Vec<Entry>> {
    let (entries, mut rest) = root(payload, count, at, true)?;
    if levels > 1 && rest.remaining() == MIDDLE {
        rest.take(MIDDLE)?;
    }
    rest.finish()?;
    Ok(entries)
}

/// The root of the meta index, whose keys are names.
pub(super) fn meta_root(payload: &Bytes, count: u64, at: u64) -> Result<Vec<Entry>> {
    let (entries, rest) = root(payload, count, at, false)?;
    rest.finish()?;
    Ok(entries)
}

fn root(payload: &Bytes, count: u64, at: u64, rows: bool) -> Result<(Vec<Entry>, Cursor<'_>)> {
    let mut cursor = Cursor::at(payload, at);
    let most = cursor.remaining() / 13;
    if count > most as u64 {
        return cursor.corrupt(format!("{count} index entries, room for {most}"));
    }
    let mut entries = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let (offset, size) = location(&mut cursor)?;
        let length = hadoop_length(&mut cursor)?;
        let key = key(payload, &mut cursor, length, rows)?;
        entries.push(Entry { offset, size, key });
    }
    Ok((entries, cursor))
}

fn inner(payload: &Bytes, at: u64) -> Result<Vec<Entry>> {
    let mut cursor = Cursor::at(payload, at);
    let count = cursor.count(16)?;
    let mut offsets = Vec::with_capacity(count + 1);
    for _ in 0..=count {
        offsets.push(cursor.u32()?);
    }
    let mut entries = Vec::with_capacity(count);
    for (start, end) in offsets.iter().zip(offsets.iter().skip(1)) {
        let (offset, size) = location(&mut cursor)?;
        let Some(length) = end
            .checked_sub(*start)
            .and_then(|length| length.checked_sub(12))
        else {
            return cursor.corrupt("relative offsets of an HFile index");
        };
        let key = key(payload, &mut cursor, length as usize, true)?;
        entries.push(Entry { offset, size, key });
    }
    Ok(entries)
}

fn location(cursor: &mut Cursor<'_>) -> Result<(u64, usize)> {
    let offset = cursor.u64()?;
    Ok((offset, cursor.u32()? as usize))
}

fn key(payload: &Bytes, cursor: &mut Cursor<'_>, length: usize, rows: bool) -> Result<Bytes> {
    let start = cursor.position();
    let mut key = Cursor::at(cursor.take(length)?, cursor.offset());
    if !rows {
        return Ok(payload.slice(start..start + length));
    }
    let row = usize::from(key.u16()?);
    key.take(row)?;
    Ok(payload.slice(start + 2..start + 2 + row))
}

/// Hadoop's variable-length int, which here counts bytes still to come.
fn hadoop_length(cursor: &mut Cursor<'_>) -> Result<usize> {
    let at = cursor.clone();
    let first = cursor.u8()? as i8;
    let mut value = u64::try_from(first).unwrap_or(u64::MAX);
    if (-120..=-113).contains(&first) {
        value = 0;
        for byte in cursor.take(usize::from((-112 - first).unsigned_abs()))? {
            value = value << 8 | u64::from(*byte);
        }
    }
    match usize::try_from(value) {
        Ok(length) if length <= cursor.remaining() => Ok(length),
        _ => at.corrupt("key length in an HFile index"),
    }
}

/// Rules out the orders in which the keys of an index do not rise.
pub(super) fn pass_all(entries: &[Entry], orders: &mut Orders, at: u64) -> Result<()> {
    entries
        .iter()
        .zip(entries.iter().skip(1))
        .try_for_each(|(before, next)| orders.pass(&before.key, &next.key, at))
}

/// Walks the data blocks in file order, from the one that may hold a key if keys have an order.
///
/// Block offsets must rise on every level, which also ends a walk in a damaged index.
#[derive(Debug)]
pub(super) struct Walk {
    /// The way down, root first.
    stack: Vec<Level>,
    /// Where the next block may start, by level.
    least: Vec<u64>,
    levels: usize,
    order: KeyOrder,
}

impl Walk {
    pub(super) fn new(root: Arc<[Entry]>, levels: u64, order: KeyOrder) -> Result<Self> {
        if levels == 0 || levels > LEVELS_MOST {
            return Err(FormatError::unsupported(format!(
                "HFile index of {levels} levels"
            )));
        }
        let levels = levels as usize;
        Ok(Self {
            stack: vec![Level {
                entries: root,
                next: 0,
            }],
            least: vec![0; levels],
            levels,
            order,
        })
    }

    /// The next data block to read.
    pub(super) fn next<R: ReadAt>(
        &mut self,
        source: &R,
        codec: Codec,
        orders: &mut Orders,
    ) -> Result<Option<Entry>> {
        self.descend(source, codec, None, orders)
    }

    /// The data block that may hold `key`; blocks before it are left out for good.
    pub(super) fn seek<R: ReadAt>(
        &mut self,
        source: &R,
        codec: Codec,
        key: &[u8],
        orders: &mut Orders,
    ) -> Result<Option<Entry>> {
        self.descend(source, codec, Some(key), orders)
    }

    /// As [`seek`](Self::seek), but [`None`] while `key` can only be in the block before.
    pub(super) fn seek_forward<R: ReadAt>(
        &mut self,
        source: &R,
        codec: Codec,
        key: &[u8],
        orders: &mut Orders,
    ) -> Result<Option<Entry>> {
        let order = self.order;
        let not_after = |next: &Entry| order.compare(&next.key, key).is_le();
        let goes_on = |level: &Level| level.rest().first().is_some_and(not_after);
        match self.stack.iter().position(goes_on) {
            Some(outermost) => {
                self.stack.truncate(outermost + 1);
                self.seek(source, codec, key, orders)
            }
            None => Ok(None),
        }
    }

    fn descend<R: ReadAt>(
        &mut self,
        source: &R,
        codec: Codec,
        key: Option<&[u8]>,
        orders: &mut Orders,
    ) -> Result<Option<Entry>> {
        while let Some(level) = self.stack.last_mut() {
            if let Some(key) = key {
                level.skip_to(key, self.order);
            }
            let Some(entry) = level.take() else {
                self.stack.pop();
                continue;
            };
            let depth = self.stack.len();
            self.check_order(depth, &entry)?;
            if depth == self.levels {
                return Ok(Some(entry));
            }
            let kind = if depth + 1 == self.levels {
                Kind::Leaf
            } else {
                Kind::Intermediate
            };
            let block = Block::read(source, entry.offset, entry.size, kind, codec)?;
            let entries = inner(&block.payload, entry.offset)?;
            pass_all(&entries, orders, entry.offset)?;
            let entries = entries.into();
            self.stack.push(Level { entries, next: 0 });
        }
        Ok(None)
    }

    fn check_order(&mut self, depth: usize, entry: &Entry) -> Result<()> {
        match self.least.get_mut(depth - 1) {
            Some(least) if entry.offset >= *least => {
                *least = entry.offset.saturating_add(1);
                Ok(())
            }
            _ => Err(FormatError::corrupt(
                entry.offset,
                "HFile index is not in file order",
            )),
        }
    }
}

/// One index block on the way down.
#[derive(Debug)]
struct Level {
    entries: Arc<[Entry]>,
    next: usize,
}

impl Level {
    fn rest(&self) -> &[Entry] {
        self.entries.get(self.next..).unwrap_or_default()
    }

    fn take(&mut self) -> Option<Entry> {
        let entry = self.entries.get(self.next)?.clone();
        self.next += 1;
        Some(entry)
    }

    /// Leaves out entries in front of the last one whose key is not after `key`.
    fn skip_to(&mut self, key: &[u8], order: KeyOrder) {
        let is_not_after = |entry: &Entry| order.compare(&entry.key, key).is_le();
        let not_after = self.rest().partition_point(is_not_after);
        self.next += not_after.saturating_sub(1);
    }
}
