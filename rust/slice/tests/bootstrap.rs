//! A skeleton and its source read as one base file.
#![cfg(test)]

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimestampMicrosecondType};
use parquet::arrow::ArrowWriter;
use parquet::data_type::{ByteArray, ByteArrayType, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use pyhudi_slice::{
    BootstrapSource, Comparison, Filter, Result, SliceError, SliceRead, SliceReader,
};
use pyhudi_store::Store;

const KEY: &str = "_hoodie_record_key";

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("pyhudi-bootstrap-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> Store {
        Store::open(self.0.to_str().unwrap(), &[]).unwrap()
    }

    /// Writes a file of string and number columns in row groups of `rows` rows.
    fn write(&self, name: &str, columns: &[(&str, ArrayRef)], group: usize) {
        let batch = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(group))
            .build();
        let file = File::create(self.0.join(name)).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    fn pair(&self, rows: i64, source_rows: i64) {
        self.write("skeleton.parquet", &[(KEY, names(rows))], 100);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..source_rows));
        let own: ArrayRef = Arc::new(StringArray::from(vec!["not this"; source_rows as usize]));
        let columns = [("id", names(source_rows)), ("n", numbers), (KEY, own)];
        self.write("source.parquet", &columns, 3);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn names(rows: i64) -> ArrayRef {
    Arc::new(
        (0..rows)
            .map(|row| Some(format!("k{row}")))
            .collect::<StringArray>(),
    )
}

fn request(folder: &Folder, fields: Vec<Field>, columns: &[&str]) -> SliceRead {
    SliceRead {
        base: Some("skeleton.parquet".to_owned()),
        bootstrap: Some(BootstrapSource {
            values: None,
            store: folder.store(),
            path: "source.parquet".to_owned(),
        }),
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        batch_rows: 4,
        ..SliceRead::new(folder.store(), Arc::new(Schema::new(fields)))
    }
}

fn fields() -> Vec<Field> {
    vec![
        Field::new(KEY, DataType::Utf8, true),
        Field::new("id", DataType::Utf8, true),
        Field::new("n", DataType::Int64, true),
    ]
}

fn all(read: SliceRead) -> Result<RecordBatch> {
    let reader = SliceReader::new(read)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>>>()?;
    Ok(arrow::compute::concat_batches(&schema, &batches)?)
}

#[test]
fn rows_of_both_files_meet_whatever_their_row_groups() {
    let folder = Folder::new("meet");
    folder.pair(11, 11);
    let read = all(request(&folder, fields(), &["n", KEY, "id"])).unwrap();
    let numbers: Vec<i64> = read.column(0).as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(numbers, (0..11).collect::<Vec<_>>());
    assert_eq!(read.column(1).as_ref(), names(11).as_ref());
    assert_eq!(read.column(2).as_ref(), names(11).as_ref());
}

#[test]
fn columns_of_one_file_alone_are_enough() {
    let folder = Folder::new("alone");
    folder.pair(7, 7);
    for columns in [&[KEY][..], &["n"][..]] {
        assert_eq!(
            all(request(&folder, fields(), columns)).unwrap().num_rows(),
            7
        );
    }
}

#[test]
fn what_the_folder_tells_stands_where_no_file_has_it() {
    let folder = Folder::new("told");
    folder.pair(9, 9);
    let (city, number): (ArrayRef, ArrayRef) = (names(1), Arc::new(Int64Array::from(vec![77])));
    let told = RecordBatch::try_from_iter([("city", city), ("n", number)]).unwrap();
    let mut fields = fields();
    fields.push(Field::new("city", DataType::Utf8, true));
    fields.push(Field::new("later", DataType::Utf8, true));
    let mut asked = request(&folder, fields, &["city", "n", "later"]);
    if let Some(source) = &mut asked.bootstrap {
        source.values = Some(told);
    }
    let read = all(asked).unwrap();
    let cities: Vec<_> = read.column(0).as_string::<i32>().iter().collect();
    assert_eq!(cities, vec![Some("k0"); 9]);
    let numbers: Vec<i64> = read.column(1).as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(numbers, (0..9).collect::<Vec<_>>());
    assert_eq!(read.column(2).null_count(), 9);
}

#[test]
fn a_filter_leaves_no_row_group_out_of_one_file_only() {
    let folder = Folder::new("filter");
    folder.pair(9, 9);
    let mut read = request(&folder, fields(), &["n", KEY]);
    read.filters = vec![Filter {
        column: "n".to_owned(),
        comparison: Comparison::Greater,
        literals: Arc::new(Int64Array::from(vec![6])),
    }];
    assert_eq!(all(read).unwrap().num_rows(), 9);
}

#[test]
fn newer_records_replace_rows_of_the_pair() {
    let folder = Folder::new("merge");
    folder.pair(5, 5);
    let mut read = request(&folder, fields(), &["n", KEY]);
    read.incoming.delete_keys = Some(StringArray::from(vec!["k1", "k4"]));
    let left = all(read).unwrap();
    let numbers = left.column(0).as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(numbers, [0, 2, 3]);
}

#[test]
fn differing_row_counts_are_damage() {
    let folder = Folder::new("counts");
    folder.pair(5, 6);
    let error = all(request(&folder, fields(), &["n", KEY])).unwrap_err();
    assert!(matches!(&error, SliceError::Corrupt { file, .. } if file == "skeleton.parquet"));
    assert!(error.to_string().contains("5 rows"), "{error}");
}

/// The Julian day and the nanoseconds of that day.
fn int96(micros: i64) -> Int96 {
    let day = micros.div_euclid(86_400_000_000);
    let nanos = (micros.rem_euclid(86_400_000_000) * 1000) as u64;
    let mut value = Int96::new();
    value.set_data(nanos as u32, (nanos >> 32) as u32, (day + 2_440_588) as u32);
    value
}

#[test]
fn int96_timestamps_keep_their_value_in_any_year() {
    let folder = Folder::new("int96");
    let micros = [
        -62_135_596_800_000_000,
        1_700_000_000_123_456,
        253_402_300_799_999_999,
    ];
    folder.write("skeleton.parquet", &[(KEY, names(3))], 10);
    let schema = "message m { required binary id (UTF8); required int96 at; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = File::create(folder.0.join("source.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let ids: Vec<ByteArray> = (0..3).map(|_| ByteArray::from("x")).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<ByteArrayType>()
        .write_batch(&ids, None, None)
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values: Vec<Int96> = micros.iter().map(|at| int96(*at)).collect();
    column
        .typed::<Int96Type>()
        .write_batch(&values, None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let zone = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some("UTC".into()));
    let fields = vec![
        Field::new(KEY, DataType::Utf8, true),
        Field::new("at", zone, true),
    ];
    let read = all(request(&folder, fields, &["at"])).unwrap();
    let found = read
        .column(0)
        .as_primitive::<TimestampMicrosecondType>()
        .values()
        .to_vec();
    assert_eq!(found, micros);
}
