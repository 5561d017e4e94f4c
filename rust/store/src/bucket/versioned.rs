//! Compare and swap of one small object, by its entity tag or generation: what locks are made of.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt, PutMode, PutOptions};

use super::Remote;
use super::client::Client;
use crate::Result;

/// The object and its version; None if it does not exist.
pub(crate) fn read(remote: &Remote, path: &str) -> Result<Option<(Bytes, String)>> {
    let key = remote.file_key(path)?;
    remote.run(path, async |client| current(&client, &key).await)
}

/// Writes the object if its version is still `expected`, none for no object: the new version, or
/// none where another writer was first.
pub(crate) fn replace(
    remote: &Remote,
    path: &str,
    bytes: Bytes,
    expected: Option<&str>,
) -> Result<Option<String>> {
    let key = remote.file_key(path)?;
    remote.run(path, async |client| {
        swap(&client, &key, bytes, expected).await
    })
}

async fn swap(
    client: &Client,
    key: &Path,
    bytes: Bytes,
    expected: Option<&str>,
) -> object_store::Result<Option<String>> {
    match put(client, key, &bytes, expected).await {
        Ok(version) => {
            check_is_conditional(client, key, &bytes, expected).await?;
            Ok(Some(version))
        }
        Err(Error::Precondition { .. } | Error::AlreadyExists { .. } | Error::NotFound { .. }) => {
            // A request whose answer was lost is sent again, and then finds what it wrote itself.
            let found = current(client, key).await?;
            Ok(found.and_then(|(content, version)| (content == bytes).then_some(version)))
        }
        Err(cause) => Err(cause),
    }
}

async fn put(
    client: &Client,
    key: &Path,
    bytes: &Bytes,
    expected: Option<&str>,
) -> object_store::Result<String> {
    let mode = match expected {
        None => PutMode::Create,
        Some(version) => PutMode::Update(client.kind.version.asked(version)),
    };
    let options = PutOptions {
        mode,
        ..PutOptions::default()
    };
    let done = client.put_opts(key, bytes.clone().into(), options).await?;
    told(client, done.e_tag, done.version)
}

async fn current(client: &Client, key: &Path) -> object_store::Result<Option<(Bytes, String)>> {
    match client.get(key).await {
        Ok(found) => {
            let meta = &found.meta;
            let version = told(client, meta.e_tag.clone(), meta.version.clone())?;
            Ok(Some((found.bytes().await?, version)))
        }
        // Of the object: a write reports a missing bucket differently.
        Err(Error::NotFound { .. }) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Repeats a client's first swap with the version that it replaced. A server that takes it again
/// overlooks conditions, and two writers could hold one lock there.
async fn check_is_conditional(
    client: &Client,
    key: &Path,
    bytes: &Bytes,
    replaced: Option<&str>,
) -> object_store::Result<()> {
    if client.is_swapping.load(Ordering::Relaxed) {
        return Ok(());
    }
    // A version that no object has, where none was replaced.
    let stale = replaced.unwrap_or(client.kind.version.of_none());
    match put(client, key, bytes, Some(stale)).await {
        Err(Error::Precondition { .. } | Error::AlreadyExists { .. } | Error::NotFound { .. }) => {
            client.is_swapping.store(true, Ordering::Relaxed);
            Ok(())
        }
        Err(cause) => Err(cause),
        Ok(_) => Err(Error::NotSupported {
            source: format!(
                "the server overlooks {}: it has no conditional puts",
                client.kind.version.header()
            )
            .into(),
        }),
    }
}

fn told(
    client: &Client,
    e_tag: Option<String>,
    version: Option<String>,
) -> object_store::Result<String> {
    let told = client.kind.version.told(e_tag, version);
    told.ok_or_else(|| Error::NotSupported {
        source: "the server tells no versions of objects".into(),
    })
}
