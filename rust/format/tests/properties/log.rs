//! Log files: blocks of each type, delete lists, row positions.

use std::borrow::Cow;

use bytes::Bytes;
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use pyhudi_format::log::{
    BlockType, Corruption, DeleteBody, DeleteRecord, HeaderKey, LogBlock, LogScanner,
    OrderingValue, SEAL, avro_content, avro_records, delete_body, delete_content, delete_list,
    positions_text, rollback_block, row_positions, write_block,
};
use pyhudi_format::{Result, hfile::HFileOptions};

use crate::damage::damage;
use crate::hfile::{self, Pairs};

/// What a block holds.
#[derive(Debug, Clone, PartialEq)]
enum Content {
    Avro(Vec<Vec<u8>>),
    Cdc(Vec<Vec<u8>>),
    Deletes(Vec<DeleteRecord<'static>>),
    HFile(Pairs),
    Parquet(Vec<u8>),
    Rollback { instant: String, target: String },
}

type Block = (Vec<(HeaderKey, String)>, Content);

fn scalar() -> impl Strategy<Value = OrderingValue<'static>> {
    use OrderingValue as Value;
    let bytes = || vec(any::<u8>(), 0..20).prop_map(Cow::Owned);
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Boolean),
        any::<i32>().prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        any::<f32>()
            .prop_filter("NaN equals nothing", |value| !value.is_nan())
            .prop_map(Value::Float),
        any::<f64>()
            .prop_filter("NaN equals nothing", |value| !value.is_nan())
            .prop_map(Value::Double),
        bytes().prop_map(Value::Bytes),
        any::<String>().prop_map(|text| Value::String(Cow::Owned(text))),
        any::<i32>().prop_map(Value::Date),
        bytes().prop_map(Value::Decimal),
        any::<i64>().prop_map(Value::TimeMicros),
        any::<i64>().prop_map(Value::TimestampMicros),
    ]
}

fn ordering() -> impl Strategy<Value = OrderingValue<'static>> {
    let element = prop_oneof![9 => scalar(), 1 => any::<i32>().prop_map(OrderingValue::LocalDate)];
    prop_oneof![4 => scalar(), 1 => vec(element, 0..5).prop_map(OrderingValue::Array)]
}

fn deletes() -> impl Strategy<Value = Vec<DeleteRecord<'static>>> {
    let record = (any::<String>(), option::of(any::<String>()), ordering()).prop_map(
        |(key, partition, ordering)| DeleteRecord {
            record_key: Cow::Owned(key),
            partition_path: partition.map(Cow::Owned),
            ordering,
        },
    );
    vec(record, 0..8)
}

fn content() -> impl Strategy<Value = Content> {
    let records = || vec(vec(any::<u8>(), 0..40), 0..6);
    prop_oneof![
        records().prop_map(Content::Avro),
        records().prop_map(Content::Cdc),
        deletes().prop_map(Content::Deletes),
        hfile::pairs(8).prop_map(Content::HFile),
        // Of bytes with the start of a block among them.
        (vec(any::<u8>(), 0..30), any::<bool>()).prop_map(|(mut bytes, has_magic)| {
            if has_magic {
                bytes.extend(b"#HUDI#\0\0\0\0\0\0\0\x01");
            }
            Content::Parquet(bytes)
        }),
        ("[0-9]{17}", "[0-9]{17}")
            .prop_map(|(instant, target)| Content::Rollback { instant, target }),
    ]
}

fn block() -> impl Strategy<Value = Block> {
    let key = prop::sample::select(HeaderKey::all().collect::<Vec<_>>());
    (vec((key, any::<String>()), 0..5), content())
}

fn write(out: &mut Vec<u8>, (header, content): &Block) {
    let header: Vec<(HeaderKey, &str)> = header
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    let (block_type, bytes) = match content {
        Content::Avro(records) => (
            BlockType::AvroData,
            avro_content(records.iter().map(Vec::as_slice)),
        ),
        Content::Cdc(records) => (
            BlockType::CdcData,
            avro_content(records.iter().map(Vec::as_slice)),
        ),
        Content::Deletes(records) => (
            BlockType::Delete,
            delete_content(&delete_list::encode(records.iter().cloned())),
        ),
        Content::HFile(pairs) => (
            BlockType::HfileData,
            hfile::written(pairs, &HFileOptions::default()).to_vec(),
        ),
        Content::Parquet(bytes) => (BlockType::ParquetData, bytes.clone()),
        Content::Rollback { instant, target } => return rollback_block(out, instant, target),
    };
    write_block(out, block_type, &header, &bytes);
}

fn read(source: &Bytes, block: &LogBlock) -> Result<Content> {
    let content = block.content(source)?;
    let records = || {
        Ok(avro_records(&content, block.format_version)?
            .iter()
            .map(<[u8]>::to_vec)
            .collect())
    };
    Ok(match block.block_type {
        BlockType::AvroData => Content::Avro(records()?),
        BlockType::CdcData => Content::Cdc(records()?),
        BlockType::Delete => Content::Deletes(match delete_body(&content)? {
            DeleteBody::Avro(list) => delete_list::decode(&list)?
                .map(|record| Ok(record?.into_owned()))
                .collect::<Result<_>>()?,
            DeleteBody::Kryo(records) => records,
        }),
        BlockType::HfileData => Content::HFile(hfile::scanned(&content)?),
        BlockType::ParquetData | BlockType::Corrupt => Content::Parquet(content.to_vec()),
        BlockType::Command => Content::Rollback {
            instant: block.instant_time().unwrap_or_default().to_owned(),
            target: block.rollback_target()?.unwrap_or_default().to_owned(),
        },
    })
}

/// A log file of these blocks, and where each of them ends.
fn file(blocks: &[Block]) -> (Bytes, Vec<usize>) {
    let mut out = Vec::new();
    let ends = blocks.iter().map(|block| {
        write(&mut out, block);
        out.len()
    });
    let ends = ends.collect();
    (Bytes::from(out), ends)
}

fn scan(source: &Bytes, corruption: Corruption) -> Result<Vec<LogBlock>> {
    LogScanner::new(source, corruption).collect()
}

fn has_seal(content: &Content) -> bool {
    matches!(
        content,
        Content::Avro(_) | Content::Cdc(_) | Content::Deletes(_)
    )
}

proptest! {
    #[test]
    fn blocks_are_read_as_they_were_written(blocks in vec(block(), 0..6)) {
        let (source, ends) = file(&blocks);
        for corruption in [Corruption::Check, Corruption::Trust] {
            let found = scan(&source, corruption).unwrap();
            prop_assert_eq!(
                found
                    .iter()
                    .map(|block| block.end as usize)
                    .collect::<Vec<_>>(),
                &ends[..]
            );
            for (read_block, (header, content)) in found.iter().zip(&blocks) {
                prop_assert_eq!(&read(&source, read_block).unwrap(), content);
                if !matches!(content, Content::Rollback { .. }) {
                    let entries: Vec<_> = header
                        .iter()
                        .map(|(key, value)| (key.ordinal(), value.as_str()))
                        .collect();
                    prop_assert_eq!(read_block.header.iter().collect::<Vec<_>>(), entries);
                }
            }
        }
    }

    #[test]
    fn damage_hides_no_block_before_it_and_no_content_is_read_wrong(
        blocks in vec(block(), 1..5),
        damage in damage(),
    ) {
        let (source, ends) = file(&blocks);
        let sound = scan(&source, Corruption::Check).unwrap();
        let (damaged, at) = damage.of(&source);
        let is_cut = damaged.len() == at;
        let damaged = Bytes::from(damaged);
        let before = ends.iter().filter(|end| **end <= at).count();
        for corruption in [Corruption::Check, Corruption::Trust] {
            let mut found = Vec::new();
            // An error ends the blocks.
            for block in LogScanner::new(&damaged, corruption).map_while(Result::ok) {
                found.push((block.clone(), read(&damaged, &block)));
            }
            // A block also counts as damaged if no block follows it.
            let certain = if corruption == Corruption::Check && !is_cut {
                before.saturating_sub(1)
            } else {
                before
            };
            prop_assert!(found.len() >= certain);
            for ((block, content), (_, written)) in found.iter().zip(&blocks).take(certain) {
                prop_assert_eq!(block.block_type == BlockType::Corrupt, false);
                prop_assert_eq!(content.as_ref().unwrap(), written);
            }
            let Some(hit) = sound.get(before).filter(|_| !is_cut) else {
                continue;
            };
            let (start, end) = (
                hit.content_offset as usize,
                (hit.content_offset + hit.content_len) as usize,
            );
            let written = &blocks[before].1;
            // The mark of a seal says that there is one.
            let is_checked = has_seal(written)
                && (start..end).contains(&at)
                && !(end - SEAL..end - SEAL + 4).contains(&at)
                || matches!(written, Content::HFile(_)) && (start..end).contains(&at);
            if let Some((_, Ok(content))) = found.get(before).filter(|_| is_checked) {
                prop_assert!(
                    content == written || found[before].0.block_type == BlockType::Corrupt,
                    "{content:?}"
                );
            }
        }
    }

    #[test]
    fn delete_lists_come_back(records in deletes(), damage in damage()) {
        let bytes = delete_list::encode(records.iter().cloned());
        let decoded = |bytes: &[u8]| -> Result<Vec<DeleteRecord<'static>>> {
            delete_list::decode(bytes)?
                .map(|record| Ok(record?.into_owned()))
                .collect()
        };
        prop_assert_eq!(&decoded(&bytes).unwrap(), &records);
        let (damaged, at) = damage.of(&bytes);
        let read = decoded(&damaged);
        prop_assert!(damaged.len() > at || read.is_err(), "cut at {at}");
        if let Ok(read) = read {
            let again = delete_list::encode(read.iter().cloned());
            prop_assert_eq!(decoded(&again).unwrap().len(), read.len());
        }
    }

    #[test]
    fn row_positions_come_back(
        rows in prop_oneof![btree_set(0..5000_u64, 0..300), btree_set(any::<u64>(), 0..20)],
        short in 1..5_u64,
    ) {
        let rows: Vec<u64> = rows.into_iter().collect();
        let text = positions_text(&rows).unwrap();
        prop_assert_eq!(row_positions(&text, rows.len() as u64), Some(rows.clone()));
        if let Some(most) = (rows.len() as u64).checked_sub(short) {
            prop_assert_eq!(row_positions(&text, most), None);
        }
    }

    #[test]
    fn rows_have_a_text_if_they_rise(rows in vec(0..20_u64, 0..6)) {
        let rises = rows.windows(2).all(|pair| pair[0] < pair[1]);
        prop_assert_eq!(positions_text(&rows).is_some(), rises);
    }
}
