//! Record positions: used where they are sound, passed over where they are damaged or not meant.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pyhudi_format::log::{BlockType, HeaderKey, avro_content, write_block};
use roaring::RoaringTreemap;

use crate::support::{Slice, rows_of};

const FIELDS: &str = r#"
  {"name":"_hoodie_record_key","type":["null","string"],"default":null},
  {"name":"n","type":["null","long"],"default":null}"#;
const INSTANT: &str = "7";

fn batch(slice: &Slice, rows: &[(&str, i64)]) -> RecordBatch {
    let keys: StringArray = rows.iter().map(|row| Some(row.0)).collect();
    let numbers: Int64Array = rows.iter().map(|row| Some(row.1)).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(numbers)];
    RecordBatch::try_new(Arc::clone(&slice.schema), columns).unwrap()
}

fn block(slice: &Slice, rows: &[(&str, i64)], positions: &str) -> Vec<u8> {
    let encoded = pyhudi_avro::encode(&batch(slice, rows), slice.avro()).unwrap();
    let header = [
        (HeaderKey::InstantTime, "8"),
        (HeaderKey::Schema, slice.avro()),
        (HeaderKey::RecordPositions, positions),
        (HeaderKey::BaseFileInstantTimeOfRecordPositions, INSTANT),
    ];
    let mut out = Vec::new();
    write_block(
        &mut out,
        BlockType::AvroData,
        &header,
        &avro_content(encoded.iter()),
    );
    out
}

fn bitmap(rows: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let bitmap: RoaringTreemap = rows.iter().collect();
    bitmap.serialize_into(&mut bytes).unwrap();
    bytes
}

/// Rows of a slice whose one block updates `b` and `d`, and whether positions were used.
fn read(positions: &str) -> (Vec<String>, bool) {
    let slice = Slice::new(FIELDS);
    slice.write_base(vec![
        batch(&slice, &[("a", 1), ("b", 2)]),
        batch(&slice, &[("c", 3), ("d", 4)]),
    ]);
    slice.put(".8", &block(&slice, &[("b", 20), ("d", 40)], positions));
    let mut read = slice.read(&[".8"]);
    read.base_instant = Some(INSTANT.to_owned());
    let (rows, stats) = rows_of(read);
    (rows, stats.by_position.load(Ordering::Relaxed) == 1)
}

fn merged() -> Vec<String> {
    ["a|1", "b|20", "c|3", "d|40"].map(str::to_owned).to_vec()
}

#[test]
fn sound_positions_are_used() {
    assert_eq!(read(&STANDARD.encode(bitmap(&[1, 3]))), (merged(), true));
}

#[test]
fn a_count_that_is_not_the_records_count_leaves_it_to_the_keys() {
    for rows in [vec![], vec![1], vec![1, 2, 3], vec![1, 3, 1 << 40]] {
        let found = read(&STANDARD.encode(bitmap(&rows)));
        assert_eq!(found, (merged(), false), "{rows:?}");
    }
}

#[test]
fn damaged_bitmaps_leave_it_to_the_keys() {
    let sound = bitmap(&[1, 3]);
    for cut in 0..sound.len() {
        assert_eq!(
            read(&STANDARD.encode(&sound[..cut])),
            (merged(), false),
            "cut at {cut}"
        );
    }
    assert_eq!(read("no base64!"), (merged(), false));
    assert_eq!(read(""), (merged(), false));
    for at in 0..sound.len() - 4 {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x80;
        // Some bits are positions themselves: those that are not must not stop the read.
        let _ = read(&STANDARD.encode(damaged));
    }
}

/// A 32-bit bitmap of `containers` runs that fill their containers: 65,536 rows in twelve bytes.
fn runs(containers: u32) -> Vec<u8> {
    let mut bytes = (0x303b | ((containers - 1) << 16)).to_le_bytes().to_vec();
    bytes.extend(vec![0xff; containers.div_ceil(8) as usize]);
    for key in 0..containers {
        bytes.extend((key as u16).to_le_bytes());
        bytes.extend(u16::MAX.to_le_bytes());
    }
    if containers >= 4 {
        bytes.extend(vec![0; 4 * containers as usize]);
    }
    for _ in 0..containers {
        bytes.extend([1, 0, 0, 0, 0xff, 0xff]);
    }
    bytes
}

#[test]
fn runs_of_billions_of_rows_are_not_unpacked() {
    let whole = runs(65_536);
    let mut hostile = 16_u64.to_le_bytes().to_vec();
    for high in 0..16_u32 {
        hostile.extend(high.to_le_bytes());
        hostile.extend(&whole);
    }
    let all: u64 = RoaringTreemap::deserialize_from(hostile.as_slice())
        .unwrap()
        .len();
    assert_eq!(all, 16 << 32);
    assert_eq!(read(&STANDARD.encode(hostile)), (merged(), false));
}

#[test]
fn counts_beyond_the_bytes_are_not_believed() {
    let mut many = u64::MAX.to_le_bytes().to_vec();
    assert_eq!(read(&STANDARD.encode(&many)), (merged(), false));
    many.extend(0_u32.to_le_bytes());
    many.extend(12_346_u32.to_le_bytes());
    many.extend(u32::MAX.to_le_bytes());
    assert_eq!(read(&STANDARD.encode(&many)), (merged(), false));
}

#[test]
fn positions_for_another_base_file_are_not_used() {
    let slice = Slice::new(FIELDS);
    slice.write_base(vec![batch(&slice, &[("a", 1), ("b", 2)])]);
    slice.put(
        ".8",
        &block(&slice, &[("b", 20)], &STANDARD.encode(bitmap(&[0]))),
    );
    for (instant, wanted) in [("6", ["a|1", "b|20"]), (INSTANT, ["b|2", "b|20"])] {
        let mut read = slice.read(&[".8"]);
        read.base_instant = Some(instant.to_owned());
        assert_eq!(rows_of(read).0, wanted, "base file of {instant}");
    }
}
