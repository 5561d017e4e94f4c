//! The rows of a generated slice by a fold over a plain map.

use std::collections::{BTreeMap, HashSet};

use crate::generated::{Block, COLUMNS, Cells, Files, Values, cells};
use crate::records::{DeleteValue, Row, Weight};

/// The record of a key: none of a delete has cells.
type Record = (Weight, Option<Cells>);

impl Files {
    /// The values of the winner, but for those that it takes from the loser.
    fn meet(&self, older: &Cells, newer: &Cells, newer_wins: bool) -> Cells {
        let (mut winner, loser) = if newer_wins {
            (newer.clone(), older)
        } else {
            (older.clone(), newer)
        };
        for at in 0..COLUMNS.len() {
            let is_absent = !winner.is_written[at] && loser.is_written[at];
            if is_absent || (self.fills_nulls && winner.values[at].is_none()) {
                winner.values[at].clone_from(&loser.values[at]);
            }
            winner.is_written[at] |= loser.is_written[at];
        }
        winner
    }

    /// The records of the log side, oldest first.
    fn log_records(&self) -> Vec<(u8, Record)> {
        let of_row = |row: &Row<Values>, without: &[usize], is_partial: bool| {
            let weight = Weight::of_row(row);
            let cells = (!weight.is_deleted).then(|| cells(row, without, is_partial));
            (row.key, (weight, cells))
        };
        let of_delete = |key: u8, value: DeleteValue| (key, (Weight::of_delete(value), None));
        let mut records = Vec::new();
        for block in self.blocks() {
            match block {
                Block::Rows {
                    rows,
                    without,
                    is_partial,
                    ..
                } => records.extend(rows.iter().map(|row| of_row(row, without, *is_partial))),
                Block::Deletes(deletes) => {
                    records.extend(deletes.iter().map(|(key, value)| of_delete(*key, *value)));
                }
                Block::Rollback(_) => {}
            }
        }
        if let Some((rows, deletes)) = &self.incoming {
            records.extend(rows.iter().map(|row| of_row(row, &[], false)));
            records.extend(deletes.iter().map(|key| of_delete(*key, DeleteValue::Zero)));
        }
        records
    }

    fn fold(&self, older: &Record, newer: Record) -> Record {
        let newer_wins = newer.0.beats(older.0, &self.rules);
        match (&older.1, &newer.1) {
            (Some(old), Some(new)) => {
                let weight = if newer_wins { newer.0 } else { older.0 };
                (weight, Some(self.meet(old, new, newer_wins)))
            }
            _ if newer_wins => newer,
            _ => older.clone(),
        }
    }

    /// Keys and values of all rows.
    pub fn rows(&self) -> Vec<(u8, Cells)> {
        let mut standing: BTreeMap<u8, Record> = BTreeMap::new();
        for (key, newer) in self.log_records() {
            let folded = match standing.get(&key) {
                Some(older) => self.fold(older, newer),
                None => newer,
            };
            standing.insert(key, folded);
        }
        let mut met = HashSet::new();
        let mut all = Vec::new();
        for row in self.base.iter().flat_map(|base| &base.rows) {
            let without = self.base.as_ref().map_or(&[][..], |base| &base.without);
            let base = cells(row, without, false);
            let Some((weight, log)) = standing.get(&row.key) else {
                all.push((row.key, base));
                continue;
            };
            let is_first = met.insert(row.key);
            let takes_all = self.rules.null_ordering_loses && log.is_none();
            let log_wins = weight.beats_base(row, &self.rules);
            match log {
                _ if !is_first && !takes_all => all.push((row.key, base)),
                None if log_wins => {}
                None => all.push((row.key, base)),
                Some(log) => all.push((row.key, self.meet(&base, log, log_wins))),
            }
        }
        let new = standing.into_iter().filter(|(key, _)| !met.contains(key));
        all.extend(new.filter_map(|(key, (_, cells))| Some((key, cells?))));
        all
    }

    pub fn log_keys(&self) -> usize {
        let records = self.log_records().into_iter();
        records.map(|(key, _)| key).collect::<HashSet<_>>().len()
    }
}
