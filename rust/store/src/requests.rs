//! How many requests the stores of this process have made, and how many bytes went either way.
//!
//! In a bucket each request counts where it is sent, a repeated one again. On a local file system
//! and on HDFS a call of a store counts, and a range that is read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads a file or a part of it.
    Read,
    /// Asks for a file's size.
    Head,
    /// Lists a directory.
    List,
    /// Writes a file, or a step of an upload in parts.
    Write,
    /// Deletes one file or several.
    Delete,
    /// Anything else, such as asking for temporary credentials.
    Other,
}

impl RequestKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Head,
        Self::List,
        Self::Write,
        Self::Delete,
        Self::Other,
    ];

    /// What it is called in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Head => "head",
            Self::List => "list",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Other => "other",
        }
    }

    /// The requests of the kind so far.
    pub fn totals(self) -> RequestTotals {
        let counters = self.counters();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RequestTotals {
            count: load(&counters.count),
            bytes_sent: load(&counters.bytes_sent),
            bytes_received: load(&counters.bytes_received),
            retries: load(&counters.retries),
            throttled: load(&counters.throttled),
        }
    }

    /// Counts a request with a body of so many bytes.
    pub(crate) fn sent(self, bytes: usize) {
        let counters = self.counters();
        add(&counters.count, 1);
        add(&counters.bytes_sent, bytes as u64);
    }

    /// Counts the bytes of an answer.
    pub(crate) fn received(self, bytes: u64) {
        add(&self.counters().bytes_received, bytes);
    }

    /// Counts that a request was sent again.
    pub(crate) fn retried(self) {
        add(&self.counters().retries, 1);
    }

    /// Counts that a server asked for fewer requests.
    pub(crate) fn throttled(self) {
        add(&self.counters().throttled, 1);
    }

    fn counters(self) -> &'static Counters {
        match self {
            Self::Read => &READ,
            Self::Head => &HEAD,
            Self::List => &LIST,
            Self::Write => &WRITE,
            Self::Delete => &DELETE,
            Self::Other => &OTHER,
        }
    }
}

/// The requests of one kind since the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTotals {
    /// Requests, those that were sent again included.
    pub count: u64,
    /// Bytes of the bodies of requests.
    pub bytes_sent: u64,
    /// Bytes of the bodies of answers.
    pub bytes_received: u64,
    /// Requests that repeat a failed one.
    pub retries: u64,
    /// Answers by which a server asked for fewer requests.
    pub throttled: u64,
}

struct Counters {
    count: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    retries: AtomicU64,
    throttled: AtomicU64,
}

impl Counters {
    const fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
        }
    }
}

static READ: Counters = Counters::new();
static HEAD: Counters = Counters::new();
static LIST: Counters = Counters::new();
static WRITE: Counters = Counters::new();
static DELETE: Counters = Counters::new();
static OTHER: Counters = Counters::new();

fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}
