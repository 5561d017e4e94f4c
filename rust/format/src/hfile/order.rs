//! The two orders that the keys of an HFile may have.
//!
//! HBase's writer and pyhudi's sort keys by their bytes. Hudi sorts them as Java strings, by UTF-16
//! code units, and its own writer (1.1 and later) takes them as they come. The orders differ where a
//! supplementary character (first byte F0 and up) meets one of U+E000 to U+FFFF (EE and EF), and
//! nothing in the file names the one it has. So no reader relies on an order: it checks the keys that
//! it passes, and looks for a key in each order that they allow.

use std::cmp::Ordering;

use crate::{FormatError, Result};

/// The least byte at which the orders differ.
const DIFFERING: u8 = 0xee;
/// The least byte of a supplementary character.
const SUPPLEMENTARY: u8 = 0xf0;

/// An order of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// By their bytes.
    Bytes,
    /// By UTF-16 code units, as `String.compareTo` in Java.
    Utf16,
}

impl KeyOrder {
    /// Compares two keys.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        let by_bytes = a.cmp(b);
        match self {
            Self::Utf16 if is_inverted(a, b) => by_bytes.reverse(),
            _ => by_bytes,
        }
    }
}

/// Whether the orders disagree about two keys.
fn is_inverted(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).find(|(x, y)| x != y);
    differing.is_some_and(|(x, y)| {
        *x >= DIFFERING && *y >= DIFFERING && (*x >= SUPPLEMENTARY) != (*y >= SUPPLEMENTARY)
    })
}

/// Whether a key, or one that begins with it, may have another place in one order than in the other.
pub(super) fn is_ambiguous(key: &[u8]) -> bool {
    key.iter().any(|byte| *byte >= DIFFERING)
}

/// The orders that the keys of a file may have, as far as they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orders {
    bytes: bool,
    utf16: bool,
}

impl Orders {
    pub(super) const ANY: Self = Self {
        bytes: true,
        utf16: true,
    };

    pub(super) fn only(order: KeyOrder) -> Self {
        Self {
            bytes: order == KeyOrder::Bytes,
            utf16: order == KeyOrder::Utf16,
        }
    }

    pub(super) fn allow(self, order: KeyOrder) -> bool {
        match order {
            KeyOrder::Bytes => self.bytes,
            KeyOrder::Utf16 => self.utf16,
        }
    }

    /// The order, if it is known.
    pub(super) fn one(self) -> Option<KeyOrder> {
        (self.bytes != self.utf16).then(|| self.first())
    }

    /// The order to begin with.
    pub(super) fn first(self) -> KeyOrder {
        if self.bytes {
            KeyOrder::Bytes
        } else {
            KeyOrder::Utf16
        }
    }

    /// The order to try after `order`, with which the search [begins](Self::first).
    pub(super) fn after(self, order: KeyOrder) -> Option<KeyOrder> {
        (order == KeyOrder::Bytes && self.utf16).then_some(KeyOrder::Utf16)
    }

    /// Rules out the orders in which `key` does not come after `before` or is the same. `at` is where
    /// their block starts in the file.
    pub(super) fn pass(&mut self, before: &[u8], key: &[u8], at: u64) -> Result<()> {
        match before.cmp(key) {
            Ordering::Equal => return Ok(()),
            // As a rule no byte of a key is one at which the orders differ.
            Ordering::Less if !self.utf16 || !is_ambiguous(before) => return Ok(()),
            Ordering::Less => self.utf16 = !is_inverted(before, key),
            Ordering::Greater => {
                self.bytes = false;
                self.utf16 &= is_inverted(before, key);
            }
        }
        if self.bytes || self.utf16 {
            return Ok(());
        }
        let (before, key) = (shown(before), shown(key));
        let what = format!(
            "HFile keys in neither the order of their bytes nor that of UTF-16 ({before}, {key})"
        );
        Err(FormatError::corrupt(at, what))
    }
}

/// The beginning of a key, for an error.
fn shown(key: &[u8]) -> String {
    const MOST: usize = 40;
    String::from_utf8_lossy(key.get(..MOST).unwrap_or(key)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 9] = [
        "",
        "a",
        "é",
        "\u{D7FF}",
        "\u{E000}",
        "\u{FFFD}",
        "\u{10000}",
        "\u{1F600}z",
        "a\u{1F600}",
    ];

    #[test]
    fn key_orders_are_those_of_bytes_and_of_java() {
        for (a, b) in KEYS.iter().flat_map(|a| KEYS.iter().map(move |b| (a, b))) {
            let units = a.encode_utf16().cmp(b.encode_utf16());
            let (x, y) = (a.as_bytes(), b.as_bytes());
            assert_eq!(KeyOrder::Utf16.compare(x, y), units, "{a:?} {b:?}");
            assert_eq!(KeyOrder::Bytes.compare(x, y), a.cmp(b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn keys_rule_out_the_orders_that_they_are_not_in() {
        let after = |keys: &[&str]| {
            let mut orders = Orders::ANY;
            for pair in keys.windows(2) {
                orders.pass(pair[0].as_bytes(), pair[1].as_bytes(), 7)?;
            }
            Ok::<_, FormatError>(orders)
        };
        assert_eq!(after(&["", "a", "a", "é"]).unwrap(), Orders::ANY);
        let bytes = after(&["a", "\u{FF21}", "\u{1F600}"]).unwrap();
        assert_eq!(bytes, Orders::only(KeyOrder::Bytes));
        let utf16 = after(&["a", "\u{1F600}", "\u{FF21}", "\u{FF22}"]).unwrap();
        assert_eq!(utf16, Orders::only(KeyOrder::Utf16));
        for mixed in [
            &["b", "a"][..],
            &["a", "\u{1F600}", "\u{FF21}", "\u{1F601}"],
            &["a", "\u{FF21}", "\u{1F600}", "\u{FF22}"],
        ] {
            let error = after(mixed).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with("damaged at byte 7: HFile keys in neither"),
                "{error}"
            );
        }
    }
}
