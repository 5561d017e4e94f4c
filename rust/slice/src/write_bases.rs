//! Writing as many base files as there are rows for, each of about a greatest size.

use std::sync::Arc;

use arrow::array::RecordBatch;
use pyhudi_store::Store;

use crate::base::{Keeping, Kept, format_of};
use crate::base_options::BaseFileOptions;
use crate::error::Result;
use crate::parquet_form::ParquetForm;
use crate::read::SliceReader;
use crate::request::{ReadStats, SliceRead};
use crate::write_base::{BaseFile, BaseWriter, helped};
use crate::write_log::NextPath;

/// Writes batches as base files of about `most_bytes` at most, at the paths that `next` gives; none
/// for no rows. Where the options name a file, each has its own name. Files that were full stay.
///
/// # Errors
/// As [`write_base_file`](crate::write_base_file), and those of `next`.
pub fn write_base_files(
    store: &Store,
    next: NextPath<'_>,
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    options: &BaseFileOptions,
    most_bytes: u64,
) -> Result<Vec<BaseFile>> {
    let mut writer = FilesWriter::new(store, next, options, most_bytes);
    for batch in helped(Box::new(batches), options) {
        writer.write(batch?)?;
    }
    writer.finish()
}

/// As [`write_base_files`], of the merged rows of slices, one slice after the other. Row groups that
/// nothing is merged into are copied, where they have `least_rows` or more.
///
/// # Errors
/// As [`write_base_files`], damaged files, a feature that is not supported.
pub fn join_base_files(
    store: &Store,
    next: NextPath<'_>,
    slices: Vec<SliceRead>,
    options: &BaseFileOptions,
    most_bytes: u64,
    least_rows: u64,
) -> Result<(Vec<BaseFile>, Vec<Arc<ReadStats>>)> {
    let mut bases = slices.iter().filter_map(|read| read.base.as_ref());
    let form = if bases.any(|path| format_of(path).keeps_groups()) {
        Some(ParquetForm::of_file(options)?)
    } else {
        None
    };
    let mut writer = FilesWriter::new(store, next, options, most_bytes);
    let mut stats = Vec::with_capacity(slices.len());
    for read in slices {
        let mut reader = SliceReader::new(read)?;
        stats.push(reader.stats());
        let kept = match &form {
            Some(form) => reader.keep(Keeping {
                schema: Arc::clone(form.parquet()),
                new_rows: 0,
                least_rows,
                codec: options.codec,
            })?,
            None => None,
        };
        if let Some(kept) = kept {
            writer.keep(&kept)?;
        }
        for batch in helped(Box::new(reader), options) {
            writer.write(batch?)?;
        }
    }
    Ok((writer.finish()?, stats))
}

/// Begins the next file where one is full.
struct FilesWriter<'a, 'n> {
    store: &'a Store,
    next: NextPath<'n>,
    options: &'a BaseFileOptions,
    most_bytes: u64,
    open: Option<BaseWriter<'a>>,
    files: Vec<BaseFile>,
}

impl<'a, 'n> FilesWriter<'a, 'n> {
    fn new(
        store: &'a Store,
        next: NextPath<'n>,
        options: &'a BaseFileOptions,
        most_bytes: u64,
    ) -> Self {
        Self {
            store,
            next,
            options,
            most_bytes,
            open: None,
            files: Vec::new(),
        }
    }

    fn write(&mut self, mut rest: RecordBatch) -> Result<()> {
        while rest.num_rows() > 0 {
            let mut writer = self.take()?;
            let rows = writer.rows_within(self.most_bytes, rest.num_rows());
            if rows == 0 {
                self.files.push(writer.finish()?);
                continue;
            }
            writer.write(&rest.slice(0, rows))?;
            rest = rest.slice(rows, rest.num_rows() - rows);
            self.open = Some(writer);
        }
        Ok(())
    }

    fn keep(&mut self, kept: &Kept) -> Result<()> {
        for number in kept.numbers() {
            let mut writer = self.take()?;
            if writer.is_too_full_for(kept.bytes(number), self.most_bytes) {
                self.files.push(writer.finish()?);
                writer = self.take()?;
            }
            writer.keep(kept, number)?;
            self.open = Some(writer);
        }
        Ok(())
    }

    /// The open file, or a new one.
    fn take(&mut self) -> Result<BaseWriter<'a>> {
        if let Some(writer) = self.open.take() {
            return Ok(writer);
        }
        let path = (self.next)()?;
        let name = path.rsplit('/').next().unwrap_or(&path);
        let name = self.options.file_name.as_ref().map(|_| name.to_owned());
        BaseWriter::create(self.store, &path, self.options, name)
    }

    fn finish(mut self) -> Result<Vec<BaseFile>> {
        if let Some(writer) = self.open {
            self.files.push(writer.finish()?);
        }
        Ok(self.files)
    }
}
