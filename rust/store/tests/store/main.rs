//! The public face of the crate on a real file system, with `std::fs` as the witness. Its links, pipes
//! and names are those of Unix.
#![cfg(test)]
#![cfg(unix)]

mod helpers;
mod links;
mod listing;
mod names;
mod opening;
mod pipes;
mod putting;
mod reading;
mod versioned;
mod writing;
