//! Reading the rows of some record keys again and again.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use arrow::array::ffi::FFI_ArrowArray;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray, UInt32Array};
use arrow::compute::{cast, concat_batches, take, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use arrow_pyarrow::PyArrowType;
use pyhudi_metadata as metadata;
use pyhudi_slice::{Item, KeyedSlice, Lookup, RECORD_KEY, Result as SliceResult, SliceError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::error::{Released, slice_error};
use crate::metadata::MetadataPartition;
use crate::read::slice_read;
use crate::reader::guarded;
use crate::store::Store;

/// Fewer keys than these are compared one by one.
const FEW_KEYS: usize = 8;

/// Rows of more keys at a time are not kept.
const KEPT_KEYS: usize = 64;
/// Bytes of a kept row besides its values and key.
const ROW_BYTES: usize = 160;

static SNAPSHOTS: AtomicU64 = AtomicU64::new(0);

/// Partition path and file id.
type Place = (String, String);

#[pyclass(frozen, module = "pyhudi._native")]
pub struct LookupCache(Arc<pyhudi_slice::LookupCache>);

#[pymethods]
impl LookupCache {
    #[new]
    fn new(max_bytes: usize) -> Self {
        Self(Arc::new(pyhudi_slice::LookupCache::new(max_bytes)))
    }

    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct KeyReader {
    cache: Arc<pyhudi_slice::LookupCache>,
    snapshot: u64,
    index: Option<metadata::MetadataPartition>,
    output: SchemaRef,
    /// `output` as pyarrow has it: a schema of many columns takes longer than a row of them.
    schema: Py<PyAny>,
    /// Makes bytes of a row, to keep it in little memory; none where columns are nested.
    rows: Option<RowConverter>,
    /// By partition path and file id.
    slices: RwLock<HashMap<Place, Option<Arc<Slice>>>>,
}

struct Slice {
    rows: KeyedSlice,
    /// One row of the columns whose values the partition path gives.
    from_path: Option<RecordBatch>,
}

#[pymethods]
impl KeyReader {
    #[new]
    #[pyo3(signature = (cache, output, index=None))]
    fn new(
        cache: PyRef<'_, LookupCache>,
        output: Bound<'_, PyAny>,
        index: Option<PyRef<'_, MetadataPartition>>,
    ) -> PyResult<Self> {
        let schema = output.clone().unbind();
        let output = Arc::new(output.extract::<PyArrowType<Schema>>()?.0);
        Ok(Self {
            cache: Arc::clone(&cache.0),
            snapshot: SNAPSHOTS.fetch_add(1, Ordering::Relaxed),
            index: index.map(|index| index.0.clone()),
            rows: row_converter(&output),
            output,
            schema,
            slices: RwLock::default(),
        })
    }

    /// The rows, the slices that are unknown, and whether the index was read from storage.
    #[pyo3(signature = (keys, threads, *, by_slice=false))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<String>,
        threads: usize,
        by_slice: bool,
    ) -> PyResult<Found<'py>> {
        let found = py.released(|| {
            let keys = distinct(keys);
            let order = if by_slice && keys.len() > 1 {
                Order::Slices
            } else {
                Order::Keys
            };
            if order == Order::Keys
                && let Some(rows) = self.kept_rows(&keys)?
            {
                return Ok((Some(rows), Some(Vec::new()), false));
            }
            let before = self.index_reads();
            let Ok(places) = self.locate(&keys) else {
                return Ok((None, None, true));
            };
            let was_read = self.index_reads() != before;
            let unknown = self.unknown_of(&places);
            if !unknown.is_empty() {
                return Ok((None, Some(unknown), was_read));
            }
            let rows = self.read_rows(&keys, &places, threads, order)?;
            Ok((Some(rows), Some(Vec::new()), was_read))
        })?;
        let (rows, unknown, was_read) = found.map_err(slice_error)?;
        let rows = rows.map(|rows| self.to_pyarrow(py, rows)).transpose()?;
        Ok((rows, unknown, was_read))
    }

    #[expect(clippy::needless_pass_by_value, reason = "from Python")]
    fn unknown(&self, places: Vec<Place>) -> Vec<Place> {
        self.unknown_of(&places)
    }

    #[pyo3(signature = (partition, file_id, store=None, from_path=None, **spec))]
    fn add(
        &self,
        partition: String,
        file_id: String,
        store: Option<PyRef<'_, Store>>,
        from_path: Option<PyArrowType<RecordBatch>>,
        spec: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let slice = match (store, spec) {
            (Some(store), Some(spec)) => Some(Arc::new(Slice {
                rows: KeyedSlice::new(slice_read(spec, &store)?),
                from_path: from_path.map(|batch| batch.0),
            })),
            _ => None,
        };
        let mut slices = self.slices.write().unwrap_or_else(PoisonError::into_inner);
        slices.insert((partition, file_id), slice);
        Ok(())
    }

    fn read(
        &self,
        py: Python<'_>,
        keys: Vec<String>,
        places: Vec<Place>,
        threads: usize,
    ) -> PyResult<PyArrowType<RecordBatch>> {
        py.released(|| self.read_rows(&distinct(keys), &places, threads, Order::Keys))?
            .map(PyArrowType)
            .map_err(slice_error)
    }
}

/// What [`KeyReader::find`] gives.
type Found<'py> = (Option<Bound<'py, PyAny>>, Option<Vec<Place>>, bool);

/// The order of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Keys,
    /// Of the file slices, and of the rows in each.
    Slices,
}

fn distinct(mut keys: Vec<String>) -> Vec<String> {
    if keys.len() > 1 {
        let mut known = HashSet::with_capacity(keys.len());
        keys.retain(|key| known.insert(key.clone()));
    }
    keys
}

fn row_converter(output: &Schema) -> Option<RowConverter> {
    let is_nested = |field: &Arc<Field>| field.data_type().is_nested();
    if output.fields().iter().any(is_nested) {
        return None;
    }
    let fields = output.fields().iter();
    let fields = fields.map(|field| SortField::new(field.data_type().clone()));
    RowConverter::new(fields.collect()).ok()
}

/// The number of each key.
enum Numbered<'k> {
    Few(&'k [String]),
    Many(HashMap<&'k str, u32>),
}

impl<'k> Numbered<'k> {
    fn of(keys: &'k [String]) -> Self {
        if keys.len() < FEW_KEYS {
            return Self::Few(keys);
        }
        Self::Many(keys.iter().map(String::as_str).zip(0..).collect())
    }

    fn get(&self, key: &str) -> Option<u32> {
        match self {
            Self::Few(keys) => keys
                .iter()
                .zip(0..)
                .find(|(known, _)| *known == key)
                .map(|(_, number)| number),
            Self::Many(keys) => keys.get(key).copied(),
        }
    }
}

/// Rows, and the number of the key of each.
type KeyedRows = (RecordBatch, Vec<u32>);

impl KeyReader {
    /// Rows as pyarrow has them.
    fn to_pyarrow<'py>(&self, py: Python<'py>, rows: RecordBatch) -> PyResult<Bound<'py, PyAny>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if rows.schema_ref() != &self.output {
            return PyArrowType(rows).into_pyobject(py);
        }
        let class = CLASS.get_or_try_init(py, || {
            let class = py.import("pyarrow")?.getattr("RecordBatch");
            class.map(Bound::unbind)
        })?;
        let array = FFI_ArrowArray::new(&StructArray::from(rows).into_data());
        let arguments = (&raw const array as usize, self.schema.bind(py));
        let import = intern!(py, "_import_from_c");
        class.bind(py).call_method1(import, arguments)
    }

    fn index_reads(&self) -> u64 {
        let kept = self.index.as_ref().and_then(|index| index.kept.as_ref());
        kept.map_or(0, |kept| kept.reads())
    }

    /// The slices in which the index may have one of the keys.
    fn locate(&self, keys: &[String]) -> SliceResult<Vec<Place>> {
        let Some(index) = &self.index else {
            return Ok(Vec::new());
        };
        guarded(|| metadata::possible_locations(index, keys))
    }

    fn unknown_of(&self, places: &[Place]) -> Vec<Place> {
        let slices = self.slices.read().unwrap_or_else(PoisonError::into_inner);
        let unknown = places.iter().filter(|place| !slices.contains_key(*place));
        unknown.cloned().collect()
    }

    fn read_rows(
        &self,
        keys: &[String],
        places: &[Place],
        threads: usize,
        order: Order,
    ) -> SliceResult<RecordBatch> {
        let slices: Vec<Arc<Slice>> = {
            let known = self.slices.read().unwrap_or_else(PoisonError::into_inner);
            let known = places
                .iter()
                .filter_map(|place| known.get(place)?.as_ref().map(Arc::clone));
            known.collect()
        };
        let numbered = Numbered::of(keys);
        let lookup = Lookup::new(&self.cache, self.snapshot, keys.iter().map(String::as_str));
        let read = |slice: &Slice| guarded(|| self.rows(slice, keys, &numbered, &lookup));
        let rows = read_all(&slices, threads, &read)?;
        if order == Order::Slices {
            return together(
                &self.output,
                rows.into_iter().map(|(batch, _)| batch).collect(),
            );
        }
        let (batch, numbers) = ordered(&self.output, rows)?;
        self.keep_rows(keys, &batch, &numbers)?;
        Ok(batch)
    }

    /// The rows of a few keys, if all of them are kept.
    fn kept_rows(&self, keys: &[String]) -> SliceResult<Option<RecordBatch>> {
        let Some(converter) = self.rows.as_ref().filter(|_| keys.len() <= KEPT_KEYS) else {
            return Ok(None);
        };
        let item = |key: &String| Item::Row(self.snapshot, key.clone());
        let kept = keys
            .iter()
            .map(|key| self.cache.find::<Vec<u8>>(&item(key)));
        let Some(kept) = kept.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let parser = converter.parser();
        let columns = converter.convert_rows(kept.iter().map(|row| parser.parse(row)))?;
        with_nulls(&self.output, columns).map(Some)
    }

    /// Keeps the rows of a few keys. numbers: of the key of each row, in order.
    fn keep_rows(&self, keys: &[String], batch: &RecordBatch, numbers: &[u32]) -> SliceResult<()> {
        let few = keys.len() <= KEPT_KEYS && self.index.is_some();
        let Some(converter) = self.rows.as_ref().filter(|_| few) else {
            return Ok(());
        };
        if numbers.windows(2).any(|pair| pair.first() == pair.last()) {
            return Ok(());
        }
        let rows = converter.convert_columns(batch.columns())?;
        for (row, number) in rows.iter().zip(numbers) {
            if let Some(key) = keys.get(*number as usize) {
                let row = row.as_ref().to_vec();
                let bytes = row.len() + key.len() + ROW_BYTES;
                self.cache
                    .put(Item::Row(self.snapshot, key.clone()), row, bytes);
            }
        }
        Ok(())
    }

    /// The rows of a slice that have one of the keys.
    fn rows(
        &self,
        slice: &Slice,
        keys: &[String],
        numbered: &Numbered<'_>,
        lookup: &Lookup,
    ) -> SliceResult<Vec<KeyedRows>> {
        let mut rows = Vec::new();
        for batch in slice.rows.rows(lookup, keys)? {
            let found = batch.column_by_name(RECORD_KEY);
            let found = found.ok_or_else(|| SliceError::Schema("rows without keys".to_owned()))?;
            let found = cast(found, &DataType::Utf8)?;
            let numbers = found.as_string::<i32>().iter().zip(0_u32..);
            let (at, numbers): (Vec<u32>, Vec<u32>) = numbers
                .filter_map(|(key, row)| Some((row, numbered.get(key?)?)))
                .unzip();
            if at.len() == batch.num_rows() && !at.is_empty() {
                rows.push((self.output_rows(slice, &batch)?, numbers));
            } else if !at.is_empty() {
                let batch = take_record_batch(&batch, &UInt32Array::from(at))?;
                rows.push((self.output_rows(slice, &batch)?, numbers));
            }
        }
        Ok(rows)
    }

    fn output_rows(&self, slice: &Slice, batch: &RecordBatch) -> SliceResult<RecordBatch> {
        let column = |field: &Field| -> SliceResult<ArrayRef> {
            let from_path = slice.from_path.as_ref();
            if let Some(value) = from_path.and_then(|row| row.column_by_name(field.name())) {
                let first = UInt32Array::from(vec![0; batch.num_rows()]);
                return Ok(take(value, &first, None)?);
            }
            let stored = batch.column_by_name(field.name()).cloned();
            stored.ok_or_else(|| SliceError::Schema(format!("no column {}", field.name())))
        };
        let columns = self.output.fields().iter().map(|field| column(field));
        let columns = columns.collect::<SliceResult<Vec<_>>>()?;
        with_nulls(&self.output, columns)
    }
}

/// Rows, also with nulls that the table does not allow.
fn with_nulls(output: &SchemaRef, columns: Vec<ArrayRef>) -> SliceResult<RecordBatch> {
    let mut fields = output.fields().iter().zip(&columns);
    if fields.all(|(field, column)| field.is_nullable() || column.null_count() == 0) {
        return Ok(RecordBatch::try_new(Arc::clone(output), columns)?);
    }
    let fields = output.fields().iter().zip(&columns).map(|(field, column)| {
        let nullable = field.is_nullable() || column.null_count() > 0;
        field.as_ref().clone().with_nullable(nullable)
    });
    let fields: Vec<Field> = fields.collect();
    let schema = Schema::new_with_metadata(fields, output.metadata().clone());
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// What is read of each slice, in their order; several at a time.
fn read_all(
    slices: &[Arc<Slice>],
    threads: usize,
    read: &(dyn Fn(&Slice) -> SliceResult<Vec<KeyedRows>> + Sync),
) -> SliceResult<Vec<KeyedRows>> {
    let threads = threads.min(slices.len());
    if threads < 2 {
        let read = slices.iter().map(|slice| read(slice));
        return Ok(read.collect::<SliceResult<Vec<_>>>()?.concat());
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(slices.len()));
    thread::scope(|scope| {
        for _ in 0..threads {
            let work = || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slice) = slices.get(number) else {
                        return;
                    };
                    let rows = read(slice);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.push((number, rows));
                }
            };
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                // The system gives no more threads.
                work();
            }
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(number, _)| *number);
    let rows = results.into_iter().map(|(_, rows)| rows);
    Ok(rows.collect::<SliceResult<Vec<_>>>()?.concat())
}

/// One batch in the order of the keys. Rows of one key stay in the order of the slices.
fn ordered(output: &SchemaRef, rows: Vec<KeyedRows>) -> SliceResult<KeyedRows> {
    let mut numbers: Vec<(u32, u32)> = Vec::new();
    for (_, keys) in &rows {
        let first = numbers.len() as u32;
        numbers.extend(keys.iter().copied().zip(first..));
    }
    let mut batch = together(output, rows.into_iter().map(|(batch, _)| batch).collect())?;
    if !numbers.is_sorted() {
        numbers.sort_unstable();
        let at = numbers.iter().map(|(_, row)| *row);
        batch = take_record_batch(&batch, &UInt32Array::from_iter_values(at))?;
    }
    Ok((
        batch,
        numbers.into_iter().map(|(number, _)| number).collect(),
    ))
}

fn together(output: &SchemaRef, batches: Vec<RecordBatch>) -> SliceResult<RecordBatch> {
    match batches.as_slice() {
        [] => Ok(RecordBatch::new_empty(Arc::clone(output))),
        [batch] => Ok(batch.clone()),
        [first, rest @ ..] if rest.iter().all(|batch| batch.schema() == first.schema()) => {
            Ok(concat_batches(&first.schema(), &batches)?)
        }
        batches => concat_nullable(batches),
    }
}

fn concat_nullable(batches: &[RecordBatch]) -> SliceResult<RecordBatch> {
    let nullable = |batch: &RecordBatch| -> SliceResult<RecordBatch> {
        let schema = batch.schema();
        let fields = schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema =
            Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
        Ok(RecordBatch::try_new(
            Arc::new(schema),
            batch.columns().to_vec(),
        )?)
    };
    let batches = batches
        .iter()
        .map(nullable)
        .collect::<SliceResult<Vec<_>>>()?;
    match batches.first() {
        Some(first) => Ok(concat_batches(&first.schema(), &batches)?),
        None => Err(SliceError::Schema("no rows".to_owned())),
    }
}
