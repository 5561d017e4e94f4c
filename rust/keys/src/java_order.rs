//! The order that Java has of values, where it is another one than Rust's.

use std::cmp::Ordering;

/// `String.compareTo`: by UTF-16 units, which differs from the order of UTF-8 bytes only where a
/// supplementary character (first byte F0 and up) meets one of U+E000 to U+FFFF (EE and EF).
pub fn text_order(a: &str, b: &str) -> Ordering {
    for (x, y) in a.bytes().zip(b.bytes()) {
        if x != y {
            let inverted = x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0);
            return if inverted { y.cmp(&x) } else { x.cmp(&y) };
        }
    }
    a.len().cmp(&b.len())
}

/// `Double.compareTo`: NaN is greatest, -0.0 is less than 0.0.
pub fn double_order(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.total_cmp(&b),
        (a, b) => a.cmp(&b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_ordered_as_java_orders_them() {
        assert_eq!(text_order("a", "b"), Ordering::Less);
        assert_eq!(text_order("a", "ab"), Ordering::Less);
        assert_eq!(text_order("ab", "ab"), Ordering::Equal);
        assert_eq!(text_order("x\u{1F600}", "x\u{FFFD}"), Ordering::Less);
        assert_eq!("x\u{1F600}".cmp("x\u{FFFD}"), Ordering::Greater);
        assert_eq!(text_order("\u{E000}", "\u{10FFFF}"), Ordering::Greater);
        assert_eq!(text_order("\u{D7FF}", "\u{1F600}"), Ordering::Less);
    }

    #[test]
    fn nan_is_greatest_and_zeros_differ() {
        assert_eq!(double_order(f64::NAN, f64::INFINITY), Ordering::Greater);
        assert_eq!(double_order(f64::NAN, -f64::NAN), Ordering::Equal);
        assert_eq!(double_order(-0.0, 0.0), Ordering::Less);
        assert_eq!(double_order(f64::NEG_INFINITY, -1.0), Ordering::Less);
    }
}
