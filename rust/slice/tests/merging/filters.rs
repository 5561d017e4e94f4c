//! Filters on the rows and row groups of a base file: less is read, and no answer changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use pyhudi_merge::MergeMode;
use pyhudi_slice::{Comparison, Filter, SliceRead, SpillOptions};

use crate::support::{Slice, rows_of};

const FIELDS: &str = r#"
  {"name":"_hoodie_record_key","type":["null","string"],"default":null},
  {"name":"n","type":["null","long"],"default":null},
  {"name":"x","type":["null","double"],"default":null},
  {"name":"s","type":["null","string"],"default":null}"#;

type Row<'a> = (&'a str, Option<i64>, f64, &'a str);

fn batch(slice: &Slice, rows: &[Row<'_>]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(row.0)).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Float64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.3)).collect::<StringArray>()),
    ];
    RecordBatch::try_new(Arc::clone(&slice.schema), columns).unwrap()
}

/// Three row groups of two rows; a log that lifts a row over most filters, and drops one below.
fn slice() -> Slice {
    let slice = Slice::new(FIELDS);
    slice.write_base(vec![
        batch(
            &slice,
            &[("a", Some(1), 0.0, "p"), ("b", Some(2), -0.0, "q")],
        ),
        batch(
            &slice,
            &[("c", None, f64::NAN, "r"), ("d", Some(4), 4.0, "s")],
        ),
        batch(
            &slice,
            &[("e", Some(5), 5.0, "t"), ("f", Some(6), 6.0, "u")],
        ),
    ]);
    let log = [
        ("a", Some(60), 60.0, "z"),
        ("f", Some(0), 0.0, "a"),
        ("g", None, 1.0, "m"),
    ];
    slice.write_log(".1", vec![batch(&slice, &log)], &["e"]);
    slice
}

fn filter(column: &str, comparison: Comparison, literals: ArrayRef) -> Filter {
    Filter {
        column: column.to_owned(),
        comparison,
        literals,
    }
}

fn long(value: i64) -> ArrayRef {
    Arc::new(Int64Array::from(vec![value]))
}

/// Keys of what comes, base rows read, row groups left out.
fn keys(mut read: SliceRead, filters: &[Filter]) -> (Vec<String>, u64, u64) {
    read.filters = filters.to_vec();
    read.columns = vec!["_hoodie_record_key".to_owned(), "n".to_owned()];
    let (rows, stats) = rows_of(read);
    let base = stats.base_rows.load(Ordering::Relaxed);
    let pruned = stats.pruned_row_groups.load(Ordering::Relaxed);
    (rows, base, pruned)
}

#[test]
fn rows_that_fail_are_passed_over_unless_a_log_record_has_their_key() {
    let slice = slice();
    let at_least_4 = filter("n", Comparison::GreaterOrEqual, long(4));
    // Nothing to merge: one row group is out, a null fails.
    let (rows, base, pruned) = keys(slice.read(&[]), std::slice::from_ref(&at_least_4));
    assert_eq!(
        (rows.as_slice(), base, pruned),
        (["d|4", "e|5", "f|6"].map(str::to_owned).as_slice(), 3, 1)
    );
    // Commit time: no row of the last row groups can win anything, so they may go with their keys.
    let (rows, base, pruned) = keys(slice.read(&[".1"]), std::slice::from_ref(&at_least_4));
    assert_eq!(
        (rows.as_slice(), base, pruned),
        (
            ["a|60", "d|4", "f|0", "g|null"]
                .map(str::to_owned)
                .as_slice(),
            4,
            0
        )
    );
    let below_2 = filter("n", Comparison::Less, long(2));
    let (rows, base, pruned) = keys(slice.read(&[".1"]), std::slice::from_ref(&below_2));
    assert_eq!(
        (rows.as_slice(), base, pruned),
        (
            ["a|60", "f|0", "g|null"].map(str::to_owned).as_slice(),
            1,
            2
        )
    );
    // Event time: a base row that fails may still win against its log record.
    let mut read = slice.read(&[".1"]);
    read.merge.mode = MergeMode::EventTime;
    read.merge.ordering_fields = vec!["n".to_owned()];
    let (rows, base, pruned) = keys(read, &[filter("n", Comparison::Less, long(1))]);
    assert_eq!(
        (rows.as_slice(), base, pruned),
        (
            ["a|60", "f|6", "g|null"].map(str::to_owned).as_slice(),
            3,
            0
        )
    );
}

/// A base file may have a key twice. A log record takes the place of the first row.
#[test]
fn a_filter_keeps_the_second_row_of_a_key() {
    let slice = Slice::new(FIELDS);
    slice.write_base(vec![
        batch(&slice, &[("a", Some(1), 0.0, "p")]),
        batch(&slice, &[("a", Some(5), 0.0, "q")]),
    ]);
    let log = [("a", Some(7), 0.0, "r"), ("b", Some(8), 0.0, "r")];
    slice.write_log(".1", vec![batch(&slice, &log)], &[]);
    let at_least_4 = filter("n", Comparison::GreaterOrEqual, long(4));
    let mut spilled = slice.read(&[".1"]);
    spilled.spill = Some(SpillOptions {
        memory_limit: 1,
        folder: None,
    });
    for read in [slice.read(&[".1"]), spilled] {
        let (rows, ..) = keys(read, std::slice::from_ref(&at_least_4));
        assert_eq!(rows, ["a|5", "a|7", "b|8"]);
    }
}

#[test]
fn a_list_of_texts_is_looked_up_whether_short_or_long() {
    let slice = slice();
    let short = StringArray::from(vec!["d", "nobody"]);
    let long: StringArray = (0..20)
        .map(|n| {
            Some(if n == 7 {
                "d".to_owned()
            } else {
                n.to_string()
            })
        })
        .collect();
    for literals in [short, long] {
        let list = filter("_hoodie_record_key", Comparison::In, Arc::new(literals));
        let (rows, base, _) = keys(slice.read(&[".1"]), &[list]);
        assert_eq!(rows, ["a|60", "d|4", "f|0", "g|null"]);
        assert!(base <= 4, "{base} rows read");
    }
}

#[test]
fn floating_point_is_left_to_the_caller() {
    let slice = slice();
    let zero: ArrayRef = Arc::new(Float64Array::from(vec![0.0]));
    for comparison in [
        Comparison::In,
        Comparison::LessOrEqual,
        Comparison::GreaterOrEqual,
    ] {
        let (rows, base, pruned) = keys(
            slice.read(&[]),
            &[filter("x", comparison, Arc::clone(&zero))],
        );
        // Both zeros are equal to 0.0, and what a NaN does is not decided here.
        assert!(rows.contains(&"a|1".to_owned()) && rows.contains(&"b|2".to_owned()));
        assert_eq!(base, 6 - 2 * pruned, "no single row is tested");
    }
}

#[test]
fn literals_of_another_width_still_compare() {
    let slice = slice();
    let narrow: ArrayRef = Arc::new(Int32Array::from(vec![4]));
    let (rows, ..) = keys(slice.read(&[]), &[filter("n", Comparison::In, narrow)]);
    assert_eq!(rows, ["d|4"]);
    let other: ArrayRef = Arc::new(StringArray::from(vec!["4"]));
    let (rows, base, _) = keys(slice.read(&[]), &[filter("n", Comparison::In, other)]);
    assert_eq!(
        (rows.len(), base),
        (6, 6),
        "another type is the caller's business"
    );
}

#[test]
fn filters_add_up_and_a_missing_column_filters_nothing() {
    let slice = slice();
    let both = [
        filter("n", Comparison::Greater, long(1)),
        filter(
            "s",
            Comparison::Less,
            Arc::new(StringArray::from(vec!["t"])),
        ),
    ];
    let (rows, ..) = keys(slice.read(&[]), &both);
    assert_eq!(rows, ["b|2", "d|4"]);
    let (rows, ..) = keys(
        slice.read(&[]),
        &[filter("nowhere", Comparison::In, long(1))],
    );
    assert_eq!(rows.len(), 6);
}
