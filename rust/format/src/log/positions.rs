//! The text of record positions in a block's header.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use roaring::RoaringTreemap;

/// The rows of the base file that a block's records are about, ascending; none where the text is no
/// set of positions, or one of more than `most` rows. A run of a few bytes can stand for billions.
///
/// The form is Base64 of a portable 64-bit roaring bitmap (`LogReaderUtils`, Hudi 1.2.0).
pub fn row_positions(text: &str, most: u64) -> Option<Vec<u64>> {
    let bytes = STANDARD.decode(text).ok()?;
    let bitmap = RoaringTreemap::deserialize_from(bytes.as_slice()).ok()?;
    (bitmap.len() <= most).then(|| bitmap.iter().collect())
}

/// The text for these rows, which must rise; none where they do not.
///
/// Hudi gives the i-th record of a block the i-th position of the set.
pub fn positions_text(rows: &[u64]) -> Option<String> {
    let mut bitmap = RoaringTreemap::from_sorted_iter(rows.iter().copied()).ok()?;
    if bitmap.len() != rows.len() as u64 {
        return None;
    }
    bitmap.optimize();
    let mut bytes = Vec::with_capacity(bitmap.serialized_size());
    bitmap.serialize_into(&mut bytes).ok()?;
    Some(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::{positions_text, row_positions};

    #[test]
    fn positions_have_the_text_that_hudi_gives_them() {
        let few = "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAIAEAAAAAAAAQACAA==";
        assert_eq!(
            positions_text(&[0]).unwrap(),
            "AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAAA"
        );
        assert_eq!(row_positions(few, 10).unwrap(), [0, 1, 2]);
        let many: Vec<u64> = (0..100_000).map(|row| row * 3).collect();
        let text = positions_text(&many).unwrap();
        assert_eq!(row_positions(&text, 100_000).unwrap(), many);
    }

    #[test]
    fn rows_that_do_not_rise_have_no_text() {
        assert_eq!(positions_text(&[1, 0]), None);
        assert_eq!(positions_text(&[1, 1]), None);
    }
}
