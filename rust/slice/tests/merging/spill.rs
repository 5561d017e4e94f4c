//! Every type of column through local files and back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int32Array, Int32Builder, Int64Array, ListBuilder, MapBuilder, RecordBatch,
    StringArray, StringBuilder, StructArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use pyhudi_merge::MergeMode;
use pyhudi_slice::{FillRule, SpillOptions};

use crate::support::{Slice, rows_of};

const FIELDS: &str = r#"
  {"name":"_hoodie_record_key","type":["null","string"],"default":null},
  {"name":"bool","type":["null","boolean"],"default":null},
  {"name":"int","type":["null","int"],"default":null},
  {"name":"long","type":["null","long"],"default":null},
  {"name":"float","type":["null","float"],"default":null},
  {"name":"double","type":["null","double"],"default":null},
  {"name":"bytes","type":["null","bytes"],"default":null},
  {"name":"date","type":["null",{"type":"int","logicalType":"date"}],"default":null},
  {"name":"time","type":["null",{"type":"long","logicalType":"time-micros"}],"default":null},
  {"name":"at","type":["null",{"type":"long","logicalType":"local-timestamp-micros"}],"default":null},
  {"name":"money","type":["null",{"type":"fixed","name":"f","size":8,"logicalType":"decimal",
    "precision":16,"scale":2}],"default":null},
  {"name":"list","type":["null",{"type":"array","items":["null","int"]}],"default":null},
  {"name":"map","type":["null",{"type":"map","values":["null","string"]}],"default":null},
  {"name":"inside","type":["null",{"type":"record","name":"i","fields":[
    {"name":"a","type":["null","string"],"default":null},
    {"name":"l","type":["null",{"type":"array","items":["null","int"]}],"default":null}]}],
    "default":null}"#;

/// Rows with keys `from..to`; every third has nulls only.
fn batch(slice: &Slice, from: i64, to: i64, salt: i64) -> RecordBatch {
    let numbers: Vec<Option<i64>> = (from..to)
        .map(|n| (n % 3 != 0).then_some(n + salt))
        .collect();
    let longs = Int64Array::from(numbers.clone());
    let text = |n: &Option<i64>| n.map(|n| format!("text {n}"));
    let texts: StringArray = numbers.iter().map(text).collect();
    let mut bytes = BinaryBuilder::new();
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for n in &numbers {
        bytes.append_option(n.map(i64::to_be_bytes));
        lists.append_option(n.map(|n| (0..n % 4).map(|i| Some(i as i32))));
        if let Some(n) = n {
            maps.keys().append_value(format!("k{n}"));
            maps.values().append_option((n % 2 == 0).then_some("v"));
        }
        maps.append(n.is_some()).unwrap();
    }
    let lists: ArrayRef = Arc::new(lists.finish());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(
            (from..to).map(|n| format!("key {n}")),
        )),
        Arc::new(
            numbers
                .iter()
                .map(|n| n.map(|n| n % 2 == 0))
                .collect::<BooleanArray>(),
        ),
        Arc::new(
            numbers
                .iter()
                .map(|n| n.map(|n| n as i32))
                .collect::<Int32Array>(),
        ),
        Arc::new(longs.clone()),
        Arc::new(
            numbers
                .iter()
                .map(|n| n.map(|n| n as f32 / 2.0))
                .collect::<Float32Array>(),
        ),
        Arc::new(
            numbers
                .iter()
                .map(|n| n.map(|n| n as f64 / 4.0))
                .collect::<Float64Array>(),
        ),
        Arc::new(bytes.finish()),
        Arc::new(
            numbers
                .iter()
                .map(|n| n.map(|n| n as i32))
                .collect::<Date32Array>(),
        ),
        Arc::new(numbers.iter().copied().collect::<Time64MicrosecondArray>()),
        Arc::new(
            numbers
                .iter()
                .copied()
                .collect::<TimestampMicrosecondArray>(),
        ),
        Arc::new(
            numbers
                .iter()
                .map(|n| n.map(i128::from))
                .collect::<Decimal128Array>(),
        ),
        Arc::clone(&lists),
        Arc::new(maps.finish()),
        inside(slice, &numbers, &texts, &lists),
    ];
    let fields = slice.schema.fields().iter();
    let columns = fields.zip(&columns).map(|(field, column)| {
        // The builders' names of elements are not the schema's.
        cast(column, field.data_type()).unwrap()
    });
    RecordBatch::try_new(Arc::clone(&slice.schema), columns.collect()).unwrap()
}

fn inside(
    slice: &Slice,
    numbers: &[Option<i64>],
    texts: &StringArray,
    lists: &ArrayRef,
) -> ArrayRef {
    let DataType::Struct(fields) = slice.schema.field_with_name("inside").unwrap().data_type()
    else {
        panic!("a record is a struct");
    };
    let lists = cast(lists, fields[1].data_type()).unwrap();
    let valid: NullBuffer = numbers
        .iter()
        .map(|n| n.is_some_and(|n| n % 2 == 0))
        .collect();
    let children: Vec<ArrayRef> = vec![Arc::new(texts.clone()), lists];
    Arc::new(StructArray::new(fields.clone(), children, Some(valid)))
}

fn slice() -> Slice {
    let slice = Slice::new(FIELDS);
    slice.write_base(vec![batch(&slice, 0, 20, 0), batch(&slice, 20, 40, 0)]);
    slice.write_log(".1", vec![batch(&slice, 10, 30, 1)], &["key 1", "key 12"]);
    slice.write_log(
        ".2",
        vec![batch(&slice, 25, 60, 1000)],
        &["key 26", "key 99"],
    );
    slice
}

fn same_rows_from_disk(mode: MergeMode, ordering: &[&str], fill: &FillRule) {
    let slice = slice();
    let read = || {
        let mut read = slice.read(&[".1", ".2"]);
        read.merge.mode = mode;
        read.merge.ordering_fields = ordering.iter().map(|name| (*name).to_owned()).collect();
        read.merge.fill = fill.clone();
        read
    };
    let (wanted, _) = rows_of(read());
    assert!(wanted.len() > 50, "{} rows", wanted.len());
    for memory_limit in [1, 20_000, 100_000] {
        let mut limited = read();
        limited.spill = Some(SpillOptions {
            memory_limit,
            folder: None,
        });
        let (rows, stats) = rows_of(limited);
        assert_eq!(rows, wanted, "limit {memory_limit}");
        let spilled = stats.spilled_parts.load(Ordering::Relaxed);
        assert!(memory_limit > 1 || spilled > 10, "{spilled} parts");
    }
}

#[test]
fn every_column_type_comes_back_from_disk() {
    same_rows_from_disk(MergeMode::CommitTime, &[], &FillRule::Absent);
}

#[test]
fn rows_made_of_several_come_back_from_disk() {
    same_rows_from_disk(MergeMode::CommitTime, &[], &FillRule::Defaults(None));
}

#[test]
fn ordering_values_of_every_kind_come_back_from_disk() {
    for field in [
        "int", "long", "double", "bytes", "date", "at", "money", "bool",
    ] {
        same_rows_from_disk(MergeMode::EventTime, &[field], &FillRule::Absent);
    }
    same_rows_from_disk(
        MergeMode::EventTime,
        &["date", "money"],
        &FillRule::Defaults(None),
    );
}

#[test]
fn a_batch_of_nulls_is_a_batch_on_disk_too() {
    let slice = Slice::new(FIELDS);
    let nothing = |from: i64| {
        let mut columns: Vec<ArrayRef> = slice
            .schema
            .fields()
            .iter()
            .map(|field| new_null_array(field.data_type(), 5))
            .collect();
        let keys = (from..from + 5).map(|n| format!("key {n}"));
        columns[0] = Arc::new(StringArray::from_iter_values(keys));
        RecordBatch::try_new(Arc::clone(&slice.schema), columns).unwrap()
    };
    slice.write_base(vec![nothing(0)]);
    slice.write_log(".1", vec![nothing(3)], &[]);
    let mut read = slice.read(&[".1"]);
    read.spill = Some(SpillOptions {
        memory_limit: 1,
        folder: None,
    });
    // Only columns without a value: rows must not be taken for deletes.
    read.columns = vec!["int".to_owned(), "inside".to_owned()];
    assert_eq!(rows_of(read).0, ["null|null"; 8]);
}
