//! Records that stand as they are: the key map, and combining the rows of one batch.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use pyhudi_merge::{KeyMap, MergeCounts, MergeRules, combine_rows};

use crate::history::{KEYS, Step, deleted, history, kept, keys, ordering};
use crate::records::{Row, Weight, delete_values, row, rules};

/// What the rules make of a history: base rows that stay, the numbers of records that are given out, counts.
type Outcome = (Vec<bool>, Vec<usize>, MergeCounts);

/// What the map says, with a number for each record of the history.
fn merged(rules: &MergeRules, log: &[Step<()>], base: &[Row<()>]) -> Outcome {
    let mut map = KeyMap::new(rules.clone()).unwrap();
    let mut numbers: Vec<Vec<usize>> = Vec::new();
    let mut next = 0;
    for step in log {
        let count = match step {
            Step::Rows(rows) => {
                let times = ordering(rules, rows.iter().map(|row| row.ts));
                map.add_rows(
                    keys(rows.iter().map(|row| row.key)),
                    &times,
                    Some(&deleted(rows)),
                )
                .unwrap();
                rows.len()
            }
            Step::Deletes(deletes) => {
                let values = delete_values(rules, deletes);
                map.add_deletes(keys(deletes.iter().map(|(key, _)| *key)), &values)
                    .unwrap();
                deletes.len()
            }
            Step::Reload => {
                let mut new = map.emptied();
                let mut moved = Vec::new();
                for standing in map.standing() {
                    moved.push(
                        standing
                            .rows
                            .iter()
                            .map(|row| numbers[standing.batch][*row])
                            .collect(),
                    );
                    new.add(standing.records);
                }
                (map, numbers) = (new, moved);
                continue;
            }
        };
        numbers.push((next..next + count).collect());
        next += count;
    }
    // Base rows come in several batches.
    let (first, rest) = base.split_at(base.len() / 2);
    let mut stay = Vec::new();
    for rows in [first, rest] {
        let times = ordering(rules, rows.iter().map(|row| row.ts));
        let outcome = map
            .merge_base(keys(rows.iter().map(|row| row.key)), &times)
            .unwrap();
        stay.extend(kept(outcome, rows.len()));
    }
    let winners = map.winners();
    let won = winners.iter().zip(&numbers);
    let mut won: Vec<usize> = won
        .flat_map(|(mask, numbers)| {
            mask.iter()
                .zip(numbers)
                .filter(|(is_set, _)| *is_set)
                .map(|(_, n)| *n)
        })
        .collect();
    won.sort_unstable();
    (stay, won, map.counts())
}

/// The same by a fold over a plain map.
fn expected(rules: &MergeRules, log: &[Step<()>], base: &[Row<()>]) -> Outcome {
    let mut standing: BTreeMap<u8, (Weight, usize)> = BTreeMap::new();
    let records = log.iter().flat_map(|step| match step {
        Step::Rows(rows) => rows
            .iter()
            .map(|row| (row.key, Weight::of_row(row)))
            .collect(),
        Step::Deletes(deletes) => deletes
            .iter()
            .map(|(key, value)| (*key, Weight::of_delete(*value)))
            .collect(),
        Step::Reload => Vec::new(),
    });
    for (number, (key, newer)) in records.enumerate() {
        if standing
            .get(&key)
            .is_none_or(|(older, _)| newer.beats(*older, rules))
        {
            standing.insert(key, (newer, number));
        }
    }
    let mut counts = MergeCounts::default();
    let (mut met, mut lost) = (Vec::new(), Vec::new());
    let mut stays = |row: &Row<()>| {
        let Some((log, _)) = standing.get(&row.key) else {
            return true;
        };
        let is_first = !met.contains(&row.key);
        met.push(row.key);
        // A writer's delete takes every row of its key.
        let takes_all = rules.null_ordering_loses && log.is_deleted;
        if !is_first && !takes_all {
            return true;
        }
        let wins = log.beats_base(row, rules);
        match (wins, log.is_deleted) {
            (true, true) => counts.deleted += 1,
            (true, false) => counts.updated += 1,
            (false, _) => lost.push(row.key),
        }
        !wins
    };
    let stay = base.iter().map(&mut stays).collect();
    let live = standing
        .iter()
        .filter(|(key, (log, _))| !log.is_deleted && !lost.contains(key));
    let mut won: Vec<usize> = live.clone().map(|(_, (_, number))| *number).collect();
    won.sort_unstable();
    counts.inserted = live.filter(|(key, _)| !met.contains(key)).count() as u64;
    (stay, won, counts)
}

proptest! {
    #[test]
    fn a_key_map_agrees_with_a_plain_map(rules in rules(), (log, base) in history(Just(()), true)) {
        prop_assert_eq!(merged(&rules, &log, &base), expected(&rules, &log, &base));
    }

    #[test]
    fn combining_keeps_what_a_plain_map_keeps(
        rules in rules(),
        rows in vec(row(KEYS, Just(()), true), 0..20),
    ) {
        let mut standing: BTreeMap<u8, (Weight, usize)> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            let newer = Weight::of_row(row);
            if standing
                .get(&row.key)
                .is_none_or(|(older, _)| newer.beats(*older, &rules))
            {
                standing.insert(row.key, (newer, number));
            }
        }
        let times = ordering(&rules, rows.iter().map(|row| row.ts));
        let stay = combine_rows(
            rules,
            keys(rows.iter().map(|row| row.key)),
            &times,
            Some(&deleted(&rows)),
        )
        .unwrap();
        let stay: Vec<usize> = stay.set_indices().collect();
        let mut wanted: Vec<usize> = standing.values().map(|(_, number)| *number).collect();
        wanted.sort_unstable();
        prop_assert_eq!(stay, wanted);
    }
}
