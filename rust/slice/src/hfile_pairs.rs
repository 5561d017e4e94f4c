//! The pairs of an HFile as bytes, for small files that Python makes sense of, such as the
//! bootstrap index. Records of log blocks and of the metadata table are not read here.

use bytes::Bytes;
use pyhudi_format::hfile::HFile;
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

/// A fact of the file's info block.
///
/// # Errors
/// The file is missing or damaged.
pub fn hfile_info(store: &Store, path: &str, name: &str) -> Result<Option<Vec<u8>>> {
    let damaged = |error| SliceError::format(path, 0, error);
    let file = HFile::open(store.file(path)?).map_err(damaged)?;
    Ok(file.info(name).map(<[u8]>::to_vec))
}
