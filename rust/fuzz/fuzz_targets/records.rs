//! Any bytes as a record of a log block, under a schema with every kind of type.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pyhudi_avro::DatumDecoder;

const SCHEMA: &str = r#"{"type":"record","name":"r","fields":[
  {"name":"key","type":["null","string"]},
  {"name":"flag","type":"boolean"},
  {"name":"number","type":["long","null"]},
  {"name":"bytes","type":"bytes"},
  {"name":"money","type":["null",{"type":"fixed","name":"f","size":5,"logicalType":"decimal","precision":10,"scale":2}]},
  {"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
  {"name":"list","type":{"type":"array","items":["null","int"]}},
  {"name":"map","type":{"type":"map","values":["null","double"]}},
  {"name":"row","type":["null",{"type":"record","name":"s","fields":[{"name":"a","type":"string"}]}]}]}"#;

fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(64, data, decode);
});

fn decode(data: &[u8]) {
    for columns in [None, Some(["key", "list"].as_slice())] {
        let mut decoder = DatumDecoder::new(SCHEMA, columns, 4).expect("the schema");
        // Strings are checked when the batch is built.
        if decoder.push(data).is_ok()
            && let Ok(batch) = decoder.flush()
        {
            assert_eq!(batch.expect("one row").num_rows(), 1);
        }
    }
}
