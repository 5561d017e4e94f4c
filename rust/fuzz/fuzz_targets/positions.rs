//! Any bytes as the record positions of a log block: those that are taken are as few as was said.
#![no_main]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;
use pyhudi_format::log::row_positions;

const MOST: u64 = 1000;

fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(64, data, |data| {
        let text = STANDARD.encode(data);
        if let Some(rows) = row_positions(&text, MOST) {
            assert!(rows.len() as u64 <= MOST && rows.is_sorted());
        }
    });
});
