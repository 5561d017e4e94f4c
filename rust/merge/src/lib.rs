//! The key map and the ordering rules that merge log records with base rows.
//!
//! The log side of a file slice goes in first, oldest record first; the base side is then streamed
//! past it. Keys stay in their Arrow buffers and the hash table holds row numbers: no key is copied
//! and nothing is allocated per row. Nothing here reads files or knows a format.
//!
//! Two maps, chosen by the table's rules: [`KeyMap`] where one of a key's records stands as it is,
//! [`FieldMap`] where a row is made of several. The rules are those of `FileGroupRecordBuffer` and
//! `BufferedRecordMergerFactory` (Hudi 1.2.0), which pyhudi follows for every table version.

#![expect(
    clippy::indexing_slicing,
    reason = "an index is a number of a row, batch or entry given out here; none is read from a file"
)]

mod column_rules;
mod column_sets;
mod combine;
mod field_map;
mod field_merge;
mod key_index;
mod key_map;
mod ordering;
mod position_index;
mod records;
mod row_matcher;
mod tagger;

pub use column_rules::ColumnRule;
pub use column_sets::{ColumnSet, Written};
pub use combine::combine_rows;
pub use field_map::{FieldMap, StandingRows};
pub use field_merge::{FieldRules, Fill, RowMerger};
pub use key_map::{BaseOutcome, KeyMap, MergeCounts};
pub use ordering::{MergeError, MergeMode, MergeRules, OrderingRows};
pub use records::{Encoder, Keys, Records, Standing};
pub use row_matcher::{Found, Location, RowMatcher, key_bucket};
pub use tagger::{KeyTagger, lost_keys};
