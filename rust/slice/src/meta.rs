//! The meta columns of newly written rows.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::Schema;

use crate::error::{Result, SliceError};
use crate::{COMMIT_SEQNO, FILE_NAME, PARTITION_PATH, RECORD_KEY};
use pyhudi_keys::text_field;

/// Adds the five meta columns to the rows of a file.
pub struct MetaColumns {
    instant: Repeated,
    file_name: Repeated,
    task: u64,
    next_row: u64,
    populated: bool,
}

impl MetaColumns {
    /// The sequence number is `<instant>_<task>_<counter>`, counting from `first_row` (only its
    /// uniqueness matters). Where they are not `populated` all five are null, as Hudi's Avro writers
    /// leave them (`hoodie.populate.meta.fields=false`, 0.15.0 and 1.2.0).
    pub fn new(
        instant: String,
        task: u64,
        first_row: u64,
        file_name: String,
        populated: bool,
    ) -> Self {
        Self {
            instant: Repeated::new(instant),
            file_name: Repeated::new(file_name),
            task,
            next_row: first_row,
            populated,
        }
    }

    /// Rows that have key and partition columns, with all five in front.
    ///
    /// # Errors
    /// The key or the partition column is missing.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let (rows, populated) = (batch.num_rows(), self.populated);
        let null = || -> ArrayRef { Arc::new(StringArray::new_null(rows)) };
        let stored = |name: &str| match batch.column_by_name(name) {
            Some(_) if !populated => Ok(null()),
            Some(column) => Ok(Arc::clone(column)),
            None => Err(SliceError::Schema(format!("there is no column {name}"))),
        };
        let (times, names, numbers) = if populated {
            let (times, names) = (self.instant.rows(rows)?, self.file_name.rows(rows)?);
            let numbers = sequence(&self.instant.text, self.task, self.next_row, rows)?;
            (
                Arc::new(times) as ArrayRef,
                Arc::new(names) as ArrayRef,
                numbers,
            )
        } else {
            (null(), null(), null())
        };
        self.next_row += rows as u64;
        let stored = (stored(RECORD_KEY)?, stored(PARTITION_PATH)?);
        with_columns(batch, &[times, numbers, stored.0, stored.1, names])
    }
}

/// The batch with the five meta columns in front.
fn with_columns(batch: &RecordBatch, meta: &[ArrayRef; 5]) -> Result<RecordBatch> {
    let names = [
        "_hoodie_commit_time",
        COMMIT_SEQNO,
        RECORD_KEY,
        PARTITION_PATH,
        FILE_NAME,
    ];
    let mut fields: Vec<_> = names.iter().map(|name| text_field(name)).collect();
    let mut columns = meta.to_vec();
    let schema = batch.schema();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if !names.contains(&field.name().as_str()) {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// Numbers as text after what they share, counted up in place.
fn sequence(instant: &str, task: u64, first_row: u64, rows: usize) -> Result<ArrayRef> {
    let mut text = format!("{instant}_{task}_");
    let prefix = text.len();
    // Writing to a string cannot fail.
    let _ = write!(text, "{first_row}");
    let mut text = text.into_bytes();
    let mut values = Vec::with_capacity(rows * (text.len() + 4));
    let mut lengths = Vec::with_capacity(rows);
    for _ in 0..rows {
        values.extend_from_slice(&text);
        lengths.push(text.len());
        count_up(&mut text, prefix);
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    let texts = StringArray::try_new(offsets, values.into(), None)?;
    Ok(Arc::new(texts))
}

/// Adds one to the decimal number that follows the prefix.
fn count_up(text: &mut Vec<u8>, prefix: usize) {
    for digit in text.iter_mut().skip(prefix).rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    text.insert(prefix, b'1');
}

/// A column of one text for batches of any size, which share its memory.
#[derive(Debug)]
pub(crate) struct Repeated {
    text: String,
    longest: StringArray,
}

impl Repeated {
    pub(crate) fn new(text: String) -> Self {
        let longest = StringArray::new_null(0);
        Self { text, longest }
    }

    pub(crate) fn rows(&mut self, rows: usize) -> Result<StringArray> {
        if self.longest.len() < rows {
            self.longest = repeated(&self.text, rows)?;
        }
        Ok(self.longest.slice(0, rows))
    }
}

/// A column of one text.
pub(crate) fn repeated(text: &str, rows: usize) -> Result<StringArray> {
    let offsets = OffsetBuffer::from_repeated_length(text.len(), rows);
    Ok(StringArray::try_new(
        offsets,
        text.repeat(rows).into_bytes().into(),
        None,
    )?)
}

/// The batch with another column in the place of one of its own.
pub(crate) fn with_column(batch: &RecordBatch, at: usize, column: ArrayRef) -> Result<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    if let Some(place) = columns.get_mut(at) {
        *place = column;
    }
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_count_through_every_length() {
        let found = sequence("20240101", 3, 8, 1100).expect("texts");
        let wanted: StringArray = (8..1108)
            .map(|row| Some(format!("20240101_3_{row}")))
            .collect();
        assert_eq!(found.as_ref(), &wanted as &dyn Array);
        assert_eq!(sequence("1", 0, 0, 0).expect("none").len(), 0);
    }

    #[test]
    fn a_repeated_text_is_in_every_row() {
        for rows in [0, 1, 3] {
            let wanted: StringArray = std::iter::repeat_n(Some("ab"), rows).collect();
            assert_eq!(repeated("ab", rows).expect("texts"), wanted);
        }
        assert_eq!(repeated("", 2).expect("texts").value(1), "");
    }
}
