//! Files whose writer counted days by the Julian calendar before 15 October 1582, as Spark 2 did and
//! later ones do when told to (`spark.sql.parquet.datetimeRebaseModeInWrite=LEGACY`).
//!
//! Days are brought to the calendar of everybody else, with the same year, month and day, as Spark's
//! readers bring them (`RebaseDateTime`, 3.0 to 4.1). Times before 1900 depend on the writer's time zone
//! besides, and are refused, as are old days within nested columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Int64Type, TimeUnit};
use parquet::file::metadata::ParquetMetaData;

use super::parquet::value_of;
use crate::error::{Result, SliceError};

const MARK: &str = "org.apache.spark.legacyDateTime";
/// 15 October 1582, from which on the calendars agree.
const SAME_FROM: i32 = -141_427;
/// 1 January of the year 1, as the Julian calendar has it.
const FIRST: i32 = -719_164;
/// 1900, in microseconds: from then on zones had the offsets that they have.
const SAME_TIMES_FROM: i64 = -2_208_988_800_000_000;

/// Whether Spark brings days and times of the file to another calendar
/// (`DataSourceUtils.datetimeRebaseSpec`).
pub(super) fn is_old(metadata: &ParquetMetaData) -> bool {
    let version = value_of(metadata, "org.apache.spark.version");
    version.is_some_and(|version| version.as_str() < "3.0.0") || value_of(metadata, MARK).is_some()
}

/// A batch of such a file by the calendar of everybody else.
pub(super) fn renewed(path: &str, batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| {
        if let Some(days) = column.as_primitive_opt::<Date32Type>() {
            return renewed_days(path, days);
        }
        check(path, column)?;
        Ok(Arc::clone(column))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

fn renewed_days(path: &str, days: &Date32Array) -> Result<ArrayRef> {
    if days.iter().flatten().any(|day| day < FIRST) {
        return Err(refused(path, "days before the year 1"));
    }
    Ok(Arc::new(days.unary::<_, Date32Type>(renewed_day)))
}

/// The day that has the same year, month and day as this one has by the Julian calendar.
fn renewed_day(day: i32) -> i32 {
    if day >= SAME_FROM {
        return day;
    }
    // Years begin in March, so that a leap day is the last of one.
    let since = day + 719_470;
    let year = (4 * since + 3).div_euclid(1461);
    let of_year = since - (1461 * year).div_euclid(4);
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}

/// Raises for what cannot be brought over.
fn check(path: &str, column: &ArrayRef) -> Result<()> {
    match column.data_type() {
        DataType::Date32 => {
            let mut days = column.as_primitive::<Date32Type>().iter().flatten();
            if days.any(|day| day < SAME_FROM) {
                return Err(refused(
                    path,
                    "days before 15 October 1582 in nested columns",
                ));
            }
        }
        DataType::Timestamp(_, zone) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            let numbers = cast(&cast(column, &micros)?, &DataType::Int64)?;
            let mut times = numbers.as_primitive::<Int64Type>().iter().flatten();
            if times.any(|time| time < SAME_TIMES_FROM) {
                return Err(refused(path, "times before 1900"));
            }
        }
        DataType::Struct(_) => {
            let mut parts = column.as_struct().columns().iter();
            parts.try_for_each(|part| check(path, part))?;
        }
        DataType::List(_) => check(path, column.as_list::<i32>().values())?,
        DataType::Map(..) => {
            let map = column.as_map();
            check(path, map.keys())?;
            check(path, map.values())?;
        }
        _ => {}
    }
    Ok(())
}

fn refused(path: &str, what: &str) -> SliceError {
    SliceError::Unsupported {
        feature: format!("{MARK}: {path} has {what} by Spark's old calendar"),
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, SAME_FROM, renewed_day};

    #[test]
    fn days_keep_their_names() {
        // As `RebaseDateTime.rebaseJulianToGregorianDays` of Spark has them.
        assert_eq!(renewed_day(SAME_FROM), SAME_FROM);
        assert_eq!(renewed_day(SAME_FROM - 1), SAME_FROM - 11);
        // 0001-01-01 of either.
        assert_eq!(renewed_day(FIRST), -719_162);
        // 1000-02-29, which the other calendar lacks, is the first of March; 1500-01-01.
        assert_eq!(renewed_day(-354_221), -354_226);
        assert_eq!(renewed_day(-354_220), -354_226);
        assert_eq!(renewed_day(-171_655), -171_664);
    }
}
