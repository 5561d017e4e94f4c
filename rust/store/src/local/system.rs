//! What each operating system does in its own way.

use std::fs::File;
use std::io;
use std::path::Path;

pub(crate) use own::{has_other_name, open, read_exact_at, sync_dir};

#[cfg(unix)]
mod own {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

    use super::{File, Path, io};

    /// Opens a file to read it. A pipe or socket is [`io::ErrorKind::Unsupported`]: opening a pipe waits
    /// for its writers, unless disabled.
    pub(crate) fn open(target: &Path) -> io::Result<File> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(target);
        match opened {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            other => other,
        }
    }

    /// Fills the buffer with what stands at an offset.
    pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        file.read_exact_at(buffer, offset)
    }

    /// Whether a file has more than one name.
    pub(crate) fn has_other_name(target: &Path) -> io::Result<bool> {
        Ok(fs::metadata(target)?.nlink() > 1)
    }

    /// Makes the names in a directory durable.
    pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

#[cfg(windows)]
mod own {
    use std::os::windows::fs::FileExt;

    use super::{File, Path, io};

    /// Opens a file to read it.
    pub(crate) fn open(target: &Path) -> io::Result<File> {
        File::open(target)
    }

    /// Fills the buffer with what stands at an offset.
    pub(crate) fn read_exact_at(
        file: &File,
        mut buffer: &mut [u8],
        mut offset: u64,
    ) -> io::Result<()> {
        while !buffer.is_empty() {
            match file.seek_read(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => {
                    buffer = buffer.get_mut(len..).unwrap_or_default();
                    offset += len as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether a file has more than one name: std cannot tell, and only NFS has to ask.
    #[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
    pub(crate) fn has_other_name(_target: &Path) -> io::Result<bool> {
        Ok(false)
    }

    /// Names are in the journal of the file system, and directories cannot be synced.
    #[expect(clippy::unnecessary_wraps, reason = "as on other systems")]
    pub(crate) fn sync_dir(_dir: &Path) -> io::Result<()> {
        Ok(())
    }
}
