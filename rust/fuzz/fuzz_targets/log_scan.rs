//! Any bytes as a log file: blocks cover them without gaps, and what opens also closes.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use pyhudi_format::log::{
    AvroStream, BlockType, Corruption, LogBlock, LogScanner, avro_content, avro_records,
    delete_body,
};

/// The lengths of the records, read in windows; none for damage.
fn streamed(source: &Bytes, block: &LogBlock) -> Option<Vec<usize>> {
    let mut stream = AvroStream::open(source, block).ok()?;
    let mut lengths = Vec::new();
    while let Some(record) = stream.next_record().ok()? {
        lengths.push(record.len());
    }
    Some(lengths)
}

fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(64, data, decode);
});

fn decode(data: &[u8]) {
    let source = Bytes::copy_from_slice(data);
    for corruption in [Corruption::Check, Corruption::Trust] {
        let mut end = 0;
        for block in LogScanner::new(&source, corruption) {
            let Ok(block) = block else { break };
            assert_eq!(block.offset, end);
            assert!(block.end > end && block.end <= source.len() as u64);
            end = block.end;
            let content = block.content(&source).expect("content lies in its block");
            let _ = block.rollback_target();
            match block.block_type {
                BlockType::AvroData | BlockType::CdcData => {
                    let whole = avro_records(&content, block.format_version);
                    if block.format_version > 0 {
                        let lengths = whole
                            .as_ref()
                            .ok()
                            .map(|r| r.iter().map(<[u8]>::len).collect());
                        assert_eq!(streamed(&source, &block), lengths);
                    }
                    if let Ok(records) = whole {
                        assert_eq!(records.iter().count(), records.count);
                        if block.format_version > 0 {
                            assert_eq!(avro_content(records.iter())[4..], content[4..]);
                        }
                    }
                }
                BlockType::Delete => drop(delete_body(&content)),
                _ => {}
            }
        }
    }
}
