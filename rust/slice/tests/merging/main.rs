//! Merging in its less trodden ways: from disk, behind filters, by positions. Each must give the rows
//! of the plain way.
#![cfg(test)]

mod filters;
mod generated;
mod lookups;
mod plain_map;
mod positions;
mod properties;
#[path = "../../../merge/tests/properties/records.rs"]
mod records;
mod spill;
mod support;
