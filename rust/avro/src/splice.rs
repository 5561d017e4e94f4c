//! Changing one text of a record without decoding it.

use crate::datum::{put_bytes, put_long};
use crate::value::behind_text;

/// An unframed record that begins with fields which are each null or text, with another text in
/// the one after `before` of them, and where in it the fields behind that begin. [`None`] where the
/// record begins otherwise.
pub fn with_text(record: &[u8], before: usize, text: &str) -> Option<(Vec<u8>, usize)> {
    let mut rest = record;
    for _ in 0..before {
        rest = behind_text(rest)?;
    }
    let start = record.len() - rest.len();
    let rest = behind_text(rest)?;
    let mut out = Vec::with_capacity(record.len() + text.len() + 3);
    out.extend(record.get(..start)?);
    put_long(&mut out, 1);
    put_bytes(&mut out, text.as_bytes());
    let place = out.len();
    out.extend(rest);
    Some((out, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatumReader, DatumWriter, Value};

    const SCHEMA: &str = r#"{"type": "record", "name": "r", "fields": [
        {"name": "a", "type": ["null", "string"]},
        {"name": "b", "type": ["null", "string"]},
        {"name": "n", "type": "int"}]}"#;

    #[test]
    fn one_text_is_another_and_the_rest_stays() {
        let writer = DatumWriter::new(SCHEMA).unwrap();
        let reader = DatumReader::new(SCHEMA).unwrap();
        let long = "x".repeat(300);
        for a in [Value::Null, Value::Text("first"), Value::Text(&long)] {
            for b in [Value::Null, Value::Text("old")] {
                let fields = [("a", a.clone()), ("b", b), ("n", Value::Whole(7))];
                let record = writer.write(&fields).unwrap();
                for text in ["", "new", &long] {
                    let expected = [
                        ("a", a.clone()),
                        ("b", Value::Text(text)),
                        ("n", Value::Whole(7)),
                    ];
                    let (found, place) = with_text(&record, 1, text).unwrap();
                    assert_eq!(found, writer.write(&expected).unwrap());
                    assert_eq!(found[place..], [14]);
                    reader.read(&found).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_is_cut_off_or_no_text_is_left_alone() {
        assert_eq!(with_text(&[], 0, "x"), None);
        assert_eq!(with_text(&[0], 1, "x"), None);
        assert_eq!(with_text(&[2, 8, b'a'], 0, "x"), None);
        assert_eq!(with_text(&[4, 0], 0, "x"), None);
        assert_eq!(with_text(&[2, 1], 0, "x"), None);
    }
}
