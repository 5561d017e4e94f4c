//! Any bytes as an Avro container file of the timeline; what is read writes and reads again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pyhudi_avro::{container_to_json, json_to_container};

fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(64, data, decode);
});

fn decode(data: &[u8]) {
    let Ok((schema, records)) = container_to_json(data) else {
        return;
    };
    // A damaged union tag can give a value that no branch accepts.
    if let Ok(again) = json_to_container(&schema, &records, [7; 16]) {
        let read = container_to_json(&again).expect("a container of ours");
        assert_eq!(read.1.len(), records.len());
    }
}
