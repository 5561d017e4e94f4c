//! Combining the records of one input batch that share a key, before anything is written.

use arrow::array::{ArrayRef, BooleanArray, StringArray};
use arrow::buffer::BooleanBuffer;

use crate::key_map::KeyMap;
use crate::ordering::{MergeError, MergeRules};

/// Which rows stay when each key keeps one row: the last one, or under event-time ordering the one
/// with the greatest ordering value (ties: the later row), as `HoodieWriteHelper.combineOnCondition`
/// (Hudi 1.2.0) does. `deleted` marks rows that say their key is deleted: they take part like any
/// other row, but for those without an ordering value, which are ordered by their position.
///
/// # Errors
/// A null key; ordering columns that do not have the types of the rules.
pub fn combine_rows(
    rules: MergeRules,
    keys: StringArray,
    ordering: &[ArrayRef],
    deleted: Option<&BooleanArray>,
) -> Result<BooleanBuffer, MergeError> {
    let mut map = KeyMap::new(rules)?;
    map.add_rows(keys, ordering, deleted)?;
    Ok(map.stands().swap_remove(0))
}
