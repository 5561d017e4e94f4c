//! What is encoded is decoded to the same, over generated values; damage is an error or changes nothing.
#![cfg(test)]

mod bloom;
mod damage;
mod hfile;
mod log;
mod orc;
mod variant;
