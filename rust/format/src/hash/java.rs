//! `hashCode` of Java's strings and lists.

/// `String.hashCode`: over UTF-16 units.
pub fn string_hash(text: &str) -> i32 {
    text.encode_utf16()
        .fold(0, |hash, unit| step(hash, i32::from(unit)))
}

/// `List<String>.hashCode`; null counts as 0.
pub fn list_hash<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> i32 {
    values
        .into_iter()
        .fold(1, |hash, value| step(hash, value.map_or(0, string_hash)))
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
        assert_eq!(list_hash([]), 1);
        assert_eq!(list_hash([None, Some("")]), 961);
    }
}
