//! Record keys and partition paths of rows, as Hudi's Avro key generators make them.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, StringArray, StringBuilder, StructArray,
};
use arrow::datatypes::{DataType, Field, Schema};

use crate::error::{KeysError, Result};
use crate::java_text::java_text;
use crate::{PARTITION_PATH, RECORD_KEY};

/// How record keys are made (`KeyGenUtils`, Hudi 1.2.0).
#[derive(Debug, Clone)]
pub struct RecordKeys {
    /// The record key fields, in order; a dot reaches into a struct.
    pub fields: Vec<String>,
    /// `field:value,…` in place of the one field's plain value.
    pub prefixed: bool,
}

/// How partition paths are made (`PartitionPathEncodeUtils`, Hudi 1.2.0).
#[derive(Debug, Clone, Default)]
pub struct PartitionPaths {
    /// The partition fields, in order; none in a table without partitions.
    pub fields: Vec<String>,
    /// `field=value` in place of the value.
    pub hive_style: bool,
    /// Escape what cannot stand in a path.
    pub url_encode: bool,
    /// `/` in place of each `-` where there is one field (`KeyGenUtils`, Hudi 1.2.0).
    pub slash_dates: bool,
}

const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// What stands in a key of several fields for null and for empty text (`KeyGenUtils`, Hudi 1.2.0).
const NULL_KEY: &str = "__null__";
const EMPTY_KEY: &str = "__empty__";

impl RecordKeys {
    /// The key of each row.
    ///
    /// # Errors
    /// A row whose key is null or empty; a field that is missing or cannot be part of a key.
    pub fn of(&self, batch: &RecordBatch) -> Result<StringArray> {
        self.of_rows(batch, 0, false)
    }

    /// As [`of`](Self::of), where errors count rows from `first` on.
    ///
    /// only: refuse a key that is spelled as that of other values.
    fn of_rows(&self, batch: &RecordBatch, first: usize, only: bool) -> Result<StringArray> {
        let columns = texts(batch, &self.fields)?;
        match columns.as_slice() {
            [one] if !self.prefixed => {
                let missing =
                    (0..one.len()).find(|row| one.is_null(*row) || one.value(*row).is_empty());
                match missing {
                    Some(row) => Err(no_key(&self.fields, first + row)),
                    None => Ok(one.clone()),
                }
            }
            _ => self.prefixed_keys(&columns, batch.num_rows(), first, only),
        }
    }

    fn prefixed_keys(
        &self,
        columns: &[StringArray],
        rows: usize,
        first: usize,
        only: bool,
    ) -> Result<StringArray> {
        // A key of one field is read to its end, and is never null or empty.
        let spelling = (only && columns.len() > 1).then(|| Spelling::new(&self.fields));
        let mut keys = StringBuilder::with_capacity(rows, rows * 16);
        let mut key = String::new();
        for row in 0..rows {
            key.clear();
            let mut some = false;
            for (field, column) in self.fields.iter().zip(columns) {
                let value = match column.is_valid(row).then(|| column.value(row)) {
                    None => NULL_KEY,
                    Some("") => EMPTY_KEY,
                    Some(value) => {
                        some = true;
                        value
                    }
                };
                let comma = if key.is_empty() { "" } else { "," };
                // Writing to a string cannot fail.
                let _ = write!(key, "{comma}{field}:{value}");
            }
            if !some {
                return Err(no_key(&self.fields, first + row));
            }
            if let Some(reason) = spelling
                .as_ref()
                .and_then(|it| it.doubt(&key, columns, row))
            {
                return Err(KeysError::Schema(format!("row {}: {reason}", first + row)));
            }
            keys.append_value(&key);
        }
        Ok(keys.finish())
    }
}

/// How the fields of a key follow each other, to find keys that other values have as well.
struct Spelling<'a> {
    fields: &'a [String],
    /// What stands before each value but the first.
    between: Vec<String>,
}

impl<'a> Spelling<'a> {
    fn new(fields: &'a [String]) -> Self {
        let between = fields.iter().skip(1).map(|f| format!(",{f}:")).collect();
        Self { fields, between }
    }

    /// Why the row's key could be that of other values; None where it could not.
    fn doubt(&self, key: &str, columns: &[StringArray], row: usize) -> Option<String> {
        let values = || {
            let texts = columns
                .iter()
                .map(|c| c.is_valid(row).then(|| c.value(row)));
            self.fields.iter().zip(texts)
        };
        for (field, value) in values() {
            if let Some(value @ (NULL_KEY | EMPTY_KEY)) = value {
                let other = if value == NULL_KEY {
                    "null"
                } else {
                    "empty text"
                };
                return Some(format!(
                    "{field} is {value:?}, which stands for {other} in a record key"
                ));
            }
        }
        let commas = values().any(|(_, value)| value.is_some_and(|v| v.contains(',')));
        (commas && !self.reads_one_way(key, columns, row)).then(|| {
            let told: Vec<_> = values()
                .map(|(field, value)| {
                    format!("{field} {value:?}", value = value.unwrap_or(NULL_KEY))
                })
                .collect();
            format!(
                "the record key {key} of {} is that of other values, too",
                told.join(", ")
            )
        })
    }

    /// Whether the first and the last place for each separator are where it stands.
    fn reads_one_way(&self, key: &str, columns: &[StringArray], row: usize) -> bool {
        let mut at = self.fields.first().map_or(0, String::len) + 1;
        let mut stands = Vec::with_capacity(self.between.len());
        for (column, separator) in columns.iter().zip(&self.between) {
            at += match column.is_valid(row).then(|| column.value(row)) {
                None => NULL_KEY.len(),
                Some("") => EMPTY_KEY.len(),
                Some(value) => value.len(),
            };
            stands.push(at);
            at += separator.len();
        }
        let (mut start, mut end) = (0, key.len());
        for (separator, place) in self.between.iter().zip(&stands) {
            if key[start..].find(separator.as_str()).map(|n| n + start) != Some(*place) {
                return false;
            }
            start = place + separator.len();
        }
        for (separator, place) in self.between.iter().zip(&stands).rev() {
            if key[..end].rfind(separator.as_str()) != Some(*place) {
                return false;
            }
            end = *place;
        }
        true
    }
}

impl PartitionPaths {
    /// The partition path of each row, "" in a table without partitions.
    ///
    /// # Errors
    /// A field that is missing or cannot be part of a path.
    pub fn of(&self, batch: &RecordBatch) -> Result<StringArray> {
        self.of_rows(batch, 0)
    }

    fn of_rows(&self, batch: &RecordBatch, first: usize) -> Result<StringArray> {
        let columns = texts(batch, &self.fields)?;
        let rows = batch.num_rows();
        let mut paths = StringBuilder::with_capacity(rows, rows * 8);
        let mut path = String::new();
        for row in 0..rows {
            path.clear();
            // Few values can make a path that leads elsewhere.
            let mut doubtful = self.slash_dates && self.fields.len() == 1;
            for (at, (field, column)) in self.fields.iter().zip(&columns).enumerate() {
                if at > 0 {
                    path.push('/');
                }
                if self.hive_style {
                    path.push_str(field);
                    path.push('=');
                }
                match column.is_valid(row).then(|| column.value(row)) {
                    None | Some("") => path.push_str(NULL_PARTITION),
                    Some(value) => {
                        doubtful |= value.starts_with('.') || value.contains(['/', '\0']);
                        if self.url_encode {
                            escape(value, &mut path);
                        } else {
                            path.push_str(value);
                        }
                    }
                }
            }
            if self.slash_dates && self.fields.len() == 1 {
                if path.starts_with('-') {
                    return Err(KeysError::Schema(format!(
                        "row {}: the partition path {path} would begin with a slash",
                        first + row
                    )));
                }
                path = path.replace('-', "/");
            }
            if doubtful && leads_elsewhere(&path) {
                return Err(KeysError::Schema(format!(
                    "row {}: the partition path {path:?} is no folder for rows",
                    first + row
                )));
            }
            paths.append_value(&path);
        }
        Ok(paths.finish())
    }
}

/// Whether a path leads out of the table, or differs from its folder's name, or is none that a file
/// system has, or has a folder of Hudi's own name: no listing looks into one at any depth, and Hudi
/// leaves it out of a metadata table that it makes (`HoodieBackedTableMetadataWriter`, 1.2.0).
fn leads_elsewhere(path: &str) -> bool {
    let mut parts = path.split('/');
    path.contains('\0') || parts.any(|part| matches!(part, "" | "." | ".." | ".hoodie"))
}

/// `PartitionPathEncodeUtils.escapePathName` (Hudi 1.2.0).
fn escape(value: &str, path: &mut String) {
    for c in value.chars() {
        let special = matches!(
            c,
            '"' | '#' | '%' | '\'' | '*' | '/' | ':' | '=' | '?' | '\\' | '{' | '[' | ']' | '^'
        );
        if special || ('\u{1}'..='\u{1f}').contains(&c) || c == '\u{7f}' {
            let _ = write!(path, "%{:02X}", u32::from(c));
        } else {
            path.push(c);
        }
    }
}

fn no_key(fields: &[String], row: usize) -> KeysError {
    KeysError::Schema(format!(
        "row {row} has no record key: {} must not be null or empty",
        fields.join(", ")
    ))
}

/// The columns of dotted paths as Java prints their values.
///
/// # Errors
/// A missing column, or one of a type without text.
pub fn texts(batch: &RecordBatch, fields: &[String]) -> Result<Vec<StringArray>> {
    fields
        .iter()
        .map(|field| java_text(&column(batch, field)?, field))
        .collect()
}

/// The column of a dotted path; a null parent gives null.
pub fn column(batch: &RecordBatch, path: &str) -> Result<ArrayRef> {
    let missing = || KeysError::Schema(format!("there is no column {path}"));
    if let Some(column) = batch.column_by_name(path) {
        return Ok(Arc::clone(column));
    }
    let mut parts = path.split('.');
    let first = parts.next().ok_or_else(missing)?;
    let mut found = Arc::clone(batch.column_by_name(first).ok_or_else(missing)?);
    for part in parts {
        let parent: &StructArray = found.as_struct_opt().ok_or_else(missing)?;
        let child = parent.column_by_name(part).ok_or_else(missing)?;
        let nulls = arrow::buffer::NullBuffer::union(parent.nulls(), child.nulls());
        found = arrow::array::make_array(child.to_data().into_builder().nulls(nulls).build()?);
    }
    Ok(found)
}

/// The batch with the columns `_hoodie_record_key` and `_hoodie_partition_path` in front.
///
/// # Errors
/// As [`RecordKeys::of`] and [`PartitionPaths::of`]; a key of several fields that is spelled as that
/// of other values.
///
/// `partition_columns`: where the partition fields are, in place of the batch; as many rows.
/// `first_row`: the number of the batch's first row, for errors.
pub fn add_keys(
    batch: &RecordBatch,
    first_row: usize,
    keys: &RecordKeys,
    partitions: &PartitionPaths,
    partition_columns: Option<&RecordBatch>,
) -> Result<RecordBatch> {
    let mut fields = vec![text_field(RECORD_KEY), text_field(PARTITION_PATH)];
    fields.extend(batch.schema().fields().iter().cloned());
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(keys.of_rows(batch, first_row, true)?),
        Arc::new(partitions.of_rows(partition_columns.unwrap_or(batch), first_row)?),
    ];
    columns.extend(batch.columns().iter().cloned());
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// A nullable text field, as all meta fields are.
pub fn text_field(name: &str) -> Arc<Field> {
    Arc::new(Field::new(name, DataType::Utf8, true))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array as _, Int32Array, RecordBatch, StringArray};

    use super::{PartitionPaths, RecordKeys, add_keys, escape};

    fn batch() -> RecordBatch {
        RecordBatch::try_from_iter([
            (
                "id",
                Arc::new(StringArray::from(vec![Some("a"), Some(""), None])) as _,
            ),
            ("n", Arc::new(Int32Array::from(vec![1, 2, 3])) as _),
        ])
        .unwrap()
    }

    #[test]
    fn complex_keys_name_their_fields() {
        let keys = RecordKeys {
            fields: vec!["id".into(), "n".into()],
            prefixed: true,
        };
        let keys = keys.of(&batch()).unwrap();
        assert_eq!(
            keys.iter().flatten().collect::<Vec<_>>(),
            ["id:a,n:1", "id:__empty__,n:2", "id:__null__,n:3"]
        );
    }

    #[test]
    fn keys_that_other_values_have_are_refused_when_written() {
        let keys = RecordKeys {
            fields: vec!["a".into(), "b".into(), "c".into()],
            prefixed: true,
        };
        let made = |values: [Option<&str>; 3]| {
            let columns = ["a", "b", "c"].into_iter().zip(values);
            let batch = RecordBatch::try_from_iter(
                columns.map(|(name, v)| (name, Arc::new(StringArray::from(vec![v])) as _)),
            )
            .unwrap();
            assert_eq!(keys.of(&batch).unwrap().len(), 1);
            add_keys(&batch, 7, &keys, &PartitionPaths::default(), None)
        };
        for values in [
            [Some("1,b:2"), Some("3"), Some("x")],
            [Some("1"), Some("2,b:3"), Some("x")],
            [Some("1"), Some("2,c:3"), Some("x")],
            [Some("1"), Some("2"), Some("3,c:x")],
            [Some("1"), None, Some(",b:,c:")],
            [Some("__null__"), Some("2"), Some("x")],
            [Some("1"), Some("__empty__"), None],
        ] {
            let error = made(values).unwrap_err().to_string();
            assert!(error.contains("row 7"), "{error}");
        }
        for values in [
            [Some("1,c:2"), Some("3,a:4"), Some("5,b:6,a:7")],
            [Some("1,2"), Some(",b"), Some(",,c")],
            [Some("__null__x"), None, Some("")],
        ] {
            assert!(made(values).is_ok());
        }
    }

    #[test]
    fn a_plain_key_is_never_empty() {
        let keys = RecordKeys {
            fields: vec!["id".into()],
            prefixed: false,
        };
        let error = keys.of(&batch()).unwrap_err().to_string();
        assert!(error.contains("row 1") && error.contains("id"), "{error}");
    }

    #[test]
    fn null_and_empty_partitions_share_a_path() {
        let paths = PartitionPaths {
            fields: vec!["id".into(), "n".into()],
            hive_style: true,
            url_encode: false,
            slash_dates: false,
        };
        let paths = paths.of(&batch()).unwrap();
        assert_eq!(paths.value(0), "id=a/n=1");
        assert_eq!(paths.value(1), "id=__HIVE_DEFAULT_PARTITION__/n=2");
        assert_eq!(paths.value(2), "id=__HIVE_DEFAULT_PARTITION__/n=3");
    }

    #[test]
    fn a_partition_is_a_folder_of_the_table() {
        let of = |value: &str, url_encode, slash_dates| {
            let batch = RecordBatch::try_from_iter([(
                "p",
                Arc::new(StringArray::from(vec!["plain", value])) as _,
            )]);
            let paths = PartitionPaths {
                fields: vec!["p".into()],
                hive_style: false,
                url_encode,
                slash_dates,
            };
            paths.of(&batch.unwrap()).map(|all| all.value(1).to_owned())
        };
        for value in [
            "..",
            ".",
            "a/../b",
            "/a",
            "a/",
            "a//b",
            "./a",
            ".hoodie",
            ".hoodie/a",
            "a/.hoodie",
            "a/.hoodie/b",
            "a\0",
        ] {
            let error = of(value, false, false).unwrap_err().to_string();
            let shown = format!("{value:?}");
            assert!(error.contains("row 1") && error.contains(&shown), "{error}");
        }
        for value in ["a/b", "...", "..a", ".a/b", "a.", ".hoodies", "a/.hoodie_x"] {
            assert_eq!(of(value, false, false).unwrap(), value);
        }
        assert_eq!(of("a/../b", true, false).unwrap(), "a%2F..%2Fb");
        of("..", true, false).unwrap_err();
        of(".hoodie", true, false).unwrap_err();
        assert_eq!(of("a/.hoodie", true, false).unwrap(), "a%2F.hoodie");
        of("2024-.hoodie", false, true).unwrap_err();
        of("2024--01", false, true).unwrap_err();
        assert_eq!(of("2024-01", false, true).unwrap(), "2024/01");
    }

    #[test]
    fn escapes_as_hudi_does() {
        let pairs = [
            ("s f/%:é", "s f%2F%25%3Aé"),
            ("x#y'z*", "x%23y%27z%2A"),
            ("a+b&c;d", "a+b&c;d"),
            ("\u{1}\u{7f}", "%01%7F"),
            ("[t]^{u}\"\\", "%5Bt%5D%5E%7Bu}%22%5C"),
        ];
        for (value, expected) in pairs {
            let mut path = String::new();
            escape(value, &mut path);
            assert_eq!(path, expected);
        }
    }
}
