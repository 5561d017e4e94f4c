//! The pairs of an HFile as bytes, for small files that Python makes sense of, such as the
//! bootstrap index. Records of log blocks and of the metadata table are not read here.

use bytes::Bytes;
use pyhudi_format::hfile::{HFile, KeyOrder};
use pyhudi_store::Store;

use crate::error::{Result, SliceError};

/// Key and value.
pub type Pair = (Bytes, Bytes);

/// All pairs of a file in key order, or those of the given keys that it has, in their order.
///
/// # Errors
/// The file is missing or damaged.
pub fn hfile_pairs(store: &Store, path: &str, keys: Option<&[Vec<u8>]>) -> Result<Vec<Pair>> {
    let damaged = |error| SliceError::format(path, 0, error);
    let file = HFile::open(store.file(path)?).map_err(damaged)?;
    let pairs = match keys {
        None => file.scan().collect::<Result<Vec<_>, _>>(),
        Some(keys) => file.lookup(keys.iter().map(Vec::as_slice)).collect(),
    };
    pairs.map_err(damaged)
}

/// The order of a file's keys where it matters, "bytes" or "UTF-16"; none where both are the same.
///
/// # Errors
/// The file is missing or damaged, or its keys are in no order.
pub fn hfile_order(store: &Store, path: &str) -> Result<Option<&'static str>> {
    let damaged = |error| SliceError::format(path, 0, error);
    let file = HFile::open(store.file(path)?).map_err(damaged)?;
    Ok(file.key_order().map_err(damaged)?.map(|order| match order {
        KeyOrder::Bytes => "bytes",
        KeyOrder::Utf16 => "UTF-16",
    }))
}

/// A fact of the file's info block.
///
/// # Errors
/// The file is missing or damaged.
pub fn hfile_info(store: &Store, path: &str, name: &str) -> Result<Option<Vec<u8>>> {
    let damaged = |error| SliceError::format(path, 0, error);
    let file = HFile::open(store.file(path)?).map_err(damaged)?;
    Ok(file.info(name).map(<[u8]>::to_vec))
}
