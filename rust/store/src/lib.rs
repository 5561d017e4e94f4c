//! Where the bytes live: ranged reads, atomic puts, put-if-absent, listing, streaming writes.
//!
//! Not for deciding anything: names, instants and what to read come from the callers.
//!
//! A path is a string relative to the table's base, `/`-separated, character for character as on
//! storage. Nothing is encoded or decoded on the way: `%2F` in a path is three characters, and the
//! file has these three characters in its name.
//!
//! # Why the local back end is `std::fs`
//!
//! `object_store::local::LocalFileSystem` keeps names of the form `<name>#<digits>` for its own
//! staged files: it leaves such files out of a listing without a word and refuses to open them, and
//! it refuses names with control characters. All of these are legal in a Hudi table. Blocking calls
//! also need no runtime, so a process forked by PySpark inherits nothing that could hang.
//!
//! # Buckets
//!
//! A bucket is reached through `object_store`. A file there cannot be appended to or
//! renamed, and has no directory above it: none is made, and one is gone with the last file below it.
//!
//! # HDFS
//!
//! HDFS is reached through `hdfs-native`. Folders are real there and renames are atomic, so small
//! files are staged and renamed as on a local disk, and streams are written under their own names.
//!
//! # What a crash leaves
//!
//! | call | readers see | left after a crash |
//! |---|---|---|
//! | [`Store::put`], [`Store::put_if_absent`] | nothing (or the old file), then all of it | at most `<name>.<pid>-<n>.tmp` |
//! | [`Store::create`] | a growing file | the partial file, under its own name |
//! | the same on HDFS | a file of which the last block is missing | the partial file, under its own name |
//! | [`Store::create`] in a bucket | nothing, or an empty file, then all of it | at most an empty file, under its own name |
//!
//! A streamed file is not staged on purpose: Hudi's markers name it before it is begun, and a
//! rollback, ours or Java's, can only delete what has the name in the marker.
//!
//! # Hadoop's checksum files
//!
//! Java's local file system keeps `.<name>.crc` next to `<name>` and fails to read a file that does
//! not match it. Replacing or deleting a file here therefore also removes its checksum file.

mod bucket;
mod error;
mod file;
mod hdfs;
mod interruption;
mod local;
mod path;
mod range;
mod requests;
mod runtime;
mod store;
mod uri;
mod windows;
mod writer;

pub use error::{Result, StoreError};
pub use file::StoreFile;
pub use interruption::{Interrupted, set_interruption_check};
pub use requests::{RequestKind, RequestTotals};
pub use store::{Entry, Listing, Store};
pub use writer::StoreWriter;
