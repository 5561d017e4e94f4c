//! The records of one batch, reduced to what merging needs: key, ordering value, deleted or not.

use std::hash::BuildHasher;

use arrow::array::{Array, ArrayRef, BooleanArray, StringArray};
use foldhash::fast::FixedState;
use pyhudi_format::log::OrderingValue;

use crate::ordering::{MergeError, MergeRules, OrderingEncoder, OrderingRows};

/// What tells records apart. All batches of a merge use the same kind.
#[derive(Debug, Clone)]
pub enum Keys {
    /// Record keys.
    Text(StringArray),
    /// Row numbers in the base file, which log blocks can carry.
    Positions(Vec<u64>),
}

impl Keys {
    /// Number of records.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(keys) => keys.len(),
            Self::Positions(positions) => positions.len(),
        }
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash that tables and partitions use.
    pub fn hash(&self, hasher: &FixedState, row: usize) -> u64 {
        match self {
            Self::Text(keys) => hasher.hash_one(keys.value(row)),
            Self::Positions(positions) => hasher.hash_one(positions[row]),
        }
    }

    pub(crate) fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Text(keys) => Some(keys.value(row)),
            Self::Positions(_) => None,
        }
    }

    pub(crate) fn position(&self, row: usize) -> Option<u64> {
        match self {
            Self::Text(_) => None,
            Self::Positions(positions) => positions.get(row).copied(),
        }
    }

    pub(crate) fn same(&self, row: usize, other: &Self, other_row: usize) -> bool {
        match (self, other) {
            (Self::Text(mine), Self::Text(theirs)) => mine.value(row) == theirs.value(other_row),
            (Self::Positions(mine), Self::Positions(theirs)) => mine[row] == theirs[other_row],
            _ => false,
        }
    }

    pub(crate) fn check(&self) -> Result<(), MergeError> {
        match self {
            Self::Text(keys) if keys.null_count() > 0 => {
                let row = (0..keys.len()).find(|row| keys.is_null(*row)).unwrap_or(0);
                Err(MergeError::NullKey { row })
            }
            _ => Ok(()),
        }
    }

    /// The keys of some of the rows.
    pub(crate) fn take(&self, rows: &[usize]) -> Self {
        match self {
            Self::Text(keys) => Self::Text(rows.iter().map(|row| Some(keys.value(*row))).collect()),
            Self::Positions(all) => Self::Positions(rows.iter().map(|row| all[*row]).collect()),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Text(keys) => keys.get_array_memory_size(),
            Self::Positions(positions) => positions.capacity() * size_of::<u64>(),
        }
    }
}

impl From<StringArray> for Keys {
    fn from(keys: StringArray) -> Self {
        Self::Text(keys)
    }
}

/// The records of one batch, ready to be merged.
pub struct Records {
    /// What distinguishes them.
    pub keys: Keys,
    /// Their ordering values; none where the rules do not compare any.
    pub ordering: Option<OrderingRows>,
    /// Which of them say that their key is deleted; none when no one does.
    pub deleted: Option<BooleanArray>,
}

/// Whether a mask, which may be missing, is set for a row.
pub(crate) fn is_set(mask: Option<&BooleanArray>, row: usize) -> bool {
    mask.is_some_and(|mask| mask.is_valid(row) && mask.value(row))
}

impl Records {
    /// Bytes held, roughly.
    pub fn memory(&self) -> usize {
        self.keys.memory() + self.ordering.as_ref().map_or(0, OrderingRows::size)
    }
}

/// Records that stand for their keys, to be added to another map or kept elsewhere.
pub struct Standing {
    /// Keys, ordering values and deletes.
    pub records: Records,
    /// Which rows of the batch that was added (key map) these are; see `batch`.
    pub rows: Vec<usize>,
    /// The number of that batch.
    pub batch: usize,
}

/// Makes [`Records`] by the rules of one table.
pub struct Encoder {
    ordering: Option<OrderingEncoder>,
}

impl Encoder {
    /// An encoder for these rules.
    ///
    /// # Errors
    /// An ordering field of a type without an order.
    pub fn new(rules: &MergeRules) -> Result<Self, MergeError> {
        let ordering = rules
            .compares()
            .then(|| OrderingEncoder::new(&rules.ordering))
            .transpose()?;
        Ok(Self { ordering })
    }

    /// Data records. `deleted` marks those that say their key is deleted.
    ///
    /// # Errors
    /// A null key; ordering columns that do not have the types of the rules.
    pub fn rows(
        &self,
        keys: Keys,
        ordering: &[ArrayRef],
        deleted: Option<BooleanArray>,
    ) -> Result<Records, MergeError> {
        keys.check()?;
        let ordering = self.ordering.as_ref().map(|e| e.encode(ordering));
        Ok(Records {
            keys,
            ordering: ordering.transpose()?,
            deleted,
        })
    }

    /// The records of a delete block.
    ///
    /// # Errors
    /// As [`Self::rows`].
    pub fn deletes(
        &self,
        keys: Keys,
        ordering: &[OrderingValue<'_>],
    ) -> Result<Records, MergeError> {
        keys.check()?;
        let deleted = Some(BooleanArray::from(vec![true; keys.len()]));
        let ordering = self.ordering.as_ref().map(|e| e.encode_deletes(ordering));
        Ok(Records {
            keys,
            ordering: ordering.transpose()?,
            deleted,
        })
    }

    /// The ordering values of some rows out of several batches.
    pub(crate) fn gather(
        &self,
        batches: &[Option<OrderingRows>],
        places: &[(usize, usize)],
    ) -> Option<OrderingRows> {
        let encoder = self.ordering.as_ref()?;
        encoder.gather(batches, places)
    }

    /// Ordering values from the columns that [`OrderingRows::into_columns`] made.
    pub fn restore(
        &self,
        values: &arrow::array::BinaryArray,
        default: BooleanArray,
        null: Option<BooleanArray>,
    ) -> Option<OrderingRows> {
        let encoder = self.ordering.as_ref()?;
        Some(encoder.restore(values, default, null))
    }
}
