//! Clients of name nodes, shared by all stores of a process that ask for the same.

use std::env;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hdfs_native::{ClientBuilder, HdfsError};

use super::modes::Modes;
use super::retry::Retry;
use crate::{Result, StoreError, runtime};

/// Clients kept for the next store that asks.
const KEPT: usize = 8;

/// Of a name node that a location names without one (`HdfsClientConfigKeys`, Hadoop 3.0.1).
const PORT: u16 = 8020;

/// A client, and what it has seen.
pub(super) struct Client {
    pub(super) calls: hdfs_native::Client,
    pub(super) retry: Retry,
    pub(super) modes: Modes,
    /// Whether the name node has been seen to answer.
    pub(super) has_answered: AtomicBool,
    /// Why the host may be the wrong one, for messages.
    pub(super) doubt: String,
}

/// What a client depends on.
#[derive(PartialEq, Eq, Clone)]
struct Key {
    place: String,
    options: Vec<(String, String)>,
    environment: Vec<(String, String)>,
}

static CLIENTS: Mutex<Vec<(Key, Arc<Client>)>> = Mutex::new(Vec::new());

/// The process that has clients, 0 for none.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The client of `hdfs://place`. Options beat the environment. No request is made.
pub(super) fn client_of(place: &str, options: &[(String, String)]) -> Result<Arc<Client>> {
    check_not_forked(place)?;
    let key = Key {
        place: place.to_owned(),
        options: options.to_vec(),
        environment: environment(),
    };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = clients.iter().find(|(known, _)| *known == key) {
        return Ok(Arc::clone(known));
    }
    let client = Arc::new(build(place, options)?);
    if clients.len() >= KEPT {
        clients.remove(0);
    }
    clients.push((key, Arc::clone(&client)));
    Ok(client)
}

/// `hdfs-native` keeps connections to data nodes for the whole process, and a child has those of its
/// parent: both would read each other's answers.
fn check_not_forked(place: &str) -> Result<()> {
    let own = process::id();
    let first = OWNER.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_ok() || first == Err(own) {
        return Ok(());
    }
    Err(StoreError::Unsupported {
        what: format!(
            "{place}: HDFS in a process that was forked from one that had HDFS open; \
             start a new process, as multiprocessing does with \"spawn\""
        ),
    })
}

fn environment() -> Vec<(String, String)> {
    let mut all: Vec<_> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("HADOOP_"))
        .collect();
    all.sort_unstable();
    all
}

fn build(place: &str, options: &[(String, String)]) -> Result<Client> {
    let (retry, modes) = (Retry::of(options)?, Modes::of(options)?);
    let named = |url: &str| builder(options).map(|builder| builder.with_url(url).build());
    let (built, doubt) = match named(place)? {
        Err(HdfsError::InvalidArgument(what)) if what.contains("No NameNode hosts") => {
            // Neither a name service nor a port: a name node where all have it.
            let doubt = "no hdfs-site.xml of HADOOP_CONF_DIR knows a name service of this name";
            (named(&format!("{place}:{PORT}"))?, doubt.to_owned())
        }
        other => (other, String::new()),
    };
    let calls = built.map_err(|cause| StoreError::Config {
        what: format!("{place}: {cause}"),
    })?;
    Ok(Client {
        calls,
        retry,
        modes,
        has_answered: AtomicBool::new(false),
        doubt,
    })
}

/// Options with a dot are properties of Hadoop's.
fn builder(options: &[(String, String)]) -> Result<ClientBuilder> {
    let handle = runtime::handle().map_err(|source| StoreError::Io {
        path: "hdfs:".to_owned(),
        source,
    })?;
    let mut builder = ClientBuilder::new().with_io_runtime(handle);
    let mut properties = Retry::properties();
    for (name, value) in options {
        match name.as_str() {
            "hadoop_user_name" => builder = builder.with_user(value),
            "hadoop_conf_dir" => builder = builder.with_config_dir(value),
            "max_retries" | "retry_timeout" => {}
            property if property.contains('.') => {
                properties.push((property.to_owned(), value.clone()));
            }
            _ => {
                return Err(StoreError::Config {
                    what: format!("there is no storage option '{name}' of HDFS"),
                });
            }
        }
    }
    Ok(builder.with_config(properties))
}
