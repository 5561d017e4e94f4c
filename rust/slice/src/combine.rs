//! Reduces incoming rows of one key to one by the table's merge rules.

use std::fmt::Write;

use arrow::array::{Array, BooleanArray, RecordBatch, StringBuilder};
use arrow::compute::filter_record_batch;
use pyhudi_keys::texts;
use pyhudi_merge::combine_rows;

use crate::error::Result;
use crate::log_side::deleted;
use crate::merge_spec::MergeSpec;
use crate::{PARTITION_PATH, RECORD_KEY};

/// One row a (partition path, record key): see [`combine_rows`].
///
/// # Errors
/// Missing key, partition or ordering columns.
pub fn combine(batch: &RecordBatch, spec: &MergeSpec) -> Result<RecordBatch> {
    let keys = texts(batch, &[RECORD_KEY.to_owned()])?.swap_remove(0);
    let paths = texts(batch, &[PARTITION_PATH.to_owned()])?.swap_remove(0);
    let ordering = spec.ordering(batch)?;
    // A key is unique within its partition: both, with a character between that no path has.
    let mut both = StringBuilder::with_capacity(keys.len(), keys.len() * 32);
    for (path, key) in paths.iter().zip(keys.iter()) {
        match key {
            // Writing to a builder cannot fail.
            Some(key) => {
                let _ = write!(both, "{}\0{key}", path.unwrap_or(""));
                both.append_value("");
            }
            None => both.append_null(),
        }
    }
    let rules = spec.order(batch.schema_ref())?;
    let deleted = deleted(batch, spec.delete_marker.as_ref())?;
    let kept = combine_rows(rules, both.finish(), &ordering, deleted.as_ref())?;
    let mask = BooleanArray::new(kept, None);
    Ok(filter_record_batch(batch, &mask)?)
}
