//! Hadoop's file system, through `hdfs-native`, which speaks its protocols itself.
//!
//! Calls block as those of buckets do. Files and folders are real here: a folder stays when its last
//! file is gone, a name appears at once for all readers, and nothing but a rename makes a file
//! appear whole. There is no conditional put: `put` and `versioned` make theirs of renames, which
//! the name node executes one after the other.

mod client;
mod error;
pub(crate) mod list;
mod modes;
pub(crate) mod put;
pub(crate) mod read;
mod remote;
mod retry;
mod upload;
pub(crate) mod versioned;

pub(crate) use read::HdfsFile;
pub(crate) use remote::Hdfs;
pub(crate) use upload::HdfsUpload;
