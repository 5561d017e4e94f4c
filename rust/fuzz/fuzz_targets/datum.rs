//! Any bytes as a record of the metadata table, under a schema with its kinds of types.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pyhudi_avro::DatumReader;

const SCHEMA: &str = r#"{"type":"record","name":"r","fields":[
  {"name":"key","type":"string"},
  {"name":"files","type":["null",{"type":"map","values":{"type":"record","name":"i","fields":[
    {"name":"size","type":"long"},{"name":"isDeleted","type":"boolean"}]}}]},
  {"name":"least","type":["null",
    {"type":"record","name":"n","fields":[{"name":"value","type":"int"}]},
    {"type":"record","name":"d","fields":[{"name":"value","type":"double"}]},
    {"type":"record","name":"b","fields":[{"name":"value","type":"bytes"}]},
    {"type":"record","name":"a","fields":[{"name":"value","type":{"type":"array","items":"n"}}]}]}]}"#;

fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(64, data, decode);
});

fn decode(data: &[u8]) {
    let reader = DatumReader::new(SCHEMA).expect("the schema");
    if let Ok(record) = reader.read(data) {
        assert!(record.field("key").text().is_some());
    }
}
