//! Row groups that a rewrite takes over without the rows that are replaced or deleted.
#![cfg(test)]

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    Float32Array, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use parquet::file::statistics::Statistics;
use pyhudi_slice::{
    BaseFileOptions, Codec, Incoming, RECORD_KEY, Rewrite, SliceRead, rewrite_base_file,
    write_base_file,
};
use pyhudi_store::Store;

const AVRO: &str = r#"{"type":"record","name":"t_record","namespace":"hoodie.t","fields":[
  {"name":"_hoodie_commit_time","type":["null","string"],"default":null},
  {"name":"_hoodie_record_key","type":["null","string"],"default":null},
  {"name":"_hoodie_file_name","type":["null","string"],"default":null},
  {"name":"n","type":["null","long"],"default":null},
  {"name":"few","type":["null","string"],"default":null},
  {"name":"many","type":"string"},
  {"name":"f","type":["null","double"],"default":null},
  {"name":"g","type":"float"},
  {"name":"flag","type":["null","boolean"],"default":null},
  {"name":"day","type":["null",{"type":"int","logicalType":"date"}],"default":null},
  {"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
  {"name":"price","type":["null",{"type":"fixed","name":"price","size":6,"logicalType":"decimal",
    "precision":12,"scale":2}],"default":null},
  {"name":"raw","type":["null","bytes"],"default":null},
  {"name":"never","type":["null","string"],"default":null},
  {"name":"inner","type":["null",{"type":"record","name":"inner","fields":[
    {"name":"x","type":["null","int"],"default":null},{"name":"y","type":"string"}]}],
    "default":null},
  {"name":"tags","type":["null",{"type":"array","items":"string"}],"default":null}]}"#;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("pyhudi-spliced-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> Store {
        Store::open(self.0.to_str().unwrap(), &[]).unwrap()
    }

    fn open(&self, name: &str) -> ParquetRecordBatchReaderBuilder<File> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let file = File::open(self.0.join(name)).unwrap();
        ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap()
    }

    fn rows(&self, name: &str) -> RecordBatch {
        let reader = self.open(name);
        let schema = Arc::clone(reader.schema());
        let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
        concat_batches(&schema, &batches).unwrap()
    }

    fn write(&self, name: &str, rows: &RecordBatch, options: &BaseFileOptions) {
        let batches = (0..rows.num_rows())
            .step_by(777)
            .map(|row| Ok(rows.slice(row, 777.min(rows.num_rows() - row))));
        let batches: Vec<_> = batches.collect();
        write_base_file(&self.store(), name, batches.into_iter(), options).unwrap();
    }

    fn delete(&self, from: &str, to: &str, keys: StringArray, options: &BaseFileOptions) {
        let read = self.read(from, keys);
        rewrite_base_file(to, read, Rewrite::default(), options).unwrap();
    }

    fn read(&self, from: &str, keys: StringArray) -> SliceRead {
        SliceRead {
            base: Some(from.to_owned()),
            incoming: Incoming {
                rows: None,
                delete_keys: Some(keys),
            },
            batch_rows: 512,
            two_threads: true,
            ..SliceRead::new(self.store(), schema())
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn schema() -> SchemaRef {
    Arc::new(pyhudi_avro::arrow_schema(AVRO).unwrap())
}

fn options(name: &str, codec: Codec) -> BaseFileOptions {
    BaseFileOptions {
        avro_schema: AVRO.into(),
        file_name: Some(name.into()),
        key_column: Some(RECORD_KEY.into()),
        codec,
        row_group_bytes: 100 << 20,
        page_bytes: 3000,
        old_lists: true,
        two_threads: true,
        dictionary: true,
        bloom: None,
    }
}

fn key(row: usize) -> String {
    format!("k{row:07}")
}

/// Rows of all kinds of columns; `spread` makes numbers of rows.
fn rows(count: usize) -> RecordBatch {
    let all = || 0..count;
    let spread = |row: usize| (row as i64).wrapping_mul(2_654_435_761) % 1_000_003;
    let texts = |text: &dyn Fn(usize) -> Option<String>| -> ArrayRef {
        Arc::new(all().map(text).collect::<StringArray>())
    };
    let schema = schema();
    let field = |name: &str| schema.field_with_name(name).unwrap().data_type().clone();
    let DataType::Struct(inner) = field("inner") else {
        panic!("no struct");
    };
    let x: ArrayRef = Arc::new(
        all()
            .map(|row| (row % 3 > 0).then_some(row as i32))
            .collect::<Int32Array>(),
    );
    let y: ArrayRef = Arc::new(StringArray::from_iter_values(
        all().map(|row| format!("y{}", row % 50)),
    ));
    let present = all().map(|row| row % 11 > 0).collect::<Vec<_>>();
    let DataType::List(item) = field("tags") else {
        panic!("no list");
    };
    let lengths = all().map(|row| row % 3);
    let tags = StringArray::from_iter_values(
        all().flat_map(|row| (0..row % 3).map(move |at| format!("t{}", (row + at) % 9))),
    );
    let tags = ListArray::new(
        item,
        arrow::buffer::OffsetBuffer::from_lengths(lengths),
        Arc::new(tags),
        Some(all().map(|row| row % 13 > 0).collect::<Vec<_>>().into()),
    );
    let prices = all().map(|row| (row % 4 > 0).then(|| i128::from(spread(row) - 500_000)));
    let columns: Vec<ArrayRef> = vec![
        texts(&|_| Some("20260101000000000".to_owned())),
        texts(&|row| Some(key(row))),
        texts(&|_| None),
        Arc::new(
            all()
                .map(|row| (row % 7 > 0).then(|| spread(row)))
                .collect::<Int64Array>(),
        ),
        texts(&|row| (row % 1000 > 400).then(|| format!("few {}", row % 17))),
        texts(&|row| Some(format!("many {}", spread(row)))),
        Arc::new(
            all()
                .map(|row| Some(spread(row) as f64 / 3.0 - 1e5))
                .collect::<Float64Array>(),
        ),
        Arc::new(Float32Array::from_iter_values(
            all().map(|row| [f32::NAN, -0.0, 0.0, row as f32][row % 4]),
        )),
        Arc::new(
            all()
                .map(|row| (row % 5 > 0).then_some(row / 600 % 2 > 0))
                .collect::<BooleanArray>(),
        ),
        Arc::new(
            all()
                .map(|row| Some(row as i32 / 100))
                .collect::<Date32Array>(),
        ),
        Arc::new(
            all()
                .map(|row| Some(spread(row)))
                .collect::<TimestampMicrosecondArray>()
                .with_data_type(field("at")),
        ),
        Arc::new(
            prices
                .collect::<Decimal128Array>()
                .with_data_type(field("price")),
        ),
        Arc::new(
            all()
                .map(|row| (row % 2 > 0).then(|| spread(row).to_be_bytes().to_vec()))
                .collect::<BinaryArray>(),
        ),
        texts(&|_| None),
        Arc::new(StructArray::new(inner, vec![x, y], Some(present.into()))),
        Arc::new(tags),
    ];
    RecordBatch::try_new(schema, columns).unwrap()
}

/// Which rows are deleted.
type Pattern = (&'static str, fn(usize) -> bool);

const PATTERNS: [Pattern; 6] = [
    ("few", |row| row % 97 == 3),
    ("half", |row| row.wrapping_mul(2_654_435_761) % 7 < 3),
    ("run", |row| (1000..4321).contains(&row)),
    ("first and last", |row| row == 0 || row == 8999),
    ("most", |row| row % 500 > 0),
    ("all but one", |row| row != 4500),
];

#[test]
fn rows_that_stay_are_as_they_were() {
    let folder = Folder::new("rows");
    let all = rows(9000);
    for (codec, dictionary) in [
        (Codec::Zstd, true),
        (Codec::Snappy, false),
        (Codec::Uncompressed, true),
        (Codec::Gzip, true),
    ] {
        let form = |name: &str| BaseFileOptions {
            dictionary,
            ..options(name, codec)
        };
        folder.write("a.parquet", &all, &form("a.parquet"));
        let written = folder.rows("a.parquet");
        for (name, is_gone) in PATTERNS {
            let gone = (0..9000)
                .filter(|row| is_gone(*row))
                .map(|row| Some(key(row)));
            folder.delete("a.parquet", "b.parquet", gone.collect(), &form("b.parquet"));
            let stay: BooleanArray = (0..9000).map(|row| Some(!is_gone(row))).collect();
            let expected = filter_record_batch(&written, &stay).unwrap();
            let found = folder.rows("b.parquet");
            for (at, field) in written.schema().fields().iter().enumerate() {
                if field.name() != "_hoodie_file_name" {
                    let same = format!("{:?}", found.column(at).to_data())
                        == format!("{:?}", expected.column(at).to_data())
                        || found.column(at) == expected.column(at);
                    assert!(same, "{codec:?} {name} {}", field.name());
                }
            }
            let names = found.column(2).as_string::<i32>();
            assert!(names.iter().all(|name| name == Some("b.parquet")));
            check_footer(&folder, "b.parquet", &found, &format!("{codec:?} {name}"));
            if codec == Codec::Uncompressed {
                check_erased(&folder.0.join("b.parquet"), &written, &stay, name);
            }
            std::fs::remove_file(folder.0.join("b.parquet")).unwrap();
        }
        std::fs::remove_file(folder.0.join("a.parquet")).unwrap();
    }
}

/// No byte of a file without compression has a text that only removed rows had.
fn check_erased(file: &std::path::Path, rows: &RecordBatch, stay: &BooleanArray, case: &str) {
    let bytes = std::fs::read(file).unwrap();
    for name in [RECORD_KEY, "many"] {
        let texts = rows.column_by_name(name).unwrap().as_string::<i32>();
        let is_there = |text: &str| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        let long = |row: &usize| texts.value(*row).len() >= "many 100000".len() || name != "many";
        let removed = (0..rows.num_rows()).filter(|row| !stay.value(*row) && long(row));
        for row in removed.take(20) {
            assert!(!is_there(texts.value(row)), "{case} {name} {row}");
        }
        let kept = (0..rows.num_rows()).find(|row| stay.value(*row)).unwrap();
        assert!(is_there(texts.value(kept)), "{case} {name}");
    }
}

/// Statistics are those of the rows, and the page index leads to them.
fn check_footer(folder: &Folder, name: &str, rows: &RecordBatch, case: &str) {
    let reader = folder.open(name);
    let footer = Arc::clone(reader.metadata());
    assert_eq!(footer.num_row_groups(), 1, "{case}");
    let group = footer.row_group(0);
    assert_eq!(group.num_rows() as usize, rows.num_rows());
    for (leaf, column) in group.columns().iter().enumerate() {
        let path = column.column_path().string();
        if let Some(values) = rows.column_by_name(&path) {
            check_statistics(column, values, &format!("{case} {path}"));
            check_pages(&footer, leaf, values, &format!("{case} {path}"));
        }
    }
    // Every third ten rows, by the page index.
    let count = rows.num_rows();
    let selectors = (0..count.div_ceil(10)).map(|ten| {
        let rows = 10.min(count - ten * 10);
        if ten % 3 == 1 {
            RowSelector::select(rows)
        } else {
            RowSelector::skip(rows)
        }
    });
    let selection = RowSelection::from(selectors.collect::<Vec<_>>());
    let found: Vec<_> = reader
        .with_row_selection(selection)
        .build()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mask: BooleanArray = (0..count).map(|row| Some(row / 10 % 3 == 1)).collect();
    let expected = filter_record_batch(rows, &mask).unwrap();
    let found = concat_batches(&expected.schema(), &found).unwrap();
    assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{case}");
}

fn check_statistics(column: &ColumnChunkMetaData, values: &ArrayRef, case: &str) {
    let statistics = column.statistics().unwrap();
    assert_eq!(
        statistics.null_count_opt(),
        Some(values.null_count() as u64),
        "{case}"
    );
    assert_eq!(column.num_values(), values.len() as i64, "{case}");
    match (statistics, values.data_type()) {
        (Statistics::ByteArray(found), DataType::Utf8) => {
            let texts = values.as_string::<i32>();
            let text = |bound: Option<&parquet::data_type::ByteArray>| {
                bound.map(|bytes| bytes.as_utf8().unwrap().to_owned())
            };
            assert_eq!(
                text(found.min_opt()).as_deref(),
                texts.iter().flatten().min(),
                "{case}"
            );
            assert_eq!(
                text(found.max_opt()).as_deref(),
                texts.iter().flatten().max(),
                "{case}"
            );
            let bytes: usize = texts.iter().flatten().map(str::len).sum();
            let known = column.unencoded_byte_array_data_bytes();
            assert_eq!(known, Some(bytes as i64), "{case}");
        }
        (Statistics::Int64(found), DataType::Int64) => {
            let numbers = values.as_primitive::<Int64Type>().iter().flatten();
            let (least, greatest) = (numbers.clone().min(), numbers.max());
            assert_eq!(
                (found.min_opt().copied(), found.max_opt().copied()),
                (least, greatest),
                "{case}"
            );
        }
        (Statistics::Double(found), _) => {
            let numbers = values.as_primitive::<Float64Type>().iter().flatten();
            let (least, greatest) = (numbers.clone().reduce(f64::min), numbers.reduce(f64::max));
            assert_eq!(
                (found.min_opt().copied(), found.max_opt().copied()),
                (least, greatest),
                "{case}"
            );
        }
        (Statistics::Float(found), _) => assert!(found.nan_count_opt().is_some(), "{case}"),
        _ => {}
    }
}

fn check_pages(footer: &ParquetMetaData, leaf: usize, values: &ArrayRef, case: &str) {
    let indexes = footer.page_index_for_row_group(0);
    let pages = indexes.offset_index(leaf).unwrap().page_locations();
    let Some(index) = indexes.column_index(leaf) else {
        return;
    };
    assert_eq!(index.num_pages() as usize, pages.len(), "{case}");
    for (page, location) in pages.iter().enumerate() {
        let begin = location.first_row_index as usize;
        let end = pages
            .get(page + 1)
            .map_or(values.len(), |next| next.first_row_index as usize);
        let part = values.slice(begin, end - begin);
        assert_eq!(
            index.null_count(page),
            Some(part.null_count() as i64),
            "{case} page {page}"
        );
        assert_eq!(
            index.is_null_page(page),
            part.null_count() == part.len(),
            "{case} page {page}"
        );
        if let (
            parquet::file::page_index::column_index::ColumnIndexMetaData::INT64(bounds),
            DataType::Int64,
        ) = (index, part.data_type())
        {
            let numbers = part.as_primitive::<Int64Type>().iter().flatten();
            assert_eq!(
                bounds.min_value(page).copied(),
                numbers.clone().min(),
                "{case} page {page}"
            );
            assert_eq!(
                bounds.max_value(page).copied(),
                numbers.max(),
                "{case} page {page}"
            );
        }
        if let Some(levels) = index.definition_level_histogram(page) {
            assert_eq!(
                levels.iter().sum::<i64>() as usize,
                part.len(),
                "{case} page {page}"
            );
        }
    }
}

#[test]
fn pages_that_lose_no_row_are_copied() {
    let folder = Folder::new("pages");
    folder.write("a.parquet", &rows(9000), &options("a.parquet", Codec::Zstd));
    let gone = (4000..4003).map(|row| Some(key(row)));
    folder.delete(
        "a.parquet",
        "b.parquet",
        gone.collect(),
        &options("b.parquet", Codec::Zstd),
    );
    let pages = |name: &str, leaf: usize| {
        let reader = folder.open(name);
        let indexes = reader.metadata().page_index_for_row_group(0);
        let bytes = std::fs::read(folder.0.join(name)).unwrap();
        let locations = indexes.offset_index(leaf).unwrap().page_locations().clone();
        let page = |at: &parquet::file::page_index::offset_index::PageLocation| {
            let begin = at.offset as usize;
            bytes[begin..begin + at.compressed_page_size as usize].to_vec()
        };
        locations.iter().map(page).collect::<Vec<_>>()
    };
    for (leaf, name) in [(1, "key"), (3, "n"), (5, "many"), (10, "at")] {
        let (before, after) = (pages("a.parquet", leaf), pages("b.parquet", leaf));
        assert!(before.len() > 3, "{name}");
        let other = before
            .iter()
            .zip(&after)
            .filter(|(one, other)| one != other);
        assert_eq!((before.len(), other.count()), (after.len(), 1), "{name}");
    }
}

/// The Parquet crate panics on some damaged files, which callers catch; what cuts pages does not.
#[test]
fn damaged_pages_are_errors() {
    let folder = Folder::new("damage");
    folder.write(
        "a.parquet",
        &rows(3000),
        &options("a.parquet", Codec::Uncompressed),
    );
    let content = std::fs::read(folder.0.join("a.parquet")).unwrap();
    let places = Arc::new(Mutex::new(Vec::new()));
    let panics = Arc::clone(&places);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string);
        panics.lock().unwrap().extend(place);
    }));
    let mut failed = 0;
    for at in (4..content.len()).step_by(content.len() / 200) {
        let mut damaged = content.clone();
        damaged[at] ^= 0x55;
        std::fs::write(folder.0.join("d.parquet"), damaged).unwrap();
        let gone: StringArray = (0..3000).step_by(50).map(|row| Some(key(row))).collect();
        let read = folder.read("d.parquet", gone);
        let form = options("b.parquet", Codec::Uncompressed);
        let rewrite = || rewrite_base_file("b.parquet", read, Rewrite::default(), &form);
        let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(rewrite));
        failed += usize::from(!matches!(written, Ok(Ok(_))));
        let _ = std::fs::remove_file(folder.0.join("b.parquet"));
    }
    std::panic::set_hook(before);
    assert!(failed > 10, "{failed}");
    let places = places.lock().unwrap();
    let own = places.iter().filter(|place| !place.contains("parquet-"));
    assert_eq!(own.count(), 0, "{places:?}");
}
