//! Leaving out row groups that cannot hold a matching row. Never decides about single rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Datum, Scalar};
use arrow::compute::kernels::cmp;
use arrow::compute::{cast, or};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::RowGroupMetaData;

use crate::error::Result;

/// How a column is compared with its literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Equal to one of the literals.
    In,
    /// Less than the literal.
    Less,
    /// Less than or equal to the literal.
    LessOrEqual,
    /// Greater than the literal.
    Greater,
    /// Greater than or equal to the literal.
    GreaterOrEqual,
}

/// One conjunct of a filter. Rows that do not satisfy it are of no interest to the caller.
#[derive(Debug, Clone)]
pub struct Filter {
    /// A top-level column.
    pub column: String,
    /// The comparison.
    pub comparison: Comparison,
    /// The literals, without nulls; one unless the comparison is [`Comparison::In`].
    pub literals: ArrayRef,
}

/// The row groups that may hold a row satisfying every filter.
pub(crate) fn keep_row_groups(
    arrow: &ArrowReaderMetadata,
    filters: &[Filter],
) -> Result<Vec<usize>> {
    let groups = arrow.metadata().row_groups();
    let mut keep = vec![true; groups.len()];
    for filter in filters {
        if let Some(may_match) = may_match(arrow, groups, filter)? {
            for (keep, may_match) in keep.iter_mut().zip(may_match.iter()) {
                // Without statistics a row group stays.
                *keep &= may_match.unwrap_or(true);
            }
        }
    }
    let kept = keep.iter().enumerate().filter(|(_, keep)| **keep);
    Ok(kept.map(|(group, _)| group).collect())
}

/// For each row group whether it may match; none when the statistics say nothing about the filter.
fn may_match(
    arrow: &ArrowReaderMetadata,
    groups: &[RowGroupMetaData],
    filter: &Filter,
) -> Result<Option<BooleanArray>> {
    let converter =
        StatisticsConverter::try_new(&filter.column, arrow.schema(), arrow.parquet_schema());
    let Ok(converter) = converter else {
        return Ok(None);
    };
    let Some(leaf) = converter.parquet_column_index() else {
        return Ok(None);
    };
    let usable = groups.iter().all(|group| {
        // The old fields order strings as signed bytes.
        group
            .column(leaf)
            .statistics()
            .is_none_or(|s| !s.is_min_max_deprecated())
    });
    let stored = converter.arrow_field().data_type();
    if !usable || !same_order(stored, filter.literals.data_type()) {
        return Ok(None);
    }
    let damaged = |error| crate::SliceError::parquet("row-group statistics", None, error);
    let mins = converter.row_group_mins(groups).map_err(damaged)?;
    let maxes = converter.row_group_maxes(groups).map_err(damaged)?;
    let kind = filter.literals.data_type();
    let (mins, maxes) = (cast(&mins, kind)?, cast(&maxes, kind)?);
    Ok(Some(overlap(filter, &mins, &maxes)?))
}

/// Whether values keep their order and size from the stored type to the literal's.
///
/// A float stored for a column of doubles does not: see [`floats_to_doubles`]. Nor do microseconds
/// stored for milliseconds: see [`micros_meant_as_millis`].
///
/// [`floats_to_doubles`]: crate::convert::floats_to_doubles
/// [`micros_meant_as_millis`]: crate::convert::micros_meant_as_millis
#[must_use]
pub fn same_order(stored: &DataType, literal: &DataType) -> bool {
    use DataType::Timestamp;
    use TimeUnit::{Microsecond, Millisecond};
    match (stored, literal) {
        (Timestamp(Microsecond, _), Timestamp(Millisecond, _)) => false,
        (Timestamp(_, a), Timestamp(_, b)) => a.is_some() == b.is_some(),
        _ => stored == literal || stored.is_integer() && literal.is_integer(),
    }
}

fn overlap(filter: &Filter, mins: &ArrayRef, maxes: &ArrayRef) -> Result<BooleanArray, ArrowError> {
    let scalar = |row: usize| Scalar::new(filter.literals.slice(row, 1));
    match filter.comparison {
        Comparison::Less => cmp::lt(mins, &scalar(0)),
        Comparison::LessOrEqual => cmp::lt_eq(mins, &scalar(0)),
        Comparison::Greater => cmp::gt(maxes, &scalar(0)),
        Comparison::GreaterOrEqual => cmp::gt_eq(maxes, &scalar(0)),
        Comparison::In => {
            let mut any = BooleanArray::from(vec![false; mins.len()]);
            for row in 0..filter.literals.len() {
                any = or(&any, &contains(&scalar(row), mins, maxes)?)?;
            }
            Ok(any)
        }
    }
}

fn contains(
    literal: &dyn Datum,
    mins: &ArrayRef,
    maxes: &ArrayRef,
) -> Result<BooleanArray, ArrowError> {
    let mins: &dyn Datum = &Arc::clone(mins);
    let maxes: &dyn Datum = &Arc::clone(maxes);
    arrow::compute::and(&cmp::lt_eq(mins, literal)?, &cmp::gt_eq(maxes, literal)?)
}
