//! Unframed Avro records, such as the rows of a log block, to Arrow record batches.
//!
//! Flat columns are decoded here, others by arrow-avro; names, types and schema resolution are ours.

use std::collections::HashSet;
use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use arrow_avro::codec::Tz;
use arrow_avro::reader::{Decoder, DecoderMode, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};

use crate::arrow_type::arrow_field;
use crate::canonical::canonical_record;
use crate::direct::Direct;
use crate::error::{AvroError, Result, corrupt, schema_error, unsupported};
use crate::model::{Record, Type};
use crate::parse::parse_record;
use crate::restore::restore;

/// A batch is full at this many bytes whatever its rows: arrow-avro panics when the offsets
/// of a string, list or map column pass 2^31.
const FULL_BYTES: usize = 1 << 30;

/// Converts decoded columns to a reader's schema.
pub(crate) trait Resolve: Debug + Send + Sync {
    fn schema(&self) -> SchemaRef;
    fn apply(&self, decoded: &[ArrayRef], rows: usize) -> Result<Vec<ArrayRef>>;
}

/// What reads the bytes of records.
#[derive(Debug)]
enum Columns {
    Direct(Direct),
    Nested(Box<Decoder>),
}

impl Columns {
    /// How many bytes of a record were used.
    fn decode(&mut self, record: &[u8]) -> std::result::Result<usize, String> {
        match self {
            Self::Direct(direct) => direct.decode(record).map_err(|error| match error {
                AvroError::Corrupt { what } => what,
                other => other.to_string(),
            }),
            Self::Nested(decoder) => decoder.decode(record).map_err(|error| error.to_string()),
        }
    }

    fn flush(&mut self, rows: usize) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Direct(direct) => direct.flush(rows),
            Self::Nested(decoder) => {
                let batch = decoder.flush().map_err(|error| AvroError::Corrupt {
                    what: error.to_string(),
                })?;
                Ok(batch.map_or_else(Vec::new, |batch| batch.columns().to_vec()))
            }
        }
    }
}

/// Decodes records of one writer schema, a batch at a time.
///
/// Push records until [`is_full`](Self::is_full), then [`flush`](Self::flush). After an error
/// of `push` or `flush` the decoder holds half a row and refuses everything.
///
/// A boolean is any byte: damage there shows, if at all, in the length of the record.
#[derive(Debug)]
pub struct DatumDecoder {
    decoder: Columns,
    decoded: Vec<Type>,
    decoded_schema: SchemaRef,
    resolution: Option<Box<dyn Resolve>>,
    batch_rows: usize,
    rows: usize,
    bytes: usize,
    fixed_width: usize,
    broken: bool,
}

impl DatumDecoder {
    /// A decoder into the writer's own types (see [`arrow_schema`](crate::arrow_schema)), for
    /// the named top-level columns in their order, or for all. Other columns are skipped and
    /// may have types that Arrow batches cannot hold here, such as unions of many branches.
    pub fn new(
        writer_schema_json: &str,
        columns: Option<&[&str]>,
        batch_rows: usize,
    ) -> Result<Self> {
        let record = parse_record(writer_schema_json)?;
        match columns {
            None => Self::for_record(&record, batch_rows),
            Some(names) => Self::build(&record, indices_of(&record, names)?, None, batch_rows),
        }
    }

    /// A decoder of all columns.
    pub(crate) fn for_record(record: &Record, batch_rows: usize) -> Result<Self> {
        let indices = (0..record.fields.len()).collect();
        Self::build(record, indices, None, batch_rows)
    }

    pub(crate) fn build(
        record: &Record,
        indices: Vec<usize>,
        resolution: Option<Box<dyn Resolve>>,
        batch_rows: usize,
    ) -> Result<Self> {
        let fields = indices.iter().filter_map(|i| record.fields.get(*i));
        let fields: Vec<_> = fields.collect();
        let arrow_fields = fields
            .iter()
            .map(|f| arrow_field(&f.name, &f.ty, &f.name))
            .collect::<Result<Vec<_>>>()?;
        let batch_rows = batch_rows.max(1);
        let decoded_schema = Arc::new(Schema::new(arrow_fields));
        let decoder = match Direct::of(record, &indices, &decoded_schema, batch_rows) {
            Some(direct) => Columns::Direct(direct),
            None => Columns::Nested(Box::new(arrow_avro_decoder(record, indices, batch_rows)?)),
        };
        Ok(Self {
            decoder,
            decoded: fields.iter().map(|f| f.ty.clone()).collect(),
            decoded_schema,
            resolution,
            batch_rows,
            rows: 0,
            bytes: 0,
            fixed_width: fields.iter().map(|f| fixed_width(&f.ty)).sum(),
            broken: false,
        })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        match &self.resolution {
            Some(resolution) => resolution.schema(),
            None => Arc::clone(&self.decoded_schema),
        }
    }

    /// Decodes one record, which must be used up exactly. An error if the batch is full.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        if record.len() >= FULL_BYTES {
            return unsupported(format!("record of {} bytes", record.len()));
        }
        let row = self.rows;
        let used = self.push_first(record)?;
        if used != record.len() {
            self.broken = true;
            return corrupt(format!(
                "record {row} of the batch: {used} of {} bytes used",
                record.len()
            ));
        }
        Ok(())
    }

    /// Decodes the record that the bytes begin with; how many of them it has. An error if the
    /// batch is full.
    pub(crate) fn push_first(&mut self, record: &[u8]) -> Result<usize> {
        if self.broken {
            return schema_error("the decoder failed before");
        }
        if self.is_full() {
            return schema_error("the batch is full: flush it first");
        }
        self.broken = true;
        let used = self.decoder.decode(record).map_err(|e| {
            let what = format!("record {} of the batch: {e}", self.rows);
            AvroError::Corrupt { what }
        })?;
        self.broken = false;
        self.rows += 1;
        self.bytes += used + self.fixed_width;
        Ok(used)
    }

    /// Whether the batch must be flushed before the next record.
    pub fn is_full(&self) -> bool {
        self.rows >= self.batch_rows || self.bytes >= FULL_BYTES
    }

    /// The batch of the records pushed since the last flush; none if there were none.
    pub fn flush(&mut self) -> Result<Option<RecordBatch>> {
        if self.broken {
            return schema_error("the decoder failed before");
        }
        if self.rows == 0 {
            return Ok(None);
        }
        self.broken = true;
        let columns = self.decoder.flush(self.rows)?;
        let columns = self.restored(&columns)?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = self.schema();
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        self.rows = 0;
        self.bytes = 0;
        self.broken = false;
        Ok(Some(batch))
    }

    fn restored(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let parts = columns.iter().zip(&self.decoded);
        let columns = parts
            .zip(self.decoded_schema.fields())
            .map(|((array, ty), field)| restore(array, ty, field.data_type()))
            .collect::<Result<Vec<_>>>()?;
        match &self.resolution {
            Some(resolution) => resolution.apply(&columns, self.rows),
            None => Ok(columns),
        }
    }
}

fn indices_of(record: &Record, columns: &[&str]) -> Result<Vec<usize>> {
    let mut seen = HashSet::with_capacity(columns.len());
    let mut indices = Vec::with_capacity(columns.len());
    for name in columns {
        let Some((index, _)) = record.field(name) else {
            return schema_error(format!("no column {name} in the writer schema"));
        };
        if !seen.insert(index) {
            return schema_error(format!("column {name} asked for twice"));
        }
        indices.push(index);
    }
    Ok(indices)
}

fn arrow_avro_decoder(record: &Record, indices: Vec<usize>, batch_rows: usize) -> Result<Decoder> {
    // The store needs some key; there is only ever this one schema in it.
    let key = Fingerprint::Id(0);
    let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
    store.set(key, AvroSchema::new(canonical_record(record)))?;
    let mut builder = ReaderBuilder::new()
        .with_writer_schema_store(store)
        .with_active_fingerprint(key)
        .with_decoder_mode(DecoderMode::UnframedDatum)
        .with_tz(Tz::Utc)
        .with_batch_size(batch_rows);
    if !indices.iter().copied().eq(0..record.fields.len()) {
        builder = builder.with_projection(indices);
    }
    Ok(builder.build_decoder()?)
}

/// Bytes that fixed types take in a row of an Arrow batch even when null.
fn fixed_width(ty: &Type) -> usize {
    match ty.value_type() {
        Type::Fixed(size) => *size,
        Type::Vector(vector) => vector.size(),
        Type::Record(record) => record.fields.iter().map(|f| fixed_width(&f.ty)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{Columns, DatumDecoder};

    #[test]
    fn flat_columns_are_decoded_here_whatever_the_others_are() {
        let schema = r#"{"type":"record","name":"R","fields":[
            {"name":"id","type":["null","string"]},
            {"name":"tags","type":{"type":"array","items":"string"}}]}"#;
        let is_direct = |columns| {
            let decoder = DatumDecoder::new(schema, columns, 1).unwrap();
            matches!(decoder.decoder, Columns::Direct(_))
        };
        assert!(is_direct(Some(&["id"][..])));
        assert!(!is_direct(None));
    }
}
