//! Avro of generated schemas and values: what is encoded is decoded to the same, damage never panics.
#![cfg(test)]

mod columns;
mod containers;
mod records;
mod rows;
