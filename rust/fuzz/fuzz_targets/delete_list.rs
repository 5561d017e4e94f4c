//! Any bytes as the content of a delete block (Kryo or Avro); what is read encodes and reads again.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use pyhudi_format::Result;
use pyhudi_format::log::{DeleteBody, DeleteRecord, delete_body, delete_content, delete_list};

fn avro(list: &[u8]) {
    let Ok(records) = delete_list::decode(list) else {
        return;
    };
    let Ok(records) = records.collect::<Result<Vec<DeleteRecord<'_>>>>() else {
        return;
    };
    let again = delete_list::encode(records.iter().cloned());
    let read = delete_list::decode(&again).expect("encoded list");
    assert_eq!(read.filter_map(Result::ok).count(), records.len());
}

fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(64, data, decode);
});

fn decode(data: &[u8]) {
    avro(data);
    for version in 1..=3_u8 {
        let mut content = delete_content(data);
        content[3] = version;
        match delete_body(&Bytes::from(content)) {
            Ok(DeleteBody::Avro(list)) => avro(&list),
            Ok(DeleteBody::Kryo(records)) => assert!(records.len() <= data.len()),
            Err(_) => {}
        }
    }
}
