//! What a name node or data node says went wrong, by what the caller does next.

use std::io;

use hdfs_native::HdfsError;

use crate::StoreError;

/// An error at `url`. doubt: why the host may be the wrong one.
pub(super) fn store_error(url: &str, error: HdfsError, doubt: &str) -> StoreError {
    let path = url.to_owned();
    let io = |kind, text: String| StoreError::Io {
        path: url.to_owned(),
        source: io::Error::new(kind, text),
    };
    if is_missing(&error) {
        return StoreError::NotFound { path };
    }
    match error {
        HdfsError::AlreadyExists(_) => StoreError::AlreadyExists { path },
        HdfsError::UnsupportedFeature(what) | HdfsError::UnsupportedErasureCodingPolicy(what) => {
            StoreError::Unsupported {
                what: format!("{url}: {what}"),
            }
        }
        HdfsError::RPCError(class, text) | HdfsError::FatalRPCError(class, text) => {
            said(url, &class, &text)
        }
        HdfsError::IOError(cause) if doubt.is_empty() => io(cause.kind(), cause.to_string()),
        HdfsError::IOError(cause) => io(cause.kind(), format!("{cause}; {doubt}")),
        HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism => {
            io(io::ErrorKind::PermissionDenied, error.to_string())
        }
        other => io(io::ErrorKind::Other, other.to_string()),
    }
}

/// Whether nothing is there: there is nothing below a file, either.
pub(super) fn is_missing(error: &HdfsError) -> bool {
    match error {
        HdfsError::FileNotFound(_) => true,
        HdfsError::RPCError(class, text) => match name_of(class) {
            "FileNotFoundException" | "ParentNotDirectoryException" => true,
            // The error for a path that leads through a file (`FSPermissionChecker.checkTraverse`).
            "AccessControlException" => first_line(text).ends_with("(is not a directory)"),
            _ => false,
        },
        _ => false,
    }
}

/// The class of the exception, and the first line of what it says: the rest are Java's frames.
fn said(url: &str, class: &str, text: &str) -> StoreError {
    let class = name_of(class);
    let line = first_line(text);
    let kind = match class {
        "InvalidPathException" => {
            return StoreError::Unsupported {
                what: format!("{url}: a name that HDFS does not take"),
            };
        }
        "AccessControlException" | "AuthorizationException" => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    let text = line.strip_prefix(&format!("{class}: ")).unwrap_or(line);
    StoreError::Io {
        path: url.to_owned(),
        source: io::Error::new(kind, format!("{class}: {text}")),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn name_of(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(class: &str, text: &str) -> StoreError {
        let cause = HdfsError::RPCError(format!("org.apache.{class}"), text.to_owned());
        store_error("hdfs://n/t", cause, "")
    }

    #[test]
    fn frames_of_java_are_left_out() {
        let text = "Permission denied: user=a, access=WRITE\n\tat org.apache.Some.frame(1)";
        let denied = error("AccessControlException", text);
        assert_eq!(
            denied.to_string(),
            "hdfs://n/t: AccessControlException: Permission denied: user=a, access=WRITE"
        );
    }

    #[test]
    fn below_a_file_there_is_nothing() {
        for class in ["FileNotFoundException", "ParentNotDirectoryException"] {
            assert!(matches!(error(class, ""), StoreError::NotFound { .. }));
        }
        let through = error(
            "AccessControlException",
            "/t/a (is not a directory)\n\tat a.b",
        );
        assert!(matches!(through, StoreError::NotFound { .. }));
        let invalid = error("InvalidPathException", "Invalid path name");
        assert!(matches!(invalid, StoreError::Unsupported { .. }));
    }
}
