//! The metadata table compared with plain maps, over generated commits.
#![cfg(test)]

mod files;
mod groups;
mod record_index;
mod statistics;
