//! Record positions: the rows of the base file that a log block's records update.
//!
//! They can be used only when every block of the slice has them, and for the very base file that is
//! read (`PositionBasedFileGroupRecordBuffer`, Hudi 1.2.0). Then no key is read at all.

use pyhudi_format::log::{LogBlock, row_positions};

use crate::blocks::ChosenBlock;

/// The positions of each block, in block order; none when keys must decide.
pub(crate) fn positions_of(
    blocks: &[ChosenBlock<'_>],
    base_instant: &str,
) -> Option<Vec<Vec<u64>>> {
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
    // Every record takes a byte at least.
    row_positions(positions, block.content_len).filter(|rows| !rows.is_empty())
}
