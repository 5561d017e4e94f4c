//! The local file system, in blocking calls.

mod base;
pub(crate) mod checksum;
pub(crate) mod delete;
pub(crate) mod dirs;
mod file;
pub(crate) mod list;
pub(crate) mod put;
pub(crate) mod read;
mod system;
pub(crate) mod versioned;
mod write;

pub(crate) use base::LocalBase;
pub(crate) use file::LocalFile;
pub(crate) use write::LocalWriter;
