//! Log files: a run of blocks, each with a header map and a content.
//!
//! [`LogScanner`] walks the blocks of one file; [`avro_records`] and [`delete_body`] open their
//! contents; [`write_block`] makes new ones. Which blocks count (instants, rollbacks, log
//! compaction) is the reader's business, not decided here.
//!
//! Layouts follow `HoodieLogFormatWriter` and `HoodieLogFileReader` of Hudi 0.14 to 1.2.

mod avro_content;
mod avro_stream;
mod block;
mod block_type;
mod delete_content;
pub mod delete_list;
mod delete_record;
mod header;
mod kryo;
mod positions;
mod scanner;
mod seal;
mod window;
mod write;

pub use avro_content::{AvroContent, AvroRecords, CONTENT_VERSION, avro_content, avro_records};
pub use avro_stream::AvroStream;
pub use block::LogBlock;
pub use block_type::BlockType;
pub use delete_content::{DeleteBody, delete_body, delete_content};
pub use delete_record::{DeleteRecord, OrderingValue, big_endian};
pub use header::{Header, HeaderKey};
pub use positions::{positions_text, row_positions};
pub use scanner::{Corruption, LogScanner};
pub use seal::{SEAL, Seal};
pub use write::{FORMAT_VERSION, MAGIC, around_content, rollback_block, write_block};
