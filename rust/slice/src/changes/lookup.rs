//! Rows of a base file found by key.

use std::sync::Arc;

use arrow::array::{RecordBatch, new_null_array};
use arrow::datatypes::{Schema, SchemaRef};
use pyhudi_merge::{Location, RowMatcher};

use super::image::gather;
use super::side::Side;
use super::{Batches, ChangeSpec};
use crate::RECORD_KEY;
use crate::error::Result;

/// The rows of a base file that a change log speaks of, by key.
pub(super) struct Lookup {
    matcher: RowMatcher,
    /// The rows, and one row of nulls at the end.
    rows: Vec<RecordBatch>,
}

impl Lookup {
    pub(super) fn new(batches: Batches, only: RowMatcher, schema: &SchemaRef) -> Result<Self> {
        let fields = schema.fields().iter();
        let nullable: Vec<_> = fields
            .map(|field| field.as_ref().clone().with_nullable(true))
            .collect();
        let schema = Arc::new(Schema::new(nullable));
        let spec = ChangeSpec {
            images: schema.fields().len(),
            schema: Arc::clone(&schema),
            key_fields: vec![RECORD_KEY.to_owned()],
            place: None,
            constants: Vec::new(),
            only: Some(only),
            bucket: None,
            as_json: false,
        };
        let mut matcher = RowMatcher::default();
        let mut rows = Vec::new();
        for batch in batches {
            if let Some(side) = Side::of(&batch?, &spec)? {
                matcher.add(side.keys, None)?;
                rows.push(side.rows);
            }
        }
        let nulls = schema.fields().iter();
        let nulls = nulls.map(|field| new_null_array(field.data_type(), 1));
        rows.push(RecordBatch::try_new(Arc::clone(&schema), nulls.collect())?);
        Ok(Self { matcher, rows })
    }

    pub(super) fn find(&self, key: &str) -> Option<Location> {
        let at = self.matcher.free(key, None).first().copied()?;
        Some(self.matcher.location(at))
    }

    pub(super) fn nothing(&self) -> Location {
        (self.rows.len().saturating_sub(1), 0)
    }

    pub(super) fn gather(&self, rows: &[Location]) -> Result<RecordBatch> {
        gather(&self.rows.iter().collect::<Vec<_>>(), rows)
    }
}
