//! A table's base on HDFS: names to absolute paths, and calls to the client.

use std::fmt;
use std::future::Future;
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hdfs_native::HdfsError;

use super::client::{self, Client};
use super::error;
use super::modes::Modes;
use super::retry::{Call, may_pass};
use crate::{Result, StoreError, path, runtime, uri};

const SCHEME: &str = "hdfs";

/// How long a name node's answer is waited for. One that is late may have done what was asked.
const ANSWER: Duration = Duration::from_secs(60);

/// What is below one folder.
pub(crate) struct Hdfs {
    uri: String,
    /// The folder, without a slash at its end: empty for the root.
    root: String,
    /// Taken out only to be forgotten, in a process that did not make it.
    client: Option<Arc<Client>>,
    owner: u32,
}

impl Hdfs {
    /// Opens `hdfs://host:port/path`, or with a name service in place of the host, or with neither
    /// where `fs.defaultFS` tells; none when the scheme is another. No request is made.
    pub(crate) fn open(uri: &str, options: &[(String, String)]) -> Result<Option<Self>> {
        let Some((scheme, rest)) = uri::split_scheme(uri) else {
            return Ok(None);
        };
        if !scheme.eq_ignore_ascii_case(SCHEME) {
            return Ok(None);
        }
        let named = rest.strip_prefix("//");
        let (host, folder) = match named {
            Some(named) => named.split_once('/').unwrap_or((named, "")),
            None => ("", rest),
        };
        let wrong = |what: String| StoreError::Config { what };
        if host.contains('@') {
            return Err(wrong(format!(
                "{uri} names a user: hadoop_user_name is the option for that"
            )));
        }
        let parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        let folder = parts.join("/");
        path::check_prefix(&folder).map_err(|error| wrong(error.to_string()))?;
        let place = format!("{SCHEME}://{host}");
        let root = path::join("", &folder);
        Ok(Some(Self {
            uri: format!("{place}/{root}").trim_end_matches('/').to_owned(),
            root: if root.is_empty() {
                root
            } else {
                format!("/{root}")
            },
            client: Some(client::client_of(&place, options)?),
            owner: process::id(),
        }))
    }

    /// A folder of it, by the same client.
    pub(crate) fn below(&self, folder: &str) -> Result<Self> {
        path::check_file(folder)?;
        Ok(Self {
            uri: path::join(&self.uri, folder),
            root: format!("{}/{folder}", self.root),
            client: Some(self.client(folder)?),
            owner: self.owner,
        })
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// What an error calls the file.
    pub(crate) fn url(&self, path: &str) -> String {
        path::join(&self.uri, path)
    }

    /// The absolute path of a folder, or of a file.
    pub(super) fn locate(&self, path: &str) -> Result<String> {
        path::check_prefix(path)?;
        if path.contains(':') {
            return Err(StoreError::Unsupported {
                what: format!("{}: a name with : in HDFS", self.url(path)),
            });
        }
        Ok(match (self.root.as_str(), path) {
            ("", "") => "/".to_owned(),
            (root, "") => root.to_owned(),
            (root, path) => format!("{root}/{path}"),
        })
    }

    /// The absolute path of a file; the base itself is not a file.
    pub(super) fn locate_file(&self, path: &str) -> Result<String> {
        path::check_file(path)?;
        self.locate(path)
    }

    /// Makes the call and gives what came of it, with the client's own error inside.
    pub(super) fn try_run<T>(
        &self,
        path: &str,
        kind: Call,
        call: impl AsyncFn(&hdfs_native::Client) -> hdfs_native::Result<T>,
    ) -> Result<hdfs_native::Result<T>> {
        let client = self.client(path)?;
        self.block_on(path, repeated(&client, kind, call))
    }

    /// As [`Hdfs::try_run`], with errors of the store alone.
    pub(super) fn run<T>(
        &self,
        path: &str,
        kind: Call,
        call: impl AsyncFn(&hdfs_native::Client) -> hdfs_native::Result<T>,
    ) -> Result<T> {
        self.try_run(path, kind, call)?
            .map_err(|cause| self.error(path, cause))
    }

    /// Waits on this thread.
    pub(super) fn block_on<F: Future>(&self, path: &str, future: F) -> Result<F::Output> {
        runtime::block_on(future).map_err(|source| StoreError::Io {
            path: self.url(path),
            source,
        })
    }

    pub(super) fn error(&self, path: &str, cause: HdfsError) -> StoreError {
        let doubt = self.client.as_ref().map(|client| client.doubt.as_str());
        error::store_error(&self.url(path), cause, doubt.unwrap_or_default())
    }

    pub(super) fn modes(&self, path: &str) -> Result<Modes> {
        Ok(self.client(path)?.modes)
    }

    fn client(&self, path: &str) -> Result<Arc<Client>> {
        match &self.client {
            Some(client) if self.is_own() => Ok(Arc::clone(client)),
            _ => Err(StoreError::Unsupported {
                what: format!("{}: a store that another process opened", self.url(path)),
            }),
        }
    }

    /// Whether this process opened it. A forked child must not use connections of its parent.
    pub(super) fn is_own(&self) -> bool {
        self.owner == process::id()
    }
}

/// Makes the call until it is answered for good, or the time is over.
async fn repeated<T>(
    client: &Client,
    kind: Call,
    call: impl AsyncFn(&hdfs_native::Client) -> hdfs_native::Result<T>,
) -> hdfs_native::Result<T> {
    let mut waits = client
        .retry
        .waits(client.has_answered.load(Ordering::Relaxed));
    loop {
        let answer = tokio::time::timeout(ANSWER, call(&client.calls)).await;
        let answer = answer.unwrap_or_else(|_| {
            let text = format!("no answer in {} seconds", ANSWER.as_secs());
            let late = std::io::Error::new(std::io::ErrorKind::TimedOut, text);
            Err(HdfsError::IOError(late))
        });
        match answer {
            Err(cause) if may_pass(&cause, kind) => match waits.next() {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(cause),
            },
            answer => {
                if !matches!(answer, Err(HdfsError::IOError(_))) {
                    client.has_answered.store(true, Ordering::Relaxed);
                }
                return answer;
            }
        }
    }
}

impl Drop for Hdfs {
    fn drop(&mut self) {
        if !self.is_own() {
            std::mem::forget(self.client.take());
        }
    }
}

impl fmt::Debug for Hdfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hdfs").field(&self.uri).finish()
    }
}
