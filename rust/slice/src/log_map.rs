//! The log side in memory: one of the two maps of the merge crate, with the rows that go with it.

use std::collections::VecDeque;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{filter_record_batch, take_record_batch};
use arrow::datatypes::SchemaRef;
use pyhudi_merge::{
    BaseOutcome, Encoder, FieldMap, FieldRules, KeyMap, Keys, MergeCounts, MergeRules, Records,
    Written,
};

use crate::error::Result;

/// Records of the log side that were added together.
pub(crate) struct Part {
    pub(crate) records: Records,
    /// Their values, none for a delete block.
    pub(crate) rows: Option<RecordBatch>,
    pub(crate) written: Written,
}

impl Part {
    fn memory(&self) -> usize {
        let rows = self.rows.as_ref().map(RecordBatch::get_array_memory_size);
        self.records.memory() + rows.unwrap_or(0)
    }
}

/// How records of one key become one.
#[derive(Clone)]
pub(crate) enum MapKind {
    /// One of them stands.
    Keys(MergeRules),
    /// A row is made of several.
    Fields(FieldRules, SchemaRef),
}

/// Records by key, in memory.
pub(crate) enum LogMap {
    /// The map, the rows of each batch that has some, and their bytes.
    Keys(KeyMap, Vec<(usize, RecordBatch)>, usize),
    Fields(FieldMap),
}

impl LogMap {
    pub(crate) fn new(kind: &MapKind) -> Result<Self> {
        Ok(match kind {
            MapKind::Keys(rules) => Self::Keys(KeyMap::new(rules.clone())?, Vec::new(), 0),
            MapKind::Fields(rules, schema) => Self::Fields(FieldMap::new(rules.clone(), schema)?),
        })
    }

    /// An empty map that can take what stands in this one.
    pub(crate) fn emptied(&self) -> Self {
        match self {
            Self::Keys(map, ..) => Self::Keys(map.emptied(), Vec::new(), 0),
            Self::Fields(map) => Self::Fields(map.emptied()),
        }
    }

    pub(crate) fn encoder(&self) -> &Encoder {
        match self {
            Self::Keys(map, ..) => map.encoder(),
            Self::Fields(map) => map.encoder(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Keys(map, ..) => map.len(),
            Self::Fields(map) => map.len(),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Keys(map, _, bytes) => map.memory() + bytes,
            Self::Fields(map) => map.memory(),
        }
    }

    pub(crate) fn add(&mut self, part: Part) -> Result<()> {
        match self {
            Self::Keys(map, rows, bytes) => {
                let number = map.add(part.records);
                if let Some(batch) = part.rows {
                    *bytes += batch.get_array_memory_size();
                    rows.push((number, batch));
                }
            }
            Self::Fields(map) => map.add(part.records, part.rows, part.written)?,
        }
        Ok(())
    }

    /// What would be left if every key had only the record that stands, and its bytes.
    pub(crate) fn into_standing(self, batch_rows: usize) -> Result<(Vec<Part>, usize)> {
        let parts = match self {
            Self::Keys(map, rows, _) => standing_of_keys(&map, rows)?,
            Self::Fields(map) => map
                .standing(batch_rows)?
                .into_iter()
                .map(|part| Part {
                    records: part.records,
                    rows: Some(part.rows),
                    written: part.written,
                })
                .collect(),
        };
        let bytes = parts.iter().map(Part::memory).sum();
        Ok((parts, bytes))
    }

    /// Which of the keys have a record.
    pub(crate) fn contains(&self, keys: &Keys) -> Result<BooleanBuffer> {
        Ok(match self {
            Self::Keys(map, ..) => map.contains(keys)?,
            Self::Fields(map) => map.contains(keys)?,
        })
    }

    /// Base rows past the map: what is to be given out of them.
    pub(crate) fn merge_base(
        &mut self,
        keys: Keys,
        ordering: &[ArrayRef],
        rows: &RecordBatch,
    ) -> Result<Vec<RecordBatch>> {
        let (outcome, made) = match self {
            Self::Keys(map, ..) => (map.merge_base(keys, ordering)?, None),
            Self::Fields(map) => map.merge_base(keys, ordering, rows)?,
        };
        let kept = match outcome {
            BaseOutcome::KeepAll => rows.clone(),
            BaseOutcome::Keep(mask) => filter_record_batch(rows, &mask)?,
        };
        Ok(std::iter::once(kept).chain(made).collect())
    }

    /// The log rows that won, to be taken when all base rows have passed, and the final counts.
    pub(crate) fn winners(self, batch_rows: usize) -> Result<(Winners, MergeCounts)> {
        Ok(match self {
            Self::Keys(mut map, rows, _) => {
                let masks = map.winners();
                let counts = map.counts();
                let rows = rows.into_iter();
                let masked = rows.map(|(number, rows)| (rows, masks.get(number).cloned()));
                (Winners(masked.collect()), counts)
            }
            Self::Fields(mut map) => {
                let rows = map.winners(batch_rows)?.into_iter();
                (
                    Winners(rows.map(|rows| (rows, None)).collect()),
                    map.counts(),
                )
            }
        })
    }
}

fn standing_of_keys(map: &KeyMap, rows: Vec<(usize, RecordBatch)>) -> Result<Vec<Part>> {
    let mut rows = rows.into_iter().peekable();
    map.standing()
        .into_iter()
        .map(|standing| {
            while rows.next_if(|(batch, _)| *batch < standing.batch).is_some() {}
            let at: UInt32Array = standing.rows.iter().map(|row| Some(*row as u32)).collect();
            let rows = rows
                .next_if(|(batch, _)| *batch == standing.batch)
                .map(|(_, rows)| take_record_batch(&rows, &at))
                .transpose()?;
            Ok(Part {
                records: standing.records,
                rows,
                written: Written::All,
            })
        })
        .collect()
}

/// Log rows that won. Each batch is let go once it was given out.
pub(crate) struct Winners(VecDeque<(RecordBatch, Option<BooleanBuffer>)>);

impl Winners {
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        Ok(match self.0.pop_front() {
            None => None,
            Some((rows, None)) => Some(rows),
            Some((rows, Some(mask))) => {
                Some(filter_record_batch(&rows, &BooleanArray::new(mask, None))?)
            }
        })
    }
}
