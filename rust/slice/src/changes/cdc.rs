//! Change logs: what a copy-on-write commit on a table with CDC wrote besides its base files.
//!
//! A record holds the operation and, by the table's logging mode, both images, the image before, or
//! only the key (`HoodieCDCUtils`, Hudi 1.2.0). What is missing is looked up by key in the base files
//! before and after, which stream past the change log's keys.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, StringArray, StructArray, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::SchemaRef;
use pyhudi_merge::RowMatcher;
use pyhudi_store::Store;

use super::Batches;
use super::image::Images;
use super::json::Style;
use super::logged::{Logged, LoggedFiles};
use super::lookup::Lookup;
use crate::adapt::adapt_column;
use crate::error::Result;

/// What to read.
pub struct CdcRead {
    /// Where the files are.
    pub store: Store,
    /// Paths of the change logs of one base file of one commit.
    pub files: Vec<String>,
    /// The columns of the images.
    pub schema: SchemaRef,
    /// Rows of the base file that was replaced, with their stored key.
    pub before: Option<Batches>,
    /// Rows of the new base file, with their stored key.
    pub after: Option<Batches>,
    /// Images as JSON text in place of structs.
    pub as_json: bool,
}

/// The changes in change logs. Reads nothing before the first batch is asked for.
pub struct CdcReader {
    read: CdcRead,
    images: Images,
    open: Option<Open>,
}

/// The change logs as they are read, and where missing images are looked up.
struct Open {
    logged: LoggedFiles,
    before: Option<Lookup>,
    after: Option<Lookup>,
}

impl CdcReader {
    /// Checks the request.
    ///
    /// # Errors
    /// No image columns.
    pub fn new(read: CdcRead) -> Result<Self> {
        Ok(Self {
            images: Images::new(&read.schema, read.schema.fields().len(), read.as_json)?,
            read,
            open: None,
        })
    }

    /// Schema of the batches: op, key, before, after, changed (always null).
    pub fn schema(&self) -> SchemaRef {
        self.images.schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.open.is_none() {
            self.open = Some(self.opened()?);
        }
        let records = self.open.as_mut().and_then(|open| open.logged.next());
        let Some(records) = records.transpose()? else {
            return Ok(None);
        };
        let (before, after) = match &self.open {
            Some(open) => (open.before.as_ref(), open.after.as_ref()),
            None => (None, None),
        };
        self.batch(&records, before, after).map(Some)
    }

    fn logged(&self) -> LoggedFiles {
        LoggedFiles::new(&self.read.store, &self.read.files)
    }

    /// Where images may have to be looked up, change logs are read once more for what is missing.
    fn opened(&mut self) -> Result<Open> {
        let mut open = Open {
            logged: self.logged(),
            before: None,
            after: None,
        };
        if self.read.before.is_none() && self.read.after.is_none() {
            return Ok(open);
        }
        let (mut no_before, mut no_after) = (false, false);
        let mut keys = Vec::new();
        for records in self.logged() {
            let records = records?;
            no_before |= records.column("before").is_none();
            no_after |= records.column("after").is_none();
            if records.column("record_key").is_some() {
                keys.push(records.text("record_key")?);
            }
        }
        let lookup = |rows: Batches| Lookup::new(rows, matcher(&keys)?, &self.read.schema);
        let before = self.read.before.take().filter(|_| no_before);
        let after = self.read.after.take().filter(|_| no_after);
        open.before = before.map(lookup).transpose()?;
        open.after = after.map(lookup).transpose()?;
        Ok(open)
    }

    fn batch(
        &self,
        records: &Logged,
        before: Option<&Lookup>,
        after: Option<&Lookup>,
    ) -> Result<RecordBatch> {
        let ops = records.text("op")?;
        let rows = ops.len();
        let no_keys = || StringArray::new_null(rows);
        let keys = match records.column("record_key") {
            Some(_) => records.text("record_key")?,
            None => no_keys(),
        };
        let old = self.side(records, "before", &ops, "i", before)?;
        let new = self.side(records, "after", &ops, "d", after)?;
        let schema = self.schema();
        let changed = new_null_array(schema.field(4).data_type(), rows);
        let columns: Vec<ArrayRef> = vec![Arc::new(ops), Arc::new(keys), old, new, changed];
        Ok(RecordBatch::try_new(schema, columns)?)
    }

    /// The images of one side, from the log or looked up; none for operations that have none.
    fn side(
        &self,
        records: &Logged,
        name: &str,
        ops: &StringArray,
        without: &str,
        lookup: Option<&Lookup>,
    ) -> Result<ArrayRef> {
        if let Some(column) = records.column(name) {
            let logged = column.as_struct_opt().ok_or_else(|| {
                records.damaged(format!("the column {name} is {}", column.data_type()))
            })?;
            return self.logged_images(logged);
        }
        let keys = records.text("record_key")?;
        let wanted: Vec<bool> = ops.iter().map(|op| op != Some(without)).collect();
        match lookup {
            Some(lookup) => self.found_images(records, &keys, &wanted, lookup),
            None if !wanted.contains(&true) => self.found_none(ops.len()),
            None => Err(records.damaged(format!("no file to look the images {name} up in"))),
        }
    }

    fn logged_images(&self, logged: &StructArray) -> Result<ArrayRef> {
        let rows = logged.len();
        let columns = self
            .images
            .fields()
            .iter()
            .map(|field| match logged.column_by_name(field.name()) {
                Some(column) => adapt_column(column, field),
                None => Ok(new_null_array(field.data_type(), rows)),
            })
            .collect::<Result<Vec<_>>>()?;
        let nulls = logged.nulls().cloned();
        self.images.image(&columns, nulls, Style::Record)
    }

    fn found_none(&self, rows: usize) -> Result<ArrayRef> {
        let columns: Vec<ArrayRef> = self
            .images
            .fields()
            .iter()
            .map(|field| new_null_array(field.data_type(), rows))
            .collect();
        self.images
            .image(&columns, Some(NullBuffer::new_null(rows)), Style::Row)
    }

    fn found_images(
        &self,
        records: &Logged,
        keys: &StringArray,
        wanted: &[bool],
        lookup: &Lookup,
    ) -> Result<ArrayRef> {
        let nothing = lookup.nothing();
        let rows = wanted.iter().enumerate().map(|(row, wanted)| {
            if !wanted {
                return Ok(nothing);
            }
            let key = keys.is_valid(row).then(|| keys.value(row));
            key.and_then(|key| lookup.find(key)).ok_or_else(|| {
                let key = key.unwrap_or("null");
                records.damaged(format!("the base file has no record of the key {key}"))
            })
        });
        let found = lookup.gather(&rows.collect::<Result<Vec<_>>>()?)?;
        let nulls = NullBuffer::from(wanted.to_vec());
        self.images.image(found.columns(), Some(nulls), Style::Row)
    }
}

impl Iterator for CdcReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

fn matcher(keys: &[StringArray]) -> Result<RowMatcher> {
    let mut matcher = RowMatcher::default();
    for some in keys {
        matcher.add(some.clone(), None)?;
    }
    Ok(matcher)
}
