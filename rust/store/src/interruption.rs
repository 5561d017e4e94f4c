//! Whether the caller of long work still wants it: after Ctrl-C it does not.

use std::error::Error;
use std::sync::OnceLock;

use pyhudi_format::FormatError;

/// Why work ends early, as the caller says it.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: {0}")]
pub struct Interrupted(#[source] pub Box<dyn Error + Send + Sync>);

type Check = fn() -> Result<(), Box<dyn Error + Send + Sync>>;

static CHECK: OnceLock<Check> = OnceLock::new();

/// Sets what tells, for all of the process. The first call counts.
pub fn set_interruption_check(check: Check) {
    let _ = CHECK.set(check);
}

pub(crate) fn check_interruption() -> Result<(), FormatError> {
    CHECK
        .get()
        .map_or(Ok(()), |check| check())
        .map_err(|why| FormatError::Read(Box::new(Interrupted(why))))
}
