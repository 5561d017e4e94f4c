//! Comparing whole rows of two batches.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow::array::{DynComparator, make_comparator};
use arrow::compute::SortOptions;

use super::side::Side;
use crate::error::Result;

/// Comparators of two batches, made once for each pair of them.
#[derive(Default)]
pub(super) struct Comparisons(HashMap<(usize, usize), Vec<DynComparator>>);

impl Comparisons {
    /// Whether a row of a numbered side equals a row of a numbered batch of older rows.
    pub(super) fn equal(
        &mut self,
        (number, side): (usize, &Side),
        (batch, older): (usize, &Side),
        row: usize,
        old_row: usize,
    ) -> Result<bool> {
        let comparators = match self.0.entry((number, batch)) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(slot) => {
                let columns = side.rows.columns().iter().zip(older.rows.columns());
                let made = columns
                    .map(|(new, old)| make_comparator(new, old, SortOptions::default()))
                    .collect::<Result<Vec<_>, _>>()?;
                slot.insert(made)
            }
        };
        Ok(comparators
            .iter()
            .all(|compare| compare(row, old_row).is_eq()))
    }
}
