//! Listing, and the facts of one file.
//!
//! Hadoop's S3A keeps an empty object `dir/` for a directory that it made. `object_store` gives its
//! key without the slash, just as that of an empty file `dir`: what is which has to be found out. In
//! Azure the object is called `dir`, and differs from a file because something is below it.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta, ObjectStoreExt};

use super::Remote;
use super::client::Client;
use super::ends::Depth;
use crate::{Entry, Listing, Result};

/// Listings under way at a time.
const AT_ONCE: usize = 16;

/// The file's size and time; None if it does not exist.
pub(crate) fn head(remote: &Remote, path: &str) -> Result<Option<Entry>> {
    let key = remote.file_key(path)?;
    let found = remote.try_run(path, async |client| client.head(&key).await)?;
    match found {
        Ok(meta) => Ok(Some(entry(path, &meta))),
        Err(cause) => match super::error::store_error(&remote.url(path), &cause) {
            crate::StoreError::NotFound { .. } => Ok(None),
            other => Err(other),
        },
    }
}

/// All files below `prefix`, sorted by path.
pub(crate) fn recursive(remote: &Remote, prefix: &str) -> Result<Vec<Entry>> {
    Ok(everything(remote, prefix)?.files)
}

/// What is directly in `prefix`, sorted.
pub(crate) fn one_level(remote: &Remote, prefix: &str) -> Result<Listing> {
    let key = remote.key(prefix)?;
    let found = remote.run(prefix, async |client| list(&client, &key).await)?;
    Ok(level_of(remote, &key, &found))
}

async fn list(client: &Client, key: &Path) -> object_store::Result<ListResult> {
    let at = Some(key).filter(|key| !key.is_root());
    let found = client.list_with_delimiter(at).await?;
    client.ends.listed(key, Depth::One, &found.objects);
    Ok(found)
}

/// What a listing found directly in the directory of this key, sorted.
fn level_of(remote: &Remote, key: &Path, found: &ListResult) -> Listing {
    let dirs = found.common_prefixes.iter();
    let mut level = Listing {
        dirs: dirs
            .filter_map(|dir| remote.relative(dir))
            .map(str::to_owned)
            .collect(),
        // The object `prefix/` itself has the key of the prefix.
        files: found
            .objects
            .iter()
            .filter(|meta| meta.location != *key)
            .filter_map(|meta| Some(entry(remote.relative(&meta.location)?, meta)))
            .collect(),
    };
    level.dirs.sort_unstable();
    if remote.kind().has_named_dirs {
        let is_dir = |one: &Entry| one.size == 0 && level.dirs.binary_search(&one.path).is_ok();
        level.files.retain(|one| !is_dir(one));
    }
    level.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    level
}

/// Files, and the directories that have an object of their own.
pub(super) struct Everything {
    pub(super) files: Vec<Entry>,
    pub(super) marked_dirs: Vec<String>,
}

/// All that is below `prefix`, which may have an object of its own, too.
pub(super) fn everything(remote: &Remote, prefix: &str) -> Result<Everything> {
    let key = remote.key(prefix)?;
    let at = Some(&key).filter(|key| !key.is_root());
    let found: Vec<ObjectMeta> = remote.run(prefix, async |client| {
        let found = client.list(at).try_collect::<Vec<_>>().await?;
        client.ends.listed(&key, Depth::All, &found);
        Ok(found)
    })?;
    let (mut files, mut marked_dirs) = (Vec::new(), Vec::new());
    let mut doubtful = Vec::new();
    for meta in &found {
        if meta.location == key {
            marked_dirs.push(prefix.to_owned());
            continue;
        }
        let Some(path) = remote.relative(&meta.location) else {
            continue;
        };
        if meta.size == 0 {
            doubtful.push(entry(path, meta));
        } else {
            files.push(entry(path, meta));
        }
    }
    let dirs = directories(remote, prefix, &doubtful, &found)?;
    for one in doubtful {
        if dirs.contains(&one.path) {
            marked_dirs.push(one.path);
        } else {
            files.push(one);
        }
    }
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(Everything { files, marked_dirs })
}

/// Which of these empty objects are directories: those that have something below them, and those
/// that their parent lists as such. A parent is asked once for all.
fn directories(
    remote: &Remote,
    prefix: &str,
    doubtful: &[Entry],
    found: &[ObjectMeta],
) -> Result<BTreeSet<String>> {
    let mut dirs = BTreeSet::new();
    for path in found
        .iter()
        .filter_map(|meta| remote.relative(&meta.location))
    {
        let mut rest = path;
        while let Some((parent, _)) = rest.rsplit_once('/') {
            if !dirs.insert(parent.to_owned()) {
                break;
            }
            rest = parent;
        }
    }
    let undecided = doubtful.iter().filter(|one| !dirs.contains(&one.path));
    let parents: BTreeSet<&str> = undecided
        .map(|one| one.path.rsplit_once('/').map_or("", |(parent, _)| parent))
        .collect();
    let keys = parents.iter().map(|parent| remote.key(parent));
    let keys = keys.collect::<Result<Vec<Path>>>()?;
    let listings: Vec<(Path, ListResult)> = remote.run(prefix, async |client| {
        let one = async |key: Path| list(&client, &key).await.map(|found| (key, found));
        stream::iter(keys)
            .map(one)
            .buffered(AT_ONCE)
            .try_collect()
            .await
    })?;
    for (key, found) in &listings {
        dirs.extend(level_of(remote, key, found).dirs);
    }
    Ok(dirs)
}

fn entry(path: &str, meta: &ObjectMeta) -> Entry {
    Entry {
        path: path.to_owned(),
        size: meta.size,
        modified_ms: meta.last_modified.timestamp_millis(),
    }
}

/// The key of the object that stands for a directory.
pub(super) fn marker_key(dir: Path) -> Path {
    // Joining nothing leaves the slash, which no other way of making a path does.
    dir.join("")
}
