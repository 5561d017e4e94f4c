//! The content of data blocks: batches of rows as Avro records, as a Parquet file or as an HFile.

use arrow::array::RecordBatch;
use pyhudi_avro::EncodedRows;
use pyhudi_format::hfile::{HFileOptions, write_hfile};
use pyhudi_format::log::{AvroContent, BlockType};

use crate::adapt::{adapt, check_required};
use crate::base_options::Codec;
use crate::error::{Result, SliceError};
use crate::parquet_file::ParquetFile;
use crate::parquet_form::ParquetForm;

/// What the data blocks of a log file are (`hoodie.logfile.data.block.format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataBlocks {
    /// Records in Avro binary.
    #[default]
    Avro,
    /// A Parquet file, with the list structure of [`BaseFileOptions::old_lists`].
    ///
    /// [`BaseFileOptions::old_lists`]: crate::BaseFileOptions::old_lists
    Parquet {
        /// Compression.
        codec: Codec,
        /// Lists that hold no null elements.
        old_lists: bool,
    },
    /// An HFile with a running number as key.
    Hfile,
    /// Change records in Avro binary: a `.cdc` log file.
    Changes,
}

impl DataBlocks {
    pub(crate) fn block_type(self) -> BlockType {
        match self {
            Self::Avro => BlockType::AvroData,
            Self::Parquet { .. } => BlockType::ParquetData,
            Self::Hfile => BlockType::HfileData,
            Self::Changes => BlockType::CdcData,
        }
    }
}

/// The rows of the block that is being filled.
pub(crate) enum Waiting {
    Avro(AvroContent),
    Hfile(Vec<EncodedRows>),
    Parquet(Box<ParquetForm>, Vec<RecordBatch>),
}

impl Waiting {
    pub(crate) fn new(blocks: DataBlocks, avro_schema: &str) -> Result<Self> {
        Ok(match blocks {
            DataBlocks::Parquet { codec, old_lists } => Self::Parquet(
                Box::new(ParquetForm::of_block(avro_schema, codec, old_lists)?),
                Vec::new(),
            ),
            DataBlocks::Hfile => Self::Hfile(Vec::new()),
            DataBlocks::Avro | DataBlocks::Changes => Self::Avro(AvroContent::default()),
        })
    }

    /// Adds rows, and says how many bytes they have.
    pub(crate) fn add(&mut self, batch: &RecordBatch, avro_schema: &str) -> Result<usize> {
        match self {
            Self::Avro(content) => {
                let encoded = encoded(batch, avro_schema)?;
                content.extend(encoded.iter());
                Ok(encoded.bytes().len())
            }
            Self::Hfile(rows) => {
                let encoded = encoded(batch, avro_schema)?;
                let bytes = encoded.bytes().len();
                rows.push(encoded);
                Ok(bytes)
            }
            Self::Parquet(form, rows) => {
                let batch = adapt(batch, form.schema())?;
                let bytes = batch.get_array_memory_size();
                rows.push(batch);
                Ok(bytes)
            }
        }
    }

    /// The content of a block with the rows added so far, which then are gone.
    pub(crate) fn content(&mut self, path: &str, avro_schema: &str) -> Result<Vec<u8>> {
        match self {
            Self::Avro(content) => Ok(std::mem::take(content).finish()),
            Self::Hfile(rows) => hfile(&std::mem::take(rows), avro_schema),
            Self::Parquet(form, rows) => parquet(form, &std::mem::take(rows), path, avro_schema),
        }
    }
}

fn encoded(batch: &RecordBatch, avro_schema: &str) -> Result<EncodedRows> {
    pyhudi_avro::encode(batch, avro_schema).map_err(|error| SliceError::Schema(error.to_string()))
}

fn parquet(
    form: &ParquetForm,
    rows: &[RecordBatch],
    path: &str,
    avro_schema: &str,
) -> Result<Vec<u8>> {
    let failed = |error| SliceError::parquet(path, None, error);
    let mut file = ParquetFile::create(Vec::new(), form).map_err(failed)?;
    for batch in rows {
        check_required(batch, form.schema())?;
        file.write(batch).map_err(failed)?;
    }
    for (key, value) in form.footers(avro_schema) {
        file.footer(key, value);
    }
    file.finish().map_err(failed)
}

/// A table's records have no field that Hudi takes for an HFile's key, so it numbers them: text of
/// a fixed width, which is in order (`HoodieHFileDataBlock`, Hudi 1.2.0).
fn hfile(rows: &[EncodedRows], avro_schema: &str) -> Result<Vec<u8>> {
    let count: usize = rows.iter().map(EncodedRows::len).sum();
    let width = (count as f64).ln().ceil() as usize + 1;
    let keys: Vec<Vec<u8>> = (0..count)
        .map(|number| format!("{number:>width$}").into_bytes())
        .collect();
    let records = rows.iter().flat_map(EncodedRows::iter);
    let pairs = keys.iter().map(Vec::as_slice).zip(records);
    let infos = [("schema", avro_schema.as_bytes())];
    write_hfile(pairs, &infos, &HFileOptions::default())
        .map_err(|error| SliceError::format("an HFile block", 0, error))
}
