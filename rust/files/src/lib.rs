//! File groups and file slices of a table, from the names of its files: names in, arrays out.
//!
//! No I/O and no timeline: which instants are committed, and when they were completed, is the caller's
//! to say. A table may have millions of files, so a file is a few numbers here, and a slice too.

mod groups;
mod names;
mod slices;
mod strings;

pub use groups::{FileGroups, FileGroupsBuilder, GroupFile, Kind};
pub use names::{Extension, FileName, parse_name};
pub use slices::{FileSlices, Selection, SliceFinder, SliceParts, Timeline};
