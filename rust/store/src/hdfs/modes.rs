//! Whom new files and folders let in, and how they are made.

use hdfs_native::file::FileWriter;
use hdfs_native::{Client, WriteOptions};

use super::error::is_missing;
use crate::{Result, StoreError};

const UMASK: &str = "fs.permissions.umask-mode";

/// What new files and folders let others do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Modes {
    file: u32,
    folder: u32,
}

impl Modes {
    /// By `fs.permissions.umask-mode` of the options, 022 without it, as for Hadoop's own client.
    pub(super) fn of(options: &[(String, String)]) -> Result<Self> {
        let given = options.iter().find(|(name, _)| name == UMASK);
        let umask = match given {
            None => 0o022,
            Some((_, value)) => u32::from_str_radix(value, 8).map_err(|_| StoreError::Config {
                what: format!("{UMASK} needs an octal number such as 022, not '{value}'"),
            })?,
        };
        Ok(Self {
            file: 0o666 & !umask,
            folder: 0o777 & !umask,
        })
    }

    /// Begins a file. Folders that are missing are made first: those that the name node would make
    /// by itself let in whom the folder above them does.
    pub(super) async fn create(
        self,
        client: &Client,
        full: &str,
        overwrite: bool,
    ) -> hdfs_native::Result<FileWriter> {
        let options = WriteOptions::default()
            .overwrite(overwrite)
            .create_parent(false)
            .permission(self.file);
        match client.create(full, &options).await {
            Err(cause) if is_missing(&cause) => {
                let (folder, _) = full.rsplit_once('/').unwrap_or_default();
                client.mkdirs(folder, self.folder, true).await?;
                client.create(full, &options).await
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_umask_takes_away() {
        let of = |umask: &str| Modes::of(&[(UMASK.to_owned(), umask.to_owned())]);
        let shared = of("002").unwrap();
        assert_eq!((shared.file, shared.folder), (0o664, 0o775));
        assert_eq!(of("022").unwrap(), Modes::of(&[]).unwrap());
        assert!(matches!(of("rwx"), Err(StoreError::Config { .. })));
    }
}
