//! Records of one key, and which of them stands. Properties of file slices use it, too.

use std::ops::Range;

use arrow::datatypes::{DataType, TimeUnit};
use proptest::option;
use proptest::prelude::*;
use pyhudi_format::log::OrderingValue;
use pyhudi_merge::{MergeMode, MergeRules};

/// A row of a log block or base file: key, ordering value, whether it says that its key is deleted, and
/// what else it has.
#[derive(Debug, Clone)]
pub struct Row<V> {
    pub key: u8,
    pub ts: Option<i64>,
    pub is_deleted: Option<bool>,
    pub values: V,
}

/// The ordering value in a delete block.
#[derive(Debug, Clone, Copy)]
pub enum DeleteValue {
    At(i64),
    Null,
    /// Integer 0, which Hudi writes where there is no value.
    Zero,
    /// Of another class than the column.
    OtherClass,
}

/// What decides between records.
#[derive(Debug, Clone, Copy)]
pub struct Weight {
    ts: i64,
    is_null: bool,
    pub is_deleted: bool,
}

pub fn key_text(key: u8) -> String {
    format!("k{key}")
}

/// Few values, so that ties and zeros are many.
fn ts() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![1 => Just(None), 8 => (-2..4_i64).prop_map(Some)]
}

pub fn row<V: std::fmt::Debug>(
    keys: Range<u8>,
    values: impl Strategy<Value = V>,
    has_deletes: bool,
) -> impl Strategy<Value = Row<V>> {
    let is_deleted =
        prop_oneof![6 => Just(Some(false)), 1 => Just(None), 2 => Just(Some(has_deletes))];
    (keys, ts(), is_deleted, values).prop_map(|(key, ts, is_deleted, values)| Row {
        key,
        ts,
        is_deleted,
        values,
    })
}

pub fn delete(keys: Range<u8>) -> impl Strategy<Value = (u8, DeleteValue)> {
    let value = prop_oneof![
        4 => (-2..4_i64).prop_map(DeleteValue::At),
        1 => Just(DeleteValue::Null),
        1 => Just(DeleteValue::Zero),
        1 => Just(DeleteValue::OtherClass),
    ];
    (keys, value)
}

/// Ordering columns of these types are compared.
pub fn rules() -> impl Strategy<Value = MergeRules> {
    let mode = prop_oneof![Just(MergeMode::CommitTime), Just(MergeMode::EventTime)];
    let kind = prop_oneof![
        Just(DataType::Int64),
        Just(DataType::Int32),
        Just(DataType::Float64),
        Just(DataType::Timestamp(
            TimeUnit::Microsecond,
            Some("UTC".into())
        )),
    ];
    (mode, option::weighted(0.9, kind), any::<bool>()).prop_map(
        |(mode, kind, null_ordering_loses)| MergeRules {
            mode,
            ordering: kind.into_iter().collect(),
            null_ordering_loses,
        },
    )
}

pub fn delete_values(
    rules: &MergeRules,
    deletes: &[(u8, DeleteValue)],
) -> Vec<OrderingValue<'static>> {
    let is_int = rules.ordering.first() == Some(&DataType::Int32);
    let value = |(_, value): &(u8, DeleteValue)| match value {
        DeleteValue::At(ts) if is_int => OrderingValue::Int(i32::try_from(*ts).unwrap()),
        DeleteValue::At(ts) => OrderingValue::Long(*ts),
        DeleteValue::Null => OrderingValue::Null,
        DeleteValue::Zero => OrderingValue::Int(0),
        DeleteValue::OtherClass => OrderingValue::String("1".into()),
    };
    deletes.iter().map(value).collect()
}

impl Weight {
    pub fn of_row<V>(row: &Row<V>) -> Self {
        Self {
            ts: row.ts.unwrap_or(0),
            is_null: row.ts.is_none(),
            is_deleted: row.is_deleted == Some(true),
        }
    }

    pub fn of_delete(value: DeleteValue) -> Self {
        let (ts, is_null) = match value {
            DeleteValue::At(ts) => (ts, false),
            _ => (0, true),
        };
        Self {
            ts,
            is_null,
            is_deleted: true,
        }
    }

    /// A delete without ordering value. Integer 0 cannot be told from none.
    fn is_bare(self, rules: &MergeRules) -> bool {
        let is_int = rules.ordering.first() == Some(&DataType::Int32);
        self.is_deleted && (self.is_null || (is_int && self.ts == 0))
    }

    /// Whether the newer of two log records stands: the greater ordering value, in a tie the newer
    /// record. A delete without one beats what is older, and what is newer beats it but for a delete
    /// with one.
    pub fn beats(self, older: Self, rules: &MergeRules) -> bool {
        if !rules.compares() {
            return true;
        }
        if older.is_bare(rules) {
            return !self.is_deleted || self.is_bare(rules);
        }
        self.is_bare(rules) || self.ts >= older.ts
    }

    /// Whether a log record stands against a row of the base file.
    pub fn beats_base<V>(self, base: &Row<V>, rules: &MergeRules) -> bool {
        !rules.compares()
            || self.is_bare(rules)
            || (rules.null_ordering_loses && base.ts.is_none())
            || self.ts >= base.ts.unwrap_or(0)
    }
}
