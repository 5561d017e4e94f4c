//! The local file system, in blocking calls.

pub(crate) mod checksum;
pub(crate) mod delete;
pub(crate) mod dirs;
pub(crate) mod list;
pub(crate) mod put;
pub(crate) mod read;
