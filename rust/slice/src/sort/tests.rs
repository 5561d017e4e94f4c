use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;

use super::{Input, Layout, SortOptions, SortedRows};

fn batch(from: i64, rows: i64) -> RecordBatch {
    // Out of order, with nulls.
    let number = |row: i64| (row % 7 != 3).then_some((row * 7919) % 1009);
    let numbers: Int64Array = (from..from + rows).map(number).collect();
    let texts: StringArray = (from..from + rows)
        .map(|row| (row % 11 != 5).then(|| format!("t{}", (row * 31) % 97)))
        .collect();
    let ids = Int64Array::from_iter_values(from..from + rows);
    let columns: [(&str, ArrayRef); 3] = [
        ("n", Arc::new(numbers)),
        ("t", Arc::new(texts)),
        ("id", Arc::new(ids)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn read(columns: &[&str], layout: Layout, memory_limit: usize) -> Vec<RecordBatch> {
    let input = |start: i64| -> Input {
        Box::new((0..10).map(move |number| Ok(batch(start + number * 300, 300))))
    };
    let options = SortOptions {
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        layout,
        memory_limit,
        folder: None,
    };
    let rows = SortedRows::new(vec![input(0), input(3000)], options);
    rows.map(Result::unwrap).collect()
}

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    let ids = batches.iter().flat_map(|batch| {
        let ids = batch.column(2).as_primitive::<Int64Type>();
        ids.values().to_vec()
    });
    ids.collect()
}

const AMPLE: usize = 1 << 30;
const TIGHT: usize = 50_000;

#[test]
fn rows_stand_in_the_order_of_columns_nulls_first_and_equal_ones_as_they_came() {
    let batches = read(&["n", "t"], Layout::Linear, AMPLE);
    let mut rows = Vec::new();
    for batch in &batches {
        let (numbers, texts) = (batch.column(0), batch.column(1));
        let numbers = numbers.as_primitive::<Int64Type>();
        let texts = texts.as_string::<i32>();
        for row in 0..batch.num_rows() {
            let number = numbers.is_valid(row).then(|| numbers.value(row));
            let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
            let id = batch.column(2).as_primitive::<Int64Type>().value(row);
            rows.push((number, text, id));
        }
    }
    assert_eq!(rows.len(), 6000);
    assert!(rows.is_sorted());
}

#[test]
fn rows_beyond_memory_stand_as_those_in_memory() {
    for layout in [Layout::Linear, Layout::ZOrder, Layout::Hilbert] {
        let in_memory = ids(&read(&["n", "t"], layout, AMPLE));
        assert_eq!(in_memory.len(), 6000);
        assert_eq!(
            ids(&read(&["n", "t"], layout, TIGHT)),
            in_memory,
            "{layout:?}"
        );
    }
}

#[test]
fn without_columns_rows_stay_as_they_come() {
    let wanted: Vec<i64> = (0..6000).collect();
    assert_eq!(ids(&read(&[], Layout::ZOrder, TIGHT)), wanted);
}

#[test]
fn one_column_is_linear_on_every_curve() {
    let linear = ids(&read(&["n"], Layout::Linear, AMPLE));
    assert_eq!(ids(&read(&["n"], Layout::Hilbert, AMPLE)), linear);
}

/// A sixteenth of the rows spans about a quarter of each column, not all of one of them.
#[test]
fn a_curve_keeps_rows_together_in_every_column() {
    for layout in [Layout::ZOrder, Layout::Hilbert] {
        let batches = read(&["n", "id"], layout, AMPLE);
        let all = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
        let (mut wide, part) = (0, 6000 / 16);
        for start in (0..16).map(|number| number * part) {
            let rows = all.slice(start, part);
            let ids = rows.column(2).as_primitive::<Int64Type>();
            let (least, most) = (ids.values().iter().min(), ids.values().iter().max());
            if most.unwrap() - least.unwrap() > 2000 {
                wide += 1;
            }
        }
        assert!(wide <= 4, "{layout:?}: {wide} of 16 parts are wide");
    }
}
