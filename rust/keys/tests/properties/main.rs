//! Keys, paths and texts over generated values: what they say is told from them again.
#![cfg(test)]

mod dates;
mod keys;
mod texts;
