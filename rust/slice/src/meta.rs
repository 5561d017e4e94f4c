//! The meta columns of newly written rows.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, StringBuilder};
use arrow::datatypes::Schema;

use crate::error::{Result, SliceError};
use crate::keys::text_field;
use crate::{FILE_NAME, PARTITION_PATH, RECORD_KEY};

/// Rows that have key and partition columns, with all five meta columns in front. The sequence
/// number is `<instant>_<task>_<counter>`, counting from `first_row` (only its uniqueness matters).
///
/// # Errors
/// The key or the partition column is missing.
pub fn with_meta_columns(
    batch: &RecordBatch,
    instant: &str,
    task: u64,
    first_row: u64,
    file_name: &str,
) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let stored = |name: &str| {
        batch
            .column_by_name(name)
            .cloned()
            .ok_or_else(|| SliceError::Schema(format!("there is no column {name}")))
    };
    let repeat = |text: &str| -> ArrayRef {
        Arc::new(std::iter::repeat_n(Some(text), rows).collect::<StringArray>())
    };
    let mut columns = vec![
        ("_hoodie_commit_time", repeat(instant)),
        (
            "_hoodie_commit_seqno",
            sequence(instant, task, first_row, rows),
        ),
        (RECORD_KEY, stored(RECORD_KEY)?),
        (PARTITION_PATH, stored(PARTITION_PATH)?),
        (FILE_NAME, repeat(file_name)),
    ];
    let mut fields: Vec<_> = columns.iter().map(|(name, _)| text_field(name)).collect();
    let meta: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let schema = batch.schema();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if !meta.contains(&field.name().as_str()) {
            fields.push(Arc::clone(field));
            columns.push(("", Arc::clone(column)));
        }
    }
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

fn sequence(instant: &str, task: u64, first_row: u64, rows: usize) -> ArrayRef {
    let mut numbers = StringBuilder::with_capacity(rows, rows * (instant.len() + 12));
    for row in 0..rows as u64 {
        // Writing to a builder cannot fail.
        let _ = write!(numbers, "{instant}_{task}_{}", first_row + row);
        numbers.append_value("");
    }
    Arc::new(numbers.finish())
}
