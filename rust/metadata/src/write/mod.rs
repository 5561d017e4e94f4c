//! Making records of the metadata table, and the files that hold them.
//!
//! What a commit changes is found in its files: their names, footers, rows and keys. From them come
//! record rows (`recorder`), which can travel between processes: each with the file group that its
//! key hashes to. All rows of one file group make one log file. Which partitions there are, how many
//! file groups they have and how files are named is decided elsewhere. Rules and layouts:
//! `HoodieMetadataPayload`, `HoodieTableMetadataUtil` (Hudi 0.15.0, 1.0.2 and 1.2.0).

mod base;
mod bounds;
mod check;
mod column_bounds;
mod combined;
mod compact;
mod expression;
mod file;
mod footers;
mod known;
mod packed_keys;
mod recorder;
mod records;
mod secondary;
mod stats;

pub use self::base::write_metadata_base;
pub use self::check::statistics_gaps;
pub use self::compact::compact_metadata_group;
pub use self::expression::{
    ExpressionFilter, ExpressionStats, expression_filter, expression_stats,
};
pub use self::file::{MetadataLogOptions, write_metadata_log};
pub use self::known::{KeptStats, KnownStats, known_stats};
pub use self::recorder::{Recorder, record_rows_schema};
pub use self::records::{FileEntry, Location, locations};
pub use self::secondary::secondary_changes;
pub use self::stats::{FileFacts, RestOfPartition, WrittenFile, file_facts, forget_files};
