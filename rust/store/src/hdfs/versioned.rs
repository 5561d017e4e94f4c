//! Compare and swap of one small file: what locks are made of.
//!
//! HDFS replaces a file without a check of its version. So a writer that replaces one version first takes
//! the right to do so: a name that is made of the version, which the new content is renamed to
//! if no writer has it. Then it checks the version once more, and the content goes from that name
//! to the file's. A right whose owner has failed is removed when it is old; its owner, should it
//! live, finds nothing left to rename.

use bytes::Bytes;
use hdfs_native::HdfsError;
use pyhudi_format::hash::md5;

use super::error::is_missing;
use super::put::{self, Staged};
use super::retry::Call;
use super::{Hdfs, list, read};
use crate::{Result, StoreError};

/// Age from which the right to replace a version is a dead one's. Both times are the name node's.
const OLD_MS: i64 = 60_000;

/// The file and its version; None if it does not exist. Two versions of the same bytes are one.
pub(crate) fn read(hdfs: &Hdfs, path: &str) -> Result<Option<(Bytes, String)>> {
    match read::whole(hdfs, path) {
        Ok(bytes) => {
            let version = version(&bytes);
            Ok(Some((bytes, version)))
        }
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the file if its version is still `expected`, none for no file: the new version, or none
/// where another writer was first.
pub(crate) fn replace(
    hdfs: &Hdfs,
    path: &str,
    bytes: &Bytes,
    expected: Option<&str>,
) -> Result<Option<String>> {
    let replaced = match expected {
        None => put::if_absent(hdfs, path, bytes)?,
        Some(version) => swap(hdfs, path, bytes, version)?,
    };
    Ok(replaced.then(|| version(bytes)))
}

fn swap(hdfs: &Hdfs, path: &str, bytes: &Bytes, expected: &str) -> Result<bool> {
    let right = format!("{path}.{expected}.next");
    let staged = Staged::write(hdfs, path, bytes)?;
    let now = modified(hdfs, &staged)?;
    if !staged.rename_to(&right, bytes, false)? {
        let held = list::head(hdfs, &right)?;
        if held.is_some_and(|held| now - held.modified_ms > OLD_MS) {
            put::delete(hdfs, &right)?;
        }
        return Ok(false);
    }
    let found = read(hdfs, path)?.map(|(_, version)| version);
    if found.as_deref() != Some(expected) {
        put::delete(hdfs, &right)?;
        return Ok(false);
    }
    use_right(hdfs, &right, path, bytes)
}

fn use_right(hdfs: &Hdfs, right: &str, path: &str, bytes: &Bytes) -> Result<bool> {
    let (from, to) = (hdfs.locate_file(right)?, hdfs.locate_file(path)?);
    let done = hdfs.try_run(path, Call::Changing, async |client| {
        client.rename(&from, &to, true).await
    })?;
    let lost = matches!(&done, Err(HdfsError::IOError(_)));
    match done {
        Err(cause) if !lost && !is_missing(&cause) => Err(hdfs.error(path, cause)),
        // Whose content is there tells who did it, also where an answer was lost.
        _ => Ok(read(hdfs, path)?.is_some_and(|(found, _)| found == *bytes)),
    }
}

/// When a file was written that was written just now: the time, by the clock that dates files.
fn modified(hdfs: &Hdfs, staged: &Staged<'_>) -> Result<i64> {
    let found = list::head(hdfs, staged.path())?;
    Ok(found.map_or(0, |found| found.modified_ms))
}

/// Of the content, the same in every process: it forms names that other processes use.
fn version(bytes: &[u8]) -> String {
    let digest = u128::from_be_bytes(md5(bytes));
    format!("{digest:032x}")
}
