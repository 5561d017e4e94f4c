//! Clients of buckets: from options and the environment, and shared by all stores of a process that
//! ask for the same.

use std::env;
use std::ops::Deref;
use std::process;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};

use super::error;
use crate::{Result, StoreError};

/// Clients kept for the next store that asks: temporary credentials come and go.
const KEPT: usize = 8;

/// A bucket's client.
pub(super) struct Client {
    s3: AmazonS3,
    /// Whether the server has been seen to refuse a conditional put.
    pub(super) is_conditional: AtomicBool,
}

impl Deref for Client {
    type Target = AmazonS3;

    fn deref(&self) -> &AmazonS3 {
        &self.s3
    }
}

/// What a client depends on.
#[derive(PartialEq, Eq, Clone)]
struct Key {
    process: u32,
    bucket: String,
    options: Vec<(String, String)>,
    environment: Vec<(String, String)>,
}

static CLIENTS: Mutex<Vec<(Key, Arc<Client>)>> = Mutex::new(Vec::new());

/// The client of a bucket. Options beat the environment's `AWS_…`. No request is made.
pub(super) fn client_of(bucket: &str, options: &[(String, String)]) -> Result<Arc<Client>> {
    let key = Key {
        process: process::id(),
        bucket: bucket.to_owned(),
        options: options.to_vec(),
        environment: environment(),
    };
    if let Some(known) = kept(&key) {
        return Ok(known);
    }
    let client = Arc::new(Client {
        s3: build(bucket, options)?,
        is_conditional: AtomicBool::new(false),
    });
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    // A client that was made before a fork stays untouched for ever: its connections are the parent's.
    let (own, inherited): (Vec<_>, Vec<_>) = std::mem::take(&mut *clients)
        .into_iter()
        .partition(|(known, _)| known.process == key.process);
    std::mem::forget(inherited);
    *clients = own;
    if clients.len() >= KEPT {
        clients.remove(0);
    }
    clients.push((key, Arc::clone(&client)));
    Ok(client)
}

fn kept(key: &Key) -> Option<Arc<Client>> {
    let clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = clients.iter().find(|(known, _)| known == key);
    found.map(|(_, client)| Arc::clone(client))
}

fn environment() -> Vec<(String, String)> {
    let mut all: Vec<_> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("AWS_"))
        .collect();
    all.sort_unstable();
    all
}

fn build(bucket: &str, options: &[(String, String)]) -> Result<AmazonS3> {
    // Taken once a process; whoever was first chose the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::from_env();
    let mut retry = RetryConfig::default();
    for (name, value) in options {
        match name.as_str() {
            "max_retries" => retry.max_retries = number(name, value)?,
            "retry_timeout" => retry.retry_timeout = Duration::from_secs(number(name, value)?),
            _ => builder = builder.with_config(config_key(name)?, value),
        }
    }
    builder
        .with_bucket_name(bucket)
        .with_retry(retry)
        .build()
        .map_err(|cause| StoreError::Config {
            what: format!(
                "bucket {bucket}: {}",
                without_secrets(error::chain_text(&cause), options)
            ),
        })
}

/// A value that cannot be parsed is repeated by whoever tried; some of them nobody may see.
fn without_secrets(mut text: String, options: &[(String, String)]) -> String {
    let is_secret = |name: &str| {
        ["secret", "token", "key_base64", "proxy"]
            .iter()
            .any(|part| name.contains(part))
    };
    for (_, value) in options.iter().filter(|(name, _)| is_secret(name)) {
        if !value.is_empty() {
            text = text.replace(value, "***");
        }
    }
    text
}

fn config_key(name: &str) -> Result<AmazonS3ConfigKey> {
    name.parse().map_err(|_| StoreError::Config {
        what: format!("there is no storage option '{name}'"),
    })
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| StoreError::Config {
        what: format!("storage option '{name}' needs a whole number, not '{value}'"),
    })
}
