//! Two live records of one key, merged field by field, a batch of such pairs at a time.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Datum, RecordBatch, Scalar, StringArray,
};
use arrow::compute::kernels::cmp;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{and, and_not, cast, is_null, nullif, or};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;

use crate::column_rules::ColumnRule;
use crate::column_sets::ColumnSets;
use crate::ordering::{MergeError, MergeRules};

/// Which values of the record that wins are taken from the one that loses.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// Only those of columns that the winner was written without.
    Absent,
    /// Those equal to the column's default: the given value (one row, column by column), which may
    /// be a null that nothing equals; null where none is given.
    Defaults(Vec<Option<ArrayRef>>),
    /// Texts and bytes equal to this marker.
    Marker(String),
    /// The same of records that are newer; one that wins by its ordering value stays as it is.
    NewerMarker(String),
}

/// A merger that is not built in. It sees pairs of live records of one key.
pub trait RowMerger: Send + Sync {
    /// Merges row by row: batches of equal length and schema. Gives the merged rows and which of
    /// them are deleted.
    ///
    /// # Errors
    /// Whatever stops the merger.
    fn merge(
        &self,
        older: &RecordBatch,
        newer: &RecordBatch,
    ) -> Result<(RecordBatch, Option<BooleanArray>), MergeError>;
}

/// The rules of a merge field by field.
#[derive(Clone)]
pub struct FieldRules {
    /// Which of two records wins.
    pub order: MergeRules,
    /// What becomes of the winner's values.
    pub fill: Fill,
    /// Columns, by number, that come from the newer record whichever wins.
    pub newest: Vec<usize>,
    /// A delete wins over what is older whatever its ordering value, and what is newer over it
    /// (payload classes of table versions before 9).
    pub deletes_always_win: bool,
    /// A column, by number, that marks deletes among rows that are merged as live ones. Where one
    /// would win, the newer row stands as it is (`PartialUpdateAvroPayload.preCombine`, 1.2.0).
    pub marks_deletes: Option<usize>,
    /// Columns, by number, that a rule combines whichever wins.
    pub combined: Vec<(usize, ColumnRule)>,
    /// A record after a delete is not merged with what the delete removed.
    pub starts_over: bool,
    /// Takes the place of all of the above for two live records.
    pub merger: Option<Arc<dyn RowMerger>>,
}

/// Pairs of rows: the older and the newer of each key, at the same positions.
pub(crate) struct Pair {
    pub older: RecordBatch,
    pub newer: RecordBatch,
    pub older_sets: Vec<u32>,
    pub newer_sets: Vec<u32>,
    pub newer_wins: BooleanArray,
    /// Rows whose winner stays as it is.
    pub whole: Option<BooleanArray>,
}

impl Pair {
    /// Lets the newer row stand where a marked delete would win.
    pub fn settle_marked(&mut self, marks: usize) -> Result<(), MergeError> {
        let (older, newer) = (self.older.column(marks), self.newer.column(marks));
        let winner = zip(&self.newer_wins, newer, older)?;
        let whole = without_nulls(winner.as_boolean());
        self.newer_wins = or(&self.newer_wins, &whole)?;
        self.whole = Some(whole);
        Ok(())
    }

    /// The merged rows, and which of them are deleted. Columns of `schema` may all hold nulls.
    /// `key` describes a row's key.
    pub fn merged(
        &self,
        rules: &FieldRules,
        sets: &ColumnSets,
        schema: &SchemaRef,
        key: impl Fn(usize) -> String,
    ) -> Result<(RecordBatch, Option<BooleanArray>), MergeError> {
        if let Some(merger) = &rules.merger {
            let (rows, deleted) = merger.merge(&self.older, &self.newer)?;
            return Ok((loose(&rows, schema)?, deleted));
        }
        let columns = (0..schema.fields().len())
            .map(|column| {
                let rule = rules.combined.iter().find(|(at, _)| *at == column);
                rule.map_or_else(
                    || self.field(rules, sets, column),
                    |(_, rule)| {
                        self.combined(*rule, column)
                            .map_err(|(row, source)| MergeError::Rule {
                                column: schema.field(column).name().clone(),
                                key: key(row),
                                source,
                            })
                    },
                )
            })
            .collect::<Result<Vec<_>, MergeError>>()?;
        Ok((RecordBatch::try_new(Arc::clone(schema), columns)?, None))
    }

    /// A column by its rule. The error comes with the number of its row.
    fn combined(&self, rule: ColumnRule, column: usize) -> Result<ArrayRef, (usize, ArrowError)> {
        let (older, newer) = (self.older.column(column), self.newer.column(column));
        // To a null the rule changes nothing.
        let older = match &self.whole {
            Some(whole) => &nullif(older, whole).map_err(|source| (0, source))?,
            None => older,
        };
        rule.combine(older, newer).map_err(|source| {
            let fails = |row: &usize| {
                rule.combine(&older.slice(*row, 1), &newer.slice(*row, 1))
                    .is_err()
            };
            ((0..newer.len()).find(fails).unwrap_or(0), source)
        })
    }

    fn field(
        &self,
        rules: &FieldRules,
        sets: &ColumnSets,
        column: usize,
    ) -> Result<ArrayRef, MergeError> {
        let (older, newer) = (self.older.column(column), self.newer.column(column));
        if rules.newest.contains(&column) {
            return Ok(Arc::clone(newer));
        }
        let winner = zip(&self.newer_wins, newer, older)?;
        let absent = (!sets.only_all()).then(|| self.absent(sets, column));
        let unsaid = match &rules.fill {
            Fill::Absent => None,
            Fill::Defaults(defaults) => {
                let default = defaults.get(column).and_then(Option::as_ref);
                Some(is_default(&winner, default)?)
            }
            Fill::Marker(marker) => is_marker(&winner, marker)?,
            Fill::NewerMarker(marker) => is_marker(&winner, marker)?
                .map(|found| and(&found, &self.newer_wins))
                .transpose()?,
        };
        let fill = match (unsaid, absent) {
            (Some(unsaid), Some(absent)) => or(&unsaid, &absent)?,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Ok(winner),
        };
        let fill = match &self.whole {
            Some(whole) => and_not(&fill, whole)?,
            None => fill,
        };
        if fill.true_count() == 0 {
            return Ok(winner);
        }
        let loser = zip(&self.newer_wins, older, newer)?;
        Ok(zip(&fill, &loser, &winner)?)
    }

    /// Rows whose winner was written without a column that the loser has.
    fn absent(&self, sets: &ColumnSets, column: usize) -> BooleanArray {
        let has = |set: u32| sets.get(set)[column];
        (0..self.newer_wins.len())
            .map(|row| {
                let (newer, older) = (self.newer_sets[row], self.older_sets[row]);
                let (winner, loser) = if self.newer_wins.value(row) {
                    (newer, older)
                } else {
                    (older, newer)
                };
                Some(!has(winner) && has(loser))
            })
            .collect()
    }
}

/// The rows in `schema`: those of several origins stand together only when all columns may hold
/// nulls.
pub(crate) fn loose(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, MergeError> {
    let columns = rows.columns().to_vec();
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// Rows whose value is the column's default.
fn is_default(values: &ArrayRef, default: Option<&ArrayRef>) -> Result<BooleanArray, MergeError> {
    let Some(default) = default else {
        return Ok(is_null(values)?);
    };
    let default = Scalar::new(cast(default, values.data_type())?);
    let values: &dyn Datum = values;
    Ok(without_nulls(&cmp::eq(values, &default)?))
}

fn without_nulls(mask: &BooleanArray) -> BooleanArray {
    mask.iter().map(|value| Some(value == Some(true))).collect()
}

/// Rows whose value is the marker; none for columns that hold neither text nor bytes.
fn is_marker(values: &ArrayRef, marker: &str) -> Result<Option<BooleanArray>, MergeError> {
    let found = match values.data_type() {
        DataType::Utf8 => {
            let marker = Scalar::new(StringArray::from(vec![marker]));
            let values: &dyn Datum = values;
            cmp::eq(values, &marker)?
        }
        DataType::Binary => values
            .as_binary::<i32>()
            .iter()
            .map(|value| Some(value == Some(marker.as_bytes())))
            .collect(),
        _ => return Ok(None),
    };
    Ok(Some(without_nulls(&found)))
}
