//! Statistics of a base file: by its footer where that says enough, else by the values.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field, SchemaRef};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use pyhudi_slice::{
    BootstrapSource, Result, SliceError, adapt_column, base_rows, base_schema, has_old_calendar,
    nested, parquet_footer, same_order,
};
use pyhudi_store::Store;

use super::bounds::Bound;
use super::column_bounds::{BATCH_ROWS, Stats, roots};

/// What the values of the columns are. Floating-point numbers are always read: the bounds of a
/// footer leave NaN out.
pub(super) fn base_stats(store: &Store, path: &str, columns: &SchemaRef) -> Result<Vec<Stats>> {
    let Some(arrow) = parquet_footer(store, path)? else {
        return value_stats(store, path, columns);
    };
    let mut found = Vec::with_capacity(columns.fields().len());
    let mut unknown = vec![false; columns.fields().len()];
    for (field, unknown) in columns.fields().iter().zip(&mut unknown) {
        let mut stats = Stats {
            values: arrow.metadata().file_metadata().num_rows(),
            ..Stats::default()
        };
        let leaf = leaf_of(&arrow, field.name());
        if let Some(leaf) = leaf {
            (stats.size, stats.uncompressed) = sizes(&arrow, leaf);
        }
        match footer_bounds(&arrow, path, leaf, field)? {
            Some((min, max, nulls)) => (stats.min, stats.max, stats.nulls) = (min, max, nulls),
            None => *unknown = true,
        }
        found.push(stats);
    }
    if unknown.contains(&true) {
        look_at_values(store, path, columns, &unknown, &mut found)?;
    }
    Ok(found)
}

/// The same of a skeleton: of columns that it does not have what its source has, or the source's folder
/// tells.
pub(super) fn skeleton_stats(
    store: &Store,
    path: &str,
    source: &BootstrapSource,
    columns: &SchemaRef,
) -> Result<Vec<Stats>> {
    let own = base_schema(store, path)?;
    let theirs = base_schema(&source.store, &source.path)?;
    let of_own = base_stats(store, path, columns)?;
    let of_theirs = base_stats(&source.store, &source.path, columns)?;
    let mut found = Vec::with_capacity(of_own.len());
    for ((field, mine), other) in columns.fields().iter().zip(of_own).zip(of_theirs) {
        let stored = nested(&theirs.arrow, field.name()).is_ok();
        found.push(match source.value(field.name()) {
            _ if nested(&own.arrow, field.name()).is_ok() => mine,
            _ if stored => other,
            Some((_, value)) => of_value(&adapt_column(&value, field)?, own.rows),
            None => mine,
        });
    }
    Ok(found)
}

/// A column with one value in all rows.
fn of_value(value: &ArrayRef, rows: i64) -> Stats {
    let bound = Bound::at(value, 0);
    Stats {
        min: bound.clone(),
        max: bound,
        nulls: if value.is_null(0) { rows } else { 0 },
        values: rows,
        ..Stats::default()
    }
}

/// What the values of the columns are, without the footer.
pub(super) fn value_stats(store: &Store, path: &str, columns: &SchemaRef) -> Result<Vec<Stats>> {
    let count = columns.fields().len();
    let mut found: Vec<Stats> = (0..count).map(|_| Stats::default()).collect();
    look_at_values(store, path, columns, &vec![true; count], &mut found)?;
    Ok(found)
}

/// The number of the Parquet column that holds a plain column or a field of structs.
fn leaf_of(arrow: &ArrowReaderMetadata, name: &str) -> Option<usize> {
    let leaves = arrow.parquet_schema().columns();
    let plain = leaves.iter().position(|leaf| leaf.path().parts() == [name]);
    let field = || leaves.iter().position(|leaf| leaf.path().string() == name);
    plain.or_else(field).filter(|leaf| {
        leaves
            .get(*leaf)
            .is_some_and(|leaf| leaf.max_rep_level() == 0)
    })
}

/// Bytes of a column, stored and uncompressed.
fn sizes(arrow: &ArrowReaderMetadata, leaf: usize) -> (i64, i64) {
    let groups = arrow.metadata().row_groups().iter();
    let chunks = groups.filter_map(|group| group.columns().get(leaf));
    chunks.fold((0, 0), |(size, uncompressed), chunk| {
        (
            size + chunk.compressed_size(),
            uncompressed + chunk.uncompressed_size(),
        )
    })
}

/// Whether the least and greatest values that a footer has of a column are those of its values as
/// they are read.
fn has_true_bounds(
    arrow: &ArrowReaderMetadata,
    leaf: usize,
    stored: &Field,
    field: &Field,
) -> bool {
    let mut groups = arrow.metadata().row_groups().iter();
    // The old fields order text as signed bytes.
    let ordered = groups.all(|group| {
        let statistics = group
            .columns()
            .get(leaf)
            .and_then(|chunk| chunk.statistics());
        statistics.is_none_or(|found| !found.is_min_max_deprecated())
    });
    let is_time = matches!(
        field.data_type(),
        DataType::Date32 | DataType::Timestamp(..)
    );
    ordered
        && same_order(stored.data_type(), field.data_type())
        && !(is_time && has_old_calendar(arrow.metadata()))
}

type FooterBounds = Option<(Option<Bound>, Option<Bound>, i64)>;

fn footer_bounds(
    arrow: &ArrowReaderMetadata,
    path: &str,
    leaf: Option<usize>,
    field: &Field,
) -> Result<FooterBounds> {
    let (Some(leaf), Ok(stored)) = (leaf, nested(arrow.schema(), field.name())) else {
        return Ok(None);
    };
    if field.data_type().is_floating() || !has_true_bounds(arrow, leaf, &stored, field) {
        return Ok(None);
    }
    let damaged = |error| SliceError::parquet(path, None, error);
    let statistics = StatisticsConverter::from_column_index(leaf, &stored, arrow.parquet_schema())
        .map_err(damaged)?
        .with_missing_null_counts_as_zero(false);
    let groups = arrow.metadata().row_groups();
    let mins = statistics.row_group_mins(groups).map_err(damaged)?;
    let maxes = statistics.row_group_maxes(groups).map_err(damaged)?;
    let nulls = statistics.row_group_null_counts(groups).map_err(damaged)?;
    let nullable = Field::new(field.name(), field.data_type().clone(), true);
    let (mins, maxes) = (
        adapt_column(&mins, &nullable)?,
        adapt_column(&maxes, &nullable)?,
    );
    let (mut min, mut max, mut all_nulls) = (None, None, 0);
    for (row, group) in groups.iter().enumerate() {
        if !nulls.is_valid(row) {
            return Ok(None);
        }
        let (low, high) = (Bound::at(&mins, row), Bound::at(&maxes, row));
        let has_values = (nulls.value(row) as i64) < group.num_rows();
        if has_values && (low.is_none() || high.is_none()) {
            return Ok(None);
        }
        all_nulls += nulls.value(row) as i64;
        min = Bound::least(min, low);
        max = Bound::greatest(max, high);
    }
    Ok(Some((min, max, all_nulls)))
}

fn look_at_values(
    store: &Store,
    path: &str,
    columns: &SchemaRef,
    unknown: &[bool],
    found: &mut [Stats],
) -> Result<()> {
    let fields = columns.fields().iter();
    let mut wanted: Vec<(&Field, &mut Stats)> = fields
        .zip(found)
        .zip(unknown)
        .filter_map(|((field, stats), unknown)| unknown.then_some((field.as_ref(), stats)))
        .collect();
    for (_, stats) in &mut wanted {
        stats.values = 0;
    }
    let columns = roots(wanted.iter().map(|(field, _)| field.name().as_str()));
    for batch in base_rows(store, path, &columns, BATCH_ROWS)? {
        let batch = batch?;
        for (field, stats) in &mut wanted {
            stats.add_batch(&batch, field)?;
        }
    }
    Ok(())
}
