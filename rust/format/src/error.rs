//! What can be wrong with bytes. Files and table names are added by the caller, who knows them.

/// The one result type of this crate.
pub type Result<T> = std::result::Result<T, FormatError>;

/// Kinds by what the caller does next: report damage, refuse the table, or retry the read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The bytes break the format's own rules.
    #[error("damaged at byte {offset}: {what}")]
    Corrupt {
        /// Where, counted from the start of what was given to the decoder.
        offset: u64,
        /// Expected and found.
        what: String,
    },
    /// Well-formed as far as is known, but not something this crate reads.
    #[error("not supported: {feature}")]
    Unsupported {
        /// What it is, by its name in Hudi where it has one.
        feature: String,
    },
    /// The source of the bytes failed.
    #[error("read failed: {0}")]
    Read(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl FormatError {
    pub(crate) fn corrupt(offset: u64, what: impl Into<String>) -> Self {
        Self::Corrupt {
            offset,
            what: what.into(),
        }
    }

    pub(crate) fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported {
            feature: feature.into(),
        }
    }
}
