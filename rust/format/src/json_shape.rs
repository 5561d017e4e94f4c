//! How deep lines of JSON are nested and how many names they have, before a reader takes them.
//!
//! Readers call themselves for each level, and make a column of every name.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The shape of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonShape {
    /// Objects and arrays in one another, at most.
    pub depth: usize,
    /// Different names, those of objects at different places apart.
    pub names: usize,
}

/// An object or an array that is open.
#[derive(Clone, Copy)]
struct Level {
    is_object: bool,
    /// Whether the next text is a name.
    expects_name: bool,
    /// Stands for the names on the way here; none where names are not counted.
    place: Option<u64>,
    /// The same for the value that follows.
    next: Option<u64>,
}

/// The shape of a text, up to where it is deeper or has more names than `most` allows. Faulty JSON has
/// some shape too.
///
/// `apart`: columns whose own names are not counted, since they are keys of maps.
#[must_use]
pub fn json_shape(text: &[u8], apart: &[String], most: JsonShape) -> JsonShape {
    let mut names = HashSet::new();
    let mut open: Vec<Level> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = end_of_text(text, at);
                let name = text.get(at..end).unwrap_or_default();
                at = end + 1;
                let is_column = open.len() == 1;
                let Some(level) = open.last_mut().filter(|level| level.expects_name) else {
                    continue;
                };
                level.expects_name = false;
                let is_apart = is_column && apart.iter().any(|one| one.as_bytes() == name);
                let place = level.place.map(|place| place_of(place, name));
                names.extend(place);
                level.next = place.filter(|_| !is_apart);
            }
            b'{' | b'[' => {
                let is_object = *byte == b'{';
                let place = open.last().map_or(Some(0), |level| level.next);
                open.push(Level {
                    is_object,
                    expects_name: is_object,
                    place,
                    next: place,
                });
                depth = depth.max(open.len());
            }
            b'}' | b']' => {
                open.pop();
            }
            b',' => {
                if let Some(level) = open.last_mut() {
                    level.expects_name = level.is_object;
                }
            }
            _ => {}
        }
        if depth > most.depth || names.len() > most.names {
            break;
        }
    }
    JsonShape {
        depth,
        names: names.len(),
    }
}

/// Where the quote is that ends a text.
fn end_of_text(text: &[u8], mut at: usize) -> usize {
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn place_of(parent: u64, name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (parent, name).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: JsonShape = JsonShape { depth: 9, names: 9 };

    fn shape(text: &str) -> (usize, usize) {
        let found = json_shape(text.as_bytes(), &["m".to_owned()], MOST);
        (found.depth, found.names)
    }

    #[test]
    fn depth_and_names_are_counted() {
        for (text, expected) in [
            ("", (0, 0)),
            ("{}", (1, 0)),
            (r#"{"a":1,"b":"x"}"#, (1, 2)),
            ("{\"a\":1}\n{\"a\":2,\"b\":3}", (1, 2)),
            (r#"{"a":{"a":1},"b":{"a":"{[\"{"}}"#, (2, 4)),
            (r#"{"a":[{"x":1},{"x":2,"y":[1,[2]]}]}"#, (5, 3)),
            (r#"{"m":{"k1":{"q":1},"k2":1},"n":{"m":{"z":1}}}"#, (3, 4)),
            (r#"{"a\"b":1,"a\\":2}"#, (1, 2)),
            (r#"]}{"a":"#, (1, 1)),
            (r#"{"a"#, (1, 1)),
            (r#"{"a\"#, (1, 1)),
        ] {
            assert_eq!(shape(text), expected, "{text}");
        }
    }

    #[test]
    fn it_ends_where_a_bound_is_passed() {
        assert_eq!(shape(&"[".repeat(1_000_000)).0, MOST.depth + 1);
        let many: Vec<String> = (0..100).map(|n| format!("{{\"c{n}\":1}}")).collect();
        assert_eq!(shape(&many.join("\n")).1, MOST.names + 1);
    }
}
