//! Record keys and partition paths of rows, and values as Java writes and orders them.
//!
//! Arrow in, Arrow out: no file, no merge. Which fields make a key is the caller's to say.

mod date_patterns;
mod error;
mod java_order;
mod java_text;
mod record_keys;

pub use date_patterns::{as_times, format_times, parse_times};
pub use error::{KeysError, Result};
pub use java_order::{double_order, text_order};
pub use java_text::{double_text, float_text, java_text, shown_text};
pub use record_keys::{PartitionPaths, RecordKeys, add_keys, column, text_field, texts};

/// Name of the stored record key.
pub const RECORD_KEY: &str = "_hoodie_record_key";
/// Name of the stored partition path.
pub const PARTITION_PATH: &str = "_hoodie_partition_path";
