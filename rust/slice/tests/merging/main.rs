//! Merging in its less trodden ways: from disk, behind filters, by positions. Each must give the rows
//! of the plain way.
#![cfg(test)]

mod filters;
mod lookups;
mod positions;
mod spill;
mod support;
