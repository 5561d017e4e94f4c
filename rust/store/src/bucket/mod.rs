//! Buckets, through `object_store`; `remote` says of which kinds.
//!
//! Calls block: they run on the caller's thread, next to a few threads of the process's one runtime.
//! What a table's base is called (`s3://bucket/prefix`) becomes a bucket and a prefix of keys; a
//! directory is what keys have in common, and exists as long as there is a key in it.

mod azure;
mod check;
mod client;
pub(crate) mod delete_dir;
mod ends;
mod error;
mod gcs;
mod kind;
pub(crate) mod list;
pub(crate) mod put;
pub(crate) mod read;
mod remote;
mod s3;
mod service;
mod upload;
pub(crate) mod versioned;

pub(crate) use read::RemoteFile;
pub(crate) use remote::Remote;
pub(crate) use upload::Upload;
