//! One file slice, merged, as a stream of batches.
//!
//! Log records go into the key map first, oldest block first, then the base file streams past it.
//! Given out are the base rows that stand, then the log rows that won, in log order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::{filter_record_batch, or_kleene};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use pyhudi_format::log::OrderingValue;
use pyhudi_merge::{BaseOutcome, KeyMap, MergeMode, MergeRules};
use pyhudi_store::Store;

use crate::RECORD_KEY;
use crate::adapt::adapt;
use crate::base::{BaseReader, ParquetRead};
use crate::blocks::{BlockFilter, LogSource, choose_blocks};
use crate::error::{Result, SliceError};
use crate::java_text::java_text;
use crate::keys::{RecordKeys, text_field};
use crate::prune::Filter;
use crate::records::{Decode, LogRecords};

const IS_DELETED: &str = "_hoodie_is_deleted";
const OPERATION: &str = "_hoodie_operation";

/// Records that are newer than all of the slice, for copy-on-write updates.
#[derive(Default)]
pub struct Incoming {
    /// Rows with the table's columns.
    pub rows: Option<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>>,
    /// Keys to be deleted whatever their ordering value.
    pub delete_keys: Option<StringArray>,
}

/// What to read and how to merge it.
pub struct SliceRead {
    /// Where the files are.
    pub store: Store,
    /// Path of the base file; none in a slice of log files alone.
    pub base: Option<String>,
    /// Paths of the log files, oldest first, CDC files left out.
    pub logs: Vec<String>,
    /// The table's schema, meta fields included.
    pub schema: SchemaRef,
    /// The columns to give, in order.
    pub columns: Vec<String>,
    /// The merge mode.
    pub mode: MergeMode,
    /// The ordering fields.
    pub ordering_fields: Vec<String>,
    /// The stored key column, or the record key fields where meta fields are off.
    pub key_fields: Vec<String>,
    /// A row is a delete when the field, as text, equals the marker.
    pub delete_marker: Option<(String, String)>,
    /// Which log blocks count.
    pub filter: BlockFilter,
    /// Newest records.
    pub incoming: Incoming,
    /// See [`MergeRules::null_ordering_loses`].
    pub null_ordering_loses: bool,
    /// For leaving out row groups.
    pub filters: Vec<Filter>,
    /// Most rows of a batch.
    pub batch_rows: usize,
}

/// Counters of one read; final once the reader is exhausted.
#[derive(Debug, Default)]
#[expect(
    missing_docs,
    reason = "documented where Python reads them, in MergeStats"
)]
pub struct ReadStats {
    pub base_rows: AtomicU64,
    pub log_records: AtomicU64,
    pub updated: AtomicU64,
    pub deleted: AtomicU64,
    pub inserted: AtomicU64,
    pub corrupt_blocks: AtomicU64,
    pub rollback_blocks: AtomicU64,
    pub log_blocks: AtomicU64,
    pub pruned_row_groups: AtomicU64,
}

impl ReadStats {
    fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// The columns read at each place, and how a key is made.
struct Columns {
    /// Given out.
    out: SchemaRef,
    /// Read from base files when there is something to merge.
    base: SchemaRef,
    /// Read from log blocks.
    log: SchemaRef,
    keys: RecordKeys,
}

impl Columns {
    fn of(read: &SliceRead) -> Result<Self> {
        let mut names = read.columns.clone();
        let out = select(&read.schema, &names)?;
        let root = |path: &String| match path.split_once('.') {
            Some((root, _)) if read.schema.index_of(path).is_err() => root.to_owned(),
            _ => path.clone(),
        };
        push_new(&mut names, read.key_fields.iter().map(root));
        if read.mode == MergeMode::EventTime {
            push_new(&mut names, read.ordering_fields.iter().map(root));
        }
        let base = select(&read.schema, &names)?;
        let marker = read.delete_marker.iter().map(|(field, _)| field.clone());
        let optional = std::iter::once(IS_DELETED.to_owned()).chain(marker);
        push_new(
            &mut names,
            optional.filter(|name| read.schema.index_of(name).is_ok()),
        );
        let log = with_operation(select(&read.schema, &names)?.as_ref());
        let prefixed = read.key_fields.len() > 1;
        Ok(Self {
            out,
            base,
            log,
            keys: RecordKeys {
                fields: read.key_fields.clone(),
                prefixed,
            },
        })
    }
}

/// Flink writes the operation of a change log into its records, but leaves it out of the table's
/// schema.
fn with_operation(schema: &Schema) -> SchemaRef {
    let mut fields = schema.fields().to_vec();
    if schema.index_of(OPERATION).is_err() {
        fields.push(text_field(OPERATION));
    }
    Arc::new(Schema::new(fields))
}

fn push_new(names: &mut Vec<String>, more: impl Iterator<Item = String>) {
    for name in more {
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

fn select(schema: &SchemaRef, names: &[String]) -> Result<SchemaRef> {
    let fields = names.iter().map(|name| {
        schema
            .fields()
            .iter()
            .find(|field| field.name() == name)
            .cloned()
            .ok_or_else(|| SliceError::Schema(format!("the table has no column {name}")))
    });
    Ok(Arc::new(Schema::new(fields.collect::<Result<Fields>>()?)))
}

fn names_of(schema: &Schema) -> Vec<String> {
    schema
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect()
}

enum Stage {
    /// Nothing was read yet.
    Start,
    /// No log records: the base file as it is.
    Plain(BaseReader),
    /// The base file streams past the key map.
    Merge(Box<Merge>, Option<BaseReader>),
    /// Log rows that won.
    Winners(VecDeque<RecordBatch>),
    Done,
}

/// The batches of one file slice. Reads nothing before the first is asked for.
pub struct SliceReader {
    read: SliceRead,
    columns: Columns,
    stage: Stage,
    stats: Arc<ReadStats>,
}

impl SliceReader {
    /// Checks the request.
    ///
    /// # Errors
    /// A column that the table's schema lacks.
    pub fn new(read: SliceRead) -> Result<Self> {
        let columns = Columns::of(&read)?;
        Ok(Self {
            read,
            columns,
            stage: Stage::Start,
            stats: Arc::default(),
        })
    }

    /// The counters, which go on counting.
    pub fn stats(&self) -> Arc<ReadStats> {
        Arc::clone(&self.stats)
    }

    /// The next batch, none at the end.
    ///
    /// # Errors
    /// Damaged files, failing storage, a feature that is not supported.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let stage = std::mem::replace(&mut self.stage, Stage::Done);
            let (next, batch) = match stage {
                Stage::Start => (self.start()?, None),
                Stage::Plain(base) => self.plain(base)?,
                Stage::Merge(merge, Some(base)) => self.merge(merge, base)?,
                Stage::Merge(merge, None) => (Stage::Winners(self.winners(*merge)?), None),
                Stage::Winners(mut rest) => match rest.pop_front() {
                    Some(batch) => (Stage::Winners(rest), Some(batch)),
                    None => (Stage::Done, None),
                },
                Stage::Done => return Ok(None),
            };
            self.stage = next;
            if let Some(batch) = batch.filter(|batch| batch.num_rows() > 0) {
                return Ok(Some(batch));
            }
        }
    }

    fn start(&mut self) -> Result<Stage> {
        let mut merge = Merge::new(&self.read, &self.columns)?;
        self.read_logs(&mut merge)?;
        self.take_incoming(&mut merge)?;
        if merge.map.is_empty() {
            let names = names_of(&self.columns.out);
            return Ok(self
                .open_base(&names, true)?
                .map_or(Stage::Done, Stage::Plain));
        }
        let names = names_of(&self.columns.base);
        let base = self.open_base(&names, false)?;
        Ok(Stage::Merge(Box::new(merge), base))
    }

    fn open_base(&self, columns: &[String], prune: bool) -> Result<Option<BaseReader>> {
        let Some(path) = &self.read.base else {
            return Ok(None);
        };
        // A row group left out could hold the base row of a log record.
        let filters = if prune {
            self.read.filters.as_slice()
        } else {
            &[]
        };
        let read = ParquetRead {
            columns,
            filters,
            batch_rows: self.read.batch_rows,
        };
        let base = BaseReader::open(&self.read.store, path, &read)?;
        ReadStats::add(
            &self.stats.pruned_row_groups,
            base.pruned_row_groups as usize,
        );
        Ok(Some(base))
    }

    fn read_logs(&self, merge: &mut Merge) -> Result<()> {
        let sources = open_logs(&self.read.store, &self.read.logs)?;
        let (blocks, counts) = choose_blocks(&sources, &self.read.filter)?;
        ReadStats::add(&self.stats.log_blocks, counts.read as usize);
        ReadStats::add(&self.stats.corrupt_blocks, counts.corrupt as usize);
        ReadStats::add(&self.stats.rollback_blocks, counts.rollback as usize);
        let columns = names_of(&self.columns.log);
        let decode = Decode {
            columns: &columns,
            batch_rows: self.read.batch_rows,
            only_rows: false,
        };
        for chosen in blocks {
            decode.block(
                &sources[chosen.source],
                &chosen.block,
                &mut |records| match records {
                    LogRecords::Rows(batch) => {
                        ReadStats::add(&self.stats.log_records, batch.num_rows());
                        merge.add_rows(&self.read, &self.columns, &batch)
                    }
                    LogRecords::Deletes { keys, ordering } => {
                        ReadStats::add(&self.stats.log_records, keys.len());
                        merge.add_deletes(keys, &ordering)
                    }
                },
            )?;
        }
        Ok(())
    }

    fn take_incoming(&mut self, merge: &mut Merge) -> Result<()> {
        if let Some(rows) = self.read.incoming.rows.take() {
            for batch in rows {
                merge.add_rows(&self.read, &self.columns, &batch?)?;
            }
        }
        if let Some(keys) = self.read.incoming.delete_keys.take() {
            let ordering = vec![OrderingValue::Int(0); keys.len()];
            merge.add_deletes(keys, &ordering)?;
        }
        Ok(())
    }

    fn plain(&self, mut base: BaseReader) -> Result<(Stage, Option<RecordBatch>)> {
        let Some(batch) = base.next().transpose()? else {
            return Ok((Stage::Done, None));
        };
        ReadStats::add(&self.stats.base_rows, batch.num_rows());
        let batch = adapt(&batch, &self.columns.out)?;
        Ok((Stage::Plain(base), Some(batch)))
    }

    fn merge(
        &self,
        mut merge: Box<Merge>,
        mut base: BaseReader,
    ) -> Result<(Stage, Option<RecordBatch>)> {
        let Some(batch) = base.next().transpose()? else {
            return Ok((Stage::Merge(merge, None), None));
        };
        ReadStats::add(&self.stats.base_rows, batch.num_rows());
        let batch = adapt(&batch, &self.columns.base)?;
        let keys = self.columns.keys.of(&batch)?;
        let out = self.columns.out.fields().len();
        let kept = match merge.map.merge_base(&keys, &merge.ordering(&batch)?)? {
            BaseOutcome::KeepAll => first_columns(&batch, out)?,
            BaseOutcome::Keep(mask) => filter_record_batch(&first_columns(&batch, out)?, &mask)?,
        };
        Ok((Stage::Merge(merge, Some(base)), Some(kept)))
    }

    fn winners(&self, mut merge: Merge) -> Result<VecDeque<RecordBatch>> {
        let masks = merge.map.winners();
        let counts = merge.map.counts();
        ReadStats::add(&self.stats.updated, counts.updated as usize);
        ReadStats::add(&self.stats.deleted, counts.deleted as usize);
        ReadStats::add(&self.stats.inserted, counts.inserted as usize);
        merge
            .rows
            .iter()
            .map(|(number, batch)| {
                let mask = BooleanArray::new(masks[*number].clone(), None);
                Ok(filter_record_batch(batch, &mask)?)
            })
            .collect()
    }
}

fn open_logs(store: &Store, logs: &[String]) -> Result<Vec<LogSource>> {
    logs.iter()
        .map(|path| LogSource::open(store, path))
        .collect()
}

fn first_columns(batch: &RecordBatch, count: usize) -> Result<RecordBatch> {
    Ok(batch.project(&(0..count).collect::<Vec<_>>())?)
}

impl Iterator for SliceReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

impl SliceReader {
    /// Schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.columns.out)
    }
}

/// The log side: the key map, and the columns of its data records that are given out.
struct Merge {
    map: KeyMap,
    ordering_fields: Vec<String>,
    /// Batch number in the key map, and the batch.
    rows: Vec<(usize, RecordBatch)>,
}

impl Merge {
    fn new(read: &SliceRead, columns: &Columns) -> Result<Self> {
        let ordering_fields = match read.mode {
            MergeMode::EventTime => read.ordering_fields.clone(),
            MergeMode::CommitTime => Vec::new(),
        };
        let types = ordering_fields
            .iter()
            .map(|path| Ok(nested(&columns.log, path)?.data_type().clone()))
            .collect::<Result<Vec<_>>>()?;
        let rules = MergeRules {
            mode: read.mode,
            ordering: types,
            null_ordering_loses: read.null_ordering_loses,
        };
        Ok(Self {
            map: KeyMap::new(rules)?,
            ordering_fields,
            rows: Vec::new(),
        })
    }

    fn ordering(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.ordering_fields
            .iter()
            .map(|path| crate::keys::column(batch, path))
            .collect()
    }

    fn add_rows(&mut self, read: &SliceRead, columns: &Columns, batch: &RecordBatch) -> Result<()> {
        let batch = adapt(batch, &columns.log)?;
        let keys = columns.keys.of(&batch)?;
        let deleted = deleted(&batch, read.delete_marker.as_ref())?;
        let number = self
            .map
            .add_rows(keys, &self.ordering(&batch)?, deleted.as_ref())?;
        self.rows
            .push((number, first_columns(&batch, columns.out.fields().len())?));
        Ok(())
    }

    fn add_deletes(&mut self, keys: StringArray, ordering: &[OrderingValue<'_>]) -> Result<()> {
        Ok(self.map.add_deletes(keys, ordering)?)
    }
}

/// The field of a dotted path.
fn nested(schema: &Schema, path: &str) -> Result<Field> {
    let missing = || SliceError::Schema(format!("the table has no column {path}"));
    if let Ok(field) = schema.field_with_name(path) {
        return Ok(field.clone());
    }
    let mut parts = path.split('.');
    let root = parts.next().ok_or_else(missing)?;
    let mut field = schema.field_with_name(root).map_err(|_| missing())?.clone();
    for part in parts {
        let DataType::Struct(fields) = field.data_type() else {
            return Err(missing());
        };
        let (_, child) = fields.find(part).ok_or_else(missing)?;
        field = child.as_ref().clone();
    }
    Ok(field)
}

/// Rows that say their key is deleted (`DeleteContext`, Hudi 1.2.0); none if no row can say so.
fn deleted(batch: &RecordBatch, marker: Option<&(String, String)>) -> Result<Option<BooleanArray>> {
    let mut deleted: Option<BooleanArray> = None;
    let mut add = |more: BooleanArray| -> Result<()> {
        deleted = Some(match deleted.take() {
            Some(before) => or_kleene(&before, &more)?,
            None => more,
        });
        Ok(())
    };
    if let Some(flag) = batch
        .column_by_name(IS_DELETED)
        .and_then(|c| c.as_boolean_opt())
    {
        add(flag.clone())?;
    }
    if let Some(operation) = batch
        .column_by_name(OPERATION)
        .and_then(|c| c.as_string_opt::<i32>())
        .filter(|operation| operation.null_count() < operation.len())
    {
        add(operation
            .iter()
            .map(|op| op.map(|op| op == "D" || op == "-U"))
            .collect())?;
    }
    if let Some((field, value)) = marker
        && let Some(column) = batch.column_by_name(field)
    {
        let texts = java_text(column, field)?;
        add(texts
            .iter()
            .map(|text| text.map(|text| text == value))
            .collect())?;
    }
    Ok(deleted)
}

/// Every record key that the base file and the log data blocks of a slice hold, deleted ones too,
/// as batches of one column, `_hoodie_record_key`. Keys can come more than once.
pub struct SliceKeys {
    keys: RecordKeys,
    base: Option<BaseReader>,
    columns: SchemaRef,
    log: VecDeque<RecordBatch>,
}

impl SliceKeys {
    /// Reads the log side; the base file is streamed.
    ///
    /// # Errors
    /// Damaged files, failing storage, a feature that is not supported.
    pub fn new(read: SliceRead) -> Result<Self> {
        let read = SliceRead {
            columns: Vec::new(),
            mode: MergeMode::CommitTime,
            ..read
        };
        let Columns {
            base: columns,
            keys,
            ..
        } = Columns::of(&read)?;
        let names = names_of(&columns);
        let sources = open_logs(&read.store, &read.logs)?;
        let decode = Decode {
            columns: &names,
            batch_rows: read.batch_rows,
            only_rows: true,
        };
        let mut log = VecDeque::new();
        for chosen in choose_blocks(&sources, &read.filter)?.0 {
            decode.block(&sources[chosen.source], &chosen.block, &mut |records| {
                if let LogRecords::Rows(batch) = records {
                    log.push_back(batch);
                }
                Ok(())
            })?;
        }
        let parquet = ParquetRead {
            columns: &names,
            filters: &[],
            batch_rows: read.batch_rows,
        };
        let base = read
            .base
            .map(|path| BaseReader::open(&read.store, &path, &parquet))
            .transpose()?;
        Ok(Self {
            keys,
            base,
            columns,
            log,
        })
    }

    /// Schema of the batches.
    pub fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![text_field(RECORD_KEY)]))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let batch = match self.base.as_mut().and_then(Iterator::next) {
            Some(batch) => Some(batch?),
            None => self.log.pop_front(),
        };
        let Some(batch) = batch else { return Ok(None) };
        let keys = self.keys.of(&adapt(&batch, &self.columns)?)?;
        Ok(Some(RecordBatch::try_new(
            Self::schema(),
            vec![Arc::new(keys)],
        )?))
    }
}

impl Iterator for SliceKeys {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
