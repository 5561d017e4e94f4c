//! ORC, which base files can be in: the tail of a file, its stripes, and the streams of numbers and
//! bytes in them, read and (`out`, `out_file`) written.
//!
//! Written after the specification of ORC 1 (versions 0.11 and 0.12 of the file format), which is all
//! that Java's writers make. Which columns are wanted and what arrays they become is the caller's to say.
//! Not here: encryption, row indexes, bloom filters of columns, statistics. Nothing needs them.

mod bits;
mod codec;
mod ints;
mod ints_v1;
mod ints_v2;
mod out;
mod out_file;
mod stream;
mod stripe;
mod tail;
#[cfg(test)]
mod tests;
mod types;

pub use bits::{Bits, ByteRuns};
pub use codec::Codec;
pub use ints::{Ints, IntsForm};
pub use out::{OutBits, OutRuns, OutStream, RunsForm};
pub use out_file::{ColumnCount, OutFile, StripeStream};
pub use stream::Stream;
pub use stripe::{ColumnEncoding, StreamKind, StripeFooter};
pub use tail::{Stripe, Tail};
pub use types::{Kind, Type};
