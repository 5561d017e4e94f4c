//! Merging compared with plain models, over generated histories: a map by key, folded by the documented rules.
#![cfg(test)]

mod column_rules;
mod fields;
mod history;
mod keys;
mod records;
