//! Bytes of BLOB columns: those in the row, and those that a reference to another file names.
//!
//! A BLOB is a struct of `type` (INLINE or OUT_OF_LINE), `data`, and `reference` with
//! `external_path`, `offset`, `length` and `managed` (`HoodieSchema.Blob`, Hudi 1.2.0). A reference
//! without offset and length is the whole file (`BatchedBlobReader`).

use std::collections::HashMap;
use std::ops::Range;
use std::thread;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, Int64Array, StringArray, StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use bytes::Bytes;
use pyhudi_format::ReadAt;
use pyhudi_store::{Store, StoreFile};

use crate::error::{Result, SliceError};

const INLINE: &str = "INLINE";
const OUT_OF_LINE: &str = "OUT_OF_LINE";
/// References that are opened at a time.
const AT_ONCE: usize = 128;
/// Files that are read at a time.
const THREADS: usize = 8;

/// The storages that references of a BLOB column name, as `scheme://authority`; the empty text
/// stands for absolute paths without a scheme.
///
/// # Errors
/// The column is no BLOB, or a reference names no file.
pub fn blob_roots(column: &ArrayRef, name: &str) -> Result<Vec<String>> {
    let blobs = Blobs::of(column, name, 0)?;
    let mut roots: Vec<String> = Vec::new();
    for row in 0..column.len() {
        if let Place::File { root, .. } = blobs.place(row)?
            && !roots.iter().any(|known| known == &root)
        {
            roots.push(root);
        }
    }
    Ok(roots)
}

/// The bytes of the rows of a BLOB column from `start` on, of as many rows as `most_bytes` hold,
/// at least one.
///
/// stores: by the roots that [`blob_roots`] gives. `first_row` is the number of the column's first
/// row in messages.
///
/// # Errors
/// The column is no BLOB, a row contradicts itself, or a file is missing, too short or unreadable.
pub fn read_blobs(
    column: &ArrayRef,
    name: &str,
    stores: &[(String, Store)],
    first_row: usize,
    start: usize,
    most_bytes: u64,
) -> Result<BinaryArray> {
    let blobs = Blobs::of(column, name, first_row)?;
    let mut places = Vec::new();
    let mut outside = 0;
    for row in start..column.len() {
        let place = blobs.place(row)?;
        outside += usize::from(matches!(place, Place::File { .. }));
        if outside > AT_ONCE {
            break;
        }
        places.push(place);
    }
    let files = open(&places, stores)?;
    let mut left = most_bytes;
    let mut values = Vec::with_capacity(places.len());
    for place in places {
        let value = blobs.value(&place, &files)?;
        let size = value.size();
        if size > i32::MAX as u64 {
            return Err(SliceError::Unsupported {
                feature: format!("BLOB of {size} bytes in column '{name}'"),
            });
        }
        if size > left && !values.is_empty() {
            break;
        }
        left = left.saturating_sub(size);
        values.push(value);
    }
    let read = fetch(&values, &files)?;
    let total = values.iter().map(Value::size).sum::<u64>() as usize;
    let mut out = BinaryBuilder::with_capacity(values.len(), total);
    for (row, value) in values.iter().enumerate() {
        match (value, read.get(&row)) {
            (Value::Bytes(bytes), _) => out.append_value(bytes),
            (Value::Range { .. }, Some(bytes)) => out.append_value(bytes),
            _ => out.append_null(),
        }
    }
    Ok(out.finish())
}

/// Where the bytes of a row are.
enum Place<'a> {
    Null,
    Bytes(&'a [u8]),
    File {
        path: &'a str,
        root: String,
        below: String,
        /// Offset and length; none for the whole file.
        range: Option<(u64, u64)>,
    },
}

/// The bytes of a row, or which of a file they are.
enum Value<'a> {
    Null,
    Bytes(&'a [u8]),
    Range { path: &'a str, range: Range<u64> },
}

impl Value<'_> {
    fn size(&self) -> u64 {
        match self {
            Self::Null => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Range { range, .. } => range.end - range.start,
        }
    }
}

type Files<'a> = HashMap<&'a str, StoreFile>;
/// A file, and ranges of it with the numbers of their values.
type Job<'a> = (&'a str, Vec<(usize, Range<u64>)>);

struct Blobs<'a> {
    column: &'a StructArray,
    kind: StringArray,
    data: BinaryArray,
    reference: &'a StructArray,
    path: StringArray,
    offset: Int64Array,
    length: Int64Array,
    name: &'a str,
    first_row: usize,
}

impl<'a> Blobs<'a> {
    fn of(column: &'a ArrayRef, name: &'a str, first_row: usize) -> Result<Self> {
        let none = || {
            let kind = column.data_type();
            SliceError::Schema(format!("column '{name}' is {kind}, no BLOB"))
        };
        let column = column.as_struct_opt().ok_or_else(none)?;
        let part = |of: &'a StructArray, name| of.column_by_name(name).ok_or_else(none);
        let reference = part(column, "reference")?.as_struct_opt();
        let reference = reference.ok_or_else(none)?;
        let text = |array: &ArrayRef| -> Result<StringArray> {
            Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone())
        };
        let number = |array: &ArrayRef| -> Result<Int64Array> {
            let numbers = cast(array, &DataType::Int64)?;
            Ok(numbers.as_primitive::<Int64Type>().clone())
        };
        let data = cast(part(column, "data")?, &DataType::Binary)?;
        Ok(Self {
            kind: text(part(column, "type")?)?,
            data: data.as_binary::<i32>().clone(),
            path: text(part(reference, "external_path")?)?,
            offset: number(part(reference, "offset")?)?,
            length: number(part(reference, "length")?)?,
            column,
            reference,
            name,
            first_row,
        })
    }

    fn place(&self, row: usize) -> Result<Place<'_>> {
        if self.column.is_null(row) {
            return Ok(Place::Null);
        }
        let kind = if self.kind.is_valid(row) {
            self.kind.value(row)
        } else {
            ""
        };
        match kind {
            INLINE if self.data.is_valid(row) => Ok(Place::Bytes(self.data.value(row))),
            INLINE => Err(self.odd(row, "is INLINE and has no data")),
            OUT_OF_LINE => self.reference(row),
            other => Err(self.odd(row, &format!("has the type {other:?}"))),
        }
    }

    fn reference(&self, row: usize) -> Result<Place<'_>> {
        if self.reference.is_null(row) || self.path.is_null(row) {
            return Err(self.odd(row, "is OUT_OF_LINE and has no reference"));
        }
        let path = self.path.value(row);
        let Some((root, below)) = split(path) else {
            let what = format!("has the external_path {path:?}, which is no absolute path");
            return Err(self.odd(row, &what));
        };
        let at = |numbers: &Int64Array| numbers.is_valid(row).then(|| numbers.value(row));
        let range = match (at(&self.offset), at(&self.length)) {
            (None, None) => None,
            (Some(offset), Some(length)) => {
                let (Ok(offset), Ok(length)) = (u64::try_from(offset), u64::try_from(length))
                else {
                    let what = format!("has offset {offset} and length {length} in {path}");
                    return Err(self.odd(row, &what));
                };
                Some((offset, length))
            }
            _ => {
                let what = format!("has one of offset and length alone in {path}");
                return Err(self.odd(row, &what));
            }
        };
        Ok(Place::File {
            path,
            root,
            below,
            range,
        })
    }

    fn value<'b>(&self, place: &Place<'b>, files: &Files<'_>) -> Result<Value<'b>> {
        Ok(match *place {
            Place::Null => Value::Null,
            Place::Bytes(bytes) => Value::Bytes(bytes),
            Place::File { path, range, .. } => {
                let size = files.get(path).map_or(0, ReadAt::size);
                let (offset, length) = range.unwrap_or((0, size));
                let end = offset.checked_add(length).filter(|end| *end <= size);
                let Some(end) = end else {
                    return Err(SliceError::Corrupt {
                        file: path.to_owned(),
                        offset: Some(offset),
                        what: format!(
                            "a BLOB of column '{}' has {length} bytes from there on, the file has \
                             {size} in all",
                            self.name
                        ),
                    });
                };
                Value::Range {
                    path,
                    range: offset..end,
                }
            }
        })
    }

    fn odd(&self, row: usize, what: &str) -> SliceError {
        SliceError::Corrupt {
            file: format!("column '{}'", self.name),
            offset: None,
            what: format!("the BLOB in row {} {what}", self.first_row + row),
        }
    }
}

/// The root and what is below it: `s3://bucket` and `a/b.bin`.
fn split(path: &str) -> Option<(String, String)> {
    if let Some(below) = path.strip_prefix('/') {
        // `//a/b` is a host and a path to Hudi, without the scheme that would say of what.
        let is_path = !below.starts_with('/') || below.starts_with("//");
        return Some((String::new(), normalize(below).filter(|_| is_path)?));
    }
    let (scheme, rest) = path.split_once(":/")?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if scheme.is_empty() || !scheme.chars().all(is_scheme) {
        return None;
    }
    // `file:/a` is `file:///a`.
    let (authority, below) = match rest.strip_prefix('/') {
        Some(rest) => rest.split_once('/')?,
        None => ("", rest),
    };
    let root = format!("{}://{authority}", scheme.to_ascii_lowercase());
    Some((root, normalize(below)?))
}

/// The path without empty parts and dot parts, as Hudi opens it (`StoragePath`); none if nothing is
/// left, or if it leads above the root.
fn normalize(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/")).filter(|normal| !normal.is_empty())
}

fn open<'a>(places: &[Place<'a>], stores: &[(String, Store)]) -> Result<Files<'a>> {
    let mut wanted: HashMap<&str, Vec<(&'a str, &str)>> = HashMap::new();
    for place in places {
        if let Place::File {
            path, root, below, ..
        } = place
        {
            wanted
                .entry(root.as_str())
                .or_default()
                .push((*path, below.as_str()));
        }
    }
    let mut files = Files::new();
    for (root, mut paths) in wanted {
        paths.sort_unstable();
        paths.dedup();
        let Some((_, store)) = stores.iter().find(|(known, _)| known == root) else {
            return Err(SliceError::Unsupported {
                feature: format!("files of {root}"),
            });
        };
        let below: Vec<String> = paths.iter().map(|(_, below)| (*below).to_owned()).collect();
        let opened = store.files(&below)?;
        files.extend(paths.into_iter().map(|(path, _)| path).zip(opened));
    }
    Ok(files)
}

/// The bytes of the values that are ranges of files, by number.
fn fetch(values: &[Value<'_>], files: &Files<'_>) -> Result<HashMap<usize, Bytes>> {
    let mut by_file: HashMap<&str, Vec<(usize, Range<u64>)>> = HashMap::new();
    for (number, value) in values.iter().enumerate() {
        if let Value::Range { path, range } = value {
            by_file
                .entry(path)
                .or_default()
                .push((number, range.clone()));
        }
    }
    let mut jobs: Vec<_> = by_file.into_iter().collect();
    jobs.sort_unstable_by_key(|(path, _)| *path);
    let read = |jobs: &[Job<'_>]| -> Result<Vec<(usize, Bytes)>> {
        let mut found = Vec::new();
        for (path, ranges) in jobs {
            let Some(file) = files.get(path) else {
                continue;
            };
            let wanted: Vec<_> = ranges.iter().map(|(_, range)| range.clone()).collect();
            let numbers = ranges.iter().map(|(number, _)| *number);
            found.extend(numbers.zip(file.read_ranges(&wanted)?));
        }
        Ok(found)
    };
    if jobs.len() < 2 {
        return Ok(read(&jobs)?.into_iter().collect());
    }
    let parts = jobs.chunks(jobs.len().div_ceil(THREADS));
    let found: Vec<Result<_>> = thread::scope(|scope| {
        let threads: Vec<_> = parts
            .map(|part| {
                let own = thread::Builder::new().spawn_scoped(scope, || read(part));
                (part, own)
            })
            .collect();
        let ends = threads.into_iter().map(|(part, own)| match own {
            Ok(own) => own
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // The system gives no more threads.
            Err(_) => read(part),
        });
        ends.collect()
    });
    let mut all = HashMap::with_capacity(values.len());
    for part in found {
        all.extend(part?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use arrow::array::BooleanArray;
    use arrow::datatypes::Field;

    use super::*;

    struct Row<'a> {
        kind: &'a str,
        data: Option<&'a [u8]>,
        path: Option<String>,
        range: (Option<i64>, Option<i64>),
    }

    fn inline(data: &[u8]) -> Row<'_> {
        Row {
            kind: INLINE,
            data: Some(data),
            path: None,
            range: (None, None),
        }
    }

    fn outside(path: &str, offset: Option<i64>, length: Option<i64>) -> Row<'static> {
        Row {
            kind: OUT_OF_LINE,
            data: None,
            path: Some(path.to_owned()),
            range: (offset, length),
        }
    }

    fn column(rows: &[Row<'_>]) -> ArrayRef {
        let field =
            |name, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
        let paths: StringArray = rows.iter().map(|row| row.path.as_deref()).collect();
        let is_there = rows
            .iter()
            .map(|row| row.path.is_some())
            .collect::<Vec<_>>();
        let parts: Vec<(&str, ArrayRef)> = vec![
            ("external_path", Arc::new(paths)),
            (
                "offset",
                Arc::new(rows.iter().map(|row| row.range.0).collect::<Int64Array>()),
            ),
            (
                "length",
                Arc::new(rows.iter().map(|row| row.range.1).collect::<Int64Array>()),
            ),
            (
                "managed",
                Arc::new(BooleanArray::from(vec![false; rows.len()])),
            ),
        ];
        let fields = parts.iter().map(|(name, array)| field(*name, array));
        let reference = StructArray::new(
            fields.collect(),
            parts.iter().map(|(_, array)| Arc::clone(array)).collect(),
            Some(is_there.into()),
        );
        let kinds: StringArray = rows.iter().map(|row| Some(row.kind)).collect();
        let data: BinaryArray = rows.iter().map(|row| row.data).collect();
        let parts: Vec<(&str, ArrayRef)> = vec![
            ("type", Arc::new(kinds)),
            ("data", Arc::new(data)),
            ("reference", Arc::new(reference)),
        ];
        let fields = parts.iter().map(|(name, array)| field(*name, array));
        let fields = fields.collect();
        let arrays = parts.iter().map(|(_, array)| Arc::clone(array)).collect();
        Arc::new(StructArray::new(fields, arrays, None))
    }

    fn read(rows: &[Row<'_>], most_bytes: u64) -> Result<Vec<Vec<u8>>> {
        let column = column(rows);
        let mut stores = Vec::new();
        for root in blob_roots(&column, "b")? {
            stores.push((root, Store::open("/", &[])?));
        }
        let values = read_blobs(&column, "b", &stores, 0, 0, most_bytes)?;
        Ok(values.iter().map(|one| one.unwrap().to_vec()).collect())
    }

    #[test]
    fn values_of_rows_and_of_files_come_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.bin");
        fs::write(&file, b"0123456789").unwrap();
        let path = file.to_str().unwrap();
        let uri = format!("file://{path}");
        let rows = [
            outside(path, Some(8), Some(2)),
            inline(b"in"),
            outside(&uri, None, None),
            outside(path, Some(0), Some(3)),
            outside(path, Some(2), Some(4)),
            outside(path, Some(10), Some(0)),
        ];
        let wanted: Vec<&[u8]> = vec![b"89", b"in", b"0123456789", b"012", b"2345", b""];
        assert_eq!(read(&rows, 1 << 20).unwrap(), wanted);
        // No more than asked for, but one at least.
        assert_eq!(read(&rows, 5).unwrap(), wanted[..2]);
        assert_eq!(read(&rows, 0).unwrap(), wanted[..1]);
    }

    #[test]
    fn lengths_beyond_the_file_allocate_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.bin");
        fs::write(&file, b"0123456789").unwrap();
        let path = file.to_str().unwrap();
        for (offset, length) in [(8, 3), (11, 0), (0, i64::MAX), (i64::MAX, i64::MAX)] {
            let error = read(&[outside(path, Some(offset), Some(length))], 1 << 20).unwrap_err();
            let SliceError::Corrupt {
                file, offset: at, ..
            } = error
            else {
                panic!("{error}");
            };
            assert_eq!((file.as_str(), at), (path, Some(offset as u64)));
        }
        let missing = dir.path().join("none");
        let rows = [outside(missing.to_str().unwrap(), None, None)];
        assert!(matches!(read(&rows, 1), Err(SliceError::Store(_))));
    }

    #[test]
    fn contradictions_name_the_column() {
        let cases = [
            Row {
                data: None,
                ..inline(b"")
            },
            Row {
                kind: "inline",
                ..inline(b"")
            },
            Row {
                path: None,
                ..outside("", None, None)
            },
            outside("", None, None),
            outside("relative/a.bin", None, None),
            outside("/", None, None),
            outside("s3://bucket", None, None),
            outside("/a", Some(1), None),
            outside("/a", None, Some(1)),
            outside("/a", Some(-1), Some(1)),
            outside("/a", Some(1), Some(-1)),
        ];
        for case in cases {
            let error = read(&[case], 1).unwrap_err();
            assert!(
                error.to_string().contains("column 'b' is damaged"),
                "{error}"
            );
        }
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        assert!(matches!(blob_roots(&text, "b"), Err(SliceError::Schema(_))));
    }

    #[test]
    fn roots_are_storages() {
        let is = |root: &str, below: &str| Some((root.to_owned(), below.to_owned()));
        assert_eq!(split("S3A://b/c/d.bin"), is("s3a://b", "c/d.bin"));
        assert_eq!(split("file:/c/d"), is("file://", "c/d"));
        assert_eq!(split("file:///c/d"), is("file://", "c/d"));
        assert_eq!(split("/c/d"), is("", "c/d"));
        assert_eq!(split("c:d/e"), None);
        assert_eq!(split("s3://b//c/./x/../d/"), is("s3://b", "c/d"));
        assert_eq!(split("///c//d"), is("", "c/d"));
        for nothing in ["s3://b/..", "s3://b/c/..", "/../c", "//", "//a/b"] {
            assert_eq!(split(nothing), None, "{nothing}");
        }
    }
}
