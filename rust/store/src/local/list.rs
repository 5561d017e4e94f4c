//! Listing, and the facts of one file. Symbolic links are followed, as Java does.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::read::no_regular_file;
use crate::error::is_missing;
use crate::{Entry, Listing, Result, StoreError, path};

/// The facts of the file at `full`, reported under `path`.
pub(crate) fn head(full: &Path, path: &str) -> Result<Option<Entry>> {
    match fs::metadata(full) {
        Ok(metadata) if metadata.is_file() => Ok(Some(entry(path.to_owned(), &metadata))),
        Ok(metadata) if metadata.is_dir() => Ok(None),
        Ok(_) => Err(StoreError::on_open(full, no_regular_file())),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(StoreError::around(full, error)),
    }
}

/// All files below `prefix`. A cycle of links ends in the system's "too many links".
pub(crate) fn recursive(base: &Path, prefix: &str) -> Result<Vec<Entry>> {
    let mut files = Vec::new();
    let mut pending = vec![prefix.to_owned()];
    while let Some(dir) = pending.pop() {
        let level = scan(base, &dir)?;
        files.extend(level.files);
        pending.extend(level.dirs);
    }
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// What is directly in `prefix`.
pub(crate) fn one_level(base: &Path, prefix: &str) -> Result<Listing> {
    let mut level = scan(base, prefix)?;
    level.dirs.sort_unstable();
    level.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(level)
}

fn scan(base: &Path, prefix: &str) -> Result<Listing> {
    let dir = base.join(prefix);
    let mut level = Listing::default();
    let items = match fs::read_dir(&dir) {
        Err(error) if is_missing(&error) => return Ok(level),
        other => other.map_err(|source| StoreError::around(&dir, source))?,
    };
    for item in items {
        let item = item.map_err(|source| StoreError::around(&dir, source))?;
        let name = name_of(&item)?;
        match kind_of(&item) {
            Ok(Kind::Dir) => level.dirs.push(path::join(prefix, name.as_str())),
            Ok(Kind::File(metadata)) => {
                level
                    .files
                    .push(entry(path::join(prefix, &name), &metadata));
            }
            // Left out, rows would be missing without a word.
            Ok(Kind::Other) => return Err(StoreError::on_open(&item.path(), no_regular_file())),
            // Gone since the directory was read, or a link to nothing.
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(StoreError::around(&item.path(), error)),
        }
    }
    Ok(level)
}

enum Kind {
    Dir,
    File(Metadata),
    Other,
}

fn kind_of(item: &DirEntry) -> io::Result<Kind> {
    let file_type = item.file_type()?;
    if file_type.is_dir() {
        return Ok(Kind::Dir);
    }
    let metadata = if file_type.is_symlink() {
        fs::metadata(item.path())?
    } else {
        item.metadata()?
    };
    Ok(if metadata.is_dir() {
        Kind::Dir
    } else if metadata.is_file() {
        Kind::File(metadata)
    } else {
        Kind::Other
    })
}

/// The name, or an error: a name that cannot be given back could not be read either.
fn name_of(item: &DirEntry) -> Result<String> {
    item.file_name().into_string().map_err(|_| {
        let source = io::Error::new(io::ErrorKind::InvalidData, "the name is not UTF-8");
        StoreError::around(&item.path(), source)
    })
}

fn entry(path: String, metadata: &Metadata) -> Entry {
    Entry {
        path,
        size: metadata.len(),
        modified_ms: metadata.modified().map_or(0, epoch_ms),
    }
}

fn epoch_ms(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_millis() as i64,
        Err(before) => -(before.duration().as_millis() as i64),
    }
}
