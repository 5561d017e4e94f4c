//! Files whose writer counted days by the Julian calendar before 15 October 1582, as Spark 2 did and
//! later ones do by option (`spark.sql.parquet.datetimeRebaseModeInWrite=LEGACY`).
//!
//! Days are converted to the proleptic Gregorian calendar, with the same year, month and day, as Spark's
//! readers convert them (`RebaseDateTime`, 3.0 to 4.1). Times before 1900 depend on the writer's time zone
//! too, and are refused, as are old days within nested columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Date32Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, Int64Type, TimeUnit};
use parquet::basic::Type;
use parquet::file::metadata::ParquetMetaData;

use super::parquet::value_of;
use crate::error::{Result, SliceError};

const MARK: &str = "org.apache.spark.legacyDateTime";
const INT96_MARK: &str = "org.apache.spark.legacyINT96";
/// 15 October 1582, from which on the calendars agree.
const SAME_FROM: i32 = -141_427;
/// 1 January of the year 1, as the Julian calendar has it.
const FIRST: i32 = -719_164;
/// 1900, in microseconds: from then on zones had the offsets that they have.
const SAME_TIMES_FROM: i64 = -2_208_988_800_000_000;

/// Whether Spark converts days and times of the file to another calendar.
#[must_use]
pub fn has_old_calendar(metadata: &ParquetMetaData) -> bool {
    Old::of(metadata).is_some()
}

/// Whether a date or time of that many days or microseconds is the same by both calendars.
///
/// True for other types.
#[must_use]
pub fn is_of_both_calendars(kind: &DataType, value: i128) -> bool {
    match kind {
        DataType::Date32 => value >= i128::from(SAME_FROM),
        DataType::Timestamp(unit, _) => {
            let micros = i128::from(SAME_TIMES_FROM);
            value
                >= match unit {
                    TimeUnit::Second => micros / 1_000_000,
                    TimeUnit::Millisecond => micros / 1000,
                    TimeUnit::Microsecond => micros,
                    TimeUnit::Nanosecond => micros * 1000,
                }
        }
        _ => true,
    }
}

/// What of a file is by the old calendar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Old {
    /// `DataSourceUtils.datetimeRebaseSpec`.
    days: bool,
    /// Of 96 bits (`DataSourceUtils.int96RebaseSpec`) or none: Spark writes all in the same way.
    times: bool,
    times_mark: &'static str,
}

impl Old {
    /// None where nothing is.
    pub(super) fn of(metadata: &ParquetMetaData) -> Option<Self> {
        let version = value_of(metadata, "org.apache.spark.version");
        let before = |release| version.as_deref().is_some_and(|version| version < release);
        let has = |mark| value_of(metadata, mark).is_some();
        let leaves = metadata.file_metadata().schema_descr().columns();
        let has_int96 = leaves
            .iter()
            .any(|leaf| leaf.physical_type() == Type::INT96);
        let days = before("3.0.0") || has(MARK);
        let (times, times_mark) = if has_int96 {
            (before("3.1.0") || has(INT96_MARK), INT96_MARK)
        } else {
            (days, MARK)
        };
        (days || times).then_some(Self {
            days,
            times,
            times_mark,
        })
    }

    /// A batch of such a file in the proleptic Gregorian calendar.
    pub(super) fn renewed(self, path: &str, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().map(|column| {
            if let (true, Some(days)) = (self.days, column.as_primitive_opt::<Date32Type>()) {
                return renewed_days(path, days);
            }
            self.check(path, column)?;
            Ok(Arc::clone(column))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(batch.schema(), columns)?)
    }

    /// Raises for what cannot be converted.
    fn check(self, path: &str, column: &ArrayRef) -> Result<()> {
        match column.data_type() {
            DataType::Date32 if self.days => {
                let mut days = column.as_primitive::<Date32Type>().iter().flatten();
                if days.any(|day| day < SAME_FROM) {
                    return Err(refused(
                        path,
                        MARK,
                        "days before 15 October 1582 in nested columns",
                    ));
                }
            }
            DataType::Timestamp(_, zone) if self.times => {
                let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
                let numbers = cast(&cast(column, &micros)?, &DataType::Int64)?;
                let mut times = numbers.as_primitive::<Int64Type>().iter().flatten();
                if times.any(|time| time < SAME_TIMES_FROM) {
                    return Err(refused(path, self.times_mark, "times before 1900"));
                }
            }
            DataType::Struct(_) => {
                let mut parts = column.as_struct().columns().iter();
                parts.try_for_each(|part| self.check(path, part))?;
            }
            DataType::List(_) => self.check(path, column.as_list::<i32>().values())?,
            DataType::Map(..) => {
                let map = column.as_map();
                self.check(path, map.keys())?;
                self.check(path, map.values())?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn renewed_days(path: &str, days: &Date32Array) -> Result<ArrayRef> {
    if days.iter().flatten().any(|day| day < FIRST) {
        return Err(refused(path, MARK, "days before the year 1"));
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

fn refused(path: &str, mark: &str, what: &str) -> SliceError {
    SliceError::Unsupported {
        feature: format!("{mark}: {path} has {what} by Spark's old calendar"),
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
        // 1000-02-29, which the other calendar does not have, is the first of March; 1500-01-01.
        assert_eq!(renewed_day(-354_221), -354_226);
        assert_eq!(renewed_day(-354_220), -354_226);
        assert_eq!(renewed_day(-171_655), -171_664);
    }
}
