//! The facade: a table's base and what can be done below it.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use bytes::Bytes;

use crate::bucket::{self, Remote, RemoteFile, Upload};
use crate::hdfs::{self, Hdfs, HdfsFile, HdfsUpload};
use crate::local::{self, LocalBase, LocalFile, LocalWriter};
use crate::{RequestKind, Result, StoreError, StoreFile, StoreWriter, path, uri};

/// Files that are opened at a time.
const AT_ONCE: usize = 16;

/// How many local files of a call stay open. A process may have some 1,000 open, in all threads.
const MAX_KEPT_OPEN: usize = 32;

/// A file on storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path relative to the base.
    pub path: String,
    /// The length in bytes.
    pub size: u64,
    /// When the content last changed, in milliseconds since the epoch.
    pub modified_ms: i64,
}

/// One level of a directory, each part sorted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The directories, as paths relative to the base.
    pub dirs: Vec<String>,
    /// The files.
    pub files: Vec<Entry>,
}

/// The storage below a table's base. Cheap to clone; holds no open file.
///
/// All paths are relative to the base. An empty part, `.`, `..` and a leading or trailing slash
/// are [`StoreError::InvalidPath`]. Local files are read through symbolic links, and changed in real
/// folders below the base alone, which may be a link itself: a change behind another link is
/// [`StoreError::Unsupported`], and so is a pipe, socket or device in place of a file.
/// A store of a bucket or of HDFS belongs to the process that opened it.
#[derive(Debug, Clone)]
pub struct Store(Back);

#[derive(Debug, Clone)]
enum Back {
    Local(LocalBase),
    Bucket(Arc<Remote>),
    Hdfs(Arc<Hdfs>),
}

impl Store {
    /// Opens `/absolute`, `relative`, `file:///absolute`, `s3://bucket/prefix`, also as `s3a:`,
    /// `gs://bucket/prefix`, `abfss://container@account.dfs.core.windows.net/prefix` with what else
    /// Azure is called, or `hdfs://namenode:port/path`, also with a name service. The base need not
    /// exist, and no request is made.
    ///
    /// Options are those of `object_store`'s client of the kind, `retry_timeout` (seconds, 180 without
    /// it) and `max_retries`; `AWS_…`, `GOOGLE_…` and `AZURE_…` of the environment stand in for those not
    /// given. Those of HDFS are `hadoop_user_name`, `hadoop_conf_dir` and Hadoop's properties, which
    /// have a dot in their names. Local storage knows none.
    /// Any other scheme, and an option for a local path, is [`StoreError::Unsupported`]; options that
    /// are unknown or make no client are [`StoreError::Config`].
    pub fn open(uri: &str, options: &[(String, String)]) -> Result<Self> {
        if let Some(remote) = Remote::open(uri, options)? {
            return Ok(Self(Back::Bucket(Arc::new(remote))));
        }
        if let Some(hdfs) = Hdfs::open(uri, options)? {
            return Ok(Self(Back::Hdfs(Arc::new(hdfs))));
        }
        let base = uri::local_base(uri)?;
        if let Some((key, _)) = options.first() {
            return Err(StoreError::Unsupported {
                what: format!("storage option '{key}' for the local path {base}"),
            });
        }
        Ok(Self(Back::Local(LocalBase::new(base))))
    }

    /// A folder of it as a store of its own.
    pub fn below(&self, folder: &str) -> Result<Self> {
        Ok(Self(match &self.0 {
            Back::Local(base) => Back::Local(base.below(folder)?),
            Back::Bucket(remote) => Back::Bucket(Arc::new(remote.below(folder)?)),
            Back::Hdfs(hdfs) => Back::Hdfs(Arc::new(hdfs.below(folder)?)),
        }))
    }

    /// The base, normalised, which [`Store::open`] accepts.
    pub fn uri(&self) -> &str {
        match &self.0 {
            Back::Local(base) => base.as_str(),
            Back::Bucket(remote) => remote.uri(),
            Back::Hdfs(hdfs) => hdfs.uri(),
        }
    }

    /// The whole file; [`StoreError::Unsupported`] for one of more than 2 GiB.
    pub fn read(&self, path: &str) -> Result<Bytes> {
        self.count(RequestKind::Read, 0);
        let bytes = match &self.0 {
            Back::Local(base) => local::read::whole(&base.locate(path)?),
            Back::Bucket(remote) => return bucket::read::whole(remote, path),
            Back::Hdfs(hdfs) => hdfs::read::whole(hdfs, path),
        }?;
        RequestKind::Read.received(bytes.len() as u64);
        Ok(bytes)
    }

    /// Counts a call; the clients of buckets count their requests themselves.
    fn count(&self, kind: RequestKind, bytes: usize) {
        if !matches!(self.0, Back::Bucket(_)) {
            kind.sent(bytes);
        }
    }

    /// The bytes of `range`; an error unless the file holds all of them.
    pub fn read_range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        self.file(path)?.read_range(range)
    }

    /// The bytes of each range, in the order given.
    pub fn read_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.file(path)?.read_ranges(ranges)
    }

    /// The file's size and time; none when there is no such file, also when it is a directory.
    pub fn head(&self, path: &str) -> Result<Option<Entry>> {
        self.count(RequestKind::Head, 0);
        match &self.0 {
            Back::Local(base) => local::list::head(&base.locate(path)?, path),
            Back::Bucket(remote) => bucket::list::head(remote, path),
            Back::Hdfs(hdfs) => hdfs::list::head(hdfs, path),
        }
    }

    /// All files below `prefix` at any depth, sorted by path. A missing prefix is an empty list.
    ///
    /// Files that appear or disappear in between may be in the list or not; all others are.
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        path::check_prefix(prefix)?;
        self.count(RequestKind::List, 0);
        match &self.0 {
            Back::Local(base) => local::list::recursive(base.root(), prefix),
            Back::Bucket(remote) => bucket::list::recursive(remote, prefix),
            Back::Hdfs(hdfs) => hdfs::list::recursive(hdfs, prefix),
        }
    }

    /// The directories and files directly in `prefix`. A missing prefix is empty.
    pub fn list_dir(&self, prefix: &str) -> Result<Listing> {
        path::check_prefix(prefix)?;
        self.count(RequestKind::List, 0);
        match &self.0 {
            Back::Local(base) => local::list::one_level(base.root(), prefix),
            Back::Bucket(remote) => bucket::list::one_level(remote, prefix),
            Back::Hdfs(hdfs) => hdfs::list::one_level(hdfs, prefix),
        }
    }

    /// Writes or replaces the file: readers see the old content or the new, and the new survives a
    /// crash of the machine once this returns. Parent directories are made.
    ///
    /// Not for Hudi's log files, nor is [`Store::put_if_absent`]: Java's pattern for them has no
    /// end anchor, so it takes a staged `<log file>.<pid>-<n>.tmp` for the log file. Use
    /// [`Store::create`].
    pub fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.count(RequestKind::Write, bytes.len());
        match &self.0 {
            Back::Local(base) => local::put::replace(&base.locate_own(path)?, &bytes),
            Back::Bucket(remote) => bucket::put::replace(remote, path, bytes),
            Back::Hdfs(hdfs) => hdfs::put::replace(hdfs, path, &bytes),
        }
    }

    /// Writes the file if it does not exist, else returns false; of several writers exactly one gets
    /// true. The file appears at once with all its bytes. Durable as in [`Store::put`].
    ///
    /// After an error the file may be there or not: the caller reads it to know.
    pub fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool> {
        self.count(RequestKind::Write, bytes.len());
        match &self.0 {
            Back::Local(base) => local::put::if_absent(&base.locate_own(path)?, &bytes),
            Back::Bucket(remote) => bucket::put::if_absent(remote, path, bytes),
            Back::Hdfs(hdfs) => hdfs::put::if_absent(hdfs, path, &bytes),
        }
    }

    /// Has the content of the file count as changed at another time, in milliseconds since the epoch;
    /// false where the storage alone says when it was, as in buckets.
    pub fn set_modified(&self, path: &str, modified_ms: u64) -> Result<bool> {
        match &self.0 {
            Back::Local(base) => local::put::set_modified(&base.locate_own(path)?, modified_ms)?,
            Back::Bucket(_) => return Ok(false),
            Back::Hdfs(hdfs) => hdfs::put::set_modified(hdfs, path, modified_ms)?,
        }
        Ok(true)
    }

    /// The whole file and its version, which [`Store::replace_version`] compares; none when there is
    /// no file.
    pub fn read_version(&self, path: &str) -> Result<Option<(Bytes, String)>> {
        self.count(RequestKind::Read, 0);
        let found = match &self.0 {
            Back::Local(base) => local::versioned::read(&base.locate(path)?),
            Back::Bucket(remote) => return bucket::versioned::read(remote, path),
            Back::Hdfs(hdfs) => hdfs::versioned::read(hdfs, path),
        }?;
        if let Some((bytes, _)) = &found {
            RequestKind::Read.received(bytes.len() as u64);
        }
        Ok(found)
    }

    /// Writes the file if its version is `expected` still, none for no file. Gives the new version,
    /// or none where another writer was first; of several writers exactly one is.
    ///
    /// Each content must be new, such as by a random part. On local storage a crash of the machine
    /// may restore the old content or leave the file empty: a lock's holder has died with it.
    /// [`StoreError::Unsupported`] where the storage has no conditional writes or locks of files.
    pub fn replace_version(
        &self,
        path: &str,
        bytes: Bytes,
        expected: Option<&str>,
        durable: bool,
    ) -> Result<Option<String>> {
        self.count(RequestKind::Write, bytes.len());
        match &self.0 {
            Back::Local(base) => {
                local::versioned::replace(&base.locate_own(path)?, &bytes, expected, durable)
            }
            Back::Bucket(remote) => bucket::versioned::replace(remote, path, bytes, expected),
            Back::Hdfs(hdfs) => hdfs::versioned::replace(hdfs, path, &bytes, expected),
        }
    }

    /// Deletes the file; false when it was not there.
    pub fn delete(&self, path: &str) -> Result<bool> {
        self.count(RequestKind::Delete, 0);
        match &self.0 {
            Back::Local(base) => local::delete::file(base, path),
            Back::Bucket(remote) => bucket::put::delete(remote, path),
            Back::Hdfs(hdfs) => hdfs::put::delete(hdfs, path),
        }
    }

    /// Deletes files, in no order. Those that are gone already are fine.
    pub fn delete_all(&self, paths: &[String]) -> Result<()> {
        match &self.0 {
            Back::Bucket(remote) => bucket::delete_dir::files(remote, paths),
            Back::Local(_) | Back::Hdfs(_) => paths
                .iter()
                .try_for_each(|path| self.delete(path).map(drop)),
        }
    }

    /// Deletes the directory with all that is in it. A missing one is fine; the base is refused.
    pub fn delete_dir(&self, path: &str) -> Result<()> {
        self.count(RequestKind::Delete, 0);
        match &self.0 {
            Back::Local(base) => local::delete::dir(base, path),
            Back::Bucket(remote) => bucket::delete_dir::delete_dir(remote, path),
            Back::Hdfs(hdfs) => hdfs::put::delete_dir(hdfs, path),
        }
    }

    /// Opens the file for positioned reads.
    pub fn file(&self, path: &str) -> Result<StoreFile> {
        Ok(match &self.0 {
            Back::Local(base) => StoreFile::local(LocalFile::open(base, path)?),
            Back::Bucket(remote) => StoreFile::bucket(RemoteFile::open(remote, path)?),
            Back::Hdfs(hdfs) => StoreFile::hdfs(HdfsFile::open(hdfs, path)?),
        })
    }

    /// Opens files for positioned reads, in their order: several at a time where each waits for a
    /// server. Of very many local files most do not stay open.
    pub fn files(&self, paths: &[String]) -> Result<Vec<StoreFile>> {
        let open = |paths: &[String]| paths.iter().map(|path| self.file(path)).collect();
        if let Back::Local(base) = &self.0 {
            let (few, more) = paths.split_at(paths.len().min(MAX_KEPT_OPEN));
            let reopened = |path: &String| LocalFile::reopened(base, path).map(StoreFile::local);
            let few = few.iter().map(|path| self.file(path));
            return few.chain(more.iter().map(reopened)).collect();
        }
        if paths.len() < 2 {
            return open(paths);
        }
        let parts = paths.chunks(paths.len().div_ceil(AT_ONCE));
        let opened: Vec<Result<Vec<StoreFile>>> = thread::scope(|scope| {
            let threads: Vec<_> = parts
                .map(|part| {
                    let own = thread::Builder::new().spawn_scoped(scope, move || open(part));
                    (part, own)
                })
                .collect();
            let ends = threads.into_iter().map(|(part, own)| match own {
                Ok(own) => own.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system gives no more threads.
                Err(_) => open(part),
            });
            ends.collect()
        });
        let opened = opened.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(opened.into_iter().flatten().collect())
    }

    /// The file for positioned reads, with the size that a listing or a commit recorded. Storage is not
    /// asked before the first read, which is where a missing file or a malformed path shows.
    pub fn file_with_size(&self, path: &str, size: u64) -> StoreFile {
        match &self.0 {
            Back::Local(base) => StoreFile::local(LocalFile::unopened(base, path, size)),
            Back::Bucket(remote) => StoreFile::bucket(RemoteFile::unopened(remote, path, size)),
            Back::Hdfs(hdfs) => StoreFile::hdfs(HdfsFile::unopened(hdfs, path, size)),
        }
    }

    /// Makes the names of the files in these directories durable. Only a local file system can lose
    /// the name of a complete file, in a crash of the machine.
    pub fn sync_directories(&self, paths: &[String]) -> Result<()> {
        let Back::Local(base) = &self.0 else {
            return Ok(());
        };
        paths.iter().try_for_each(|path| {
            path::check_prefix(path)?;
            local::dirs::sync_if_exists(&base.root().join(path))
        })
    }

    /// Begins a new file; [`StoreError::AlreadyExists`] when there is one, which in a bucket shows
    /// when it is written or finished. Parent directories are made.
    pub fn create(&self, path: &str) -> Result<StoreWriter> {
        Ok(match &self.0 {
            Back::Local(base) => StoreWriter::local(LocalWriter::create(base.locate_own(path)?)?),
            Back::Bucket(remote) => StoreWriter::bucket(Upload::create(remote, path)?),
            Back::Hdfs(hdfs) => StoreWriter::hdfs(HdfsUpload::create(hdfs, path)?),
        })
    }
}
