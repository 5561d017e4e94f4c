//! Rows beyond the memory limit, in local files: they have no name and vanish with the process.

use std::fs::File;
use std::io::{BufReader, BufWriter, IntoInnerError, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::error::{Result, SliceError};

/// A file of rows that is being written, as an Arrow IPC stream.
pub(crate) struct LocalRows {
    folder: PathBuf,
    writer: StreamWriter<BufWriter<File>>,
}

impl LocalRows {
    /// folder: none for the system's own.
    pub(crate) fn create(folder: Option<&Path>, schema: &Schema) -> Result<Self> {
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_owned);
        let file = tempfile::tempfile_in(&folder).map_err(|error| failed(&folder, error.into()))?;
        let writer = StreamWriter::try_new_buffered(file, schema);
        Ok(Self {
            writer: writer.map_err(|error| failed(&folder, error))?,
            folder,
        })
    }

    /// Adds rows, which have the columns of the schema.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let written = self.writer.write(batch);
        written.map_err(|error| failed(&self.folder, error))
    }

    /// The rows, batch by batch.
    pub(crate) fn into_reader(self) -> Result<LocalReader> {
        let Self { folder, writer } = self;
        let read = reader(writer).map_err(|error| failed(&folder, error))?;
        Ok(LocalReader { folder, read })
    }
}

fn reader(
    mut writer: StreamWriter<BufWriter<File>>,
) -> std::result::Result<StreamReader<BufReader<File>>, ArrowError> {
    writer.finish()?;
    let buffered = writer.into_inner()?;
    let mut file = buffered.into_inner().map_err(IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    StreamReader::try_new_buffered(file, None)
}

/// A file of rows that is being read.
pub(crate) struct LocalReader {
    folder: PathBuf,
    read: StreamReader<BufReader<File>>,
}

impl Iterator for LocalReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.read.next()?;
        Some(batch.map_err(|error| failed(&self.folder, error)))
    }
}

fn failed(folder: &Path, error: ArrowError) -> SliceError {
    let told = match error {
        ArrowError::IoError(_, error) => error.to_string(),
        error => error.to_string(),
    };
    let folder = folder.display();
    SliceError::Spill(format!(
        "rows beyond memory_limit, in {folder} (TMPDIR): {told}"
    ))
}
