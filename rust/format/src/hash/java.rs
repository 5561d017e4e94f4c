//! `hashCode` of Java's strings and lists.

/// `String.hashCode`: over UTF-16 units.
pub fn string_hash(text: &str) -> i32 {
    if text.is_ascii() {
        return ascii_hash(text.as_bytes());
    }
    text.encode_utf16()
        .fold(0, |hash, unit| step(hash, i32::from(unit)))
}

/// `List<String>.hashCode`; null counts as 0.
pub fn list_hash<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> i32 {
    values
        .into_iter()
        .fold(1, |hash, value| step(hash, value.map_or(0, string_hash)))
}

/// Four characters at a time: a product waits for the one before.
fn ascii_hash(text: &[u8]) -> i32 {
    let (fours, rest) = text.as_chunks::<4>();
    let hash = fours.iter().fold(0_i32, |hash, [a, b, c, d]| {
        let four = [(a, 29_791), (b, 961), (c, 31), (d, 1)];
        let four: i32 = four
            .iter()
            .map(|(unit, factor)| i32::from(**unit) * factor)
            .sum();
        hash.wrapping_mul(923_521).wrapping_add(four)
    });
    rest.iter()
        .fold(hash, |hash, unit| step(hash, i32::from(*unit)))
}

fn step(hash: i32, next: i32) -> i32 {
    hash.wrapping_mul(31).wrapping_add(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_as_java() {
        for (key, hash) in [
            ("", 0),
            ("k1", 3366),
            ("key-12345", 1_154_953_029),
            ("é", 233),
            ("日本語キー", -858_417_722),
            ("😀x", 54_959_989),
            ("abcÿ", 2_987_229),
        ] {
            assert_eq!(string_hash(key), hash, "{key}");
        }
        let text = "0123456789-abcdef~\u{7f}XYZ";
        for end in 0..=text.len() {
            let units = text[..end].encode_utf16();
            let hash = units.fold(0, |hash, unit| step(hash, i32::from(unit)));
            assert_eq!(string_hash(&text[..end]), hash);
        }
        assert_eq!(list_hash([]), 1);
        assert_eq!(list_hash([None, Some("")]), 961);
    }
}
