//! An ORC base file that is being written, of the types that Hudi gives each Avro type
//! (`AvroOrcUtils.createOrcSchema`, Hudi 0.15 and 1.2).

use std::io;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StructArray};
use arrow::datatypes::{DataType, FieldRef, Fields, SchemaRef};
use pyhudi_format::orc::{Codec, Kind, OutFile, Type};
use pyhudi_store::{Store, StoreError, StoreWriter};

use super::AVRO_SCHEMA;
use super::out_column::{OldDate, OutColumn};
use crate::base::BaseOut;
use crate::base_options::{self, BaseFileOptions};
use crate::error::{Result, SliceError};

/// Rows between two checks of the size of a stripe.
const ROWS: usize = 256;

pub(super) struct OrcOut {
    path: String,
    schema: SchemaRef,
    file: OutFile<StoreWriter>,
    root: OutColumn,
    /// Of the stripe.
    rows: u64,
    stripe_bytes: usize,
}

impl OrcOut {
    pub(super) fn create(store: &Store, path: &str, options: &BaseFileOptions) -> Result<Self> {
        let avro = |error| SliceError::Schema(format!("the table's Avro schema: {error}"));
        let schema = pyhudi_avro::arrow_schema(&options.avro_schema).map_err(avro)?;
        let types = types_of(schema.fields())?;
        let codec = codec(options.codec)?;
        let root = OutColumn::new(0, &types, codec);
        let file = OutFile::create(store.create(path)?, codec, types);
        let mut file = file.map_err(|error| writing(path, error))?;
        file.keep(AVRO_SCHEMA, options.avro_schema.clone());
        Ok(Self {
            path: path.to_owned(),
            schema: Arc::new(schema),
            file,
            root,
            rows: 0,
            stripe_bytes: options.row_group_bytes,
        })
    }

    fn add(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let count = rest.num_rows().min(ROWS);
            let rows: ArrayRef = Arc::new(StructArray::from(rest.slice(0, count)));
            self.root.write(&rows, None)?;
            self.rows += count as u64;
            rest = rest.slice(count, rest.num_rows() - count);
            if self.root.bytes() >= self.stripe_bytes {
                self.end_stripe()?;
            }
        }
        Ok(())
    }

    fn end_stripe(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut streams = Vec::new();
        self.root.take(&mut streams)?;
        self.file.stripe(std::mem::take(&mut self.rows), &streams)
    }
}

impl BaseOut for OrcOut {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.add(batch).map_err(|error| writing(&self.path, error))
    }

    fn bytes(&self) -> u64 {
        self.file.bytes() + self.root.bytes() as u64
    }

    fn footer(&mut self, key: &str, value: String) {
        self.file.keep(key, value);
    }

    fn finish(mut self: Box<Self>) -> Result<StoreWriter> {
        let ended = self.end_stripe();
        let Self {
            path, file, root, ..
        } = *self;
        let mut counts = Vec::new();
        root.counts(&mut counts);
        let done = ended.and_then(|()| file.finish(&counts));
        done.map_err(|error| writing(&path, error))
    }
}

fn writing(path: &str, error: io::Error) -> SliceError {
    match error.downcast::<OldDate>() {
        Ok(old) => unsupported(&old.to_string()),
        Err(error) => SliceError::Store(StoreError::of_stream(path, error)),
    }
}

fn codec(asked: base_options::Codec) -> Result<Codec> {
    Ok(match asked {
        base_options::Codec::Uncompressed => Codec::None,
        base_options::Codec::Gzip => Codec::Zlib,
        base_options::Codec::Snappy => Codec::Snappy,
        base_options::Codec::Lz4Raw => Codec::Lz4,
        base_options::Codec::Zstd => Codec::Zstd,
        base_options::Codec::Brotli => return Err(unsupported("packed by Brotli")),
    })
}

fn unsupported(what: &str) -> SliceError {
    SliceError::Unsupported {
        feature: format!("hoodie.table.base.file.format ORC: {what}"),
    }
}

/// The types of a file with these columns, each before its parts.
fn types_of(fields: &Fields) -> Result<Vec<Type>> {
    let mut types = Vec::new();
    add_type(&DataType::Struct(fields.clone()), "", &mut types)?;
    Ok(types)
}

fn add_type(of: &DataType, name: &str, types: &mut Vec<Type>) -> Result<usize> {
    let (kind, fields) = match of {
        DataType::Boolean => (Kind::Boolean, Vec::new()),
        DataType::Int32 => (Kind::Int, Vec::new()),
        DataType::Int64 => (Kind::Long, Vec::new()),
        DataType::Float32 => (Kind::Float, Vec::new()),
        DataType::Float64 => (Kind::Double, Vec::new()),
        DataType::Utf8 => (Kind::String, Vec::new()),
        DataType::Binary | DataType::FixedSizeBinary(_) => (Kind::Binary, Vec::new()),
        DataType::Date32 => (Kind::Date, Vec::new()),
        DataType::Decimal128(..) => (Kind::Decimal, Vec::new()),
        DataType::List(item) => (Kind::List, vec![item]),
        DataType::Map(entries, _) => (Kind::Map, fields_of(entries)),
        DataType::Struct(fields) => (Kind::Struct, fields.iter().collect()),
        other => {
            return Err(unsupported(&format!("column {name} of {other}")));
        }
    };
    let (precision, scale) = match of {
        DataType::Decimal128(precision, scale) => (u64::from(*precision), *scale as u64),
        _ => (0, 0),
    };
    let number = types.len();
    let names = fields.iter().filter(|_| kind == Kind::Struct);
    types.push(Type {
        kind,
        parts: Vec::new(),
        names: names.map(|field| field.name().clone()).collect(),
        precision,
        scale,
    });
    let parts = fields
        .iter()
        .map(|field| add_type(field.data_type(), field.name(), types));
    let parts = parts.collect::<Result<_>>()?;
    if let Some(found) = types.get_mut(number) {
        found.parts = parts;
    }
    Ok(number)
}

fn fields_of(entries: &FieldRef) -> Vec<&FieldRef> {
    match entries.data_type() {
        DataType::Struct(fields) => fields.iter().collect(),
        _ => Vec::new(),
    }
}
