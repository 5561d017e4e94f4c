//! A Parquet base file that is being written. `parquet_file.rs` writes its rows.

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use parquet::errors::ParquetError;
use parquet::schema::types::SchemaDescPtr;
use pyhudi_store::{Store, StoreError, StoreWriter};

use super::{BaseOut, KeptGroup};
use crate::base_options::BaseFileOptions;
use crate::error::{Result, SliceError};
use crate::parquet_file::ParquetFile;
use crate::parquet_form::ParquetForm;

pub(super) struct ParquetOut {
    path: String,
    form: ParquetForm,
    file: ParquetFile<StoreWriter>,
}

impl ParquetOut {
    pub(super) fn create(store: &Store, path: &str, options: &BaseFileOptions) -> Result<Self> {
        let form = ParquetForm::of_file(options)?;
        let out = store.create(path)?;
        let mut file = ParquetFile::create(out, &form)
            .map_err(|error| SliceError::parquet(path, None, error))?;
        for (key, value) in form.footers(&options.avro_schema) {
            file.footer(key, value);
        }
        Ok(Self {
            path: path.to_owned(),
            form,
            file,
        })
    }
}

impl BaseOut for ParquetOut {
    fn schema(&self) -> &SchemaRef {
        self.form.schema()
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let written = self.file.write(batch);
        written.map_err(|error| writing(&self.path, error))
    }

    fn bytes(&self) -> u64 {
        self.file.bytes() as u64
    }

    fn footer(&mut self, key: &str, value: String) {
        self.file.footer(key, value);
    }

    fn kept_schema(&self) -> Option<&SchemaDescPtr> {
        Some(self.form.parquet())
    }

    fn keep(&mut self, group: KeptGroup, own: Option<(usize, &StringArray)>) -> Result<()> {
        let kept = self.file.keep(group, own);
        kept.map_err(|error| writing(&self.path, error))
    }

    fn finish(self: Box<Self>) -> Result<StoreWriter> {
        let done = self.file.finish();
        done.map_err(|error| writing(&self.path, error))
    }
}

/// Nothing is wrong with a file that is being written: it is the storage, or the rows.
fn writing(path: &str, error: ParquetError) -> SliceError {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => SliceError::Store(StoreError::of_stream(path, *source)),
            // Of a file that rows are taken from.
            Err(other) => match other.downcast::<SliceError>() {
                Ok(other) => *other,
                Err(other) => SliceError::Schema(format!("{path} cannot be written: {other}")),
            },
        },
        other => SliceError::Schema(format!("{path} cannot be written: {other}")),
    }
}
