//! Which columns are read at each place of a slice read.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use crate::error::Result;
use crate::names::select;
use crate::request::SliceRead;
use pyhudi_keys::{RecordKeys, text_field};

/// A row is a delete when this column is true.
pub(crate) const IS_DELETED: &str = "_hoodie_is_deleted";
/// The operation of a change log.
pub(crate) const OPERATION: &str = "_hoodie_operation";

/// The columns read at each place, and how a key is made. Each list starts with the ones before it.
pub(crate) struct Columns {
    /// Given out.
    pub(crate) out: SchemaRef,
    /// Of the rows that are merged: `out`, and what a custom merger uses.
    pub(crate) merged: SchemaRef,
    /// Read from base files when there is something to merge.
    pub(crate) base: SchemaRef,
    /// Read from log blocks.
    pub(crate) log: SchemaRef,
    pub(crate) keys: RecordKeys,
}

impl Columns {
    /// `by_position`: records are identified by their rows in the base file, so no key is read.
    pub(crate) fn of(read: &SliceRead, by_position: bool) -> Result<Self> {
        let schema = &read.schema;
        let root = |path: &String| match path.split_once('.') {
            Some((root, _)) if schema.index_of(path).is_err() => root.to_owned(),
            _ => path.clone(),
        };
        let mut names = read.columns.clone();
        let out = select(schema, &names)?;
        if let Some(merger) = &read.merge.merger {
            push_new(&mut names, merger.columns.iter().cloned());
        }
        let merged = select(schema, &names)?;
        if !by_position {
            push_new(&mut names, read.key_fields.iter().map(root));
        }
        if read.merge.compares() {
            push_new(&mut names, read.merge.ordering_fields.iter().map(root));
        }
        let base = select(schema, &names)?;
        let marker = read
            .merge
            .delete_marker
            .iter()
            .map(|(field, _)| field.clone());
        let optional = std::iter::once(IS_DELETED.to_owned()).chain(marker);
        let present = optional.filter(|name| schema.index_of(name).is_ok());
        push_new(&mut names, present);
        let log = with_operation(select(schema, &names)?.as_ref());
        let prefixed = read.key_fields.len() > 1;
        Ok(Self {
            out,
            merged,
            base,
            log,
            keys: RecordKeys {
                fields: read.key_fields.clone(),
                prefixed,
            },
        })
    }
}

/// Flink writes the operation of a change log into its records, but leaves it out of the table's
/// schema.
fn with_operation(schema: &Schema) -> SchemaRef {
    let mut fields = schema.fields().to_vec();
    if schema.index_of(OPERATION).is_err() {
        fields.push(text_field(OPERATION));
    }
    Arc::new(Schema::new(fields))
}

fn push_new(names: &mut Vec<String>, more: impl Iterator<Item = String>) {
    for name in more {
        if !names.contains(&name) {
            names.push(name);
        }
    }
}
