//! Rules that combine a column's values when two live records of one key meet.
//!
//! Each rule is associative and takes the records in the order in which they were committed: the
//! result does not depend on which of them meet first, so a log may be merged before or after its
//! base file. A null changes nothing.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Datum, Decimal128Array, ListArray, MutableArrayData,
    make_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::kernels::arity::try_binary;
use arrow::compute::kernels::numeric::add;
use arrow::compute::kernels::{cmp, zip::zip};
use arrow::compute::{is_not_null, is_null, or_kleene};
use arrow::datatypes::{DataType, Decimal128Type};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

/// How two values of a column become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnRule {
    /// Their sum.
    Sum,
    /// The greater one; NaN is greater than every number, text compares by its bytes.
    Max,
    /// The smaller one.
    Min,
    /// The newer one.
    LastNonNull,
    /// The older one.
    First,
    /// The elements of the older list, then those of the newer one.
    Append,
    /// The same, each element once.
    Union,
}

impl ColumnRule {
    /// The rule of this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sum" => Self::Sum,
            "max" => Self::Max,
            "min" => Self::Min,
            "last_non_null" => Self::LastNonNull,
            "first" => Self::First,
            "append" => Self::Append,
            "union" => Self::Union,
            _ => return None,
        })
    }

    /// Combines row by row: arrays of equal type and length.
    pub(crate) fn combine(
        self,
        older: &ArrayRef,
        newer: &ArrayRef,
    ) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Sum => sum(older, newer),
            Self::Max => choose(older, newer, cmp::gt),
            Self::Min => choose(older, newer, cmp::lt),
            Self::LastNonNull => zip(&is_not_null(newer)?, newer, older),
            Self::First => zip(&is_not_null(older)?, older, newer),
            Self::Append => lists(older, newer, false),
            Self::Union => lists(older, newer, true),
        }
    }
}

/// The newer value where it beats the older one, or is the only one.
fn choose(
    older: &ArrayRef,
    newer: &ArrayRef,
    beats: fn(&dyn Datum, &dyn Datum) -> Result<BooleanArray, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    // Null where one of them is: the only value stays.
    let wins = or_kleene(&beats(newer, older)?, &is_null(older)?)?;
    zip(&wins, newer, older)
}

fn sum(older: &ArrayRef, newer: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let both = match older.data_type() {
        DataType::Decimal128(precision, scale) => Arc::new(decimals(
            older.as_primitive(),
            newer.as_primitive(),
            (*precision, *scale),
        )?),
        _ => add(older, newer)?,
    };
    if both.null_count() == 0 {
        return Ok(both);
    }
    let single = zip(&is_null(older)?, newer, older)?;
    zip(&is_null(&both)?, &single, &both)
}

/// Sums that have the column's precision.
fn decimals(
    older: &Decimal128Array,
    newer: &Decimal128Array,
    (precision, scale): (u8, i8),
) -> Result<Decimal128Array, ArrowError> {
    let bound = 10_i128.checked_pow(precision.into()).unwrap_or(i128::MAX);
    let sums: Decimal128Array =
        try_binary::<_, _, _, Decimal128Type>(older, newer, |older, newer| {
            let sum = older.checked_add(newer);
            sum.filter(|sum| (1 - bound..bound).contains(sum))
                .ok_or_else(|| {
                    let what = format!("more than {precision} digits: {older} + {newer}");
                    ArrowError::ArithmeticOverflow(what)
                })
        })?;
    sums.with_precision_and_scale(precision, scale)
}

/// Lists one after the other; null where both are. A list that meets a null stays as it is.
fn lists(older: &ArrayRef, newer: &ArrayRef, distinct: bool) -> Result<ArrayRef, ArrowError> {
    let (older, newer) = (as_list(older)?, as_list(newer)?);
    let elements = [older.values().to_data(), newer.values().to_data()];
    let capacity = older.values().len() + newer.values().len();
    let mut joined = MutableArrayData::new(elements.iter().collect(), false, capacity);
    let kind = newer.value_type();
    let converter = distinct
        .then(|| RowConverter::new(vec![SortField::new(kind)]))
        .transpose()?;
    let rows = converter
        .map(|converter| {
            let of = |list: &ListArray| converter.convert_columns(&[Arc::clone(list.values())]);
            Ok::<_, ArrowError>([of(older)?, of(newer)?])
        })
        .transpose()?;
    let mut ends = vec![0_i32];
    let mut end = 0;
    let mut seen = HashSet::new();
    for row in 0..newer.len() {
        seen.clear();
        let rows = rows
            .as_ref()
            .filter(|_| older.is_valid(row) && newer.is_valid(row));
        for (side, list) in [older, newer].into_iter().enumerate() {
            if list.is_null(row) {
                continue;
            }
            let offsets = list.value_offsets();
            let (first, last) = (offsets[row] as usize, offsets[row + 1] as usize);
            let Some(rows) = rows else {
                joined.try_extend(side, first, last)?;
                end += last - first;
                continue;
            };
            for at in first..last {
                if seen.insert(rows[side].row(at)) {
                    joined.try_extend(side, at, at + 1)?;
                    end += 1;
                }
            }
        }
        ends.push(i32::try_from(end).map_err(|_| ArrowError::OffsetOverflowError(end))?);
    }
    let field = match newer.data_type() {
        DataType::List(field) => Arc::clone(field),
        other => return Err(no_list(other)),
    };
    let nulls = (0..newer.len()).map(|row| older.is_valid(row) || newer.is_valid(row));
    Ok(Arc::new(ListArray::try_new(
        field,
        OffsetBuffer::new(ends.into()),
        make_array(joined.freeze()),
        Some(nulls.collect::<NullBuffer>()),
    )?))
}

fn as_list(values: &ArrayRef) -> Result<&ListArray, ArrowError> {
    let list = values.as_list_opt::<i32>();
    list.ok_or_else(|| no_list(values.data_type()))
}

fn no_list(kind: &DataType) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("lists to join are {kind}"))
}

#[cfg(test)]
mod tests;
