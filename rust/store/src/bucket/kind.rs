//! What a kind of bucket is. Which ones there are stands in `remote`.

use object_store::{ObjectStore, RetryConfig};

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
