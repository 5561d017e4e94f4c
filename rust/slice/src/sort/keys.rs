//! Sort keys of rows: bytes that compare as the rows shall stand.
//!
//! Values of any type compare by Arrow's row format, nulls first. On a curve each column is one
//! dimension, and a value's coordinate its rank among a sample of all rows: so columns count alike
//! whatever range their values have, and a frequent value does not crowd out the others.

use std::sync::Arc;

use arrow::array::UInt32Array;
use arrow::array::{Array, ArrayRef, BinaryArray, BinaryBuilder, RecordBatch};
use arrow::compute::take_record_batch;
use arrow::row::{OwnedRow, RowConverter, SortField};

use super::curve::{hilbert, z_order};
use super::{Layout, SortOptions};
use crate::error::{Result, SliceError};

/// Bits of a coordinate: 4096 parts of each column are distinguished.
const BITS: u32 = 12;
const SAMPLE: usize = 1 << 16;

/// Gives the keys of batches.
pub(super) enum Keys {
    Linear(RowConverter, Vec<String>),
    Curve(Layout, Vec<Dimension>),
}

impl Keys {
    /// Along the columns, one after the other.
    pub(super) fn linear(columns: &[String], batch: &RecordBatch) -> Result<Self> {
        let fields = chosen(columns, batch)?
            .iter()
            .map(|column| SortField::new(column.data_type().clone()))
            .collect();
        Ok(Self::Linear(RowConverter::new(fields)?, columns.to_vec()))
    }

    pub(super) fn of(&mut self, batch: &RecordBatch) -> Result<BinaryArray> {
        match self {
            Self::Linear(converter, columns) => {
                let rows = converter.convert_columns(&chosen(columns, batch)?)?;
                Ok(rows.try_into_binary()?)
            }
            Self::Curve(layout, dimensions) => on_curve(*layout, dimensions, batch),
        }
    }
}

/// One column of a curve.
pub(super) struct Dimension {
    column: String,
    converter: RowConverter,
    /// Values of the sample in order, each as often as it was met.
    bounds: Vec<OwnedRow>,
}

impl Dimension {
    fn of(column: &str, sample: &[RecordBatch]) -> Result<Option<Self>> {
        let Some(first) = sample.first() else {
            return Ok(None);
        };
        let kind = named(column, first)?.data_type().clone();
        let converter = RowConverter::new(vec![SortField::new(kind)])?;
        let mut bounds = Vec::new();
        for batch in sample {
            let rows = converter.convert_columns(&[Arc::clone(named(column, batch)?)])?;
            bounds.extend(rows.iter().map(|row| row.owned()));
        }
        bounds.sort_unstable();
        let step = bounds.len().div_ceil((1 << BITS) - 1).max(1);
        let bounds = bounds.into_iter().step_by(step).collect();
        Ok(Some(Self {
            column: column.to_owned(),
            converter,
            bounds,
        }))
    }

    /// The coordinate of each value, spread over all that there are.
    fn ranks(&self, batch: &RecordBatch) -> Result<Vec<u64>> {
        let values = Arc::clone(named(&self.column, batch)?);
        let rows = self.converter.convert_columns(&[values])?;
        let all = self.bounds.len().max(1) as u64;
        let rank = |row| self.bounds.partition_point(|bound| bound.row() < row) as u64;
        Ok(rows
            .iter()
            .map(|row| rank(row) * ((1 << BITS) - 1) / all)
            .collect())
    }
}

fn on_curve(layout: Layout, dimensions: &[Dimension], batch: &RecordBatch) -> Result<BinaryArray> {
    let ranks = dimensions
        .iter()
        .map(|dimension| dimension.ranks(batch))
        .collect::<Result<Vec<_>>>()?;
    let rows = batch.num_rows();
    let bytes = (dimensions.len() * BITS as usize).div_ceil(8);
    let mut keys = BinaryBuilder::with_capacity(rows, rows * bytes);
    let (mut point, mut key) = (Vec::new(), Vec::new());
    let mut ranks: Vec<_> = ranks.into_iter().map(Vec::into_iter).collect();
    for _ in 0..rows {
        point.clear();
        key.clear();
        point.extend(ranks.iter_mut().filter_map(Iterator::next));
        match layout {
            Layout::Hilbert => hilbert(&mut point, BITS, &mut key),
            Layout::Linear | Layout::ZOrder => z_order(&point, BITS, &mut key),
        }
        keys.append_value(&key);
    }
    Ok(keys.finish())
}

/// Rows at even distances out of all that there are, fewer than a fixed number.
pub(super) struct Sample<'a> {
    options: &'a SortOptions,
    step: usize,
    /// Rows to pass over before the next one.
    skip: usize,
    rows: Vec<RecordBatch>,
    count: usize,
}

impl<'a> Sample<'a> {
    pub(super) fn new(options: &'a SortOptions) -> Self {
        Self {
            options,
            step: 1,
            skip: 0,
            rows: Vec::new(),
            count: 0,
        }
    }

    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let taken: UInt32Array = (self.skip..rows)
            .step_by(self.step)
            .map(|row| row as u32)
            .collect();
        let next = self.skip + taken.len() * self.step;
        self.skip = next - rows;
        if !taken.is_empty() {
            self.count += taken.len();
            let at = self
                .options
                .columns
                .iter()
                .map(|name| Ok(batch.schema_ref().index_of(name)?))
                .collect::<Result<Vec<_>>>()?;
            let columns = batch.project(&at)?;
            self.rows.push(take_record_batch(&columns, &taken)?);
        }
        if self.count > SAMPLE {
            self.halve()?;
        }
        Ok(())
    }

    /// Leaves every second row out, and takes half as many from here on.
    fn halve(&mut self) -> Result<()> {
        let mut odd = false;
        let (mut kept, mut count) = (Vec::new(), 0);
        for batch in self.rows.drain(..) {
            let from = usize::from(odd);
            let rows: UInt32Array = (from..batch.num_rows())
                .step_by(2)
                .map(|row| row as u32)
                .collect();
            odd ^= batch.num_rows() % 2 == 1;
            if !rows.is_empty() {
                count += rows.len();
                kept.push(take_record_batch(&batch, &rows)?);
            }
        }
        (self.rows, self.count) = (kept, count);
        self.step *= 2;
        Ok(())
    }

    /// The keys by what was met; None for no rows.
    pub(super) fn keys(self) -> Result<Option<Keys>> {
        let mut dimensions = Vec::new();
        for column in &self.options.columns {
            match Dimension::of(column, &self.rows)? {
                Some(dimension) => dimensions.push(dimension),
                None => return Ok(None),
            }
        }
        Ok(Some(Keys::Curve(self.options.layout, dimensions)))
    }
}

fn chosen(columns: &[String], batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    columns
        .iter()
        .map(|name| named(name, batch).map(Arc::clone))
        .collect()
}

fn named<'a>(column: &str, batch: &'a RecordBatch) -> Result<&'a ArrayRef> {
    batch
        .column_by_name(column)
        .ok_or_else(|| SliceError::Schema(format!("there is no column {column} to sort by")))
}
