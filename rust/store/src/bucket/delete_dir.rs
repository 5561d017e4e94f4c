//! Deleting many files; and a directory: the files below it, then the objects that stand for directories.
//!
//! Azure knows directories by their own names, as empty objects or, in a hierarchical namespace, as real
//! ones that stay when their files are gone.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::Error;
use object_store::path::Path;

use super::{Remote, list};
use crate::Result;

/// Deletes the files, as many in one request as the service takes.
pub(crate) fn files(remote: &Remote, paths: &[String]) -> Result<()> {
    paths
        .iter()
        .try_for_each(|path| crate::path::check_file(path))?;
    let Some(first) = paths.first() else {
        return Ok(());
    };
    delete(remote, first, paths, std::convert::identity)
}

/// Deletes all below the directory; the base is refused.
pub(crate) fn delete_dir(remote: &Remote, path: &str) -> Result<()> {
    crate::path::check_file(path)?;
    let all = list::everything(remote, path)?;
    let files: Vec<&str> = all.files.iter().map(|one| one.path.as_str()).collect();
    delete(remote, path, &files, std::convert::identity)?;
    // Deepest first, and after the files: a server may refuse to delete what is not empty.
    for level in deepest_first(all.marked_dirs.iter().cloned().collect()) {
        delete(remote, path, &level, list::marker_key)?;
    }
    if remote.kind().has_named_dirs {
        delete_named(remote, path, &files)?;
    }
    Ok(())
}

/// Deletes the directories that files were in, those that had no file, and `path` itself.
fn delete_named(remote: &Remote, path: &str, files: &[&str]) -> Result<()> {
    let mut dirs = above(files, path);
    try_delete(remote, path, dirs.clone());
    dirs.clear();
    let mut unseen = list::one_level(remote, path)?.dirs;
    while let Some(dir) = unseen.pop() {
        unseen.extend(list::one_level(remote, &dir)?.dirs);
        dirs.insert(dir);
    }
    // A file of this name is no directory.
    if list::head(remote, path)?.is_none_or(|own| own.size == 0) {
        dirs.insert(path.to_owned());
    }
    try_delete(remote, path, dirs);
    Ok(())
}

/// Best effort: a directory to which another writer has added a file stays.
fn try_delete(remote: &Remote, path: &str, dirs: BTreeSet<String>) {
    for level in deepest_first(dirs) {
        let _ = delete(remote, path, &level, std::convert::identity);
    }
}

/// The directories of files, as far as they are below `path`.
fn above(files: &[&str], path: &str) -> BTreeSet<String> {
    let mut dirs = BTreeSet::new();
    for file in files {
        let mut rest = *file;
        while let Some((dir, _)) = rest.rsplit_once('/') {
            if dir.len() <= path.len() || !dirs.insert(dir.to_owned()) {
                break;
            }
            rest = dir;
        }
    }
    dirs
}

/// Paths by their depth.
fn deepest_first(paths: BTreeSet<String>) -> Vec<Vec<String>> {
    let depth = |path: &str| path.matches('/').count();
    let mut paths: Vec<String> = paths.into_iter().collect();
    paths.sort_by_key(|path| std::cmp::Reverse(depth(path)));
    let levels = paths.chunk_by(|a, b| depth(a) == depth(b));
    levels.map(<[String]>::to_vec).collect()
}

/// Deletes the objects of these paths, many at a time.
fn delete<P: AsRef<str>>(
    remote: &Remote,
    path: &str,
    paths: &[P],
    named: fn(Path) -> Path,
) -> Result<()> {
    let keys = paths.iter().map(|one| remote.key(one.as_ref()).map(named));
    let keys = keys.collect::<Result<Vec<Path>>>()?;
    if keys.is_empty() {
        return Ok(());
    }
    remote.run(path, async |client| {
        for key in &keys {
            client.ends.forget(key);
        }
        let keys = stream::iter(keys.into_iter().map(Ok)).boxed();
        // One that is gone already keeps no other from being deleted.
        client
            .delete_stream(keys)
            .or_else(|cause| async {
                match cause {
                    Error::NotFound { .. } => Ok(Path::default()),
                    other => Err(other),
                }
            })
            .try_for_each(|_| async { Ok(()) })
            .await
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_files_come_deepest_first_and_end_at_the_path() {
        let dirs = above(&["t/a/b/x", "t/a/b/y", "t/a/z", "t/c/w", "t/v"], "t");
        assert_eq!(
            deepest_first(dirs),
            [
                vec!["t/a/b".to_owned()],
                vec!["t/a".to_owned(), "t/c".to_owned()]
            ]
        );
        assert!(above(&["t/v"], "t").is_empty());
    }
}
