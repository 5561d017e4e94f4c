//! The bytes of the Hudi format: log blocks, HFile, ORC, VARIANT, bloom filters and hashes; and the shape
//! of JSON.
//!
//! Pure decoding and encoding. No I/O (the caller implements [`ReadAt`]), no Arrow, no async, no
//! clock, and no choice of a file name or an instant.
//!
//! Every length that comes from a file is checked against what is left before anything is sliced
//! or allocated: damaged input is a [`FormatError`] with an offset, never a panic.

pub mod bloom;
mod cursor;
mod error;
pub mod hash;
pub mod hfile;
mod json_shape;
pub mod log;
pub mod orc;
mod parquet_checksums;
mod parquet_levels;
mod parquet_page;
mod proto;
mod source;
mod thrift;
pub mod variant;

pub use bloom::BloomFilter;
pub use error::{FormatError, Result};
pub use hfile::HFile;
pub use json_shape::{JsonShape, json_shape};
pub use parquet_checksums::{CHECKSUMS_KEY, FileChecksums, NO_CHECKSUMS};
pub use parquet_levels::nests_deeper;
pub use parquet_page::{PageHeader, with_checksum};
pub use source::ReadAt;
