//! Files that appear with all their bytes or not at all: staged next to the target, synced where they
//! have to last, then renamed over it or linked to it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use super::{checksum, dirs, system};
use crate::{Result, StoreError};

/// Writes `target`, whether or not it is there.
pub(crate) fn replace(target: &Path, bytes: &[u8]) -> Result<()> {
    Staged::write(target, bytes, File::sync_data)?.rename_to(target)?;
    dirs::sync_parent(target)
}

/// [`replace`] for what means nothing after a crash of the machine, which may restore the old content
/// back or leave none.
pub(crate) fn replace_unsynced(target: &Path, bytes: &[u8]) -> Result<()> {
    Staged::write(target, bytes, |_| Ok(()))?.rename_to(target)
}

/// Writes `target` if it is not there; false if it is.
pub(crate) fn if_absent(target: &Path, bytes: &[u8]) -> Result<bool> {
    let created = create(target, bytes, File::sync_data)?;
    if created {
        dirs::sync_parent(target)?;
    }
    Ok(created)
}

/// [`if_absent`] for what means nothing after a crash of the machine.
pub(crate) fn if_absent_unsynced(target: &Path, bytes: &[u8]) -> Result<bool> {
    create(target, bytes, |_| Ok(()))
}

/// Has the content of a file count as changed at another time.
pub(crate) fn set_modified(target: &Path, modified_ms: u64) -> Result<()> {
    let time = UNIX_EPOCH + Duration::from_millis(modified_ms);
    File::options()
        .write(true)
        .open(target)
        .and_then(|file| file.set_modified(time))
        .map_err(|source| StoreError::around(target, source))
}

fn create(target: &Path, bytes: &[u8], sync: impl FnOnce(&File) -> io::Result<()>) -> Result<bool> {
    // Also keeps the checksum file of a target that Java wrote.
    if target.symlink_metadata().is_ok() {
        return Ok(false);
    }
    if bytes.is_empty() {
        return create_empty(target);
    }
    let staged = Staged::write(target, bytes, sync)?;
    checksum::forget(target)?;
    // The staged name goes before the folder is synced: one sync for both changes.
    staged.link_to(target)
}

/// Creates a file that is complete as soon as it exists: a marker, or a requested instant. Only its
/// name needs to last.
fn create_empty(target: &Path) -> Result<bool> {
    checksum::forget(target)?;
    match dirs::with_parent(target, || File::create_new(target)) {
        Ok(_) => Ok(true),
        Err(StoreError::AlreadyExists { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A complete file under a name of its own; removed on drop unless renamed.
struct Staged {
    path: PathBuf,
    renamed: bool,
}

impl Staged {
    fn write(
        target: &Path,
        bytes: &[u8],
        sync: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<Self> {
        let (path, mut file) = create_unique(target)?;
        let staged = Self {
            path,
            renamed: false,
        };
        file.write_all(bytes)
            .and_then(|()| sync(&file))
            .map_err(|source| StoreError::around(&staged.path, source))?;
        Ok(staged)
    }

    fn rename_to(mut self, target: &Path) -> Result<()> {
        checksum::forget(target)?;
        fs::rename(&self.path, target).map_err(|source| StoreError::around(target, source))?;
        self.renamed = true;
        Ok(())
    }

    fn link_to(&self, target: &Path) -> Result<bool> {
        match fs::hard_link(&self.path, target) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.is_linked(),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                Err(StoreError::Unsupported {
                    what: format!("put-if-absent at {}: no hard links", target.display()),
                })
            }
            Err(error) => Err(StoreError::around(target, error)),
        }
    }

    /// NFS repeats a request whose answer was lost; the second answer is then "exists" though the
    /// first made the link. The link count knows.
    fn is_linked(&self) -> Result<bool> {
        system::has_other_name(&self.path).map_err(|source| StoreError::around(&self.path, source))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.renamed {
            // Left behind it is ignored by every reader, so an error here changes nothing.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates `<name>.<pid>-<n>.tmp`. Another host may use the same name on a shared file system,
/// and so may what a crash left: only creating it proves that it is ours.
fn create_unique(target: &Path) -> Result<(PathBuf, File)> {
    loop {
        let path = staged_name(target);
        match dirs::with_parent(&path, || File::create_new(&path)) {
            Ok(file) => return Ok((path, file)),
            Err(StoreError::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Hudi's readers ignore the name: timeline names have no digits in their last part, manifests of
/// the archive do not end in `.tmp`, and `.hoodie_partition_metadata` is known by how it begins.
fn staged_name(target: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(target.file_name().unwrap_or_default());
    name.push(format!(".{}-{number}.tmp", process::id()));
    target.with_file_name(name)
}
