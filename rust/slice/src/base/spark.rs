//! Which columns of a Parquet file Spark's own reader gives as this crate does.
//!
//! Whatever the two could take differently leaves a column out: nested ones, INT96, another
//! calendar, codecs and encodings that a release of Spark does not support. Hudi's own rules, such as times
//! that are stamped wrong, apply where a file's type is not the table's, which the caller compares.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, RecordBatch, Scalar};
use arrow::compute::kernels::cmp;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::{Compression, Encoding, Type as PhysicalType};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData};
use pyhudi_store::Store;

use super::calendar;
use super::parquet::{Groups, arrow_schema};
use crate::error::Result;

/// The columns that Spark 3.5 and 4.x read from a Parquet base file with the same types and values.
///
/// `told`, one row, has the values that all rows get in its columns, whatever the file
/// says: statistics must show that the file says the same.
///
/// # Errors
/// The file is missing or damaged.
pub fn columns_for_spark(store: &Store, path: &str, told: &RecordBatch) -> Result<Schema> {
    let metadata = Groups::of(store, path, PageIndexPolicy::Skip)?.metadata;
    let schema = arrow_schema(path, &metadata)?;
    let old_calendar = calendar::has_old_calendar(&metadata);
    let leaves = plain_leaves(&metadata);
    let same_but_for_case = |name: &str| {
        let all = schema.fields().iter();
        all.filter(|f| f.name().to_lowercase() == name.to_lowercase())
            .count()
            > 1
    };
    let fields = schema.fields().iter().filter(|field| {
        let is_read = leaves.get(field.name()).is_some_and(|&leaf| {
            let groups = metadata.row_groups().iter();
            let mut chunks = groups.map(|group| group.column(leaf));
            chunks.all(|chunk| is_plain_chunk(chunk) && !may_hide_nan(chunk, &metadata))
        });
        let is_told = told.column_by_name(field.name());
        is_read
            && is_plain(field, old_calendar)
            && !same_but_for_case(field.name())
            && is_told.is_none_or(|value| has_only(field, value, &schema, &metadata))
    });
    Ok(Schema::new(fields.cloned().collect::<Vec<_>>()))
}

/// Top-level columns that are no groups, with the number of their leaf.
fn plain_leaves(metadata: &ParquetMetaData) -> HashMap<String, usize> {
    let leaves = metadata.file_metadata().schema_descr().columns();
    let plain = leaves.iter().enumerate().filter(|(_, leaf)| {
        leaf.path().parts().len() == 1
            && leaf.max_rep_level() == 0
            && leaf.physical_type() != PhysicalType::INT96
    });
    plain
        .map(|(at, leaf)| (leaf.name().to_owned(), at))
        .collect()
}

fn is_plain(field: &Field, old_calendar: bool) -> bool {
    match field.data_type() {
        DataType::Boolean
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Decimal128(..) => true,
        DataType::Date32
        | DataType::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, _) => !old_calendar,
        _ => false,
    }
}

/// Whether all rows have this value, by the statistics of row groups: those are bounds, also where
/// they were cut, so what is equal to both is all that there is.
fn has_only(field: &Field, value: &ArrayRef, schema: &Schema, file: &ParquetMetaData) -> bool {
    let converter =
        StatisticsConverter::try_new(field.name(), schema, file.file_metadata().schema_descr());
    let Ok(converter) = converter.map(|found| found.with_missing_null_counts_as_zero(false)) else {
        return false;
    };
    // Bounds of fractions pass over NaN.
    if field.data_type() != value.data_type() || value.data_type().is_floating() {
        return false;
    }
    let groups = file.row_groups();
    let Ok(nulls) = converter.row_group_null_counts(groups) else {
        return false;
    };
    if value.is_null(0) {
        let rows = groups.iter().map(|group| group.num_rows() as u64);
        return nulls
            .iter()
            .zip(rows)
            .all(|(nulls, rows)| nulls == Some(rows));
    }
    let only = |bounds: ArrayRef| {
        let equal = cmp::eq(&bounds, &Scalar::new(value.slice(0, 1)));
        equal.is_ok_and(|equal| equal.iter().all(|is_equal| is_equal == Some(true)))
    };
    nulls.iter().all(|nulls| nulls == Some(0))
        && converter.row_group_mins(groups).is_ok_and(only)
        && converter.row_group_maxes(groups).is_ok_and(only)
}

fn is_plain_chunk(chunk: &ColumnChunkMetaData) -> bool {
    let is_known = matches!(
        chunk.compression(),
        Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::GZIP(_)
            | Compression::ZSTD(_)
            | Compression::LZ4_RAW
    );
    is_known
        && chunk.encodings().all(|encoding| {
            matches!(
                encoding,
                Encoding::PLAIN
                    | Encoding::RLE
                    | Encoding::PLAIN_DICTIONARY
                    | Encoding::RLE_DICTIONARY
            )
        })
}

/// Whether a filter of Spark's, to which NaN is the greatest, could pass over one: bounds leave it out,
/// but for those of parquet-mr, which then shows that there are none.
fn may_hide_nan(chunk: &ColumnChunkMetaData, file: &ParquetMetaData) -> bool {
    let maker = file.file_metadata().created_by();
    let is_fraction = matches!(
        chunk.column_type(),
        PhysicalType::FLOAT | PhysicalType::DOUBLE
    );
    is_fraction
        && !maker.is_some_and(|maker| maker.starts_with("parquet-mr"))
        && chunk.statistics().is_some_and(|bounds| {
            bounds.nan_count_opt() != Some(0)
                && (bounds.min_bytes_opt().is_some() || bounds.max_bytes_opt().is_some())
        })
}
