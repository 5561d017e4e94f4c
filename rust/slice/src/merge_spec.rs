//! How records of one key become one, as the caller says it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use pyhudi_merge::{ColumnRule, FieldRules, Fill, MergeMode, MergeRules, RowMerger};

use crate::columns::IS_DELETED;
use crate::error::{Result, SliceError};
use crate::log_map::MapKind;
use crate::names::nested;

const META_PREFIX: &str = "_hoodie_";

/// A merger that is not built in.
#[derive(Clone)]
pub struct CustomMerger {
    /// What it does with two live records.
    pub merger: Arc<dyn RowMerger>,
    /// The columns that it reads or returns, besides those that are read anyway.
    pub columns: Vec<String>,
}

/// Which values of the winning record are taken from the losing one.
#[derive(Debug, Clone, Default)]
pub enum FillRule {
    /// None, except columns that partial records do not have.
    #[default]
    Absent,
    /// Values equal to those of this one row, whose columns are found by name, and nulls of others.
    Defaults(Option<RecordBatch>),
    /// Texts and bytes equal to the marker.
    Marker(String),
    /// The same, where the newer record wins.
    NewerMarker(String),
}

/// The merge rules of a table.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent rules of tables")]
pub struct MergeSpec {
    /// Which of two records wins.
    pub mode: MergeMode,
    /// The ordering fields; a dot reaches into a struct.
    pub ordering_fields: Vec<String>,
    /// The ordering field is text of two numbers, `file.position`, compared as numbers.
    pub sequence_ordering: bool,
    /// A row is a delete when the field, as text, equals the marker.
    pub delete_marker: Option<(String, String)>,
    /// See [`MergeRules::null_ordering_loses`].
    pub null_ordering_loses: bool,
    /// Values taken from the losing record.
    pub fill: FillRule,
    /// Meta columns come from the newer record whichever wins.
    pub newest_meta: bool,
    /// See [`FieldRules::deletes_always_win`].
    pub deletes_always_win: bool,
    /// Rows that are marked as deletes are merged as rows; see [`FieldRules::marks_deletes`].
    pub deletes_are_rows: bool,
    /// Columns with rules that combine their values. With one of them, a record after a delete is not
    /// merged with what the delete removed.
    pub column_rules: Vec<(String, ColumnRule)>,
    /// In the place of the rules above for two live records.
    pub merger: Option<CustomMerger>,
    /// A text column that equals the stored record key where it is not null: filters on it are ones
    /// on the key.
    pub plain_key: Option<String>,
}

impl Default for MergeSpec {
    fn default() -> Self {
        Self {
            mode: MergeMode::CommitTime,
            ordering_fields: Vec::new(),
            sequence_ordering: false,
            delete_marker: None,
            null_ordering_loses: false,
            fill: FillRule::Absent,
            newest_meta: false,
            deletes_always_win: false,
            deletes_are_rows: false,
            column_rules: Vec::new(),
            merger: None,
            plain_key: None,
        }
    }
}

impl MergeSpec {
    /// Whether ordering values are compared.
    pub(crate) fn compares(&self) -> bool {
        self.mode == MergeMode::EventTime && !self.ordering_fields.is_empty()
    }

    /// The map that these rules need. log: what is read from log blocks. merged: of it what is merged.
    /// partial: some records do not have all columns.
    pub(crate) fn kind(
        &self,
        log: &SchemaRef,
        merged: &SchemaRef,
        partial: bool,
    ) -> Result<MapKind> {
        let order = self.order(log)?;
        let plain = matches!(self.fill, FillRule::Absent)
            && self.merger.is_none()
            && !self.newest_meta
            && !self.deletes_always_win
            && self.column_rules.is_empty()
            && !partial;
        if plain {
            return Ok(MapKind::Keys(order));
        }
        let rules = FieldRules {
            order,
            fill: self.fill_of(merged),
            newest: self.newest(merged),
            deletes_always_win: self.deletes_always_win,
            marks_deletes: self.marks_deletes(merged),
            combined: self.combined(merged),
            starts_over: !self.column_rules.is_empty(),
            merger: self
                .merger
                .as_ref()
                .map(|custom| Arc::clone(&custom.merger)),
        };
        Ok(MapKind::Fields(rules, Arc::clone(merged)))
    }

    /// Which of two records wins, by the ordering columns as they are in a schema.
    pub(crate) fn order(&self, schema: &SchemaRef) -> Result<MergeRules> {
        let types = if !self.compares() {
            Vec::new()
        } else if self.sequence_ordering {
            vec![DataType::Int64, DataType::Int64]
        } else {
            let kind = |path: &String| Ok(nested(schema, path)?.data_type().clone());
            let fields = self.ordering_fields.iter();
            fields.map(kind).collect::<Result<Vec<_>>>()?
        };
        Ok(MergeRules {
            mode: self.mode,
            ordering: types,
            null_ordering_loses: self.null_ordering_loses,
        })
    }

    fn fill_of(&self, schema: &SchemaRef) -> Fill {
        match &self.fill {
            FillRule::Absent => Fill::Absent,
            FillRule::Marker(marker) => Fill::Marker(marker.clone()),
            FillRule::NewerMarker(marker) => Fill::NewerMarker(marker.clone()),
            FillRule::Defaults(row) => Fill::Defaults(
                schema
                    .fields()
                    .iter()
                    .map(|field| row.as_ref()?.column_by_name(field.name()).cloned())
                    .collect(),
            ),
        }
    }

    fn marks_deletes(&self, schema: &SchemaRef) -> Option<usize> {
        let marks = schema.index_of(IS_DELETED).ok()?;
        let is_flag = schema.field(marks).data_type() == &DataType::Boolean;
        (is_flag && self.deletes_are_rows).then_some(marks)
    }

    fn combined(&self, schema: &SchemaRef) -> Vec<(usize, ColumnRule)> {
        let rules = self.column_rules.iter();
        rules
            .filter_map(|(name, rule)| Some((schema.index_of(name).ok()?, *rule)))
            .collect()
    }

    fn newest(&self, schema: &SchemaRef) -> Vec<usize> {
        let fields = schema.fields().iter().enumerate();
        fields
            .filter(|(_, field)| self.newest_meta && is_meta(field.name()))
            .map(|(at, _)| at)
            .collect()
    }

    /// The ordering columns of a batch.
    pub(crate) fn ordering(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        if !self.compares() {
            return Ok(Vec::new());
        }
        let columns = self
            .ordering_fields
            .iter()
            .map(|path| pyhudi_keys::column(batch, path))
            .collect::<Result<Vec<_>, _>>()?;
        match columns.first() {
            Some(first) if self.sequence_ordering => sequence(first),
            _ => Ok(columns),
        }
    }
}

/// A column that Hudi fills. The writer of a row records whether it is deleted.
fn is_meta(name: &str) -> bool {
    name.starts_with(META_PREFIX) && name != IS_DELETED
}

/// `file.position` as two numbers (`MySqlDebeziumAvroPayload`, Hudi 1.2.0).
fn sequence(column: &ArrayRef) -> Result<Vec<ArrayRef>> {
    let texts = column.as_string_opt::<i32>().ok_or_else(|| {
        SliceError::Schema(format!(
            "the event sequence is {}, not text",
            column.data_type()
        ))
    })?;
    let part = |at: usize| -> ArrayRef {
        let number = |text: &str| text.split('.').nth(at)?.parse::<i64>().ok();
        let numbers: Int64Array = texts.iter().map(|text| text.and_then(number)).collect();
        Arc::new(numbers)
    };
    let bad = (0..texts.len()).find(|row| texts.is_valid(*row) && part_missing(texts.value(*row)));
    match bad {
        Some(row) => Err(SliceError::Schema(format!(
            "{:?} is no event sequence (file.position)",
            texts.value(row)
        ))),
        None => Ok(vec![part(0), part(1)]),
    }
}

fn part_missing(text: &str) -> bool {
    let mut parts = text.split('.').map(str::parse::<i64>);
    !matches!(
        (parts.next(), parts.next(), parts.next()),
        (Some(Ok(_)), Some(Ok(_)), None)
    )
}
