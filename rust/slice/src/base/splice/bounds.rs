//! Least and greatest values of pages and columns of which some values are gone: as they were,
//! unless a value that was one of them is gone.

use std::cmp::Ordering;
use std::ops::Range;

use parquet::basic::{BoundaryOrder, LogicalType, SortOrder, Type};
use parquet::data_type::AsBytes;
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::schema::types::ColumnDescriptor;

use super::values::Values;

/// The least and the greatest value.
pub(super) type Bounds = (Vec<u8>, Vec<u8>);

/// How values are compared.
#[derive(Clone, Copy)]
pub(super) enum Order {
    Bytes,
    /// The first byte has a sign: decimals of a fixed length.
    SignedBytes,
    Int32,
    Int64,
    Float,
    Double,
}

impl Order {
    /// None where it is not known.
    pub(super) fn of(column: &ColumnDescriptor) -> Option<Self> {
        if matches!(column.logical_type_ref(), Some(LogicalType::Float16)) {
            return None;
        }
        match (column.physical_type(), column.sort_order()) {
            (Type::FLOAT, _) => Some(Self::Float),
            (Type::DOUBLE, _) => Some(Self::Double),
            (Type::INT32, SortOrder::SIGNED) => Some(Self::Int32),
            (Type::INT64, SortOrder::SIGNED) => Some(Self::Int64),
            (Type::BOOLEAN, SortOrder::UNSIGNED | SortOrder::SIGNED) => Some(Self::Bytes),
            (Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY, SortOrder::UNSIGNED) => {
                Some(Self::Bytes)
            }
            (Type::FIXED_LEN_BYTE_ARRAY, SortOrder::SIGNED) => Some(Self::SignedBytes),
            _ => None,
        }
    }

    fn compare(self, one: &[u8], other: &[u8]) -> Ordering {
        match self {
            Self::Bytes => one.cmp(other),
            Self::SignedBytes => {
                let sign = |bytes: &[u8]| bytes.first().map(|byte| *byte as i8);
                sign(one).cmp(&sign(other)).then_with(|| one.cmp(other))
            }
            Self::Int32 => number(one, i32::from_le_bytes).cmp(&number(other, i32::from_le_bytes)),
            Self::Int64 => number(one, i64::from_le_bytes).cmp(&number(other, i64::from_le_bytes)),
            Self::Float => {
                let value = |bytes| number(bytes, f32::from_le_bytes).unwrap_or_default();
                value(one).total_cmp(&value(other))
            }
            Self::Double => {
                let value = |bytes| number(bytes, f64::from_le_bytes).unwrap_or_default();
                value(one).total_cmp(&value(other))
            }
        }
    }

    /// The lesser one, or with [`Ordering::Greater`] the greater one.
    fn choose<'a>(self, wanted: Ordering, one: &'a [u8], other: &'a [u8]) -> &'a [u8] {
        if self.compare(one, other) == wanted {
            one
        } else {
            other
        }
    }

    /// A bound as the order of the type asks for: both zeros are in its range.
    fn rounded(self, wanted: Ordering, bound: &[u8]) -> Vec<u8> {
        let negative = wanted == Ordering::Less;
        match self {
            Self::Float if number(bound, f32::from_le_bytes) == Some(0.0) => {
                let zero: f32 = if negative { -0.0 } else { 0.0 };
                zero.to_le_bytes().to_vec()
            }
            Self::Double if number(bound, f64::from_le_bytes) == Some(0.0) => {
                let zero: f64 = if negative { -0.0 } else { 0.0 };
                zero.to_le_bytes().to_vec()
            }
            _ => bound.to_vec(),
        }
    }
}

fn number<const N: usize, T>(bytes: &[u8], of: fn([u8; N]) -> T) -> Option<T> {
    bytes.try_into().ok().map(of)
}

/// Whether a value of FLOAT or DOUBLE is no number.
pub(super) fn is_nan(value: &[u8]) -> bool {
    number(value, f32::from_le_bytes).is_some_and(f32::is_nan)
        || number(value, f64::from_le_bytes).is_some_and(f64::is_nan)
}

/// Those of a page; none where it has none.
pub(super) fn of_page(index: &ColumnIndexMetaData, page: usize) -> Option<Bounds> {
    if page as u64 >= index.num_pages() {
        return None;
    }
    let bytes = |bounds: (&[u8], &[u8])| (bounds.0.to_vec(), bounds.1.to_vec());
    macro_rules! of {
        ($pages:expr) => {
            bytes((
                $pages.min_value(page)?.as_bytes(),
                $pages.max_value(page)?.as_bytes(),
            ))
        };
    }
    Some(match index {
        ColumnIndexMetaData::BOOLEAN(pages) => of!(pages),
        ColumnIndexMetaData::INT32(pages) => of!(pages),
        ColumnIndexMetaData::INT64(pages) => of!(pages),
        ColumnIndexMetaData::INT96(pages) => of!(pages),
        ColumnIndexMetaData::FLOAT(pages) => of!(pages),
        ColumnIndexMetaData::DOUBLE(pages) => of!(pages),
        ColumnIndexMetaData::BYTE_ARRAY(pages)
        | ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(pages) => of!(pages),
    })
}

/// The bounds of the values that stay.
pub(super) fn narrowed(
    bounds: Bounds,
    values: &Values<'_>,
    stay: &[Range<usize>],
    gone: &[Range<usize>],
    order: Order,
) -> Option<Bounds> {
    let any = |runs: &[Range<usize>], value: &[u8]| {
        let mut all = runs.iter().flat_map(Range::clone);
        all.any(|at| values.value(at) == Some(value))
    };
    let narrow = |bound: Vec<u8>, wanted: Ordering| {
        if !any(gone, &bound) || any(stay, &bound) {
            return Some(bound);
        }
        let all = stay.iter().flat_map(Range::clone);
        let all = all.filter_map(|at| values.value(at));
        let found = all.reduce(|one, other| order.choose(wanted, one, other))?;
        Some(order.rounded(wanted, found))
    };
    if stay.iter().all(Range::is_empty) {
        return None;
    }
    Some((
        narrow(bounds.0, Ordering::Less)?,
        narrow(bounds.1, Ordering::Greater)?,
    ))
}

/// Bytes from which on a bound may be the beginning of a longer value.
const CUT_SHORT: usize = 16;

/// Whether a bound may be the beginning of a longer value that is gone.
///
/// An upper bound that is cut short ends with a greater byte or character than the value has there.
pub(super) fn are_cut_short(bounds: &Bounds, values: &Values<'_>, gone: &[Range<usize>]) -> bool {
    [&bounds.0, &bounds.1]
        .into_iter()
        .filter(|bound| bound.len() >= CUT_SHORT)
        .any(|bound| {
            let begin = bound.get(..bound.len() / 2).unwrap_or_default();
            let mut all = gone.iter().flat_map(Range::clone);
            all.any(|at| {
                let value = values.value(at).unwrap_or_default();
                value.len() > bound.len() && value.starts_with(begin)
            })
        })
}

/// Whether bounds of a column were not those of its pages, and some page lost a bound.
pub(super) fn may_be_of_removed(
    (least, greatest): (Option<&[u8]>, Option<&[u8]>),
    before: &[Option<Bounds>],
    after: &[Option<Bounds>],
    order: Order,
) -> bool {
    let differs = |bound: Option<&[u8]>, wanted| {
        let was = of_pages(before, wanted, order);
        bound.is_some() && was.as_deref() != bound && was != of_pages(after, wanted, order)
    };
    differs(least, Ordering::Less) || differs(greatest, Ordering::Greater)
}

/// The least or the greatest bound of the pages.
fn of_pages(bounds: &[Option<Bounds>], wanted: Ordering, order: Order) -> Option<Vec<u8>> {
    let each = bounds
        .iter()
        .flatten()
        .map(|(least, greatest)| match wanted {
            Ordering::Less => least.as_slice(),
            _ => greatest.as_slice(),
        });
    let found = each.reduce(|one, other| order.choose(wanted, one, other));
    found.map(<[u8]>::to_vec)
}

/// Bounds of a column: as they were where they were not those of its pages.
pub(super) fn of_column(
    (least, greatest): (Option<&[u8]>, Option<&[u8]>),
    before: &[Option<Bounds>],
    after: &[Option<Bounds>],
    order: Order,
) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let bound = |bound: Option<&[u8]>, wanted| {
        let bound = bound?;
        let now = of_pages(after, wanted, order)?;
        let was = of_pages(before, wanted, order).is_some_and(|was| was == bound);
        Some(if was { now } else { bound.to_vec() })
    };
    (
        bound(least, Ordering::Less),
        bound(greatest, Ordering::Greater),
    )
}

/// How the bounds of pages follow each other.
pub(super) fn boundary_order(pages: &[Option<Bounds>], order: Order) -> BoundaryOrder {
    let sorted = |unwanted: Ordering| {
        let pages: Vec<&Bounds> = pages.iter().flatten().collect();
        let mut pairs = pages
            .windows(2)
            .filter_map(|pair| Some((pair.first()?, pair.get(1)?)));
        pairs.all(|(one, next)| {
            order.compare(&one.0, &next.0) != unwanted && order.compare(&one.1, &next.1) != unwanted
        })
    };
    if sorted(Ordering::Greater) {
        BoundaryOrder::ASCENDING
    } else if sorted(Ordering::Less) {
        BoundaryOrder::DESCENDING
    } else {
        BoundaryOrder::UNORDERED
    }
}

/// Statistics with other bounds and counts.
pub(super) fn statistics(
    old: &Statistics,
    bounds: &(Option<Vec<u8>>, Option<Vec<u8>>),
    nulls: Option<u64>,
    nans: Option<u64>,
) -> Statistics {
    let bounds = (bounds.0.as_deref(), bounds.1.as_deref());
    let flags = (
        old.is_min_max_deprecated(),
        old.is_min_max_backwards_compatible(),
    );
    macro_rules! with {
        ($old:expr, $value:expr) => {
            renewed($old, bounds, nulls, flags, $value)
                .with_nan_count(nans)
                .into()
        };
    }
    match old {
        Statistics::Boolean(old) => with!(old, |bytes| Some(bytes.first()? != &0)),
        Statistics::Int32(old) => with!(old, |bytes| number(bytes, i32::from_le_bytes)),
        Statistics::Int64(old) => with!(old, |bytes| number(bytes, i64::from_le_bytes)),
        Statistics::Int96(old) => with!(old, |_| None),
        Statistics::Float(old) => with!(old, |bytes| number(bytes, f32::from_le_bytes)),
        Statistics::Double(old) => with!(old, |bytes| number(bytes, f64::from_le_bytes)),
        Statistics::ByteArray(old) => with!(old, |bytes| Some(bytes.to_vec().into())),
        Statistics::FixedLenByteArray(old) => with!(old, |bytes| Some(bytes.to_vec().into())),
    }
}

fn renewed<T>(
    old: &ValueStatistics<T>,
    (least, greatest): (Option<&[u8]>, Option<&[u8]>),
    nulls: Option<u64>,
    (deprecated, compatible): (bool, bool),
    value: impl Fn(&[u8]) -> Option<T>,
) -> ValueStatistics<T> {
    let (least, greatest) = (least.and_then(&value), greatest.and_then(&value));
    ValueStatistics::new(least, greatest, None, nulls, deprecated)
        .with_min_is_exact(old.min_is_exact())
        .with_max_is_exact(old.max_is_exact())
        .with_backwards_compatible_min_max(compatible)
}
