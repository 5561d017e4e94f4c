//! HTTP under `object_store`'s own tries: two kinds of failure that it would take otherwise.
//!
//! An answer that is cut in its body is only tried again where a file is read. Lists and the other
//! short answers are therefore taken whole here, where a cut is a failed request. And a server that
//! was never reached is given up after a few tries: a wrong endpoint is no outage.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

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
        }))
    }
}

#[derive(Debug)]
struct Service {
    inner: HttpClient,
    /// Connections that failed before the first answer.
    tries: AtomicUsize,
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_short = has_short_answer(&request);
        let response = match self.inner.execute(request).await {
            Ok(response) => response,
            Err(error) => return Err(self.unanswered(error)),
        };
        self.tries.store(ANSWERED, Ordering::Relaxed);
        if !is_short {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        match body.bytes().await {
            Ok(bytes) => Ok(HttpResponse::from_parts(parts, bytes.into())),
            // The kind that is always tried again.
            Err(cut) => Err(HttpError::new(HttpErrorKind::Request, Cut(cut))),
        }
    }
}

impl Service {
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
    let query = request.uri().query().unwrap_or_default();
    let mut names = query
        .split('&')
        .map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
    match request.method().as_str() {
        "GET" => names.any(|name| name == "list-type" || name == "comp"),
        "POST" => names.any(|name| ["delete", "uploads", "comp"].contains(&name)),
        _ => false,
    }
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
