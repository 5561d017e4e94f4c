//! Values as Java prints and orders them.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array};
use proptest::prelude::*;
use pyhudi_keys::{double_order, double_text, float_text, java_text, text_order};

/// The digits of a number and how many of them are behind its point, of a text of `BigDecimal.toString`.
fn unscaled(text: &str) -> (i128, i32) {
    let (digits, exponent) = text.split_once('E').unwrap_or((text, "0"));
    let fraction = digits
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len());
    let scale = i32::try_from(fraction).unwrap() - exponent.parse::<i32>().unwrap();
    (digits.replace('.', "").parse().unwrap(), scale)
}

/// Texts near each other, with characters of one to four bytes.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a\u{D7FF}\u{E000}\u{FFFD}\u{10000}\u{1F600}]{0,4}"
    ]
}

proptest! {
    #[test]
    fn a_double_is_told_by_its_text(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        let text = double_text(value).replace("Infinity", "inf");
        let read: f64 = text.parse().unwrap();
        prop_assert!(
            read.to_bits() == bits || (read.is_nan() && value.is_nan()),
            "{text}"
        );
        prop_assert!(!value.is_finite() || text.contains('.'), "{text}");
    }

    #[test]
    fn a_float_is_told_by_its_text(bits in any::<u32>()) {
        let value = f32::from_bits(bits);
        let text = float_text(value).replace("Infinity", "inf");
        let read: f32 = text.parse().unwrap();
        prop_assert!(
            read.to_bits() == bits || (read.is_nan() && value.is_nan()),
            "{text}"
        );
    }

    #[test]
    fn a_decimal_is_told_by_its_text(
        value in -(10_i128.pow(38) - 1)..10_i128.pow(38),
        small in any::<bool>(),
        scale in 0..=38_i8,
    ) {
        let value = if small { value % 1000 } else { value };
        let column = Decimal128Array::from(vec![value])
            .with_precision_and_scale(38, scale)
            .unwrap();
        let column: ArrayRef = Arc::new(column);
        let text = java_text(&column, "d").unwrap().value(0).to_owned();
        prop_assert_eq!(unscaled(&text), (value, i32::from(scale)), "{}", text);
    }

    #[test]
    fn texts_are_ordered_by_utf16_units(a in text(), b in text()) {
        prop_assert_eq!(text_order(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
    }

    #[test]
    fn doubles_have_a_total_order(a in any::<u64>(), b in any::<u64>()) {
        let (a, b) = (f64::from_bits(a), f64::from_bits(b));
        prop_assert_eq!(double_order(a, b), double_order(b, a).reverse());
        prop_assert_eq!(double_order(a, a), Ordering::Equal);
        if let (Some(order), false) = (a.partial_cmp(&b), a == 0.0 && b == 0.0) {
            prop_assert_eq!(double_order(a, b), order);
        }
    }
}
