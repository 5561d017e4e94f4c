//! Putting, and deleting one file. An object appears with all its bytes or not at all.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, Attributes, Error, GetOptions, ObjectStoreExt, PutMode, PutOptions,
};

use super::client::Client;
use super::read::TAIL;
use super::{Remote, list};
use crate::{Result, StoreError};

/// Tries while the server says that something is under way at the key and nothing is there.
const TRIES: u32 = 6;

/// Writes the file, whether or not it is there.
pub(crate) fn replace(remote: &Remote, path: &str, bytes: Bytes) -> Result<()> {
    let key = remote.file_key(path)?;
    remote.run(path, async |client| {
        let put = client.put(&key, bytes.into()).await;
        client.ends.forget(&key);
        put
    })?;
    Ok(())
}

/// Writes the file if it is not there; false if it is. Of several writers exactly one gets true.
pub(crate) fn if_absent(remote: &Remote, path: &str, bytes: Bytes) -> Result<bool> {
    let key = remote.file_key(path)?;
    remote.run(path, async |client| {
        Ok(create(&client, &key, bytes).await?.is_made())
    })
}

/// As [`if_absent`]; the end of the file is kept for the next reader.
pub(super) fn if_absent_to_be_read(remote: &Remote, path: &str, bytes: &Bytes) -> Result<bool> {
    let key = remote.file_key(path)?;
    remote.run(path, async |client| {
        let made = create(&client, &key, bytes.clone()).await?;
        if let Created::Now { e_tag } = &made {
            let start = bytes.len().saturating_sub(TAIL as usize);
            // A copy: a part of the bytes would keep all of them.
            let end = Bytes::copy_from_slice(&bytes.slice(start..));
            let size = bytes.len() as u64;
            client.ends.keep(&key, end, size, e_tag.clone());
        }
        Ok(made.is_made())
    })
}

/// What came of a conditional put.
enum Created {
    Now {
        e_tag: Option<String>,
    },
    /// By a request whose answer was lost.
    Before,
    ByAnother,
}

impl Created {
    fn is_made(&self) -> bool {
        !matches!(self, Self::ByAnother)
    }
}

/// A request whose answer was lost is sent again by the client, and the second answer is then
/// "exists" though the first made the object: the token in it knows.
async fn create(client: &Client, key: &Path, bytes: Bytes) -> object_store::Result<Created> {
    let token = token();
    let mut tries = 0;
    loop {
        let cause = match conditional(client, key, &bytes, &token).await {
            Ok(e_tag) => {
                check_is_conditional(client, key, &bytes, &token).await?;
                return Ok(Created::Now { e_tag });
            }
            Err(cause) => cause,
        };
        tries += 1;
        match (&cause, owner(client, key).await) {
            (_, Ok(Some(found))) if found == token => return Ok(Created::Before),
            (Error::AlreadyExists { .. }, Ok(Some(_))) => return Ok(Created::ByAnother),
            // S3 answers so, too, while another request for the key is under way.
            (Error::AlreadyExists { .. }, Ok(None)) if tries < TRIES => {
                tokio::time::sleep(Duration::from_millis(50 << tries)).await;
            }
            (Error::AlreadyExists { .. }, Err(unknown)) => return Err(unknown),
            _ => return Err(cause),
        }
    }
}

async fn conditional(
    client: &Client,
    key: &Path,
    bytes: &Bytes,
    token: &str,
) -> object_store::Result<Option<String>> {
    let mut attributes = Attributes::new();
    let value = AttributeValue::from(token.to_owned());
    attributes.insert(Attribute::Metadata(client.kind.token.into()), value);
    let options = PutOptions {
        mode: PutMode::Create,
        attributes,
        ..PutOptions::default()
    };
    let done = client.put_opts(key, bytes.clone().into(), options).await?;
    Ok(done.e_tag)
}

/// Repeats a client's first conditional put. A server that takes it again overlooks conditions, and
/// two writers could take one instant there.
async fn check_is_conditional(
    client: &Client,
    key: &Path,
    bytes: &Bytes,
    token: &str,
) -> object_store::Result<()> {
    if client.is_conditional.load(Ordering::Relaxed) {
        return Ok(());
    }
    match conditional(client, key, bytes, token).await {
        Err(Error::AlreadyExists { .. }) => {
            client.is_conditional.store(true, Ordering::Relaxed);
            Ok(())
        }
        Err(cause) => Err(cause),
        Ok(_) => Err(Error::NotSupported {
            source: format!(
                "the server overlooks {}: it has no conditional puts",
                client.kind.if_absent
            )
            .into(),
        }),
    }
}

/// The token of the object, empty where it has none; none where there is no object.
async fn owner(client: &Client, key: &Path) -> object_store::Result<Option<String>> {
    let options = GetOptions {
        head: true,
        ..GetOptions::default()
    };
    match client.get_opts(key, options).await {
        Ok(found) => {
            let token = found
                .attributes
                .get(&Attribute::Metadata(client.kind.token.into()));
            Ok(Some(
                token.map(|one| one.as_ref().to_owned()).unwrap_or_default(),
            ))
        }
        Err(Error::NotFound { .. }) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// 128 bits that no other call has: each state is made with fresh random keys.
fn token() -> String {
    let part = || RandomState::new().build_hasher().finish();
    format!(
        "{:016x}{:016x}",
        part(),
        part() ^ u64::from(std::process::id())
    )
}

/// Deletes the file; false when it was not there, which a bucket tells only when asked before.
pub(crate) fn delete(remote: &Remote, path: &str) -> Result<bool> {
    let key = remote.file_key(path)?;
    if list::head(remote, path)?.is_none() {
        return Ok(false);
    }
    let deleted = remote.run(path, async |client| {
        let deleted = client.delete(&key).await;
        client.ends.forget(&key);
        deleted
    });
    match deleted {
        Err(StoreError::NotFound { .. }) => Ok(false),
        other => other.map(|()| true),
    }
}
