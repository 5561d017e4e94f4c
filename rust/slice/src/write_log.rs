//! Writing log files: data blocks, then a delete block, as `HoodieAppendHandle` (Hudi 1.2.0) orders
//! them. What a data block holds is `log_content.rs`'s part.

use std::io::Write;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
};
use pyhudi_format::log::{
    BlockType, DeleteRecord, HeaderKey, OrderingValue, around_content, big_endian, delete_content,
    delete_list, positions_text,
};
use pyhudi_store::{Store, StoreError, StoreWriter};

use crate::error::{Result, SliceError};
use crate::log_content::{DataBlocks, Waiting};

/// Column of the base file's row that a record updates, next to the columns of rows and of deletes.
pub const BASE_ROW: &str = "_pyhudi_base_row";
/// What the names of columns begin with that hold ordering values of deletes, one for each field.
pub const ORDERING: &str = "_pyhudi_ordering";

/// Rows after which it is looked whether a block is full.
const PART_ROWS: usize = 4096;
/// The scale of `DecimalWrapper`.
const DELETE_SCALE: i8 = 15;

/// How log files are written.
#[derive(Debug, Clone)]
pub struct LogFileOptions {
    /// The instant that writes them.
    pub instant: String,
    /// Avro schema of the rows as JSON, meta fields included.
    pub avro_schema: String,
    /// Bytes of records after which a block ends.
    pub block_bytes: usize,
    /// Bytes after which a file ends, where another one may follow it.
    pub file_bytes: u64,
    /// What data blocks are.
    pub blocks: DataBlocks,
    /// The schema has only some of the table's columns.
    pub partial: bool,
    /// Instant of the base file that [`BASE_ROW`] counts in; none to write no positions.
    pub base_instant: Option<String>,
    /// Instants, with commas, of the blocks that these stand for.
    pub compacted: Option<String>,
}

impl Default for LogFileOptions {
    /// Avro blocks of 256 MiB in files of 1 GiB, Hudi's defaults; instant and schema are empty.
    fn default() -> Self {
        Self {
            instant: String::new(),
            avro_schema: String::new(),
            block_bytes: 256 << 20,
            file_bytes: 1 << 30,
            blocks: DataBlocks::Avro,
            partial: false,
            base_instant: None,
            compacted: None,
        }
    }
}

/// What was written.
#[derive(Debug, Clone)]
pub struct LogFile {
    /// Where.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Records in data blocks.
    pub records: u64,
    /// Records in the delete block.
    pub deletes: u64,
}

/// Gives the path of the file that follows a full one.
pub type NextPath<'a> = &'a mut dyn FnMut() -> Result<String>;

/// Writes one new log file. `deletes` are batches of record key and partition path. A delete has the
/// values of the columns that [`ORDERING`] names as its ordering value; without any it is Integer 0,
/// which beats every record. A failure leaves no file.
///
/// # Errors
/// Rows that do not fit the schema, the file exists, failing storage.
pub fn write_log_file(
    store: &Store,
    path: &str,
    rows: impl Iterator<Item = Result<RecordBatch>>,
    deletes: impl Iterator<Item = Result<RecordBatch>>,
    options: &LogFileOptions,
) -> Result<LogFile> {
    let mut writer = LogWriter::create(store, path, None, options)?;
    writer.rows(rows)?;
    writer.deletes(deletes)?;
    Ok(writer.finish()?.1)
}

/// As [`write_log_file`], but goes on in another file whenever one is full.
///
/// # Errors
/// As [`write_log_file`], and those of `next`. Files that were full stay.
pub fn write_log_files(
    store: &Store,
    next: NextPath<'_>,
    rows: impl Iterator<Item = Result<RecordBatch>>,
    deletes: impl Iterator<Item = Result<RecordBatch>>,
    options: &LogFileOptions,
) -> Result<Vec<LogFile>> {
    let path = next()?;
    let mut writer = LogWriter::create(store, &path, Some(next), options)?;
    writer.rows(rows)?;
    writer.deletes(deletes)?;
    let (mut files, last) = writer.finish()?;
    files.push(last);
    Ok(files)
}

/// Writes one new log file of what others came to, whose deletes have ordering values of their own.
///
/// # Errors
/// As [`write_log_file`].
pub(crate) fn write_compacted(
    store: &Store,
    path: &str,
    rows: Vec<RecordBatch>,
    deletes: Vec<DeleteRecord<'_>>,
    options: &LogFileOptions,
) -> Result<LogFile> {
    let mut writer = LogWriter::create(store, path, None, options)?;
    // A record may follow the delete of its key.
    writer.delete_records(deletes, &Positions(None))?;
    writer.rows(rows.into_iter().map(Ok))?;
    Ok(writer.finish()?.1)
}

fn parts_of(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    let starts = (0..rows).step_by(PART_ROWS);
    starts.map(move |first| batch.slice(first, PART_ROWS.min(rows - first)))
}

struct LogWriter<'a> {
    store: &'a Store,
    options: &'a LogFileOptions,
    next: Option<NextPath<'a>>,
    out: StoreWriter,
    current: LogFile,
    full: Vec<LogFile>,
}

impl<'a> LogWriter<'a> {
    fn create(
        store: &'a Store,
        path: &str,
        next: Option<NextPath<'a>>,
        options: &'a LogFileOptions,
    ) -> Result<Self> {
        Ok(Self {
            store,
            options,
            next,
            out: store.create(path)?,
            current: empty(path),
            full: Vec::new(),
        })
    }

    fn rows(&mut self, rows: impl Iterator<Item = Result<RecordBatch>>) -> Result<()> {
        let schema = &self.options.avro_schema;
        let mut waiting = Waiting::new(self.options.blocks, schema)?;
        let (mut bytes, mut records) = (0, 0);
        let mut positions = Positions::default();
        for batch in rows {
            for part in parts_of(&batch?) {
                bytes += waiting.add(&part, schema)?;
                records += part.num_rows();
                positions.add(&part);
                if bytes >= self.options.block_bytes {
                    self.data_block(&mut waiting, records, &positions)?;
                    (bytes, records, positions) = (0, 0, Positions::default());
                }
            }
        }
        if records > 0 {
            self.data_block(&mut waiting, records, &positions)?;
        }
        Ok(())
    }

    fn data_block(
        &mut self,
        waiting: &mut Waiting,
        records: usize,
        positions: &Positions,
    ) -> Result<()> {
        let mut content = waiting.content(&self.current.path, &self.options.avro_schema)?;
        let block_type = self.options.blocks.block_type();
        self.append(block_type, &mut content, positions)?;
        self.current.records += records as u64;
        Ok(())
    }

    fn deletes(&mut self, batches: impl Iterator<Item = Result<RecordBatch>>) -> Result<()> {
        let batches = batches.collect::<Result<Vec<_>>>()?;
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let mut positions = Positions::default();
        for batch in &batches {
            positions.add(batch);
        }
        let mut records = Vec::with_capacity(count);
        for batch in &batches {
            let (keys, paths) = keys_and_paths(batch)?;
            let ordering = ordering_columns(batch);
            for (row, (key, path)) in keys
                .iter()
                .flatten()
                .zip(paths.iter().flatten())
                .enumerate()
            {
                records.push(DeleteRecord {
                    record_key: key.into(),
                    partition_path: Some(path.into()),
                    ordering: ordering_of(&ordering, row)?,
                });
            }
        }
        self.delete_records(records, &positions)
    }

    fn delete_records(
        &mut self,
        records: Vec<DeleteRecord<'_>>,
        positions: &Positions,
    ) -> Result<()> {
        let count = records.len();
        if count == 0 {
            return Ok(());
        }
        let mut content = delete_content(&delete_list::encode(records.into_iter()));
        self.append(BlockType::Delete, &mut content, positions)?;
        self.current.deletes += count as u64;
        Ok(())
    }

    fn append(&mut self, kind: BlockType, content: &mut [u8], positions: &Positions) -> Result<()> {
        self.roll_over()?;
        let options = self.options;
        let mut header = vec![
            (HeaderKey::InstantTime, options.instant.as_str()),
            (HeaderKey::Schema, options.avro_schema.as_str()),
        ];
        if options.partial && kind.is_data() {
            header.push((HeaderKey::IsPartial, "true"));
        }
        if let Some(instants) = &options.compacted {
            header.push((HeaderKey::CompactedBlockTimes, instants));
        }
        let text = options.base_instant.as_ref().and_then(|_| positions.text());
        if let (Some(text), Some(base)) = (&text, &options.base_instant) {
            header.push((HeaderKey::RecordPositions, text));
            header.push((HeaderKey::BaseFileInstantTimeOfRecordPositions, base));
        }
        let (head, tail) = around_content(kind, &header, content);
        for part in [head.as_slice(), content, &tail] {
            self.current.size += part.len() as u64;
            self.out.write_all(part).map_err(|source| {
                SliceError::Store(StoreError::of_stream(&self.current.path, source))
            })?;
        }
        Ok(())
    }

    /// Goes on in a new file when this one is full.
    fn roll_over(&mut self) -> Result<()> {
        if self.current.size <= self.options.file_bytes {
            return Ok(());
        }
        let Some(next) = &mut self.next else {
            return Ok(());
        };
        let path = next()?;
        let full = std::mem::replace(&mut self.out, self.store.create(&path)?);
        full.finish()?;
        self.full
            .push(std::mem::replace(&mut self.current, empty(&path)));
        Ok(())
    }

    /// The files that were full, and the last one.
    fn finish(mut self) -> Result<(Vec<LogFile>, LogFile)> {
        self.current.size = self.out.finish()?;
        Ok((self.full, self.current))
    }
}

fn empty(path: &str) -> LogFile {
    LogFile {
        path: path.to_owned(),
        size: 0,
        records: 0,
        deletes: 0,
    }
}

fn keys_and_paths(batch: &RecordBatch) -> Result<(&StringArray, &StringArray)> {
    let text = |at: usize| {
        (at < batch.num_columns())
            .then(|| batch.column(at).as_string_opt::<i32>())
            .flatten()
            .filter(|column| column.null_count() == 0)
            .ok_or_else(|| SliceError::Schema("a delete needs a key and a partition".into()))
    };
    Ok((text(0)?, text(1)?))
}

fn ordering_columns(batch: &RecordBatch) -> Vec<&ArrayRef> {
    let schema = batch.schema_ref();
    let columns = schema.fields().iter().zip(batch.columns());
    columns
        .filter(|(field, _)| field.name().starts_with(ORDERING))
        .map(|(_, column)| column)
        .collect()
}

fn ordering_of<'a>(columns: &[&'a ArrayRef], row: usize) -> Result<OrderingValue<'a>> {
    if columns.iter().all(|column| column.is_null(row)) {
        return Ok(OrderingValue::Int(0));
    }
    match columns {
        [one] => ordering_value(one, row),
        several => {
            let values = several.iter().map(|column| ordering_value(column, row));
            Ok(OrderingValue::Array(values.collect::<Result<_>>()?))
        }
    }
}

/// One of several fields that is null is the zero of its type: Hudi fails on a null among them
/// (`ArrayComparable.isValueSameClass`, 1.2.0).
fn ordering_value(column: &ArrayRef, row: usize) -> Result<OrderingValue<'_>> {
    let given = column.is_valid(row);
    Ok(match column.data_type() {
        DataType::Boolean => OrderingValue::Boolean(given && column.as_boolean().value(row)),
        DataType::Int32 => OrderingValue::Int(number::<Int32Type>(column, row)),
        DataType::Int64 => OrderingValue::Long(number::<Int64Type>(column, row)),
        DataType::Float32 => OrderingValue::Float(number::<Float32Type>(column, row)),
        DataType::Float64 => OrderingValue::Double(number::<Float64Type>(column, row)),
        DataType::Utf8 if given => {
            OrderingValue::String(column.as_string::<i32>().value(row).into())
        }
        DataType::Utf8 => OrderingValue::String("".into()),
        DataType::Decimal128(_, DELETE_SCALE) => {
            OrderingValue::Decimal(big_endian(number::<Decimal128Type>(column, row)).into())
        }
        other => {
            let msg = format!("a delete cannot have an ordering value of type {other}");
            return Err(SliceError::Schema(msg));
        }
    })
}

fn number<T: ArrowPrimitiveType>(column: &ArrayRef, row: usize) -> T::Native {
    if column.is_valid(row) {
        column.as_primitive::<T>().value(row)
    } else {
        T::Native::default()
    }
}

/// The base rows of a block's records; none once a record has none.
struct Positions(Option<Vec<u64>>);

impl Default for Positions {
    fn default() -> Self {
        Self(Some(Vec::new()))
    }
}

impl Positions {
    fn add(&mut self, batch: &RecordBatch) {
        let rows = batch
            .column_by_name(BASE_ROW)
            .and_then(|column| column.as_primitive_opt::<Int64Type>())
            .filter(|rows: &&Int64Array| rows.null_count() == 0);
        match (&mut self.0, rows) {
            (Some(known), Some(rows)) => known.extend(rows.values().iter().map(|row| *row as u64)),
            (known, _) => *known = None,
        }
    }

    /// None too where records are not in the order of their base rows.
    fn text(&self) -> Option<String> {
        self.0.as_ref().and_then(|rows| positions_text(rows))
    }
}
