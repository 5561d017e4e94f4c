//! One commit by hudi-rs: `bench-hudi-rs TYPE VERB TABLE INPUT [CODEC]`, for
//! `benches/python/writes.py`.
//!
//! Prints as JSON the seconds from the input file to the commit, and the peak memory in bytes.

use std::error::Error;
use std::fs::File;
use std::time::Instant;

use arrow::array::{Array, AsArray, RecordBatch};
use hudi_core::config::table::TableTypeValue;
use hudi_core::table::{HoodieKey, Table};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const KEY: &str = "id";
const PARTITION: &str = "city";
const ORDERING: &str = "ts";
const CODEC: &str = "hoodie.parquet.compression.codec";

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, verb, folder, input, codec @ ..] = arguments.as_slice() else {
        return Err("usage: bench-hudi-rs cow|mor VERB TABLE INPUT [CODEC]".into());
    };
    let options = codec.first().map(|codec| (CODEC, codec.as_str()));
    let start = Instant::now();
    if verb == "bulk_insert" {
        create(kind, folder).await?;
    }
    let mut table = Table::new_with_options(folder, options).await?;
    match verb.as_str() {
        "bulk_insert" => table.append(rows(input)?).await?,
        "upsert" => table.upsert(rows(input)?).await?,
        "delete" => table.delete_keys(keys(&rows(input)?)?).await?,
        other => return Err(format!("unknown verb {other}").into()),
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("{{\"seconds\": {seconds}, \"peak\": {}}}", peak()?);
    Ok(())
}

async fn create(kind: &str, folder: &str) -> Result<()> {
    let kind = match kind {
        "mor" => TableTypeValue::MergeOnRead,
        _ => TableTypeValue::CopyOnWrite,
    };
    std::fs::create_dir_all(folder)?;
    Table::create(folder)
        .with_table_name("writes")
        .with_table_type(kind)
        .with_record_key_fields([KEY])
        .with_partition_fields([PARTITION])
        .with_ordering_fields([ORDERING])
        .with_hive_style_partitioning(false)
        .with_metadata_table_enabled(false)
        .create()
        .await?;
    Ok(())
}

fn rows(input: &str) -> Result<Vec<RecordBatch>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(input)?)?
        .with_batch_size(65_536)
        .build()?;
    Ok(reader.collect::<std::result::Result<_, _>>()?)
}

fn keys(batches: &[RecordBatch]) -> Result<Vec<HoodieKey>> {
    let mut keys = Vec::new();
    for batch in batches {
        let column = |name| {
            let column = batch.column_by_name(name);
            column.and_then(|column| column.as_string_opt::<i32>())
        };
        let (ids, paths) = (
            column(KEY).ok_or("no key")?,
            column(PARTITION).ok_or("no city")?,
        );
        keys.extend((0..ids.len()).map(|row| HoodieKey {
            record_key: ids.value(row).to_owned(),
            partition_path: paths.value(row).to_owned(),
        }));
    }
    Ok(keys)
}

/// Of this process (`VmHWM`).
fn peak() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: u64 = line
        .ok_or("no VmHWM")?
        .trim()
        .trim_end_matches(" kB")
        .parse()?;
    Ok(kilobytes * 1024)
}
