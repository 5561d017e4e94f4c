//! How the base file of a slice is opened: which of its rows need not be decoded.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::{BaseRead, BaseReader, Groups, is_parquet};
use crate::error::Result;
use crate::log_map::MapKind;
use crate::log_side::Shape;
use crate::names::select;
use crate::request::SliceRead;
use crate::row_test::{RowTest, SharedMap, is_testable};

/// What a base file is opened for.
#[derive(Clone, Copy)]
pub(crate) enum Opening<'a> {
    /// To be given out as it is.
    Plain,
    /// To stream past the log side.
    Merged(&'a Arc<Merging>, &'a SharedMap),
    /// To be split on disk.
    Spilled(&'a Merging),
}

/// How the records of a slice are merged; known when its log blocks are.
pub(crate) struct Merging {
    pub(crate) shape: Shape,
    pub(crate) kind: MapKind,
}

impl Opening<'_> {
    /// None where there is nothing to merge.
    pub(crate) fn merging(&self) -> Option<&Merging> {
        match self {
            Self::Plain => None,
            Self::Merged(merging, _) => Some(merging),
            Self::Spilled(merging) => Some(merging),
        }
    }

    pub(crate) fn by_position(&self) -> bool {
        self.merging().is_some_and(|one| one.shape.by_position)
    }

    /// Whether no base row that fails the filters can keep a log record from being given out.
    fn log_always_wins(&self) -> bool {
        self.merging()
            .is_none_or(|one| matches!(one.kind, MapKind::Keys(_)) && !one.shape.spec.compares())
    }
}

/// The base file with these columns, of all row groups or of some; none where the slice has none.
pub(crate) fn open_base(
    read: &SliceRead,
    columns: &[String],
    opening: Opening<'_>,
    groups: Option<Groups>,
) -> Result<Option<BaseReader>> {
    let Some(path) = &read.base else {
        return Ok(None);
    };
    // A log record takes the place of the first row of its key, so the other rows of the key stay
    // only if that one is read, too.
    let (filters, end_filters) = match opening.merging() {
        None => (read.filters.clone(), Vec::new()),
        Some(_) if !opening.log_always_wins() => (read.key_filters(), Vec::new()),
        Some(_) if opening.by_position() => (read.filters.clone(), Vec::new()),
        Some(_) => (read.key_filters(), read.filters.clone()),
    };
    // The rows of a skeleton are those of its source by their number.
    let has_footer = read.bootstrap.is_none() && is_parquet(path);
    let lookup = read.lookup.as_ref().filter(|_| has_footer);
    let groups = match lookup {
        Some(lookup) => Some(lookup.groups(&read.store, path)?),
        None => groups,
    };
    let asked = BaseRead {
        columns,
        filters: &filters,
        end_filters: &end_filters,
        batch_rows: read.batch_rows,
        row_numbers: opening.by_position(),
        two_threads: read.two_threads,
        part: read.base_part.clone(),
        test: row_test(read, opening)?,
        map: read.evolution.as_ref().and_then(|e| e.at(&e.base)),
        groups,
        lookup,
    };
    BaseReader::open(&read.store, path, read.bootstrap.as_ref(), asked).map(Some)
}

/// Tests rows before all their columns are decoded, where there is something to be gained.
fn row_test(read: &SliceRead, opening: Opening<'_>) -> Result<Option<RowTest>> {
    let (mut filters, mut of_key) = (read.filters.clone(), read.key_filters());
    filters.retain(|filter| is_testable(filter, &read.schema));
    of_key.retain(|filter| is_testable(filter, &read.schema));
    if filters.is_empty() {
        return Ok(None);
    }
    let log = match opening {
        Opening::Plain => None,
        _ if opening.by_position() && opening.log_always_wins() => None,
        _ if !of_key.is_empty() => {
            filters = of_key;
            None
        }
        Opening::Merged(merging, map) if !opening.by_position() => {
            Some((Arc::clone(map), merging.shape.columns.keys.clone()))
        }
        _ => return Ok(None),
    };
    let mut names: Vec<String> = filters.iter().map(|f| f.column.clone()).collect();
    if let Some((_, keys)) = &log {
        names.extend(key_roots(&keys.fields, &read.schema));
    }
    names.sort();
    names.dedup();
    Ok(Some(RowTest {
        filters,
        columns: select(&read.schema, &names)?,
        log,
    }))
}

pub(super) fn key_roots<'a>(
    fields: &'a [String],
    schema: &'a SchemaRef,
) -> impl Iterator<Item = String> + use<'a> {
    fields.iter().map(|path| match path.split_once('.') {
        Some((root, _)) if schema.index_of(path).is_err() => root.to_owned(),
        _ => path.clone(),
    })
}
