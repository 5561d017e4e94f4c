//! Record positions: the rows of the base file that a log block's records update.
//!
//! They can be used only when every block of the slice has them, and for the very base file that is
//! read (`PositionBasedFileGroupRecordBuffer`, Hudi 1.2.0). Then no key is read at all.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pyhudi_format::log::LogBlock;
use roaring::RoaringTreemap;

use crate::blocks::ChosenBlock;

/// The positions of each block, in block order; none when keys must decide.
pub(crate) fn positions_of(blocks: &[ChosenBlock], base_instant: &str) -> Option<Vec<Vec<u64>>> {
    blocks
        .iter()
        .map(|chosen| of_block(&chosen.block, base_instant))
        .collect()
}

fn of_block(block: &LogBlock, base_instant: &str) -> Option<Vec<u64>> {
    let (positions, base) = block.record_positions()?;
    if base != base_instant {
        return None;
    }
    let bytes = STANDARD.decode(positions).ok()?;
    let bitmap = RoaringTreemap::deserialize_from(bytes.as_slice()).ok()?;
    // A run in a few bytes can stand for billions of rows; no block holds as many records.
    let fits = !bitmap.is_empty() && bitmap.len() <= block.content_len;
    fits.then(|| bitmap.iter().collect())
}
