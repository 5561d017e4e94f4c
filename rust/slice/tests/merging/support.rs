//! Slices on disk, and their rows as text.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pyhudi_slice::{
    BaseFileOptions, Codec, LogFileOptions, ReadStats, SliceRead, SliceReader, write_base_file,
    write_log_file,
};
use pyhudi_store::Store;

pub const KEY: &str = "_hoodie_record_key";

/// A folder that goes with the test, with files of one Avro schema.
pub struct Slice {
    folder: tempfile::TempDir,
    avro: String,
    pub schema: SchemaRef,
}

impl Slice {
    /// `avro`: the fields of the record.
    pub fn new(fields: &str) -> Self {
        let avro = avro_record(fields);
        let schema: Schema = pyhudi_avro::arrow_schema(&avro).unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            avro,
            schema: Arc::new(schema),
        }
    }

    pub fn avro(&self) -> &str {
        &self.avro
    }

    pub fn store(&self) -> Store {
        Store::open(self.folder.path().to_str().unwrap(), &[]).unwrap()
    }

    pub fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    /// A base file with a row group for each batch.
    pub fn write_base(&self, batches: Vec<RecordBatch>) {
        write_base(&self.store(), "b.parquet", &self.avro, batches);
    }

    pub fn write_log(&self, name: &str, batches: Vec<RecordBatch>, gone: &[&str]) {
        let keys: ArrayRef = Arc::new(StringArray::from(gone.to_vec()));
        let paths: ArrayRef = Arc::new(StringArray::from(vec![""; gone.len()]));
        let deletes = RecordBatch::try_from_iter([("key", keys), ("path", paths)]).unwrap();
        let options = LogFileOptions {
            instant: name.to_owned(),
            avro_schema: self.avro.clone(),
            block_bytes: 1 << 20,
            ..LogFileOptions::default()
        };
        let rows = batches.into_iter().map(Ok);
        write_log_file(
            &self.store(),
            name,
            rows,
            [Ok(deletes)].into_iter(),
            &options,
        )
        .unwrap();
    }

    /// All columns, by commit time.
    pub fn read(&self, logs: &[&str]) -> SliceRead {
        SliceRead {
            base: Some("b.parquet".to_owned()),
            logs: logs.iter().map(|log| (*log).to_owned()).collect(),
            batch_rows: 4,
            ..SliceRead::new(self.store(), Arc::clone(&self.schema))
        }
    }
}

/// A record with these fields.
pub fn avro_record(fields: &str) -> String {
    format!(r#"{{"type":"record","name":"r","fields":[{fields}]}}"#)
}

/// A base file of an Avro schema, with a row group for each batch.
pub fn write_base(store: &Store, name: &str, avro: &str, batches: Vec<RecordBatch>) {
    let options = BaseFileOptions {
        avro_schema: avro.to_owned(),
        file_name: None,
        key_column: Some(KEY.to_owned()),
        codec: Codec::Snappy,
        row_group_bytes: 1,
        page_bytes: 1 << 20,
        old_lists: true,
        two_threads: true,
        dictionary: true,
        bloom: None,
    };
    write_base_file(store, name, batches.into_iter().map(Ok), &options).unwrap();
}

/// The rows as sorted text, and the counters.
pub fn rows_of(read: SliceRead) -> (Vec<String>, Arc<ReadStats>) {
    let reader = SliceReader::new(read).unwrap();
    let stats = reader.stats();
    let mut rows = Vec::new();
    for batch in reader {
        rows.extend(texts(&batch.unwrap()));
    }
    rows.sort();
    (rows, stats)
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    let row = |row: usize| {
        let values: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
        values.join("|")
    };
    (0..batch.num_rows()).map(row).collect()
}
