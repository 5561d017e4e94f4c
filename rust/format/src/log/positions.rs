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
