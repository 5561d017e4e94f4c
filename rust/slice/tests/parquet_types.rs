//! Types of Parquet columns that are not read: refused by name, not taken for damage.
#![cfg(test)]

use std::fs::{self, File};
use std::sync::Arc;

use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use pyhudi_slice::{SliceError, parquet_footer};
use pyhudi_store::Store;

/// What comes of a file without rows, with this schema.
fn opened(name: &str, message: &str) -> Result<(), SliceError> {
    let folder = std::env::temp_dir().join(format!("pyhudi-types-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let schema = Arc::new(parse_message_type(message).unwrap());
    let file = File::create(folder.join("b.parquet")).unwrap();
    let writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default()));
    writer.unwrap().close().unwrap();
    let store = Store::open(folder.to_str().unwrap(), &[]).unwrap();
    let footer = parquet_footer(&store, "b.parquet");
    fs::remove_dir_all(&folder).unwrap();
    footer.map(|_| ())
}

/// The schema that Hudi's writers give a list of maps from text to int.
#[test]
fn a_list_of_maps_of_two_levels_is_refused_with_its_column() {
    let map = "group array (MAP) { repeated group key_value (MAP_KEY_VALUE) {
                 required binary key (STRING); optional int32 value; } }";
    let list = format!("message t {{ optional group l (LIST) {{ repeated {map} }} }}");
    let nested = format!(
        "message t {{ optional group s {{ optional group l (LIST) {{ repeated {map} }} }} }}"
    );
    for (name, message, column) in [("list", list, "column l"), ("nested", nested, "column s")] {
        match opened(name, &message) {
            Err(SliceError::Unsupported { feature }) => {
                assert!(feature.contains(column), "{feature}");
                assert!(feature.contains("b.parquet"), "{feature}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_map_and_a_list_of_maps_of_three_levels_are_read() {
    let map = "(MAP) { repeated group key_value (MAP_KEY_VALUE) {
                 required binary key (STRING); optional int32 value; } }";
    let plain = format!("message t {{ optional group m {map} }}");
    opened("map", &plain).unwrap();
    let three = format!(
        "message t {{ optional group l (LIST) {{ repeated group list {{ optional group element {map} }} }} }}"
    );
    opened("three", &three).unwrap();
}
