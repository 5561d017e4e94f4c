//! What a kind of bucket is. Which ones there are stands in `remote`.

use object_store::{ObjectStore, RetryConfig, UpdateVersion};

/// A kind of bucket: what its URIs and its variables are called, what its server does otherwise, and
/// what makes a client.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// In lower case.
    pub(super) schemes: &'static [&'static str],
    /// Prefix of the environment variables that a client reads.
    pub(super) environment: &'static [&'static str],
    /// The user metadata in which an object that was put if absent tells the call that put it.
    pub(super) token: &'static str,
    /// The header by which a put asks that there be no object yet.
    pub(super) if_absent: &'static str,
    pub(super) version: Version,
    /// Whether the last bytes of an object can be had before its size is known.
    pub(super) has_suffixes: bool,
    /// Whether directories have the names of objects: empty ones that others made without a slash at
    /// their end, or real ones.
    pub(super) has_named_dirs: bool,
    /// A character that the server takes for another.
    pub(super) mistaken: Option<char>,
    pub(super) build: Build,
}

/// A client of a bucket, by options and the environment. No request is made.
type Build = fn(&str, &[(String, String)], RetryConfig) -> Result<Box<dyn ObjectStore>, Unbuilt>;

/// Why there is no client.
pub(super) enum Unbuilt {
    /// There is no such option.
    Option(String),
    /// What the table is called does not tell where it is, or an option tells otherwise.
    Place(String),
    /// The client's own words.
    Client(object_store::Error),
}

/// What a put that replaces an object names the replaced one by.
#[derive(Clone, Copy)]
pub(super) enum Version {
    Tag,
    Generation,
}

impl Version {
    /// The one that a server reported.
    pub(super) fn told(self, e_tag: Option<String>, version: Option<String>) -> Option<String> {
        match self {
            Self::Tag => e_tag,
            Self::Generation => version,
        }
    }

    pub(super) fn asked(self, value: &str) -> UpdateVersion {
        let value = Some(value.to_owned());
        match self {
            Self::Tag => UpdateVersion {
                e_tag: value,
                version: None,
            },
            Self::Generation => UpdateVersion {
                e_tag: None,
                version: value,
            },
        }
    }

    /// One that no object has.
    pub(super) fn of_none(self) -> &'static str {
        match self {
            Self::Tag => "\"00000000000000000000000000000000\"",
            // Generations are times in microseconds.
            Self::Generation => "1",
        }
    }

    /// The header that asks for it.
    pub(super) fn header(self) -> &'static str {
        match self {
            Self::Tag => "If-Match",
            Self::Generation => "x-goog-if-generation-match",
        }
    }
}
