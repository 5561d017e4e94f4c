//! Clients of buckets, shared by all stores of a process that ask for the same, and what all kinds of
//! them do alike.

use std::env;
use std::ops::Deref;
use std::process;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::{BackoffConfig, ObjectStore, RetryConfig};

use super::ends::Ends;
use super::error;
use super::kind::{Kind, Unbuilt};
use crate::{Result, StoreError};

/// Clients kept for the next store that asks: temporary credentials come and go.
const KEPT: usize = 8;

/// A bucket's client.
pub(super) struct Client {
    store: Box<dyn ObjectStore>,
    pub(super) kind: &'static Kind,
    /// Whether the server has been seen to refuse a conditional put.
    pub(super) is_conditional: AtomicBool,
    /// The same of a put that replaces one version.
    pub(super) is_swapping: AtomicBool,
    pub(super) ends: Ends,
}

impl Deref for Client {
    type Target = dyn ObjectStore;

    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

/// What a client depends on.
#[derive(PartialEq, Eq, Clone)]
struct Key {
    process: u32,
    kind: &'static str,
    bucket: String,
    options: Vec<(String, String)>,
    environment: Vec<(String, String)>,
}

static CLIENTS: Mutex<Vec<(Key, Arc<Client>)>> = Mutex::new(Vec::new());

/// The client of a bucket. Options beat the environment. No request is made.
pub(super) fn client_of(
    kind: &'static Kind,
    bucket: &str,
    options: &[(String, String)],
) -> Result<Arc<Client>> {
    // Taken once a process; the first caller chose the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let key = Key {
        process: process::id(),
        kind: kind.name,
        bucket: bucket.to_owned(),
        options: options.to_vec(),
        environment: environment(kind.environment),
    };
    if let Some(known) = kept(&key) {
        return Ok(known);
    }
    let client = Arc::new(Client {
        store: build(kind, bucket, options)?,
        kind,
        is_conditional: AtomicBool::new(false),
        is_swapping: AtomicBool::new(false),
        ends: Ends::default(),
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

fn environment(prefixes: &[&str]) -> Vec<(String, String)> {
    let mut all: Vec<_> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    all.sort_unstable();
    all
}

fn build(kind: &Kind, bucket: &str, options: &[(String, String)]) -> Result<Box<dyn ObjectStore>> {
    let is_retry = |name: &str| RETRY_OPTIONS.contains(&name);
    let own: Vec<_> = options
        .iter()
        .filter(|(name, _)| !is_retry(name))
        .cloned()
        .collect();
    match (kind.build)(bucket, &own, retry(options)?) {
        Ok(store) => Ok(store),
        Err(Unbuilt::Option(name)) => Err(StoreError::Config {
            what: format!("there is no storage option '{name}'"),
        }),
        Err(Unbuilt::Place(what)) => Err(StoreError::Config { what }),
        Err(Unbuilt::Client(cause)) => Err(StoreError::Config {
            what: format!(
                "bucket {bucket}: {}",
                without_secrets(error::chain_text(&cause), options)
            ),
        }),
    }
}

const RETRY_OPTIONS: [&str; 2] = ["max_retries", "retry_timeout"];

/// The shortest wait before a request is sent again, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(15));

/// A wait is drawn between the shortest and this multiple of the one before. It has to be above e,
/// or waits do not grow: the mean of the factor's logarithm is that of the multiple less one.
const GROWTH: f64 = 4.0;

/// How failing requests are sent again. Unless a number is given, it is the time that ends it: for
/// as many as fit into the time, were every wait the shortest.
fn retry(options: &[(String, String)]) -> Result<RetryConfig> {
    let given = |wanted: &str| options.iter().find(|(name, _)| name == wanted);
    let retry_timeout = match given("retry_timeout") {
        Some((name, value)) => Duration::from_secs(number(name, value)?),
        None => RetryConfig::default().retry_timeout,
    };
    let max_retries = match given("max_retries") {
        Some((name, value)) => number(name, value)?,
        None => (retry_timeout.as_millis() / WAITS.0.as_millis()) as usize,
    };
    Ok(RetryConfig {
        backoff: BackoffConfig {
            init_backoff: WAITS.0,
            max_backoff: WAITS.1,
            base: GROWTH,
        },
        max_retries,
        retry_timeout,
    })
}

/// A value that cannot be parsed is repeated in the parser's error; some of them are secrets.
fn without_secrets(mut text: String, options: &[(String, String)]) -> String {
    let is_secret = |name: &str| {
        ["secret", "token", "key", "proxy"]
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

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| StoreError::Config {
        what: format!("storage option '{name}' needs a whole number, not '{value}'"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry_of(options: &[(&str, &str)]) -> RetryConfig {
        let options: Vec<_> = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        retry(&options).unwrap()
    }

    #[test]
    fn without_a_number_it_is_the_time_that_ends_retries() {
        for (options, seconds) in [(vec![], 180), (vec![("retry_timeout", "600")], 600)] {
            let retry = retry_of(&options);
            assert_eq!(retry.retry_timeout, Duration::from_secs(seconds));
            let shortest = retry.backoff.init_backoff * retry.max_retries as u32;
            assert!(shortest >= retry.retry_timeout, "{retry:?}");
            assert!(retry.backoff.base > std::f64::consts::E);
        }
    }

    #[test]
    fn a_number_of_retries_is_kept() {
        assert_eq!(retry_of(&[("max_retries", "0")]).max_retries, 0);
        let both = retry_of(&[("max_retries", "3"), ("retry_timeout", "9")]);
        assert_eq!((both.max_retries, both.retry_timeout.as_secs()), (3, 9));
    }
}
