//! A table's base in a bucket: names to keys, and calls to the client.

use std::fmt;
use std::future::Future;
use std::process;
use std::sync::Arc;

use object_store::path::Path;

use super::client::{self, Client};
use super::kind::Kind;
use super::{azure, error, gcs, s3};
use crate::{Result, StoreError, path, runtime, uri};

/// The kinds of buckets that there are. One more is a file like `s3`, and its name here.
static KINDS: [Kind; 3] = [s3::KIND, gcs::KIND, azure::KIND];

/// The keys below one prefix of a bucket.
pub(crate) struct Remote {
    kind: &'static Kind,
    uri: String,
    /// Without slashes at its ends; empty for the whole bucket.
    prefix: String,
    /// Taken out only to be forgotten, in a process that did not make it.
    client: Option<Arc<Client>>,
    owner: u32,
}

impl Remote {
    /// Opens `scheme://bucket/prefix`; none when the scheme is not that of a bucket. No request is
    /// made.
    pub(crate) fn open(uri: &str, options: &[(String, String)]) -> Result<Option<Self>> {
        let Some((named, rest)) = uri::split_scheme(uri) else {
            return Ok(None);
        };
        let Some((kind, scheme)) = of_scheme(named) else {
            return Ok(None);
        };
        let whole = format!("{scheme}:{rest}");
        let named = rest.strip_prefix("//").unwrap_or_default();
        let (bucket, prefix) = named.split_once('/').unwrap_or((named, ""));
        if bucket.is_empty() {
            return Err(StoreError::Config {
                what: format!("{whole} names no bucket: {scheme}://bucket/table"),
            });
        }
        if bucket.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(StoreError::Config {
                what: format!("{bucket:?} is no name of a bucket: it has a blank or a line break"),
            });
        }
        let parts: Vec<&str> = prefix.split('/').filter(|part| !part.is_empty()).collect();
        let prefix = parts.join("/");
        path::check_prefix(&prefix).map_err(|error| StoreError::Config {
            what: error.to_string(),
        })?;
        let base = path::join(bucket, &prefix);
        Ok(Some(Self {
            kind,
            uri: format!("{scheme}://{}", base.trim_end_matches('/')),
            prefix,
            client: Some(client::client_of(kind, bucket, options)?),
            owner: process::id(),
        }))
    }

    /// The keys below a folder of it, by the same client.
    pub(crate) fn below(&self, folder: &str) -> Result<Self> {
        path::check_file(folder)?;
        Ok(Self {
            kind: self.kind,
            uri: path::join(&self.uri, folder),
            prefix: path::join(&self.prefix, folder),
            client: Some(self.client(folder)?),
            owner: self.owner,
        })
    }

    pub(super) fn kind(&self) -> &'static Kind {
        self.kind
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// What an error calls the file.
    pub(crate) fn url(&self, path: &str) -> String {
        path::join(&self.uri, path)
    }

    /// The key of a file, or of a directory without its slash; the base of a bare bucket is empty.
    pub(super) fn key(&self, path: &str) -> Result<Path> {
        path::check_prefix(path)?;
        if let Some(mistaken) = self.kind.mistaken.filter(|one| path.contains(*one)) {
            return Err(StoreError::Unsupported {
                what: format!(
                    "{}: a name with {mistaken} in {}",
                    self.url(path),
                    self.kind.name
                ),
            });
        }
        let key = match (self.prefix.as_str(), path) {
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}/{path}"),
        };
        Path::parse(&key).map_err(|cause| {
            error::store_error(
                &self.url(path),
                &object_store::Error::InvalidPath { source: cause },
            )
        })
    }

    /// The key of a file; the base itself is not a file.
    pub(super) fn file_key(&self, path: &str) -> Result<Path> {
        path::check_file(path)?;
        self.key(path)
    }

    /// A key as a path relative to the base; none for the base itself.
    pub(super) fn relative<'k>(&self, key: &'k Path) -> Option<&'k str> {
        let key = key.as_ref();
        if self.prefix.is_empty() {
            return (!key.is_empty()).then_some(key);
        }
        key.strip_prefix(&self.prefix)?.strip_prefix('/')
    }

    /// Runs what `call` makes of the client to its end.
    pub(super) fn run<T, F>(&self, path: &str, call: impl FnOnce(Arc<Client>) -> F) -> Result<T>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        self.try_run(path, call)?
            .map_err(|cause| error::store_error(&self.url(path), &cause))
    }

    /// As [`Remote::run`], with the storage's own error inside.
    pub(super) fn try_run<T, F>(
        &self,
        path: &str,
        call: impl FnOnce(Arc<Client>) -> F,
    ) -> Result<object_store::Result<T>>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let client = self.client(path)?;
        runtime::block_on(call(client)).map_err(|cause| error::no_runtime(&self.url(path), cause))
    }

    pub(super) fn client(&self, path: &str) -> Result<Arc<Client>> {
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

impl Drop for Remote {
    fn drop(&mut self) {
        if !self.is_own() {
            std::mem::forget(self.client.take());
        }
    }
}

/// Without the client: its credentials must not be printed.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.uri).finish()
    }
}

/// The kind of bucket that a scheme names, and the scheme in lower case.
fn of_scheme(scheme: &str) -> Option<(&'static Kind, &'static str)> {
    KINDS.iter().find_map(|kind| {
        let mut schemes = kind.schemes.iter();
        let known = schemes.find(|known| scheme.eq_ignore_ascii_case(known))?;
        Some((kind, *known))
    })
}
