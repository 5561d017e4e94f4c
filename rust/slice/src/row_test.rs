//! Filters on the rows of a base file, evaluated before its other columns are decoded.
//!
//! A row is passed over only when it fails a filter and no log record has its key: a base row can
//! still keep an older log record from being given out. If a filter is on the key, the log
//! record fails it too, and none is asked. Rows that pass may fail the caller's filter.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar};
use arrow::compute::kernels::cmp;
use arrow::compute::{and, cast, or};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use pyhudi_merge::Keys;

use crate::adapt::adapt;
use crate::error::Result;
use crate::log_map::LogMap;
use crate::prune::{Comparison, Filter, same_order};
use pyhudi_keys::RecordKeys;

/// The log side, shared between a base file's reader and the merge.
pub(crate) type SharedMap = Arc<Mutex<LogMap>>;

/// Tells which base rows are needed.
pub(crate) struct RowTest {
    pub(crate) filters: Vec<Filter>,
    /// Columns of the filters and of the key, as the table has them.
    pub(crate) columns: SchemaRef,
    /// The log side and how a key is made; none when no log record matters.
    pub(crate) log: Option<(SharedMap, RecordKeys)>,
}

impl RowTest {
    /// Which rows of a batch, in the file's own types, are needed.
    pub(crate) fn needed(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let batch = adapt(batch, &self.columns)?;
        let mut needed = BooleanArray::from(vec![true; batch.num_rows()]);
        for filter in &self.filters {
            if let Some(column) = batch.column_by_name(&filter.column) {
                needed = and(&needed, &without_nulls(&matches(column, filter)?))?;
            }
        }
        if let Some((map, keys)) = &self.log {
            let keys = Keys::Text(keys.of(&batch)?);
            let map = map.lock().unwrap_or_else(PoisonError::into_inner);
            let met = BooleanArray::new(map.contains(&keys)?, None);
            needed = or(&needed, &met)?;
        }
        Ok(needed)
    }
}

fn without_nulls(mask: &BooleanArray) -> BooleanArray {
    match mask.nulls() {
        None => mask.clone(),
        Some(nulls) => BooleanArray::new(mask.values() & nulls.inner(), None),
    }
}

/// Whether a filter can be evaluated here: floating-point numbers have two zeros that are equal.
pub(crate) fn is_testable(filter: &Filter, columns: &SchemaRef) -> bool {
    columns.field_with_name(&filter.column).is_ok_and(|field| {
        let literal = filter.literals.data_type();
        !literal.is_floating()
            && !field.data_type().is_floating()
            && same_order(field.data_type(), literal)
    })
}

fn matches(column: &ArrayRef, filter: &Filter) -> Result<BooleanArray, ArrowError> {
    let column = cast(column, filter.literals.data_type())?;
    let scalar = |row: usize| Scalar::new(filter.literals.slice(row, 1));
    match filter.comparison {
        Comparison::Less => cmp::lt(&column, &scalar(0)),
        Comparison::LessOrEqual => cmp::lt_eq(&column, &scalar(0)),
        Comparison::Greater => cmp::gt(&column, &scalar(0)),
        Comparison::GreaterOrEqual => cmp::gt_eq(&column, &scalar(0)),
        Comparison::In if filter.literals.len() > 8 && *column.data_type() == DataType::Utf8 => {
            let wanted: HashSet<&str> = filter
                .literals
                .as_string::<i32>()
                .iter()
                .flatten()
                .collect();
            let texts = column.as_string::<i32>().iter();
            Ok(texts
                .map(|text| text.map(|text| wanted.contains(text)))
                .collect())
        }
        Comparison::In => {
            let mut any = BooleanArray::from(vec![false; column.len()]);
            for row in 0..filter.literals.len() {
                any = or(&any, &cmp::eq(&column, &scalar(row))?)?;
            }
            Ok(any)
        }
    }
}
