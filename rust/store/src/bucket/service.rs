//! HTTP under `object_store`'s own tries: two kinds of failure that it would take otherwise.
//!
//! An answer that is cut in its body is only tried again where a file is read. Lists and the other
//! short answers are therefore taken whole here, where a cut is a failed request. And a server that
//! was never reached is given up after a few tries: a wrong endpoint is no outage.
//!
//! Requests are counted here, because each try passes here.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

use crate::RequestKind;

/// Connections that a server may fail to take before it has answered once: a few seconds.
const FIRST_TRIES: usize = 4;

/// The count of tries once there was an answer.
const ANSWERED: usize = usize::MAX;

#[derive(Debug, thiserror::Error)]
#[error("the answer was cut")]
struct Cut(#[source] HttpError);

#[derive(Debug, thiserror::Error)]
#[error("the server was never reached")]
struct Unreached(#[source] HttpError);

/// Makes the HTTP clients of a bucket's client.
#[derive(Debug, Default)]
pub(super) struct Connector(ReqwestConnector);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service {
            inner: self.0.connect(options)?,
            tries: AtomicUsize::new(0),
            failed: Mutex::default(),
        }))
    }
}

#[derive(Debug)]
struct Service {
    inner: HttpClient,
    /// Connections that failed before the first answer.
    tries: AtomicUsize,
    /// Failed requests that the client may send again.
    failed: Mutex<HashSet<u64>>,
}

/// Failed requests that are remembered: those that the client gave up stay.
const MAX_FAILED: usize = 1024;

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_short = has_short_answer(&request);
        let (kind, identity) = (kind_of(&request), identity_of(&request));
        kind.sent(request.body().content_length());
        if self.is_retry(identity) {
            kind.retried();
        }
        let response = match self.inner.execute(request).await {
            Ok(response) => response,
            Err(error) => {
                self.fail(identity);
                return Err(self.unanswered(error));
            }
        };
        self.tries.store(ANSWERED, Ordering::Relaxed);
        let status = response.status().as_u16();
        if status >= 500 || [408, 429].contains(&status) {
            self.fail(identity);
        }
        if [429, 503].contains(&status) {
            kind.throttled();
        }
        if !is_short {
            if kind != RequestKind::Head {
                kind.received(announced_length(&response));
            }
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        match body.bytes().await {
            Ok(bytes) => {
                kind.received(bytes.len() as u64);
                Ok(HttpResponse::from_parts(parts, bytes.into()))
            }
            // The kind that is always tried again.
            Err(cut) => {
                self.fail(identity);
                Err(HttpError::new(HttpErrorKind::Request, Cut(cut)))
            }
        }
    }
}

impl Service {
    /// Remembers a request that the client may send again.
    fn fail(&self, identity: u64) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.len() >= MAX_FAILED {
            failed.clear();
        }
        failed.insert(identity);
    }

    /// Whether the request repeats one that failed.
    fn is_retry(&self, identity: u64) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.remove(&identity)
    }

    fn unanswered(&self, error: HttpError) -> HttpError {
        if error.kind() != HttpErrorKind::Connect {
            return error;
        }
        let counted = self
            .tries
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tries| {
                (tries < FIRST_TRIES).then(|| tries + 1)
            });
        match counted {
            // The kind that is not tried again.
            Err(FIRST_TRIES) => HttpError::new(HttpErrorKind::Unknown, Unreached(error)),
            _ => error,
        }
    }
}

/// Requests whose answers are lists or names, and which may be sent twice: to list, to delete
/// several files, and to begin an upload in parts, which leaves at most one that is never completed.
/// `comp` is Azure's name for what a request is about: lists and batches of deletes.
fn has_short_answer(request: &HttpRequest) -> bool {
    let mut names = query_names(request);
    match request.method().as_str() {
        "GET" => names.any(|name| name == "list-type" || name == "comp"),
        "POST" => names.any(|name| ["delete", "uploads", "comp"].contains(&name)),
        _ => false,
    }
}

fn query_names(request: &HttpRequest) -> impl Iterator<Item = &str> {
    let query = request.uri().query().unwrap_or_default();
    query
        .split('&')
        .map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
}

/// `Action` and `session` ask for credentials, and so do the hosts: the services for machines.
fn kind_of(request: &HttpRequest) -> RequestKind {
    let host = request.uri().host().unwrap_or_default();
    if host.starts_with("169.254.") || host == "metadata.google.internal" {
        return RequestKind::Other;
    }
    let has = |wanted: &[&str]| query_names(request).any(|name| wanted.contains(&name));
    match request.method().as_str() {
        "GET" if has(&["Action", "session"]) => RequestKind::Other,
        "GET" if has(&["list-type", "comp"]) => RequestKind::List,
        "GET" => RequestKind::Read,
        "HEAD" => RequestKind::Head,
        "PUT" => RequestKind::Write,
        "POST" if has(&["delete", "comp"]) => RequestKind::Delete,
        "POST" if has(&["uploads", "uploadId"]) => RequestKind::Write,
        "DELETE" => RequestKind::Delete,
        _ => RequestKind::Other,
    }
}

/// A number that a request has in common with its retries: the client signs it once.
fn identity_of(request: &HttpRequest) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.method().hash(&mut hasher);
    request.uri().hash(&mut hasher);
    for name in ["authorization", "range"] {
        request.headers().get(name).hash(&mut hasher);
    }
    hasher.finish()
}

fn announced_length(response: &HttpResponse) -> u64 {
    let length = response.headers().get("content-length");
    let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
    length.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Refusing;

    #[async_trait]
    impl HttpService for Refusing {
        async fn call(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
            Err(refused())
        }
    }

    fn refused() -> HttpError {
        HttpError::new(HttpErrorKind::Connect, std::io::Error::other("refused"))
    }

    fn kinds(tries: usize, count: usize) -> Vec<HttpErrorKind> {
        let service = Service {
            inner: HttpClient::new(Refusing),
            tries: AtomicUsize::new(tries),
            failed: Mutex::default(),
        };
        let errors = (0..count).map(|_| service.unanswered(refused()));
        errors.map(|error| error.kind()).collect()
    }

    #[test]
    fn connections_that_fail_are_retried_if_the_service_has_answered_before() {
        let mut before = vec![HttpErrorKind::Connect; FIRST_TRIES];
        before.push(HttpErrorKind::Unknown);
        assert_eq!(kinds(0, FIRST_TRIES + 1), before);
        let after = vec![HttpErrorKind::Connect; FIRST_TRIES + 1];
        assert_eq!(kinds(ANSWERED, FIRST_TRIES + 1), after);
    }
}
