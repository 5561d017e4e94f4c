//! The kinds of buckets there are. One more is a file like `s3`, and its line in [`KINDS`].

use object_store::{ObjectStore, RetryConfig};

use super::s3;

/// A kind of bucket: what its URIs and its variables are called, and what makes a client.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// In lower case.
    pub(super) schemes: &'static [&'static str],
    /// What variables of the environment that a client looks at begin with.
    pub(super) environment: &'static str,
    pub(super) build: Build,
}

/// A client of a bucket, by options and the environment. No request is made.
type Build = fn(&str, &[(String, String)], RetryConfig) -> Result<Box<dyn ObjectStore>, Unbuilt>;

/// Why there is no client.
pub(super) enum Unbuilt {
    /// There is no such option.
    Option(String),
    /// The client's own words.
    Client(object_store::Error),
}

const KINDS: [Kind; 1] = [s3::KIND];

/// The kind of bucket that a scheme names, and the scheme in lower case.
pub(super) fn of_scheme(scheme: &str) -> Option<(Kind, &'static str)> {
    KINDS.into_iter().find_map(|kind| {
        let mut schemes = kind.schemes.iter();
        let known = schemes.find(|known| scheme.eq_ignore_ascii_case(known))?;
        Some((kind, *known))
    })
}
