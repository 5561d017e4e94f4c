//! Which failing calls are made again, and for how long.
//!
//! The client fails over between name nodes, and makes a read again on another replica. What is left
//! is a name node that is away, or not in charge yet. A call that changes something is made again
//! only where it surely has not reached one.

use std::io;
use std::time::Duration;

use hdfs_native::HdfsError;

use crate::{Result, StoreError};

/// The shortest wait before a call is made again, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(15));

/// How long a name node is waited for that has never answered: the location may be wrong.
const UNKNOWN: Duration = Duration::from_secs(3);

/// How long failing calls are made again.
#[derive(Clone, Copy)]
pub(super) struct Retry {
    time: Duration,
    most: u32,
}

/// What a call does if it is made twice.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Call {
    /// The same again.
    Harmless,
    /// Perhaps something else: the caller checks what it did.
    Changing,
}

impl Retry {
    pub(super) fn of(options: &[(String, String)]) -> Result<Self> {
        let given = |wanted: &str| options.iter().find(|(name, _)| name == wanted);
        let number = |wanted: &str, default: u32| match given(wanted) {
            None => Ok(default),
            Some((_, value)) => value.parse().map_err(|_| StoreError::Config {
                what: format!("storage option '{wanted}' needs a whole number, not '{value}'"),
            }),
        };
        Ok(Self {
            time: Duration::from_secs(number("retry_timeout", 180)?.into()),
            most: number("max_retries", u32::MAX)?,
        })
    }

    /// What leaves waiting to this module: the client asks each of up to four name nodes once.
    pub(super) fn properties() -> Vec<(String, String)> {
        [
            ("dfs.client.failover.max.attempts", "3"),
            ("dfs.client.failover.sleep.base.millis", "10"),
            ("dfs.client.failover.sleep.max.millis", "50"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// The waits, the last one when time or number are used up.
    pub(super) fn waits(self, has_answered: bool) -> impl Iterator<Item = Duration> {
        let time = if has_answered {
            self.time
        } else {
            self.time.min(UNKNOWN)
        };
        let mut wait = WAITS.0;
        let mut spent = Duration::ZERO;
        std::iter::from_fn(move || {
            let now = wait;
            spent += now;
            wait = (wait * 2).min(WAITS.1);
            (spent <= time).then_some(now)
        })
        .take(self.most as usize)
    }
}

/// Whether a call that ended so is worth making again.
pub(super) fn may_pass(error: &HdfsError, call: Call) -> bool {
    use io::ErrorKind as Kind;
    match error {
        HdfsError::IOError(cause) => match cause.kind() {
            // No connection came about, so nothing was asked.
            Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::AddrNotAvailable
            | Kind::NotConnected => true,
            _ => call == Call::Harmless,
        },
        HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _) => {
            let name = class.rsplit('.').next().unwrap_or(class);
            [
                "StandbyException",
                "RetriableException",
                "SafeModeException",
            ]
            .contains(&name)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(options: &[(&str, &str)], has_answered: bool) -> Vec<Duration> {
        let options: Vec<_> = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Retry::of(&options).unwrap().waits(has_answered).collect()
    }

    #[test]
    fn a_name_node_is_waited_for_unless_it_may_be_none() {
        let all: Duration = waits(&[], true).iter().sum();
        assert!((150..=180).contains(&all.as_secs()), "{all:?}");
        let few: Duration = waits(&[], false).iter().sum();
        assert!(few <= UNKNOWN);
        assert_eq!(waits(&[("max_retries", "0")], true).len(), 0);
        assert_eq!(waits(&[("max_retries", "2")], true).len(), 2);
    }

    #[test]
    fn what_may_have_been_done_is_not_done_again() {
        let lost = |kind| HdfsError::IOError(io::Error::from(kind));
        for call in [Call::Harmless, Call::Changing] {
            assert!(may_pass(&lost(io::ErrorKind::ConnectionRefused), call));
        }
        assert!(may_pass(
            &lost(io::ErrorKind::ConnectionReset),
            Call::Harmless
        ));
        assert!(!may_pass(
            &lost(io::ErrorKind::ConnectionReset),
            Call::Changing
        ));
        let denied = HdfsError::RPCError("a.AccessControlException".into(), String::new());
        assert!(!may_pass(&denied, Call::Harmless));
    }
}
