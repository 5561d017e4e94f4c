//! Whether stored statistics hold for the files that they are of: nothing is changed here.

use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pyhudi_slice::Result;
use pyhudi_store::Store;

use super::bounds::Bound;
use super::column_bounds::{Stats, file_name};
use super::stats::{WrittenFile, stats_of};
use crate::MetadataPartition;
use crate::stat_value::{self, floating, text};
use crate::stats::{self, StatsSource, stored_stats};

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
    let found = files
        .iter()
        .map(|file| stats_of(store, file, columns))
        .collect::<Result<Vec<_>>>()?;
    let paths = StringArray::from(vec![partition; files.len()]);
    let names: StringArray = files.iter().map(|f| Some(file_name(&f.path))).collect();
    let one = StringArray::from(vec![partition]);
    let any_skeleton = files.iter().any(|file| file.source.is_some());
    for (number, field) in columns.fields().iter().enumerate() {
        let (name, ty) = (field.name(), field.data_type());
        let stored = stored_stats(
            of_files,
            name,
            ty,
            &paths,
            Some(&names),
            StatsSource::Footers,
        )?;
        let actual: Vec<&Stats> = found.iter().filter_map(|stats| stats.get(number)).collect();
        for ((file, actual), stored) in files.iter().zip(&actual).zip(&stored) {
            let may_lack = file.source.is_some();
            gaps.look(file_name(&file.path), name, actual, stored, may_lack);
        }
        let Some(whole) = whole else { continue };
        let together = actual
            .into_iter()
            .fold(Stats::default(), |all, one| all.with(one.clone()));
        if together.values > 0 {
            for stored in stored_stats(whole, name, ty, &one, None, StatsSource::Footers)? {
                gaps.look("", name, &together, &stored, any_skeleton);
            }
        }
    }
    gaps.finish()
}

#[derive(Default)]
struct Gaps {
    files: StringBuilder,
    columns: StringBuilder,
    expected: StringBuilder,
    found: StringBuilder,
}

impl Gaps {
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
        self.files.append_value(file);
        self.columns.append_value(column);
        self.expected.append_value(expected);
        self.found.append_option(found);
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let field = |name| Field::new(name, DataType::Utf8, true);
        let schema = Schema::new(["file", "column", "expected", "found"].map(field).to_vec());
        Ok(RecordBatch::try_new(
            Arc::new(schema),
            vec![
                Arc::new(self.files.finish()),
                Arc::new(self.columns.finish()),
                Arc::new(self.expected.finish()),
                Arc::new(self.found.finish()),
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
