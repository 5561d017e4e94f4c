//! Flipped bits in log files and HFiles: a search by checksums, without decoding a record.

use std::ops::Range;

use pyhudi_format::ReadAt;
use pyhudi_format::hfile::{HFile, HFileChecksums};
use pyhudi_format::log::{BlockType, Corruption, LogBlock, LogScanner, SEAL, Seal};
use pyhudi_store::{Store, StoreFile};

use crate::base::{Coverage, checksum, verify_parquet_block};
use crate::error::{Result, SliceError};

/// Bytes of an empty footer map and a trailing length.
const TAIL: u64 = 12;

/// Compares a log file with its checksums: what these cover, and the offset of the first block that its
/// readers pass over.
///
/// # Errors
/// The file is missing, or damaged elsewhere than between blocks.
pub fn verify_log_file(store: &Store, path: &str) -> Result<(Coverage, Option<u64>)> {
    let file = store.file(path)?;
    let (mut coverage, mut first) = (Coverage::Whole, None);
    for block in LogScanner::new(file.clone(), Corruption::Check) {
        let block = block.map_err(|error| SliceError::format(path, 0, error))?;
        if block.block_type == BlockType::Corrupt {
            first = first.or(Some(block.offset));
        } else if !verify_block(path, &file, &block)? {
            coverage = Coverage::Partial;
        }
    }
    Ok((coverage, first))
}

/// Compares an HFile with its checksums: what these cover.
///
/// # Errors
/// The file is missing or damaged.
pub fn verify_hfile(store: &Store, path: &str) -> Result<Coverage> {
    let file = store.file(path)?;
    if file.size() == 0 {
        return Ok(Coverage::Whole);
    }
    let head = verify_hfile_bytes(path, &file, 0..file.size())?;
    if let Some(head) = head {
        return if head == 0 {
            Ok(Coverage::Whole)
        } else {
            let what = "the trailer of an HFile does not have its checksum";
            Err(corrupt(path, file.size() - 4, what))
        };
    }
    // The blocks of Hudi's HFiles have checksums up to 1.0.
    let damaged = |error| SliceError::format(path, 0, error);
    let opened = HFile::open(file).map_err(damaged)?;
    for pair in opened.scan() {
        pair.map_err(damaged)?;
    }
    Ok(Coverage::Partial)
}

/// Whether all of the block has checksums, which then are right.
fn verify_block(path: &str, file: &StoreFile, block: &LogBlock) -> Result<bool> {
    let content = block.content_offset..block.content_offset + block.content_len;
    let head = match block.block_type {
        BlockType::HfileData => verify_hfile_bytes(path, file, content.clone())?,
        BlockType::ParquetData => {
            let bytes = file.read_range(content.clone())?;
            verify_parquet_block(path, content.start, &bytes)?
        }
        _ => verify_content(path, file, content.clone())?,
    };
    let Some(head) = head else {
        return Ok(false);
    };
    if head != checksum(file, block.offset..content.start)? {
        let what = "the header of a log block does not have its checksum";
        return Err(corrupt(path, block.offset, what));
    }
    if block.end != content.end + TAIL {
        let what = "the footer of a log block is not empty";
        return Err(corrupt(path, content.end, what));
    }
    Ok(true)
}

/// Compares a content with its seal: the checksum of the block's head, none without a seal.
fn verify_content(path: &str, file: &StoreFile, content: Range<u64>) -> Result<Option<u32>> {
    let Some(end) = content.end.checked_sub(SEAL as u64) else {
        return Ok(None);
    };
    if end < content.start {
        return Ok(None);
    }
    let Some(seal) = Seal::decode(&file.read_range(end..content.end)?) else {
        return Ok(None);
    };
    if seal.content != checksum(file, content.start..end)? {
        let what = "the content of a log block does not have its checksum";
        return Err(corrupt(path, content.start, what));
    }
    Ok(Some(seal.head))
}

/// Compares an HFile in a range with its checksums: that of what precedes it, none without them.
fn verify_hfile_bytes(path: &str, file: &StoreFile, range: Range<u64>) -> Result<Option<u32>> {
    let damaged = |error| SliceError::format(path, 0, error);
    let length = HFileChecksums::TRAILER as u64;
    let trailer = range
        .end
        .checked_sub(length)
        .filter(|at| *at >= range.start);
    let Some(trailer) = trailer else {
        return Err(corrupt(path, range.start, "too few bytes for an HFile"));
    };
    let bytes = file.read_range(trailer..range.end)?;
    let Some(sums) = HFileChecksums::of_trailer(&bytes, trailer).map_err(damaged)? else {
        return Ok(None);
    };
    if sums.data != checksum(file, range.start..trailer)? {
        let what = "an HFile does not have its checksum";
        return Err(corrupt(path, range.start, what));
    }
    Ok(Some(sums.head))
}

fn corrupt(path: &str, offset: u64, what: &str) -> SliceError {
    SliceError::Corrupt {
        file: path.to_owned(),
        offset: Some(offset),
        what: what.to_owned(),
    }
}
