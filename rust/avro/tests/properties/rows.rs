//! Rows of log blocks: Arrow to Avro and back.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Schema};
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};
use pyhudi_avro::{
    DatumDecoder, arrow_schema, avro_schema, encode, json_to_records, records_to_json,
};

use crate::columns::batch;

fn decoded(
    schema: &str,
    columns: Option<&[&str]>,
    records: &[&[u8]],
) -> pyhudi_avro::Result<Option<RecordBatch>> {
    let mut decoder = DatumDecoder::new(schema, columns, records.len())?;
    for record in records {
        decoder.push(record)?;
    }
    decoder.flush()
}

proptest! {
    #[test]
    fn rows_come_back_as_they_were(
        batch in batch(),
        from in any::<Index>(),
        wanted in subsequence(vec![0, 1, 2, 3, 4], 0..=5),
    ) {
        let json = avro_schema(&batch.schema(), "R", "ns").unwrap();
        prop_assert_eq!(arrow_schema(&json).unwrap(), Schema::clone(&batch.schema()));
        let encoded = encode(&batch, &json).unwrap();
        let records: Vec<&[u8]> = encoded.iter().collect();
        prop_assert_eq!(records.len(), batch.num_rows());
        prop_assert_eq!(records.concat(), encoded.bytes());
        if records.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(&decoded(&json, None, &records).unwrap().unwrap(), &batch);
        // The rows of a part of the batch, and columns in another order.
        let from = from.index(records.len());
        let part = batch.slice(from, records.len() - from);
        let of_part = encode(&part, &json).unwrap();
        prop_assert_eq!(of_part.iter().collect::<Vec<_>>(), &records[from..]);
        let wanted: Vec<usize> = wanted
            .into_iter()
            .rev()
            .filter(|at| *at < batch.num_columns())
            .collect();
        let schema = batch.schema();
        let names: Vec<&str> = wanted
            .iter()
            .map(|at| schema.field(*at).name().as_str())
            .collect();
        let found = decoded(&json, Some(&names), &records).unwrap().unwrap();
        prop_assert_eq!(found, batch.project(&wanted).unwrap());
    }

    /// Records have no checksums of their own: damage may also change a value.
    #[test]
    fn a_damaged_record_never_panics_and_a_cut_one_is_an_error(
        batch in batch(),
        at in any::<Index>(),
        bit in 0..8_u8,
    ) {
        let json = avro_schema(&batch.schema(), "R", "ns").unwrap();
        let encoded = encode(&batch, &json).unwrap();
        for record in encoded.iter().filter(|record| !record.is_empty()) {
            let at = at.index(record.len());
            let mut damaged = record.to_vec();
            damaged[at] ^= 1 << bit;
            let _ = decoded(&json, None, &[&damaged]);
            prop_assert!(decoded(&json, None, &[&record[..at]]).is_err());
            let names: Vec<String> = batch
                .schema()
                .fields()
                .iter()
                .rev()
                .take(1)
                .map(|field| field.name().clone())
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let _ = decoded(&json, Some(&names), &[&damaged]);
            prop_assert!(decoded(&json, Some(&names), &[&record[..at]]).is_err());
        }
    }

    #[test]
    fn rows_as_json_are_the_same_records(batch in batch()) {
        let json = avro_schema(&batch.schema(), "R", "ns").unwrap();
        let encoded = encode(&batch, &json).unwrap();
        let records: Vec<&[u8]> = encoded.iter().collect();
        let values = records_to_json(&json, records.iter().copied()).unwrap();
        let again = json_to_records(&json, &values).unwrap();
        // NaN has one form in JSON.
        let values_again = records_to_json(&json, again.iter().map(Vec::as_slice)).unwrap();
        prop_assert_eq!(values_again, values);
    }

    #[test]
    fn a_default_is_the_number_of_the_schema(
        number in any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()),
    ) {
        let writer = r#"{"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}"#;
        let reader = format!(
            r#"{{"type":"record","name":"R","fields":[{{"name":"d","type":"double","default":{number:e}}}]}}"#
        );
        let mut decoder = DatumDecoder::with_reader_schema(writer, &reader, 1).unwrap();
        decoder.push(&[2]).unwrap();
        let batch = decoder.flush().unwrap().unwrap();
        let found = batch.column(0).as_primitive::<Float64Type>().value(0);
        prop_assert_eq!(found.to_bits(), number.to_bits(), "{} {}", found, number);
    }
}
