//! File groups and file slices: arrays behind Python objects that are made one by one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, ArrayData, AsArray, BooleanArray, RecordBatch, make_array};
use arrow::error::ArrowError;
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use pyhudi_files::{self as files, Extension, GroupFile, Kind, Selection, SliceParts, Timeline};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::error::{Released, config_error, mismatch, slice_error};
use crate::metadata::MetadataPartition;

type Key = (String, String);

/// Name, instant, write token, size, version of a log file, suffix of a log file.
type FileParts<'py> = (
    Bound<'py, PyString>,
    Bound<'py, PyString>,
    Bound<'py, PyString>,
    i64,
    Option<Bound<'py, PyAny>>,
    &'static str,
);

/// Partition path, file id, base instant, base file, log files.
type Parts<'py> = (
    Bound<'py, PyString>,
    Bound<'py, PyString>,
    Bound<'py, PyString>,
    Option<FileParts<'py>>,
    Vec<FileParts<'py>>,
);

/// Partition path, file id, and files: paths, and whether each is a log file.
type SlicePaths<'a> = (&'a str, &'a str, Vec<(String, bool)>);

#[pyclass(frozen, module = "pyhudi._native")]
pub struct FileGroupsBuilder(Mutex<files::FileGroupsBuilder>);

#[pymethods]
impl FileGroupsBuilder {
    #[new]
    #[pyo3(signature = (extension=None))]
    fn new(extension: Option<&str>) -> PyResult<Self> {
        let known = |text: &str| {
            Extension::of(text).ok_or_else(|| config_error(format!("no base file format {text}")))
        };
        let extension = extension.map(known).transpose()?;
        Ok(Self(Mutex::new(files::FileGroupsBuilder::new(extension))))
    }

    fn add(&self, partition: &str, entries: &Bound<'_, PyList>) -> PyResult<Option<String>> {
        let mut builder = locked(&self.0);
        let partition = builder.add_partition(partition);
        for entry in entries {
            let entry = entry.cast::<PyTuple>()?;
            let path = entry.get_item(0)?;
            let path = path.cast::<PyString>()?.to_cow()?;
            let size = entry.get_item(1)?.extract()?;
            let name = path.rsplit_once('/').map_or(&*path, |(_, name)| name);
            if !builder.add_file(partition, name, size) {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }

    fn add_metadata(
        &self,
        py: Python<'_>,
        listing: PyRef<'_, MetadataPartition>,
        partitions: HashMap<String, String>,
    ) -> PyResult<Option<String>> {
        let listing = &listing.0;
        py.released(|| {
            let mut builder = locked(&self.0);
            let numbers: HashMap<&str, u32> = (partitions.iter())
                .map(|(key, path)| (key.as_str(), builder.add_partition(path)))
                .collect();
            let keys: Vec<String> = partitions.keys().cloned().collect();
            let mut unsupported = None;
            pyhudi_metadata::each_file(listing, Some(&keys), |key, name, size, is_deleted| {
                let partition = numbers.get(key).filter(|_| !is_deleted);
                if partition.is_some_and(|partition| !builder.add_file(*partition, name, size)) {
                    unsupported.get_or_insert_with(|| name.to_owned());
                }
            })?;
            Ok(unsupported)
        })?
        .map_err(slice_error)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<FileGroups> {
        py.released(|| std::mem::take(&mut *locked(&self.0)).finish())
            .map(FileGroups)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct FileGroups(files::FileGroups);

#[pymethods]
impl FileGroups {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn with_change_logs(&self, change_logs: bool) -> Self {
        Self(self.0.with_change_logs(change_logs))
    }

    fn partitions(&self) -> Vec<&str> {
        self.0.partitions()
    }

    fn keys<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyString>, Bound<'py, PyString>)> {
        (0..self.0.len() as u32)
            .map(|group| {
                let (partition, file_id) = self.0.key(group);
                (PyString::intern(py, partition), PyString::new(py, file_id))
            })
            .collect()
    }

    fn has_group(&self, partition: &str, file_id: &str) -> bool {
        self.0.find(partition, file_id).is_some()
    }

    fn files<'py>(
        &self,
        py: Python<'py>,
        partition: &str,
        file_id: &str,
    ) -> PyResult<Option<Vec<FileParts<'py>>>> {
        let group = self.0.find(partition, file_id);
        let files = |group| self.0.files(group).map(|(_, file)| file_parts(py, &file));
        group.map(|group| files(group).collect()).transpose()
    }

    fn has_file(&self, partition: &str, name: &str) -> bool {
        self.0.contains(partition, name)
    }

    fn absent(&self, paths: &Bound<'_, PyList>) -> PyResult<Vec<usize>> {
        let mut absent = Vec::new();
        for (at, path) in paths.iter().enumerate() {
            let path = path.cast::<PyString>()?.to_cow()?;
            if !self.0.has_path(&path) {
                absent.push(at);
            }
        }
        Ok(absent)
    }

    fn absent_of(
        &self,
        py: Python<'_>,
        listing: PyRef<'_, MetadataPartition>,
        partitions: HashMap<String, String>,
    ) -> PyResult<Vec<String>> {
        let listing = &listing.0;
        py.released(|| {
            let keys: Vec<String> = partitions.keys().cloned().collect();
            let mut absent = Vec::new();
            pyhudi_metadata::each_file(listing, Some(&keys), |key, name, _, is_deleted| {
                let Some(partition) = partitions.get(key).filter(|_| !is_deleted) else {
                    return;
                };
                if !self.0.contains(partition, name) {
                    let slash = if partition.is_empty() { "" } else { "/" };
                    absent.push(format!("{partition}{slash}{name}"));
                }
            })?;
            Ok(absent)
        })?
        .map_err(slice_error)
    }

    fn total(&self, py: Python<'_>) -> PyResult<(usize, i64)> {
        py.released(|| self.0.total())
    }

    fn files_in(&self, partition: &str) -> usize {
        self.0.files_in(partition)
    }
}

/// A timeline as two functions.
struct Functions {
    is_committed: Py<PyAny>,
    completion_time: Py<PyAny>,
}

impl Timeline for Functions {
    type Error = PyErr;

    fn is_committed(&self, instant: &str) -> PyResult<bool> {
        Python::attach(|py| self.is_committed.call1(py, (instant,))?.extract(py))
    }

    fn completion_time(&self, instant: &str) -> PyResult<String> {
        Python::attach(|py| self.completion_time.call1(py, (instant,))?.extract(py))
    }
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct SliceFinder(Mutex<files::SliceFinder<Functions>>);

#[pymethods]
impl SliceFinder {
    #[new]
    #[pyo3(signature = (
        groups, *, is_committed, completion_time, logs_named_by_base_instant, compactions
    ))]
    fn new(
        groups: PyRef<'_, FileGroups>,
        is_committed: Py<PyAny>,
        completion_time: Py<PyAny>,
        logs_named_by_base_instant: bool,
        compactions: Vec<(Key, String)>,
    ) -> Self {
        let timeline = Functions {
            is_committed,
            completion_time,
        };
        let groups = groups.0.clone();
        let by_name = logs_named_by_base_instant;
        Self(Mutex::new(files::SliceFinder::new(
            groups,
            timeline,
            by_name,
            &compactions,
        )))
    }

    fn find(&self, py: Python<'_>, selection: &str, without: Vec<Key>) -> PyResult<FileSlices> {
        let selection = match selection {
            "snapshot" => Selection::Snapshot,
            "base files" => Selection::BaseFiles,
            "newest" => Selection::Newest,
            "all" => Selection::All,
            other => return Err(config_error(format!("no selection of slices {other}"))),
        };
        self.slices(py, |finder| finder.find_all(selection, &without))
    }

    fn find_versions(
        &self,
        py: Python<'_>,
        without: Vec<Key>,
        also: Vec<Key>,
    ) -> PyResult<FileSlices> {
        self.slices(py, |finder| finder.find_versions(&without, &also))
    }

    fn find_one(&self, py: Python<'_>, partition: &str, file_id: &str) -> PyResult<FileSlices> {
        self.slices(py, |finder| finder.find_one(partition, file_id))
    }

    fn newest_base(
        &self,
        py: Python<'_>,
        partition: &str,
        file_id: &str,
    ) -> PyResult<Option<String>> {
        py.released(|| locked(&self.0).newest_base(partition, file_id))?
    }
}

impl SliceFinder {
    /// The lock is taken without the GIL, which the timeline's functions need.
    fn slices(
        &self,
        py: Python<'_>,
        find: impl Send + FnOnce(&mut files::SliceFinder<Functions>) -> PyResult<files::FileSlices>,
    ) -> PyResult<FileSlices> {
        py.released(|| find(&mut locked(&self.0)))?.map(FileSlices)
    }
}

#[pyclass(frozen, module = "pyhudi._native")]
pub struct FileSlices(files::FileSlices);

#[pymethods]
impl FileSlices {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn parts<'py>(&self, py: Python<'py>, start: usize, end: usize) -> PyResult<Vec<Parts<'py>>> {
        let slices = (start..end.min(self.0.len())).filter_map(|at| self.0.get(at));
        slices.map(|slice| slice_parts(py, &slice)).collect()
    }

    fn file_paths(&self) -> Vec<SlicePaths<'_>> {
        let slices = (0..self.0.len()).filter_map(|at| self.0.get(at));
        slices.map(paths_of_slice).collect()
    }

    fn take(&self, numbers: Vec<usize>) -> Self {
        Self(self.0.take(numbers.into_iter()))
    }

    fn filter(&self, keep: PyArrowType<ArrayData>) -> PyResult<Self> {
        let keep = flags(keep)?;
        if keep.len() != self.0.len() {
            return Err(mismatch(format!(
                "{} flags for {} file slices",
                keep.len(),
                self.0.len()
            )));
        }
        Ok(Self(self.0.filter(&keep)))
    }

    fn with_logs(&self) -> Self {
        Self(self.0.with_logs())
    }

    fn partitions(&self) -> Vec<&str> {
        self.0.partitions()
    }

    fn totals(&self, py: Python<'_>) -> PyResult<(usize, i64, usize, i64)> {
        py.released(|| self.0.totals())
    }

    fn in_groups<'py>(&self, py: Python<'py>, keys: Vec<Key>) -> PyResult<Bound<'py, PyAny>> {
        let flags = py.released(|| self.0.in_groups(&keys))?;
        flags.to_data().to_pyarrow(py)
    }

    fn in_partitions<'py>(
        &self,
        py: Python<'py>,
        paths: Vec<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.0.in_partitions(&paths).to_data().to_pyarrow(py)
    }

    fn file_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.file_ids().to_data().to_pyarrow(py)
    }

    fn have_logs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.have_logs().to_data().to_pyarrow(py)
    }

    fn any_file<'py>(
        &self,
        py: Python<'py>,
        of_files: PyArrowType<ArrayData>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.0.any_file(&flags(of_files)?).to_data().to_pyarrow(py)
    }

    fn files(&self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        made(py.released(|| self.0.files())?)
    }

    fn sizes(&self, py: Python<'_>) -> PyResult<PyArrowType<RecordBatch>> {
        made(py.released(|| self.0.sizes())?)
    }

    fn rows(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<PyArrowType<RecordBatch>> {
        made(py.released(|| self.0.rows(start, end))?)
    }
}

fn made(batch: Result<RecordBatch, ArrowError>) -> PyResult<PyArrowType<RecordBatch>> {
    batch
        .map(PyArrowType)
        .map_err(|error| slice_error(error.into()))
}

fn flags(array: PyArrowType<ArrayData>) -> PyResult<BooleanArray> {
    let array = make_array(array.0);
    array
        .as_boolean_opt()
        .cloned()
        .ok_or_else(|| mismatch(format!("expected booleans, got {}", array.data_type())))
}

fn slice_parts<'py>(py: Python<'py>, slice: &SliceParts<'_>) -> PyResult<Parts<'py>> {
    let base = slice.base.as_ref().map(|base| file_parts(py, base));
    let logs = slice.logs.iter().map(|log| file_parts(py, log));
    Ok((
        PyString::intern(py, slice.partition),
        PyString::new(py, slice.file_id),
        PyString::intern(py, slice.instant),
        base.transpose()?,
        logs.collect::<PyResult<_>>()?,
    ))
}

fn paths_of_slice(slice: SliceParts<'_>) -> SlicePaths<'_> {
    let path = |file: &GroupFile<'_>| match slice.partition {
        "" => file.name(),
        partition => format!("{partition}/{}", file.name()),
    };
    let base = slice.base.iter().map(|base| (path(base), false));
    let logs = slice.logs.iter().map(|log| (path(log), true));
    (slice.partition, slice.file_id, base.chain(logs).collect())
}

/// Many files have few instants and tokens, so each string is stored once.
fn file_parts<'py>(py: Python<'py>, file: &GroupFile<'_>) -> PyResult<FileParts<'py>> {
    let version = match file.kind {
        Kind::Base(_) => None,
        _ => Some(match file.version.parse::<u64>() {
            Ok(version) => version.into_pyobject(py)?.into_any(),
            Err(_) => py.get_type::<pyo3::types::PyInt>().call1((file.version,))?,
        }),
    };
    Ok((
        PyString::new(py, &file.name()),
        PyString::intern(py, file.instant),
        PyString::intern(py, file.token),
        file.size,
        version,
        match file.kind {
            Kind::ChangeLog => ".cdc",
            _ => "",
        },
    ))
}
