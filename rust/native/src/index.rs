//! Tagging: hashes of keys that indexes place records by, and what filters say of keys.

use arrow::array::{Array, ArrayData, AsArray, BooleanArray, Int32Array, Int64Array, make_array};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use arrow_pyarrow::{FromPyArrow, PyArrowType, ToPyArrow};
use pyhudi_format::hash::{
    KeyParts, SPARK_SEED, bucket_id, consistent_hash, consistent_nodes, hash64, key_values,
    metadata_file_group, spark_int_hash, spark_long_hash, spark_text_hash,
};
use pyo3::prelude::*;

use crate::args::texts;
use crate::error::{Released, slice_error};
use crate::metadata::MetadataPartition;
use crate::store::Store;

fn parts(scan: bool) -> KeyParts {
    if scan {
        KeyParts::Scan
    } else {
        KeyParts::Split
    }
}

#[pyfunction]
#[pyo3(signature = (keys, fields, buckets, *, scan))]
pub fn bucket_numbers<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    fields: Vec<String>,
    buckets: u32,
    scan: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = texts(keys)?;
    let numbers: Int32Array = py.released(|| {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let number = |key| bucket_id(key, &fields, buckets, parts(scan)).cast_signed();
        keys.iter().map(|key| key.map(number)).collect()
    })?;
    numbers.to_data().to_pyarrow(py)
}

#[pyfunction]
#[pyo3(signature = (keys, fields, *, scan))]
pub fn consistent_hashes<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    fields: Vec<String>,
    scan: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = texts(keys)?;
    let hashes: Int64Array = py.released(|| {
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let hash = |key| i64::from(consistent_hash(key_values(key, &fields, parts(scan))));
        keys.iter().map(|key| key.map(hash)).collect()
    })?;
    hashes.to_data().to_pyarrow(py)
}

#[pyfunction]
pub fn spark_hashes<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = make_array(ArrayData::from_pyarrow_bound(values)?);
    let null = SPARK_SEED.cast_signed();
    let hashes: Int32Array = match array.data_type() {
        DataType::Int32 => py.released(|| {
            let values = array.as_primitive::<Int32Type>().iter();
            values
                .map(|value| Some(value.map_or(null, spark_int_hash)))
                .collect()
        })?,
        DataType::Int64 => py.released(|| {
            let values = array.as_primitive::<Int64Type>().iter();
            values
                .map(|value| Some(value.map_or(null, spark_long_hash)))
                .collect()
        })?,
        _ => {
            let texts = texts(values)?;
            py.released(|| {
                let values = texts.iter();
                values
                    .map(|value| Some(value.map_or(null, spark_text_hash)))
                    .collect()
            })?
        }
    };
    hashes.to_data().to_pyarrow(py)
}

#[pyfunction]
pub fn initial_hash_nodes(partition: &str, buckets: u32) -> Vec<(u32, String)> {
    let nodes = consistent_nodes(partition, buckets).into_iter();
    nodes
        .map(|node| (node.value, node.file_id_prefix))
        .collect()
}

#[pyfunction]
pub fn text_hash(text: &str) -> u64 {
    u64::from_be_bytes(hash64(text))
}

#[pyfunction]
pub fn metadata_groups<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    groups: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = texts(keys)?;
    let numbers: Int32Array = py.released(|| {
        let number = |key| metadata_file_group(key, groups).cast_signed();
        keys.iter().map(|key| key.map(number)).collect()
    })?;
    numbers.to_data().to_pyarrow(py)
}

#[pyfunction]
pub fn scatter(
    py: Python<'_>,
    rows: PyArrowType<ArrayData>,
    values: PyArrowType<ArrayData>,
    length: usize,
) -> PyResult<Bound<'_, PyAny>> {
    let (rows, values) = (Int64Array::from(rows.0), Int64Array::from(values.0));
    let scattered: Int64Array = py.released(|| {
        let mut scattered = vec![None; length];
        for (row, value) in rows.iter().zip(&values) {
            let slot = row.and_then(|row| scattered.get_mut(usize::try_from(row).ok()?));
            if let Some(slot) = slot {
                *slot = value;
            }
        }
        scattered.into_iter().collect()
    })?;
    scattered.to_data().to_pyarrow(py)
}

#[pyfunction]
pub fn footer_candidates<'py>(
    py: Python<'py>,
    store: PyRef<'_, Store>,
    path: &str,
    keys: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (store, keys) = (store.0.clone(), texts(keys)?);
    let found: BooleanArray = py
        .released(|| pyhudi_slice::key_candidates(&store, path, &keys))?
        .map_err(slice_error)?;
    found.to_data().to_pyarrow(py)
}

#[pyfunction]
pub fn filter_candidates<'py>(
    py: Python<'py>,
    filters: &Bound<'py, MetadataPartition>,
    partition: &str,
    file: &str,
    keys: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (filters, keys) = (filters.get(), texts(keys)?);
    let found = py
        .released(|| pyhudi_metadata::keys_in_filter(&filters.0, partition, file, &keys))?
        .map_err(slice_error)?;
    found
        .map(|found| found.to_data().to_pyarrow(py))
        .transpose()
}

#[pyfunction]
pub fn possible_bucket_ids(keys: Vec<String>, fields: Vec<String>, buckets: u32) -> Vec<u32> {
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    // Hudi 0.15 and 1.x take some keys apart differently, and nothing tells which one wrote.
    let both = |key: &String| {
        [KeyParts::Split, KeyParts::Scan].map(|parts| bucket_id(key, &fields, buckets, parts))
    };
    let mut found: Vec<u32> = keys.iter().flat_map(both).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[pyfunction]
pub fn possible_consistent_hashes(keys: Vec<String>, fields: Vec<String>) -> Vec<u32> {
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let both = |key: &String| {
        [KeyParts::Split, KeyParts::Scan]
            .map(|parts| consistent_hash(key_values(key, &fields, parts)))
    };
    let mut found: Vec<u32> = keys.iter().flat_map(both).collect();
    found.sort_unstable();
    found.dedup();
    found
}
