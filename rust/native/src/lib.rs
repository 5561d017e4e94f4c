//! The Python face of the Rust core: arguments in, batches out, errors mapped.
//!
//! No decisions here. Every call releases the GIL for its whole work. The user's documentation is in
//! `python/pyhudi/_native.pyi`, which is checked against this module.

#![allow(
    clippy::needless_pass_by_value,
    reason = "PyO3 hands owned arguments over"
)]
#![allow(missing_docs, reason = "documented in _native.pyi")]

mod args;
mod avro;
mod blobs;
mod changes;
mod error;
mod field_rules;
mod files;
mod hfile;
mod history;
mod index;
mod json;
mod keys;
mod look;
mod lookup;
mod metadata;
mod metadata_write;
mod nearest;
mod read;
mod reader;
mod sort;
mod spec;
mod store;
mod variants;
mod write;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_export]
    use super::avro::{
        arrow_schema, avro_file_rows, avro_rows, avro_schema, container_to_json, json_to_container,
        with_meta_fields, without_meta_fields,
    };
    #[pymodule_export]
    use super::blobs::{blob_roots, read_blobs};
    #[pymodule_export]
    use super::changes::{match_changes, read_cdc, read_log_keys};
    #[pymodule_export]
    use super::field_rules::FieldRules;
    #[pymodule_export]
    use super::files::{FileGroups, FileGroupsBuilder, FileSlices, SliceFinder};
    #[pymodule_export]
    use super::hfile::{hfile_info, hfile_order, hfile_pairs, write_hfile};
    #[pymodule_export]
    use super::history::{archive_block, commit_files, log_records};
    #[pymodule_export]
    use super::index::{
        bucket_numbers, consistent_hashes, filter_candidates, footer_candidates,
        initial_hash_nodes, metadata_groups, possible_bucket_ids, possible_consistent_hashes,
        scatter, spark_hashes, text_hash,
    };
    #[pymodule_export]
    use super::json::json_shape;
    #[pymodule_export]
    use super::keys::{
        KeyTagger, add_keys, combine, format_times, key_parts, lost_keys, parse_times,
        parts_with_keys, shown_text, with_meta_columns,
    };
    #[pymodule_export]
    use super::look::{
        base_file_rows, base_file_schema, columns_for_spark, has_partial_records, log_blocks,
        verify_base_file, verify_hfile, verify_log_file,
    };
    #[pymodule_export]
    use super::lookup::{KeyReader, LookupCache};
    #[pymodule_export]
    use super::metadata::{KeptStats, KnownStats, MetadataPartition};
    #[pymodule_export]
    use super::metadata_write::{
        MetadataRecorder, compact_metadata_group, statistics_gaps, write_metadata_base,
        write_metadata_log,
    };
    #[pymodule_export]
    use super::nearest::nearest_rows;
    #[pymodule_export]
    use super::read::{read_keys, read_slice};
    #[pymodule_export]
    use super::reader::{BatchReader, MergeStats};
    #[pymodule_export]
    use super::sort::sort_rows;
    #[pymodule_export]
    use super::store::{Store, request_totals};
    #[pymodule_export]
    use super::variants::{check_variants, variants_from_json, variants_to_json};
    #[pymodule_export]
    use super::write::{
        BaseFile, LogFile, compact_logs, join_base_files, rewrite_base_file, rollback_block,
        write_base_file, write_base_files, write_log_files,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        pyhudi_store::set_interruption_check(crate::error::check_interruption);
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("DEBUG_BUILD", cfg!(debug_assertions))
    }
}
