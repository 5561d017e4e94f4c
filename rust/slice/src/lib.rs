//! One file slice to record batches, and record batches to a base or a log file.
//!
//! Reading: scan the log files for blocks that count, decode them to Arrow, put their keys into the
//! key map, stream the base file past it. Writing: base files and log files as Hudi's Avro writers make
//! them. What to read and how to name what is written is the caller's decision.

mod adapt;
mod base;
mod base_options;
mod blobs;
mod blocks;
mod changes;
mod column_encoder;
mod column_parts;
mod columns;
mod combine;
mod compact_logs;
mod convert;
mod error;
mod evolve;
mod hfile_pairs;
mod key_candidates;
mod key_filter;
mod leaf_writers;
mod local_rows;
mod log_content;
mod log_json;
mod log_map;
mod log_side;
mod lookup;
mod merge_spec;
mod meta;
mod names;
mod nearest;
mod parquet_file;
mod parquet_form;
mod parquet_schema;
mod positions;
mod prune;
mod read;
mod read_ahead;
mod records;
mod repeats;
mod request;
mod row_test;
mod slice_keys;
mod sort;
mod spill;
mod unshred;
mod variants;
mod verify_log;
mod write_base;
mod write_bases;
mod write_log;

pub use adapt::adapt_column;
pub use base::{
    BaseSchema, BootstrapSource, Coverage, base_rows, base_schema, base_values, columns_for_spark,
    has_old_calendar, is_of_both_calendars, parquet_footer, verify_base_file,
};
pub use base_options::{BaseFileOptions, BloomOptions, Codec};
pub use blobs::{blob_roots, read_blobs};
pub use blocks::{
    BlockCounts, BlockFilter, BlockInfo, ChosenBlock, LogSource, choose_blocks,
    has_partial_records, list_blocks,
};
pub use changes::{Batches, CdcRead, CdcReader, ChangeSpec, Changes, LogKeys};
pub use combine::combine;
pub use compact_logs::compact_logs;
pub use error::{Result, SliceError, guarded};
pub use evolve::{Evolution, Source};
pub use hfile_pairs::{Pair, hfile_info, hfile_order, hfile_pairs};
pub use key_candidates::key_candidates;
pub use log_content::DataBlocks;
pub use log_json::log_records_json;
pub use lookup::{ByHash, Cache, Item, KeyedSlice, Lookup, LookupCache, key_hash};
pub use merge_spec::{CustomMerger, FillRule, MergeSpec};
pub use meta::MetaColumns;
pub use names::nested;
pub use nearest::{Metric, Neighbour, nearest};
pub use prune::{Comparison, Filter, same_order};
pub use pyhudi_keys::{PARTITION_PATH, RECORD_KEY};
pub use read::SliceReader;
pub use records::log_rows;
pub use request::{BATCH_ROWS, Incoming, ReadStats, SliceRead};
pub use slice_keys::SliceKeys;
pub use sort::{Input as SortInput, Layout, SortOptions, SortedRows};
pub use spill::SpillOptions;
pub use variants::{check_variants, variants_from_json, variants_to_json};
pub use verify_log::{verify_hfile, verify_log_file};
pub use write_base::{BaseFile, Rewrite, rewrite_base_file, write_base_file};
pub use write_bases::{join_base_files, write_base_files};
pub use write_log::{
    BASE_ROW, LogFile, LogFileOptions, NextPath, ORDERING, write_log_file, write_log_files,
};

/// Name of the stored number of a record in its commit.
pub(crate) const COMMIT_SEQNO: &str = "_hoodie_commit_seqno";
/// Name of the stored file name.
pub const FILE_NAME: &str = "_hoodie_file_name";
