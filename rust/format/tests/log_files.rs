//! Log files that Hudi wrote; where each is from stands in `data/README.md`.
#![cfg(test)]

use bytes::Bytes;
use pyhudi_format::log::{
    AvroRecords, BlockType, Corruption, DeleteBody, HeaderKey, LogBlock, LogScanner, OrderingValue,
    SEAL, avro_content, avro_records, delete_body, delete_content, delete_list, rollback_block,
    write_block,
};
use pyhudi_format::{HFile, Result};

const FILES: [(&str, &[u8]); 10] = [
    ("avro_v6", include_bytes!("data/log/avro_v6_0.15.log")),
    ("delete_v6", include_bytes!("data/log/delete_v6_0.15.log")),
    (
        "rollback_v6",
        include_bytes!("data/log/rollback_v6_0.15.log"),
    ),
    ("hfile_v6", include_bytes!("data/log/hfile_v6_0.15.log")),
    ("cdc_v6", include_bytes!("data/log/cdc_v6_0.15.log")),
    ("parquet_v8", include_bytes!("data/log/parquet_v8_1.0.log")),
    (
        "avro_delete_v9",
        include_bytes!("data/log/avro_delete_v9_1.2.log"),
    ),
    (
        "compacted_v9",
        include_bytes!("data/log/compacted_v9_1.2.log"),
    ),
    ("partial_v9", include_bytes!("data/log/partial_v9_1.2.log")),
    (
        "metadata_v9",
        include_bytes!("data/log/metadata_v9_1.2.log"),
    ),
];

fn file(name: &str) -> Bytes {
    Bytes::from_static(FILES.iter().find(|(known, _)| *known == name).unwrap().1)
}

fn blocks(source: &Bytes, corruption: Corruption) -> Result<Vec<LogBlock>> {
    LogScanner::new(source, corruption).collect()
}

fn only_block(name: &str) -> (LogBlock, Bytes) {
    let source = file(name);
    let mut found = blocks(&source, Corruption::Check).unwrap();
    assert_eq!(found.len(), 1);
    let content = found[0].content(&source).unwrap();
    (found.remove(0), content)
}

/// Opens everything in a log file.
fn open_all(source: &Bytes, corruption: Corruption) -> Result<usize> {
    let mut seen = 0;
    for block in LogScanner::new(source, corruption) {
        let block = block?;
        let content = block.content(source)?;
        seen += match block.block_type {
            BlockType::AvroData | BlockType::CdcData => {
                avro_records(&content, block.format_version)?.iter().count()
            }
            BlockType::Delete => match delete_body(&content)? {
                DeleteBody::Avro(list) => delete_list::decode(&list)?
                    .collect::<Result<Vec<_>>>()?
                    .len(),
                DeleteBody::Kryo(records) => records.len(),
            },
            BlockType::HfileData => HFile::open(&content)?
                .scan()
                .collect::<Result<Vec<_>>>()?
                .len(),
            BlockType::Command => block.rollback_target()?.map_or(0, str::len),
            BlockType::ParquetData | BlockType::Corrupt => content.len(),
        };
    }
    Ok(seen)
}

#[test]
fn both_modes_find_the_same_blocks() {
    for (name, _) in FILES {
        let source = file(name);
        let found = blocks(&source, Corruption::Check).unwrap();
        assert_eq!(found, blocks(&source, Corruption::Trust).unwrap(), "{name}");
        assert_eq!(found.last().unwrap().end, source.len() as u64, "{name}");
        assert!(open_all(&source, Corruption::Check).unwrap() > 0, "{name}");
    }
}

#[test]
fn rewriting_gives_the_same_bytes_and_seals() {
    for (name, _) in FILES {
        let source = file(name);
        let mut rewritten = Vec::new();
        for block in blocks(&source, Corruption::Check).unwrap() {
            let content = block.content(&source).unwrap();
            let content = match block.block_type {
                BlockType::AvroData | BlockType::CdcData => {
                    let records = avro_records(&content, 1).unwrap();
                    Bytes::from(avro_content(records.iter()))
                }
                BlockType::Delete => {
                    let DeleteBody::Avro(list) = delete_body(&content).unwrap() else {
                        panic!("{name}: not Avro");
                    };
                    let records = delete_list::decode(&list).unwrap().map(Result::unwrap);
                    Bytes::from(delete_content(&delete_list::encode(records)))
                }
                _ => content,
            };
            let key = |(ordinal, value)| (HeaderKey::from_ordinal(ordinal).unwrap(), value);
            let header: Vec<_> = block.header.iter().map(key).collect();
            write_block(&mut rewritten, block.block_type, &header, &content);
        }
        let rewritten = Bytes::from(rewritten);
        let old = blocks(&source, Corruption::Check).unwrap();
        let new = blocks(&rewritten, Corruption::Check).unwrap();
        assert_eq!(old.len(), new.len());
        for (old, new) in old.iter().zip(&new) {
            let bytes =
                |file: &Bytes, start: u64, end: u64| file.slice(start as usize..end as usize);
            let parts = |file: &Bytes, block: &LogBlock| {
                let (content, end) = (block.content_offset, block.end);
                // Without both lengths.
                let head = bytes(file, block.offset + 14, content - 8);
                (head, bytes(file, content, end - 12))
            };
            let (head, content) = parts(&source, old);
            let (new_head, sealed) = parts(&rewritten, new);
            assert!(head == new_head, "{name}");
            let (same, seal) = sealed.split_at(content.len());
            assert!(same == content, "{name}");
            let has_seal = matches!(
                old.block_type,
                BlockType::AvroData | BlockType::CdcData | BlockType::Delete
            );
            assert_eq!(seal.len(), if has_seal { SEAL } else { 0 }, "{name}");
        }
    }
}

#[test]
fn rollback_block_is_the_same_as_java() {
    let (block, _) = only_block("rollback_v6");
    assert_eq!(block.block_type, BlockType::Command);
    let (rollback, target) = (
        block.instant_time().unwrap(),
        block.rollback_target().unwrap(),
    );
    assert_eq!(
        (rollback, target),
        ("20261121084105434", Some("20261121084102310"))
    );
    let mut written = Vec::new();
    rollback_block(&mut written, rollback, target.unwrap());
    assert_eq!(written.len(), 105);
    assert_eq!(written, file("rollback_v6"));
}

#[test]
fn headers_of_each_kind() {
    let (parquet, content) = only_block("parquet_v8");
    assert_eq!(parquet.block_type, BlockType::ParquetData);
    assert!(content.starts_with(b"PAR1") && content.ends_with(b"PAR1"));
    let (positions, base) = parquet.record_positions().unwrap();
    assert!(
        positions.starts_with("AQAAAAAAAAAAAAAA") && base.len() == 17,
        "{positions} {base}"
    );

    let (partial, _) = only_block("partial_v9");
    assert!(partial.is_partial());
    let (compacted, _) = only_block("compacted_v9");
    assert!(!compacted.is_partial());
    let instants: Vec<_> = compacted.compacted_instants().collect();
    assert!(instants.len() > 1 && instants.iter().all(|instant| instant.len() == 17));

    let (cdc, _) = only_block("cdc_v6");
    assert_eq!(cdc.block_type, BlockType::CdcData);
    assert!(cdc.schema().unwrap().contains("record_key"));
}

#[test]
fn ordering_values_of_several_fields() {
    let source = file("avro_delete_v9");
    let found = blocks(&source, Corruption::Check).unwrap();
    assert_eq!(
        found
            .iter()
            .map(|block| block.block_type)
            .collect::<Vec<_>>(),
        [BlockType::AvroData, BlockType::Delete]
    );
    let DeleteBody::Avro(list) = delete_body(&found[1].content(&source).unwrap()).unwrap() else {
        panic!("not Avro");
    };
    let records: Vec<_> = delete_list::decode(&list)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let OrderingValue::Array(values) = &records[0].ordering else {
        panic!("{records:?}");
    };
    assert!(
        matches!(
            values[..],
            [OrderingValue::String(_), OrderingValue::Long(_)]
        ),
        "{values:?}"
    );
    let records: AvroRecords = avro_records(&found[0].content(&source).unwrap(), 1).unwrap();
    assert_eq!(records.iter().count(), records.count);
}

#[test]
fn hfile_blocks_open_in_place() {
    for name in ["hfile_v6", "metadata_v9"] {
        let source = file(name);
        for block in blocks(&source, Corruption::Check).unwrap() {
            assert_eq!(block.block_type, BlockType::HfileData);
            let file = HFile::open(block.content(&source).unwrap()).unwrap();
            assert!(file.schema().is_some());
            assert_eq!(file.meta_block("bloomFilter").unwrap(), None);
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    for (name, original) in FILES {
        let masks: &[u8] = if original.len() < 2000 {
            &[1, 0x80, 0xff]
        } else {
            &[0xff]
        };
        for at in 0..original.len() {
            for mask in masks {
                let mut bytes = original.to_vec();
                bytes[at] ^= mask;
                let source = Bytes::from(bytes);
                for corruption in [Corruption::Check, Corruption::Trust] {
                    let _ = open_all(&source, corruption);
                }
            }
            if at % 7 == 0 || at < 200 || original.len() - at < 200 {
                let cut = Bytes::copy_from_slice(&original[..at]);
                for corruption in [Corruption::Check, Corruption::Trust] {
                    let found = blocks(&cut, corruption);
                    let whole = found.is_ok_and(|found| {
                        found
                            .iter()
                            .any(|block| block.block_type != BlockType::Corrupt)
                    });
                    let first = blocks(&file(name), Corruption::Check).unwrap()[0].end;
                    assert!(!whole || at as u64 >= first, "{name} {at}");
                }
            }
        }
    }
}
