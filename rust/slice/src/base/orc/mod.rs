//! ORC base files to record batches: stripe by stripe, only streams of columns that are wanted; and
//! (`out`) written.
//!
//! Nothing is left out by statistics or row tests: those only save work.

mod column;
mod open;
mod out;
mod out_column;
mod types;
mod values;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use pyhudi_format::FormatError;
use pyhudi_format::orc::{Stripe, StripeFooter, Tail};
use pyhudi_store::{Store, StoreFile};

use super::{BATCH_BYTES, BaseFormat, BaseOut, BaseRead, BaseRows, BaseSchema};
use crate::base_options::BaseFileOptions;
use crate::error::{Result, SliceError};
use crate::evolve::{Source, evolve, stored_names};
use crate::log_side::ROW_NUMBER;
use column::Column;
use open::Open;
use out::OrcOut;

/// Where Hudi's writer puts the Avro schema (`HoodieAvroOrcWriter`, Hudi 0.15 and 1.2).
const AVRO_SCHEMA: &str = "orc.avro.schema";

/// Rows of the first batch, whose width tells how many the next may have.
const FIRST_ROWS: usize = 1024;

/// ORC (`hoodie.table.base.file.format=ORC`).
pub(super) struct Orc;

impl BaseFormat for Orc {
    fn extension(&self) -> &'static str {
        ".orc"
    }

    fn open(&self, store: &Store, path: &str, read: BaseRead<'_>) -> Result<Box<dyn BaseRows>> {
        Ok(Box::new(OrcReader::open(store, path, read)?))
    }

    fn create(
        &self,
        store: &Store,
        path: &str,
        options: &BaseFileOptions,
    ) -> Result<Box<dyn BaseOut>> {
        Ok(Box::new(OrcOut::create(store, path, options)?))
    }

    fn schema(&self, store: &Store, path: &str) -> Result<BaseSchema> {
        let tail = tail_of(path, &store.file(path)?)?;
        let fields = columns_of(path, &tail)?;
        Ok(BaseSchema {
            avro: tail.value(AVRO_SCHEMA),
            arrow: Arc::new(Schema::new(fields)),
            rows: tail.rows as i64,
        })
    }

    fn values(&self, store: &Store, path: &str, keys: &[&str]) -> Result<Vec<Option<String>>> {
        let tail = tail_of(path, &store.file(path)?)?;
        Ok(keys.iter().map(|key| tail.value(key)).collect())
    }
}

fn tail_of(path: &str, file: &StoreFile) -> Result<Tail> {
    Tail::read(file).map_err(|error| SliceError::format(path, 0, error))
}

fn columns_of(path: &str, tail: &Tail) -> Result<Fields> {
    let avro = tail.value(AVRO_SCHEMA);
    let meant = avro.and_then(|avro| pyhudi_avro::arrow_schema(&avro).ok());
    let fields = meant.as_ref().map(Schema::fields);
    types::columns_of(tail, fields).map_err(|error| SliceError::format(path, 0, error))
}

/// Batches of one ORC file, in file order, with the file's own types and the table's names.
struct OrcReader {
    path: String,
    map: Option<Arc<[Source]>>,
    file: StoreFile,
    tail: Tail,
    all: Fields,
    /// Wanted columns: their numbers and what they are read as.
    wanted: Vec<(usize, FieldRef)>,
    schema: SchemaRef,
    row_numbers: bool,
    /// Stripes to read, the last one first, with the number of rows before each.
    stripes: Vec<(Stripe, u64)>,
    open: Option<OpenStripe>,
    most_rows: usize,
    batch_rows: usize,
}

struct OpenStripe {
    offset: u64,
    columns: Vec<Column>,
    rows: u64,
    left: u64,
    before: u64,
}

impl OrcReader {
    fn open(store: &Store, path: &str, read: BaseRead<'_>) -> Result<Self> {
        let file = store.file(path)?;
        let tail = tail_of(path, &file)?;
        let all = columns_of(path, &tail)?;
        let names = match &read.map {
            None => read.columns.to_vec(),
            Some(map) => stored_names(read.columns, map),
        };
        let parts = tail.types.first().map(|root| root.parts.as_slice());
        let numbered = parts.unwrap_or_default().iter().copied().zip(&all);
        let wanted: Vec<(usize, FieldRef)> = numbered
            .filter(|(_, field)| names.contains(field.name()))
            .map(|(number, field)| (number, Arc::clone(field)))
            .collect();
        let mut fields: Vec<FieldRef> = wanted.iter().map(|(_, field)| Arc::clone(field)).collect();
        if read.row_numbers {
            fields.push(Arc::new(Field::new(ROW_NUMBER, DataType::Int64, false)));
        }
        let mut stripes = Vec::with_capacity(tail.stripes.len());
        let mut before = 0_u64;
        for stripe in &tail.stripes {
            // A stripe belongs to the part that it begins in.
            if read.part.as_ref().is_none_or(|part| {
                part.start <= stripe.offset && (stripe.offset < part.end || part.end == u64::MAX)
            }) {
                stripes.push((*stripe, before));
            }
            before += stripe.rows;
        }
        stripes.reverse();
        Ok(Self {
            path: path.to_owned(),
            map: read.map,
            file,
            tail,
            all,
            wanted,
            schema: Arc::new(Schema::new(fields)),
            row_numbers: read.row_numbers,
            stripes,
            open: None,
            most_rows: read.batch_rows.max(1),
            batch_rows: read.batch_rows.clamp(1, FIRST_ROWS),
        })
    }

    fn open_stripe(&self, stripe: &Stripe, before: u64) -> Result<OpenStripe, FormatError> {
        let footer = StripeFooter::read(&self.file, &self.tail, stripe)?;
        let open = Open {
            file: &self.file,
            tail: &self.tail,
            stripe,
            footer: &footer,
        };
        let columns = self.wanted.iter();
        let columns = columns.map(|(number, field)| open.column(*number, field.data_type()));
        Ok(OpenStripe {
            offset: stripe.offset,
            columns: columns.collect::<Result<_, _>>()?,
            rows: stripe.rows,
            left: stripe.rows,
            before,
        })
    }

    /// The next batch of the stripe that is open; none at its end.
    fn next_of_stripe(&mut self) -> Result<Option<RecordBatch>> {
        let Some(open) = &mut self.open else {
            return Ok(None);
        };
        let rows = usize::try_from(open.left).map_or(self.batch_rows, |l| l.min(self.batch_rows));
        if rows == 0 {
            self.open = None;
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for column in &mut open.columns {
            let array = column.read(rows, None);
            let array = array.map_err(|error| placed(error, open.offset));
            columns.push(array.map_err(|error| SliceError::format(&self.path, 0, error))?);
        }
        if self.row_numbers {
            let first = (open.before + (open.rows - open.left)) as i64;
            let numbers = Int64Array::from_iter_values(first..first + rows as i64);
            columns.push(Arc::new(numbers) as ArrayRef);
        }
        open.left -= rows as u64;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        let width = batch.get_array_memory_size() / rows;
        self.batch_rows = (BATCH_BYTES / width.max(1)).clamp(1, self.most_rows);
        Ok(Some(batch))
    }

    fn next_stored(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.next_of_stripe()? {
                return Ok(Some(batch));
            }
            let Some((stripe, before)) = self.stripes.pop() else {
                return Ok(None);
            };
            let open = self.open_stripe(&stripe, before);
            self.open = Some(open.map_err(|error| SliceError::format(&self.path, 0, error))?);
        }
    }
}

/// An error of a value, which knows no place, is one of its stripe.
fn placed(error: FormatError, stripe: u64) -> FormatError {
    match error {
        FormatError::Corrupt { offset: 0, what } => FormatError::Corrupt {
            offset: stripe,
            what,
        },
        other => other,
    }
}

impl Iterator for OrcReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_stored().transpose()?;
        Some(batch.and_then(|batch| match &self.map {
            None => Ok(batch),
            Some(map) => evolve(&batch, map),
        }))
    }
}

impl BaseRows for OrcReader {
    fn path(&self) -> &str {
        &self.path
    }

    fn columns(&self) -> Vec<String> {
        let fields = self.all.iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn rows(&self) -> i64 {
        self.tail.rows as i64
    }

    fn pruned_row_groups(&self) -> u64 {
        0
    }
}
