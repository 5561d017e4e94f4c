//! Partitions of the metadata table, written and read again, compared with plain maps.
#![cfg(test)]

mod record_index;
