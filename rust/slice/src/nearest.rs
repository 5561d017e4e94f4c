//! Nearest neighbours: the rows of a batch whose VECTOR is nearest to a given one.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, FixedSizeListArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int8Type};

use crate::error::{Result, SliceError};

/// How far one vector is from another; less is nearer. Hudi's `hudi_vector_search` measures so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// The length of the difference.
    L2,
    /// One less the cosine of the angle; 1 where one of them has no length.
    Cosine,
    /// The dot product, negated.
    Dot,
}

/// A row of a batch, and how far its vector is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Number of the row.
    pub row: usize,
    /// Distance.
    pub distance: f64,
}

impl Eq for Neighbour {}

impl PartialOrd for Neighbour {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Neighbour {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_distance = self.distance.total_cmp(&other.distance);
        by_distance.then(self.row.cmp(&other.row))
    }
}

/// The `k` nearest rows, nearest first. Rows without a vector, and those not nearer than `within`,
/// are left out.
///
/// # Errors
/// The column holds no vectors of the query's length.
pub fn nearest(
    column: &ArrayRef,
    query: &[f64],
    metric: Metric,
    k: usize,
    within: Option<f64>,
) -> Result<Vec<Neighbour>> {
    let unlike = || {
        SliceError::Schema(format!(
            "a vector of {} numbers has no distance to one of type {}",
            query.len(),
            column.data_type()
        ))
    };
    let list = column.as_fixed_size_list_opt().ok_or_else(unlike)?;
    if list.value_length() as usize != query.len() {
        return Err(unlike());
    }
    let search = Search {
        query,
        metric,
        length: dot(query, query).sqrt(),
        k,
        within,
    };
    Ok(match list.values().data_type() {
        DataType::Float32 => search.run::<Float32Type>(list, f64::from),
        DataType::Float64 => search.run::<Float64Type>(list, |value| value),
        DataType::Int8 => search.run::<Int8Type>(list, f64::from),
        _ => return Err(unlike()),
    })
}

struct Search<'a> {
    query: &'a [f64],
    metric: Metric,
    length: f64,
    k: usize,
    within: Option<f64>,
}

impl Search<'_> {
    fn run<T: ArrowPrimitiveType>(
        &self,
        list: &FixedSizeListArray,
        widen: impl Fn(T::Native) -> f64,
    ) -> Vec<Neighbour> {
        let values = list.values().as_primitive::<T>().values();
        // The farthest of those that are kept is on top.
        let mut kept: BinaryHeap<Neighbour> = BinaryHeap::with_capacity(self.k.min(list.len()) + 1);
        let mut vector = vec![0.0; self.query.len()];
        for (row, numbers) in values.chunks_exact(self.query.len()).enumerate() {
            if list.is_null(row) {
                continue;
            }
            for (wide, number) in vector.iter_mut().zip(numbers) {
                *wide = widen(*number);
            }
            let found = Neighbour {
                row,
                distance: self.distance(&vector),
            };
            let beyond = |within: f64| found.distance.total_cmp(&within) != Ordering::Less;
            if self.within.is_some_and(beyond) {
                continue;
            }
            if kept.len() < self.k {
                kept.push(found);
            } else if kept.peek().is_some_and(|farthest| found < *farthest) {
                kept.pop();
                kept.push(found);
            }
        }
        kept.into_sorted_vec()
    }

    fn distance(&self, vector: &[f64]) -> f64 {
        let distance = match self.metric {
            Metric::L2 => {
                let pairs = vector.iter().zip(self.query);
                pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
            }
            Metric::Dot => -dot(vector, self.query),
            Metric::Cosine => match dot(vector, vector).sqrt() * self.length {
                0.0 => 1.0,
                lengths => {
                    let distance = 1.0 - dot(vector, self.query) / lengths;
                    if distance.is_nan() {
                        distance
                    } else {
                        distance.clamp(0.0, 2.0)
                    }
                }
            },
        };
        // One NaN, beyond all numbers.
        if distance.is_nan() {
            f64::NAN
        } else {
            distance
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float32Array, Int8Array};
    use arrow::buffer::NullBuffer;
    use arrow::datatypes::Field;

    use super::*;

    fn vectors(values: ArrayRef, size: i32, valid: Vec<bool>) -> ArrayRef {
        let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let nulls = Some(NullBuffer::from(valid));
        Arc::new(FixedSizeListArray::new(item, size, values, nulls))
    }

    fn rows(found: &[Neighbour]) -> Vec<(usize, f64)> {
        found.iter().map(|each| (each.row, each.distance)).collect()
    }

    #[test]
    fn the_nearest_rows_come_first_and_nulls_never() {
        let values =
            Float32Array::from(vec![3.0, 4.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, f32::NAN, 0.0]);
        let valid = vec![true, false, true, true, true];
        let column = vectors(Arc::new(values), 2, valid);
        let all = nearest(&column, &[0.0, 0.0], Metric::L2, 9, None).unwrap();
        assert_eq!(rows(&all[..3]), [(2, 1.0), (3, 1.0), (0, 5.0)]);
        assert!(all[3].distance.is_nan());
        let one = nearest(&column, &[0.0, 0.0], Metric::L2, 1, None).unwrap();
        assert_eq!(rows(&one), [(2, 1.0)]);
        let within = nearest(&column, &[0.0, 0.0], Metric::L2, 9, Some(1.0)).unwrap();
        assert!(within.is_empty());
        let slice = column.slice(2, 2);
        let found = nearest(&slice, &[0.0, 1.0], Metric::Dot, 1, None).unwrap();
        assert_eq!(rows(&found), [(0, -1.0)]);
    }

    #[test]
    fn cosine_of_a_vector_without_length_is_one() {
        let values: ArrayRef = Arc::new(Int8Array::from(vec![0, 0, -2, 0, 5, 0]));
        let column = vectors(values, 2, vec![true; 3]);
        let found = nearest(&column, &[1.0, 0.0], Metric::Cosine, 3, None).unwrap();
        assert_eq!(rows(&found), [(2, 0.0), (0, 1.0), (1, 2.0)]);
        assert!(nearest(&column, &[1.0], Metric::Cosine, 3, None).is_err());
    }
}
