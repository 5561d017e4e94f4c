//! Whether stored statistics hold for the files that they are of: nothing is changed here.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pyhudi_slice::Result;
use pyhudi_store::Store;

use super::bounds::Bound;
use super::column_bounds::{Stats, file_name};
use super::stats::{WrittenFile, exact_stats, stats_of};
use crate::MetadataPartition;
use crate::stat_value::{self, floating, text};
use crate::stats::{self, StatsSource, is_text, stored_stats};

/// Where the statistics of some files of one data partition say too little, or are not there:
/// columns file, column, expected and found (as text for people; found is null where nothing is
/// stored).
///
/// The partition's own statistics are checked if `whole` has them, under the file name "".
/// Bounds that are not certain are skipped, as readers do.
///
/// # Errors
/// Damaged files, failing storage.
pub fn statistics_gaps(
    store: &Store,
    partition: &str,
    files: &[WrittenFile],
    columns: &SchemaRef,
    of_files: &MetadataPartition,
    whole: Option<&MetadataPartition>,
) -> Result<RecordBatch> {
    let mut gaps = Gaps::default();
    let by_footers = files
        .iter()
        .map(|file| stats_of(store, file, columns))
        .collect::<Result<Vec<_>>>()?;
    let paths = StringArray::from(vec![partition; files.len()]);
    let names: StringArray = files.iter().map(|f| Some(file_name(&f.path))).collect();
    let one = StringArray::from(vec![partition]);
    for (number, field) in columns.fields().iter().enumerate() {
        let (name, ty) = (field.name(), field.data_type());
        let footers = StatsSource::Footers;
        let stored = Stored {
            of_files: stored_stats(of_files, name, ty, &paths, Some(&names), footers)?,
            of_partition: match whole {
                Some(whole) => stored_stats(whole, name, ty, &one, None, footers)?,
                None => Vec::new(),
            },
        };
        let actual = by_footers.iter().filter_map(|of_file| of_file.get(number));
        let mut found = Gaps::of_column(name, files, &actual.cloned().collect::<Vec<_>>(), &stored);
        // Writers cut bounds of long strings in footers: only the values are exact.
        if is_text(ty) && found.has_narrow_bounds() {
            let column: SchemaRef = Arc::new(Schema::new(vec![Arc::clone(field)]));
            let actual = files
                .iter()
                .map(|file| exact_stats(store, file, &column))
                .collect::<Result<Vec<_>>>()?
                .concat();
            found = Gaps::of_column(name, files, &actual, &stored);
        }
        gaps.0.extend(found.0);
    }
    gaps.finish()
}

/// What the metadata table has of one column.
struct Stored {
    of_files: Vec<stats::Stats>,
    of_partition: Vec<stats::Stats>,
}

struct Gap {
    file: String,
    column: String,
    expected: String,
    found: Option<String>,
}

#[derive(Default)]
struct Gaps(Vec<Gap>);

impl Gaps {
    fn of_column(name: &str, files: &[WrittenFile], actual: &[Stats], stored: &Stored) -> Self {
        let mut gaps = Self::default();
        for ((file, actual), stored) in files.iter().zip(actual).zip(&stored.of_files) {
            let may_lack = file.source.is_some();
            gaps.look(file_name(&file.path), name, actual, stored, may_lack);
        }
        let together = actual
            .iter()
            .fold(Stats::default(), |all, one| all.with(one.clone()));
        if together.values > 0 {
            let any_skeleton = files.iter().any(|file| file.source.is_some());
            for stored in &stored.of_partition {
                gaps.look("", name, &together, stored, any_skeleton);
            }
        }
        gaps
    }

    fn has_narrow_bounds(&self) -> bool {
        self.0.iter().any(|gap| gap.found.is_some())
    }

    /// may_lack: nothing has to be stored.
    fn look(
        &mut self,
        file: &str,
        column: &str,
        actual: &Stats,
        stored: &stats::Stats,
        may_lack: bool,
    ) {
        if stored.value_count.is_none() {
            // Hudi has none of files without rows, nor of columns that came later than the file.
            if actual.min.is_some() && !may_lack {
                self.add(file, column, "statistics".to_owned(), None);
            }
            return;
        }
        let (least, greatest) = (known(actual.min.as_ref()), known(actual.max.as_ref()));
        let within = |bound: &Option<stat_value::Bound>,
                      value: &Option<stat_value::Bound>,
                      below| match (bound, value) {
            (Some(bound), Some(value)) => match bound.compare(value) {
                Some(order) => order.is_eq() || order.is_lt() == below,
                None => true,
            },
            _ => true,
        };
        let hides_values = stored.only_nulls && actual.min.is_some();
        let hides_nulls = stored.null_count == Some(0) && actual.nulls > 0;
        if hides_values
            || hides_nulls
            || !within(&stored.min, &least, true)
            || !within(&stored.max, &greatest, false)
        {
            let expected = said(least.as_ref(), greatest.as_ref(), actual.nulls);
            let nulls = stored.null_count.unwrap_or_default();
            let found = said(stored.min.as_ref(), stored.max.as_ref(), nulls);
            self.add(file, column, expected, Some(found));
        }
    }

    fn add(&mut self, file: &str, column: &str, expected: String, found: Option<String>) {
        self.0.push(Gap {
            file: file.to_owned(),
            column: column.to_owned(),
            expected,
            found,
        });
    }

    fn finish(self) -> Result<RecordBatch> {
        let field = |name| Field::new(name, DataType::Utf8, true);
        let schema = Schema::new(["file", "column", "expected", "found"].map(field).to_vec());
        let of_rows = |value: fn(&Gap) -> Option<&str>| -> ArrayRef {
            Arc::new(self.0.iter().map(value).collect::<StringArray>())
        };
        Ok(RecordBatch::try_new(
            Arc::new(schema),
            vec![
                of_rows(|gap| Some(&gap.file)),
                of_rows(|gap| Some(&gap.column)),
                of_rows(|gap| Some(&gap.expected)),
                of_rows(|gap| gap.found.as_deref()),
            ],
        )?)
    }
}

/// A bound as readers take it, None where they do without.
fn known(bound: Option<&Bound>) -> Option<stat_value::Bound> {
    match bound? {
        Bound::Boolean(value) => Some(stat_value::Bound::Boolean(*value)),
        Bound::Whole(value) => Some(stat_value::Bound::Whole(i128::from(*value))),
        Bound::Decimal(value) => Some(stat_value::Bound::Whole(*value)),
        Bound::Single(value) => floating(f64::from(*value)),
        Bound::Double(value) => floating(*value),
        Bound::Text(value) => text(value),
        Bound::Bytes(_) => None,
    }
}

fn said(
    least: Option<&stat_value::Bound>,
    greatest: Option<&stat_value::Bound>,
    nulls: i64,
) -> String {
    let one = |bound: Option<&stat_value::Bound>| match bound {
        Some(stat_value::Bound::Boolean(value)) => value.to_string(),
        Some(stat_value::Bound::Whole(value)) => value.to_string(),
        Some(stat_value::Bound::Floating(value)) => value.to_string(),
        Some(stat_value::Bound::Text(value)) => format!("{value:?}"),
        None => "-".to_owned(),
    };
    format!("{} to {}, {nulls} nulls", one(least), one(greatest))
}
