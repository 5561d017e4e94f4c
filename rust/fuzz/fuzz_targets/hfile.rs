//! Any bytes as an HFile: opening, scanning and looking up end without a panic.
//!
//! The input is the front of the file and its trailer's first bytes; the padding of the trailer
//! is put in here, so that small inputs reach the blocks.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use pyhudi_format::HFile;

const TRAILER: usize = 4096;
const MAGIC: &[u8] = b"TRABLK\"$";

fn read(source: &Bytes) {
    let Ok(file) = HFile::open(source) else {
        return;
    };
    let _ = (file.schema(), file.meta_block("bloomFilter"));
    let mut keys = Vec::new();
    for (key, _) in file.scan().take(1000).map_while(Result::ok) {
        keys.push(key);
    }
    let _ = file.lookup(keys.iter().map(AsRef::as_ref)).count();
    for key in keys.iter().take(5) {
        let _ = (
            file.get(key),
            file.prefix(&key[..key.len() / 2]).take(100).count(),
        );
    }
}

fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(64, data, decode);
});

fn decode(data: &[u8]) {
    read(&Bytes::copy_from_slice(data));
    let Some(at) = data.windows(MAGIC.len()).rposition(|bytes| bytes == MAGIC) else {
        return;
    };
    if data.len() - at < TRAILER - 4 {
        let mut bytes = data.to_vec();
        bytes.resize(at + TRAILER - 4, 0);
        bytes.extend([0, 0, 0, 3]);
        read(&Bytes::from(bytes));
    }
}
