//! Any bytes as a bloom filter: what parses writes the same bytes, and an added key is found.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pyhudi_format::BloomFilter;

fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(64, data, decode);
});

fn decode(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = BloomFilter::from_base64(text);
    }
    let Ok(mut filter) = BloomFilter::parse(data) else {
        return;
    };
    assert_eq!(filter.to_bytes(), data);
    filter.add(b"key");
    assert!(filter.contains(b"key"));
    assert_eq!(
        BloomFilter::parse(&filter.to_bytes())
            .expect("own bytes")
            .to_bytes(),
        filter.to_bytes()
    );
}
