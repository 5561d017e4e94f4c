//! Bounds of floating numbers in the footers of what is written: those of the order of their type.
#![cfg(test)]

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float32Array, Float64Array, RecordBatch};
use parquet::basic::{ColumnOrder, SortOrder};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;
use pyhudi_slice::{BaseFileOptions, Codec, write_base_file};
use pyhudi_store::Store;

const AVRO: &str = r#"{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[
  {"name":"f","type":["null","double"],"default":null},
  {"name":"g","type":["null","float"],"default":null},
  {"name":"n","type":["null","long"],"default":null}]}"#;

/// The footer of a base file with those numbers as doubles and as floats, written a batch at a time.
fn footer(name: &str, batches: &[&[Option<f64>]], row_group_bytes: usize) -> ParquetMetaData {
    let folder = std::env::temp_dir().join(format!("pyhudi-floats-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let store = Store::open(folder.to_str().unwrap(), &[]).unwrap();
    let options = BaseFileOptions {
        avro_schema: AVRO.into(),
        file_name: None,
        key_column: None,
        codec: Codec::Snappy,
        row_group_bytes,
        page_bytes: 1,
        old_lists: true,
        two_threads: true,
        dictionary: false,
        bloom: None,
    };
    let batches = batches.iter().map(|numbers| {
        let f: ArrayRef = Arc::new(numbers.iter().copied().collect::<Float64Array>());
        let singles = numbers.iter().map(|number| number.map(|one| one as f32));
        let g: ArrayRef = Arc::new(singles.collect::<Float32Array>());
        Ok(RecordBatch::try_from_iter_with_nullable([("f", f, true), ("g", g, true)]).unwrap())
    });
    write_base_file(
        &store,
        "b.parquet",
        batches.collect::<Vec<_>>().into_iter(),
        &options,
    )
    .unwrap();
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    let file = File::open(folder.join("b.parquet")).unwrap();
    reader.try_parse(&file).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    reader.finish().unwrap()
}

/// Bits of the bounds, number of nulls and of NaN of the doubles in a row group.
type Known = (Option<(u64, u64)>, Option<u64>, Option<u64>);

/// What is known of a row group's doubles, after a look whether the floats have the same.
fn known(footer: &ParquetMetaData, group: usize) -> Known {
    let columns = footer.row_group(group).columns();
    let (Some(Statistics::Double(f)), Some(Statistics::Float(g))) =
        (columns[0].statistics(), columns[1].statistics())
    else {
        panic!("no statistics");
    };
    let bounds = f.min_opt().zip(f.max_opt());
    let singles = g.min_opt().zip(g.max_opt());
    assert_eq!(
        bounds.map(|(min, max)| (*min as f32).to_bits().max((*max as f32).to_bits())),
        singles.map(|(min, max)| min.to_bits().max(max.to_bits()))
    );
    assert_eq!(f.null_count_opt(), g.null_count_opt());
    let bits = bounds.map(|(min, max)| (min.to_bits(), max.to_bits()));
    (bits, f.null_count_opt(), f.nan_count_opt())
}

fn bits(min: f64, max: f64) -> (u64, u64) {
    (min.to_bits(), max.to_bits())
}

const LARGE: usize = 1 << 20;

#[test]
fn the_order_is_that_of_the_type() {
    let footer = footer("order", &[&[Some(1.0)]], LARGE);
    assert_eq!(
        footer.file_metadata().column_orders().unwrap().as_slice(),
        [ColumnOrder::TYPE_DEFINED_ORDER(SortOrder::SIGNED); 3]
    );
}

#[test]
fn a_file_without_rows_has_a_footer() {
    let footer = footer("none", &[], LARGE);
    assert_eq!(footer.file_metadata().num_rows(), 0);
}

#[test]
fn a_chunk_with_nan_has_no_bounds_but_counts() {
    for (name, numbers) in [
        ("some", [Some(1.5), Some(f64::NAN), None]),
        ("all", [Some(f64::NAN), Some(-f64::NAN), None]),
    ] {
        let footer = footer(name, &[&numbers], LARGE);
        let nans = numbers.iter().flatten().filter(|one| one.is_nan()).count();
        assert_eq!(known(&footer, 0), (None, Some(1), Some(nans as u64)));
        let pages = footer.page_index().unwrap();
        assert!(pages.column_index(0, 0).is_none());
        assert!(pages.column_index(0, 1).is_none());
        assert!(pages.column_index(0, 2).is_some());
        assert!(pages.offset_index(0, 0).is_some());
    }
}

#[test]
fn bounds_that_are_zero_hold_both_zeros() {
    for (name, numbers, (min, max)) in [
        ("plus", [0.0, 0.0], (-0.0, 0.0)),
        ("minus", [-0.0, -0.0], (-0.0, 0.0)),
        ("least", [0.0, 2.0], (-0.0, 2.0)),
        ("greatest", [-2.0, -0.0], (-2.0, 0.0)),
        ("neither", [-2.0, 2.0], (-2.0, 2.0)),
        (
            "infinite",
            [f64::NEG_INFINITY, f64::INFINITY],
            (f64::NEG_INFINITY, f64::INFINITY),
        ),
    ] {
        let footer = footer(name, &[&numbers.map(Some)], LARGE);
        assert_eq!(
            known(&footer, 0),
            (Some(bits(min, max)), Some(0), Some(0)),
            "{name}"
        );
    }
}

#[test]
fn pages_have_bounds_by_the_same_rules() {
    let batches: [&[Option<f64>]; 3] = [&[Some(0.0)], &[Some(1.0)], &[None]];
    let footer = footer("pages", &batches, LARGE);
    let pages = footer.page_index().unwrap();
    let Some(ColumnIndexMetaData::DOUBLE(doubles)) = pages.column_index(0, 0) else {
        panic!("no bounds of pages");
    };
    let found = |page: usize| {
        let bounds = doubles.min_value(page).zip(doubles.max_value(page));
        bounds.map(|(min, max)| (min.to_bits(), max.to_bits()))
    };
    let bounds: Vec<_> = (0..doubles.num_pages() as usize).map(found).collect();
    assert_eq!(bounds, [Some(bits(-0.0, 0.0)), Some(bits(1.0, 1.0)), None]);
    assert_eq!(doubles.null_count(2), Some(1));
    assert_eq!(doubles.definition_level_histogram(2), Some(&[1, 0][..]));
    let Some(ColumnIndexMetaData::FLOAT(singles)) = pages.column_index(0, 1) else {
        panic!("no bounds of pages");
    };
    assert!(singles.min_value(0).unwrap().is_sign_negative());
}

#[test]
fn each_row_group_is_bounded_by_itself() {
    let batches: [&[Option<f64>]; 3] = [&[Some(1.0)], &[Some(f64::NAN)], &[Some(2.0)]];
    let footer = footer("groups", &batches, 1);
    assert_eq!(footer.num_row_groups(), 3);
    assert_eq!(known(&footer, 0).0, Some(bits(1.0, 1.0)));
    assert_eq!(known(&footer, 1).0, None);
    assert_eq!(known(&footer, 2).0, Some(bits(2.0, 2.0)));
}

#[test]
fn large_batches_are_cut_at_the_size_of_row_groups() {
    let numbers: Vec<Option<f64>> = (0..10_000).map(|one| Some(f64::from(one))).collect();
    let batches: [&[Option<f64>]; 4] = [&numbers; 4];
    let footer = footer("cut", &batches, LARGE);
    assert_eq!(footer.file_metadata().num_rows(), 40_000);
    let groups = footer.row_groups();
    assert_eq!(groups.len(), 3);
    assert!(groups[0].num_rows() > 10_000);
    for group in groups {
        let bytes = group.total_byte_size();
        assert!(bytes < (LARGE + LARGE / 8) as i64, "{bytes}");
    }
}
