//! Files that appear with all their bytes or not at all: staged next to the target, closed, then
//! renamed, as Hudi does on HDFS (`HoodieStorage.createImmutableFileInPath`, 1.2.0).
//!
//! The name node executes a rename atomically, and by default never over an existing file.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::process;

use bytes::Bytes;
use hdfs_native::HdfsError;

use super::error::is_missing;
use super::retry::Call;
use super::{Hdfs, list, read};
use crate::Result;

/// The name node's -1 for a time that stays; it may keep no times of access.
const AS_IT_IS: u64 = u64::MAX;

/// Writes the file, whether or not it is there.
pub(crate) fn replace(hdfs: &Hdfs, path: &str, bytes: &Bytes) -> Result<()> {
    let staged = Staged::write(hdfs, path, bytes)?;
    staged.rename_to(path, bytes, true)?;
    Ok(())
}

/// Writes the file if it is not there; false if it is. Of several writers exactly one gets true.
pub(crate) fn if_absent(hdfs: &Hdfs, path: &str, bytes: &Bytes) -> Result<bool> {
    if list::head(hdfs, path)?.is_some() {
        return Ok(false);
    }
    Staged::write(hdfs, path, bytes)?.rename_to(path, bytes, false)
}

/// Has the content of a file count as changed at another time.
pub(crate) fn set_modified(hdfs: &Hdfs, path: &str, modified_ms: u64) -> Result<()> {
    let full = hdfs.locate_file(path)?;
    hdfs.try_run(path, Call::Harmless, async |client| {
        client.set_times(&full, modified_ms, AS_IT_IS).await
    })?
    .map_err(|cause| hdfs.error(path, cause))
}

/// Deletes the file; false when it was not there.
pub(crate) fn delete(hdfs: &Hdfs, path: &str) -> Result<bool> {
    if list::head(hdfs, path)?.is_none() {
        return Ok(false);
    }
    remove(hdfs, path, false)
}

/// Deletes the folder with all that is in it. A missing one is fine.
pub(crate) fn delete_dir(hdfs: &Hdfs, path: &str) -> Result<()> {
    remove(hdfs, path, true)?;
    Ok(())
}

/// Deletes the file of this name, also while a client writes it. False if there is none.
fn remove(hdfs: &Hdfs, path: &str, recursive: bool) -> Result<bool> {
    let full = hdfs.locate_file(path)?;
    let done = hdfs.try_run(path, Call::Harmless, async |client| {
        client.delete(&full, recursive).await
    })?;
    match done {
        Err(cause) if is_missing(&cause) => Ok(false),
        other => other.map_err(|cause| hdfs.error(path, cause)),
    }
}

/// A complete file under a name of its own; removed on drop unless renamed.
pub(super) struct Staged<'h> {
    hdfs: &'h Hdfs,
    path: String,
    renamed: bool,
}

impl<'h> Staged<'h> {
    /// Writes it next to `target`. Missing directories are created.
    pub(super) fn write(hdfs: &'h Hdfs, target: &str, bytes: &Bytes) -> Result<Self> {
        let path = format!("{target}.{}-{}.tmp", process::id(), number());
        let full = hdfs.locate_file(&path)?;
        let staged = Self {
            hdfs,
            path,
            renamed: false,
        };
        let modes = hdfs.modes(target)?;
        // No other client knows the name, so it may be written twice.
        hdfs.run(target, Call::Harmless, async |client| {
            let mut file = modes.create(client, &full, true).await?;
            Box::pin(file.write_bytes(bytes.clone())).await?;
            Box::pin(file.close()).await
        })?;
        Ok(staged)
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Gives it the name of the target; false where that has a file and is not to be replaced.
    pub(super) fn rename_to(
        mut self,
        target: &str,
        bytes: &Bytes,
        overwrite: bool,
    ) -> Result<bool> {
        let hdfs = self.hdfs;
        let (from, to) = (hdfs.locate_file(&self.path)?, hdfs.locate_file(target)?);
        let done = hdfs.try_run(target, Call::Changing, async |client| {
            client.rename(&from, &to, overwrite).await
        })?;
        match done {
            Ok(()) => self.renamed = true,
            Err(HdfsError::AlreadyExists(_)) if !overwrite => {}
            // The answer was lost, and the rename may have been done or not.
            Err(HdfsError::IOError(_)) if self.has_become(target, bytes)? => self.renamed = true,
            Err(cause) => return Err(hdfs.error(target, cause)),
        }
        Ok(self.renamed)
    }

    /// Whether it is the target already: it is under its own name no more, and its bytes are there.
    fn has_become(&self, target: &str, bytes: &Bytes) -> Result<bool> {
        if list::head(self.hdfs, &self.path)?.is_some() {
            return Ok(false);
        }
        match read::whole(self.hdfs, target) {
            Ok(found) => Ok(found == *bytes),
            Err(crate::StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // Best effort: what stays is old one day, and removed then.
            let _ = remove(self.hdfs, &self.path, false);
        }
    }
}

/// One that no other call has, of whatever machine: each state is made with fresh random keys.
fn number() -> u64 {
    RandomState::new().build_hasher().finish()
}
