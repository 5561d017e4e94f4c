//! What `object_store` says went wrong, by what the caller does next.
//!
//! A server's answer is cut down to its code and message: the rest of an answer about a wrong
//! signature repeats the request.

use std::error::Error;
use std::fmt::Write;
use std::io;

use object_store::client::{HttpError, HttpErrorKind};

use crate::StoreError;

/// An error at `url`, where "not found" speaks of that file, or of the whole bucket.
pub(super) fn store_error(url: &str, error: &object_store::Error) -> StoreError {
    use object_store::Error as E;
    let io = |kind| StoreError::Io {
        path: url.to_owned(),
        source: io::Error::new(kind, reason(error)),
    };
    match error {
        E::NotFound { .. } if !is_about_bucket(error) => StoreError::NotFound {
            path: url.to_owned(),
        },
        E::AlreadyExists { .. } => StoreError::AlreadyExists {
            path: url.to_owned(),
        },
        E::NotImplemented { .. } | E::NotSupported { .. } => StoreError::Unsupported {
            what: format!("{url}: {}", chain_text(error)),
        },
        E::InvalidPath { .. } => StoreError::Io {
            path: url.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidInput, error.to_string()),
        },
        E::Precondition { .. } => StoreError::Io {
            path: url.to_owned(),
            source: io::Error::other("the file was replaced while it was read"),
        },
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
            io(io::ErrorKind::PermissionDenied)
        }
        _ => io(io_kind(error)),
    }
}

/// An error that no server sent: the runtime cannot be had.
pub(super) fn no_runtime(url: &str, source: io::Error) -> StoreError {
    StoreError::Io {
        path: url.to_owned(),
        source,
    }
}

/// The bucket is missing, not a file in it: never to be taken for an empty table.
fn is_about_bucket(error: &object_store::Error) -> bool {
    let text = chain_text(error);
    let codes = ["NoSuchBucket", "ContainerNotFound", "FilesystemNotFound"];
    codes.iter().any(|code| text.contains(code))
}

/// Code and message of the server's answer; without one, the chain of causes.
fn reason(error: &object_store::Error) -> String {
    let text = chain_text(error);
    match (element(&text, "Code"), element(&text, "Message")) {
        // Azure goes on with the number and the time of the request.
        (Some(code), Some(message)) => {
            format!("{code}: {}", message.lines().next().unwrap_or_default())
        }
        (Some(code), None) => code.to_owned(),
        _ if text.contains('<') => before_answer(&text).to_owned(),
        _ => text,
    }
}

/// An answer that is no error of the storage is left out: it can hold anything.
fn before_answer(text: &str) -> &str {
    text.split('<').next().unwrap_or(text).trim_end()
}

fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (value, _) = rest.split_once("</")?;
    Some(value)
}

/// The error and its causes; a cause that the text before it ends with is not said twice.
pub(super) fn chain_text(error: &(dyn Error + 'static)) -> String {
    // What `object_store` says of an error that it has no kind for.
    let text = error.to_string();
    let own = text.strip_prefix("Generic ").and_then(|rest| {
        let (store, own) = rest.split_once(" error: ")?;
        ["S3", "GCS", "MicrosoftAzure"]
            .contains(&store)
            .then_some(own)
    });
    let mut text = own.unwrap_or(&text).to_owned();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        next = cause.source();
    }
    text
}

fn io_kind(error: &object_store::Error) -> io::ErrorKind {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if let Some(http) = cause.downcast_ref::<HttpError>() {
            return match http.kind() {
                HttpErrorKind::Timeout => io::ErrorKind::TimedOut,
                HttpErrorKind::Connect => io::ErrorKind::NotConnected,
                HttpErrorKind::Interrupted => io::ErrorKind::ConnectionReset,
                _ => io::ErrorKind::Other,
            };
        }
        next = cause.source();
    }
    let text = chain_text(error);
    // Lists come without the kind.
    if text.contains("403 Forbidden") || text.contains("401 Unauthorized") {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic {
            store: "S3",
            source: text.to_owned().into(),
        }
    }

    #[test]
    fn only_code_and_message_of_an_answer_are_told() {
        let answer = "status 403 Forbidden: <Error><Code>SignatureDoesNotMatch</Code>\
            <Message>No match</Message><StringToSign>all of it</StringToSign></Error>";
        let error = store_error("s3://b/k", &generic(answer));
        assert_eq!(
            error.to_string(),
            "s3://b/k: SignatureDoesNotMatch: No match"
        );
        let StoreError::Io { source, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn an_answer_that_is_no_error_of_s3_is_left_out() {
        let error = store_error("s3://b/k", &generic("status 502: <html>who knows</html>"));
        let text = error.to_string();
        assert!(
            text.contains("502") && !text.contains("who knows"),
            "{text}"
        );
    }

    #[test]
    fn a_missing_bucket_is_not_a_missing_file() {
        let missing = |code: &str| object_store::Error::NotFound {
            path: "k".to_owned(),
            source: format!("<Error><Code>{code}</Code><Message>m</Message></Error>").into(),
        };
        assert!(matches!(
            store_error("s3://b/k", &missing("NoSuchKey")),
            StoreError::NotFound { .. }
        ));
        for code in ["ContainerNotFound", "FilesystemNotFound"] {
            let error = store_error("az://c/k", &missing(code));
            assert!(matches!(error, StoreError::Io { .. }), "{error}");
        }
        let error = store_error("s3://b/k", &missing("NoSuchBucket"));
        assert_eq!(error.to_string(), "s3://b/k: NoSuchBucket: m");
        assert!(matches!(error, StoreError::Io { .. }));
    }
}
