//! Listing, and the facts of one file.

use futures_util::{StreamExt, TryStreamExt, stream};
use hdfs_native::client::FileStatus;

use super::Hdfs;
use super::error::is_missing;
use super::retry::Call;
use crate::{Entry, Listing, Result, path};

/// Folders that are listed at once.
const AT_ONCE: usize = 16;

/// Folders of one call, which has to be answered in the time of a call.
const TOGETHER: usize = 512;

/// The file's size and time; None if it does not exist or is a directory.
pub(crate) fn head(hdfs: &Hdfs, path: &str) -> Result<Option<Entry>> {
    let full = hdfs.locate_file(path)?;
    let found = hdfs.try_run(path, Call::Harmless, async |client| {
        client.get_file_info(&full).await
    })?;
    match found {
        Ok(status) => Ok((!status.isdir).then(|| entry(path.to_owned(), &status))),
        Err(cause) if is_missing(&cause) => Ok(None),
        Err(cause) => Err(hdfs.error(path, cause)),
    }
}

/// All files below `prefix`, sorted by path.
pub(crate) fn recursive(hdfs: &Hdfs, prefix: &str) -> Result<Vec<Entry>> {
    let mut files = Vec::new();
    let mut dirs = vec![prefix.to_owned()];
    while !dirs.is_empty() {
        let mut below = Vec::new();
        for some in dirs.chunks(TOGETHER) {
            for level in levels(hdfs, prefix, some)? {
                files.extend(level.files);
                below.extend(level.dirs);
            }
        }
        dirs = below;
    }
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// What is directly in `prefix`, sorted.
pub(crate) fn one_level(hdfs: &Hdfs, prefix: &str) -> Result<Listing> {
    let dirs = [prefix.to_owned()];
    let mut level = levels(hdfs, prefix, &dirs)?.pop().unwrap_or_default();
    level.dirs.sort_unstable();
    level.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(level)
}

/// What is in each of the folders; nothing in one that is gone.
fn levels(hdfs: &Hdfs, prefix: &str, dirs: &[String]) -> Result<Vec<Listing>> {
    let full = dirs.iter().map(|dir| hdfs.locate(dir));
    let full = full.collect::<Result<Vec<String>>>()?;
    hdfs.run(prefix, Call::Harmless, async |client| {
        let asked = full.iter().zip(dirs).map(async |(full, dir)| {
            match client.list_status(full, false).await {
                Ok(found) => Ok(level(full, dir, &found)),
                Err(cause) if is_missing(&cause) => Ok(Listing::default()),
                Err(cause) => Err(cause),
            }
        });
        stream::iter(asked).buffered(AT_ONCE).try_collect().await
    })
}

/// What was found in a folder. Of a file, HDFS gives the file itself.
fn level(full: &str, dir: &str, found: &[FileStatus]) -> Listing {
    let mut level = Listing::default();
    for status in found.iter().filter(|status| status.path != full) {
        let name = status.path.rsplit('/').next().unwrap_or_default();
        let path = path::join(dir, name);
        if status.isdir {
            level.dirs.push(path);
        } else {
            level.files.push(entry(path, status));
        }
    }
    level
}

fn entry(path: String, status: &FileStatus) -> Entry {
    Entry {
        path,
        size: status.length as u64,
        modified_ms: status.modification_time as i64,
    }
}
