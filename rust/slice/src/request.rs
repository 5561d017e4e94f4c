//! What is asked of one file slice, and what the answer counts.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use pyhudi_keys::RECORD_KEY;
use pyhudi_merge::MergeCounts;
use pyhudi_store::Store;

use crate::base::BootstrapSource;
use crate::blocks::BlockFilter;
use crate::error::Result;
use crate::evolve::Evolution;
use crate::lookup::Lookup;
use crate::merge_spec::MergeSpec;
use crate::prune::Filter;
use crate::spill::SpillOptions;

/// Rows of a batch, unless the caller says otherwise.
pub const BATCH_ROWS: usize = 8192;

/// Records that are newer than all of the slice, for copy-on-write updates.
#[derive(Default)]
pub struct Incoming {
    /// Rows with the table's columns.
    pub rows: Option<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>>,
    /// Keys to be deleted whatever their ordering value.
    pub delete_keys: Option<StringArray>,
}

/// What to read and how to merge it.
pub struct SliceRead {
    /// Where the files are.
    pub store: Store,
    /// Path of the base file; none in a slice of log files alone.
    pub base: Option<String>,
    /// Where the rows of the base file are, when it is a skeleton.
    pub bootstrap: Option<BootstrapSource>,
    /// Instant of the base file, for record positions; none to use keys only.
    pub base_instant: Option<String>,
    /// Paths of the log files, oldest first, CDC files left out.
    pub logs: Vec<String>,
    /// The table's schema, meta fields included.
    pub schema: SchemaRef,
    /// The columns to give, in order.
    pub columns: Vec<String>,
    /// The stored key column, or the record key fields where meta fields are off.
    pub key_fields: Vec<String>,
    /// How records of one key become one.
    pub merge: MergeSpec,
    /// Which log blocks count.
    pub filter: BlockFilter,
    /// Newest records.
    pub incoming: Incoming,
    /// Rows that fail one of these may be left out.
    pub filters: Vec<Filter>,
    /// Only rows of these record keys, and perhaps of others, are needed. Of tables that store them.
    pub lookup: Option<Lookup>,
    /// How files name the columns, where they name them otherwise than the table.
    pub evolution: Option<Evolution>,
    /// Most rows of a batch.
    pub batch_rows: usize,
    /// Another thread may decode some of the base file's columns.
    pub two_threads: bool,
    /// Only row groups of the base file that begin in this range of its bytes. Of a slice with
    /// nothing to merge alone: log records belong to no part.
    pub base_part: Option<Range<u64>>,
    /// What to do with more records than fit in memory; none to keep them all there.
    pub spill: Option<SpillOptions>,
}

impl SliceRead {
    /// A read of all columns, from no file yet, by commit time and the stored record key.
    #[must_use]
    pub fn new(store: Store, schema: SchemaRef) -> Self {
        Self {
            store,
            base: None,
            bootstrap: None,
            base_instant: None,
            logs: Vec::new(),
            columns: schema.fields().iter().map(|f| f.name().clone()).collect(),
            schema,
            key_fields: vec![RECORD_KEY.to_owned()],
            merge: MergeSpec::default(),
            filter: BlockFilter::default(),
            incoming: Incoming::default(),
            filters: Vec::new(),
            lookup: None,
            evolution: None,
            batch_rows: BATCH_ROWS,
            two_threads: false,
            base_part: None,
            spill: None,
        }
    }

    /// The same read of other keys, without incoming records.
    #[must_use]
    pub fn looking_up(&self, lookup: Lookup, filters: Vec<Filter>) -> Self {
        Self {
            store: self.store.clone(),
            base: self.base.clone(),
            bootstrap: self.bootstrap.clone(),
            base_instant: self.base_instant.clone(),
            logs: self.logs.clone(),
            schema: Arc::clone(&self.schema),
            columns: self.columns.clone(),
            key_fields: self.key_fields.clone(),
            merge: self.merge.clone(),
            filter: self.filter.clone(),
            incoming: Incoming::default(),
            filters,
            lookup: Some(lookup),
            evolution: self.evolution.clone(),
            batch_rows: self.batch_rows,
            two_threads: false,
            base_part: self.base_part.clone(),
            spill: self.spill.clone(),
        }
    }

    /// The filters on the key, which all versions of a record have, so that they pass the filter
    /// or fail it together.
    ///
    /// A filter on the plain key is asked of the stored key: a row that Hudi 1.2.0 updated by
    /// `MERGE INTO` may have null in the column itself.
    pub(crate) fn key_filters(&self) -> Vec<Filter> {
        let of_key = |filter: &Filter| {
            let is_plain = self.merge.plain_key.as_ref() == Some(&filter.column);
            let column = match self.key_fields.as_slice() {
                [stored] if is_plain => stored,
                fields => fields.iter().find(|field| **field == filter.column)?,
            };
            Some(Filter {
                column: column.clone(),
                ..filter.clone()
            })
        };
        self.filters.iter().filter_map(of_key).collect()
    }
}

/// Counters of one read; final once the reader is exhausted.
#[derive(Debug, Default)]
#[expect(
    missing_docs,
    reason = "documented where Python reads them, in MergeStats"
)]
pub struct ReadStats {
    pub base_rows: AtomicU64,
    pub log_records: AtomicU64,
    pub updated: AtomicU64,
    pub deleted: AtomicU64,
    pub inserted: AtomicU64,
    pub corrupt_blocks: AtomicU64,
    pub rollback_blocks: AtomicU64,
    pub log_blocks: AtomicU64,
    pub pruned_row_groups: AtomicU64,
    pub by_position: AtomicU64,
    pub spilled_parts: AtomicU64,
}

impl ReadStats {
    pub(crate) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn add_counts(&self, counts: MergeCounts) {
        Self::add(&self.updated, counts.updated as usize);
        Self::add(&self.deleted, counts.deleted as usize);
        Self::add(&self.inserted, counts.inserted as usize);
    }
}
