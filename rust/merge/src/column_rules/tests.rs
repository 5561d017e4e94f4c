use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Decimal128Array, Float64Array, Int32Array, Int64Array, ListArray,
    StringArray,
};
use arrow::datatypes::{Decimal128Type, Float64Type, Int32Type, Int64Type};

use super::ColumnRule;

fn numbers(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn lists(values: Vec<Option<Vec<Option<i32>>>>) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(values))
}

fn decimals(values: &[Option<i128>]) -> ArrayRef {
    let values = Decimal128Array::from(values.to_vec());
    Arc::new(values.with_precision_and_scale(3, 1).unwrap())
}

#[test]
fn rules_ignore_nulls() {
    let older = numbers(&[Some(3), Some(3), None, None]);
    let newer = numbers(&[Some(2), None, Some(2), None]);
    for (rule, both) in [
        (ColumnRule::Sum, 5),
        (ColumnRule::Max, 3),
        (ColumnRule::Min, 2),
        (ColumnRule::LastNonNull, 2),
        (ColumnRule::First, 3),
    ] {
        let combined = rule.combine(&older, &newer).unwrap();
        let values: Vec<_> = combined.as_primitive::<Int64Type>().iter().collect();
        assert_eq!(values, [Some(both), Some(3), Some(2), None], "{rule:?}");
    }
}

#[test]
fn sum_keeps_types_and_fails_on_overflow() {
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
    let sum = ColumnRule::Sum.combine(&floats, &floats).unwrap();
    assert_eq!(sum.as_primitive::<Float64Type>().values(), &[1.0]);

    let small: ArrayRef = Arc::new(Int32Array::from(vec![i32::MAX]));
    let error = ColumnRule::Sum.combine(&small, &small).unwrap_err();
    assert!(error.to_string().contains("2147483647"), "{error}");
    assert!(
        ColumnRule::Sum
            .combine(&numbers(&[Some(i64::MIN)]), &numbers(&[Some(-1)]))
            .is_err()
    );
}

#[test]
fn sum_of_decimals_stays_in_its_precision() {
    let older = decimals(&[Some(990), Some(5), None]);
    let sum = ColumnRule::Sum
        .combine(&older, &decimals(&[Some(9), None, Some(-7)]))
        .unwrap();
    assert_eq!(sum.data_type(), older.data_type());
    let values: Vec<_> = sum.as_primitive::<Decimal128Type>().iter().collect();
    assert_eq!(values, [Some(999), Some(5), Some(-7)]);
    let bound = decimals(&[Some(10), None, None]);
    assert!(ColumnRule::Sum.combine(&older, &bound).is_err());
    let below = ColumnRule::Sum.combine(&decimals(&[Some(-999)]), &decimals(&[Some(-1)]));
    assert!(below.is_err());
}

#[test]
fn max_and_min_compare_text_by_bytes_and_nan_as_greatest() {
    let older: ArrayRef = Arc::new(StringArray::from(vec!["b", "Z"]));
    let newer: ArrayRef = Arc::new(StringArray::from(vec!["ä", "a"]));
    let max = ColumnRule::Max.combine(&older, &newer).unwrap();
    assert_eq!(max.as_string::<i32>(), &StringArray::from(vec!["ä", "a"]));
    let min = ColumnRule::Min.combine(&older, &newer).unwrap();
    assert_eq!(min.as_string::<i32>(), &StringArray::from(vec!["b", "Z"]));

    let nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN]));
    let one: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    for (older, newer) in [(&nan, &one), (&one, &nan)] {
        let max = ColumnRule::Max.combine(older, newer).unwrap();
        assert!(max.as_primitive::<Float64Type>().value(0).is_nan());
        let min = ColumnRule::Min.combine(older, newer).unwrap();
        assert_eq!(min.as_primitive::<Float64Type>().values(), &[1.0]);
    }
}

#[test]
fn append_and_union_join_lists_in_order() {
    let older = lists(vec![
        Some(vec![Some(2), Some(1), Some(2)]),
        Some(vec![Some(1), Some(1)]),
        None,
        None,
        Some(vec![]),
    ]);
    let newer = lists(vec![
        Some(vec![Some(3), Some(1), None, None]),
        None,
        Some(vec![Some(4), Some(4)]),
        None,
        Some(vec![]),
    ]);
    let appended = ColumnRule::Append.combine(&older, &newer).unwrap();
    let wanted = lists(vec![
        Some(vec![
            Some(2),
            Some(1),
            Some(2),
            Some(3),
            Some(1),
            None,
            None,
        ]),
        Some(vec![Some(1), Some(1)]),
        Some(vec![Some(4), Some(4)]),
        None,
        Some(vec![]),
    ]);
    assert_eq!(&appended, &wanted);
    let united = ColumnRule::Union.combine(&older, &newer).unwrap();
    let wanted = lists(vec![
        Some(vec![Some(2), Some(1), Some(3), None]),
        Some(vec![Some(1), Some(1)]),
        Some(vec![Some(4), Some(4)]),
        None,
        Some(vec![]),
    ]);
    assert_eq!(&united, &wanted);
    // Of a part of an array, whose offsets do not begin at 0.
    let part = ColumnRule::Append
        .combine(&older.slice(1, 2), &newer.slice(1, 2))
        .unwrap();
    assert_eq!(part.to_data(), appended.slice(1, 2).to_data());
}

#[test]
fn rules_are_associative() {
    let [a, b, c] = [
        lists(vec![Some(vec![Some(1), Some(1)])]),
        lists(vec![Some(vec![Some(2), Some(1)])]),
        lists(vec![Some(vec![Some(3), Some(2)])]),
    ];
    for rule in [ColumnRule::Append, ColumnRule::Union, ColumnRule::First] {
        let left = rule.combine(&rule.combine(&a, &b).unwrap(), &c).unwrap();
        let right = rule.combine(&a, &rule.combine(&b, &c).unwrap()).unwrap();
        assert_eq!(&left, &right, "{rule:?}");
    }
}

#[test]
fn names_are_those_of_the_property() {
    for name in [
        "sum",
        "max",
        "min",
        "last_non_null",
        "first",
        "append",
        "union",
    ] {
        assert!(ColumnRule::named(name).is_some(), "{name}");
    }
    assert_eq!(ColumnRule::named("product"), None);
}
