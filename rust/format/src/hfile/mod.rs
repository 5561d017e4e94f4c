//! HFile version 3, the sorted key-value file of the metadata table and of HFile log blocks.
//!
//! Reads what both of Hudi's writers make: the HBase one (until 1.0) and its own (1.1 and later).
//! Writes the latter's form. Values stay bytes.

mod ahead;
mod block;
mod checksum;
mod deflate;
mod entry;
mod gzip;
mod index;
mod info;
mod iter;
mod open;
mod order;
mod sums;
mod trailer;
mod write;

pub use iter::{Entries, Lookup};
pub use open::{DataBlock, HFile, KeptBlocks};
pub use order::KeyOrder;
pub use sums::HFileChecksums;
pub(crate) use sums::write_head;
pub use write::{HFileOptions, HFileWriter, PackedBlock, write_hfile};
