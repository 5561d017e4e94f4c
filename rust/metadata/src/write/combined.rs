//! What versions of a metadata record come to, as a record again.
//!
//! The payload's rules by type, as when records are read (`HoodieMetadataPayload.preCombine`, Hudi
//! 0.15.0 and 1.2.0).

use std::cmp::Ordering;

use pyhudi_avro::{Datum, Value};
use pyhudi_keys::{double_order, text_order};

use crate::files;

/// Kinds of records (`MetadataPartitionType`).
const KIND_ALL_PARTITIONS: i64 = 1;
const KIND_FILES: i64 = 2;
const KIND_COLUMN_STATS: i64 = 3;
const KIND_PARTITION_STATS: i64 = 6;
const KIND_SECONDARY: i64 = 7;
/// Wrappers of bytes, and of decimals up to index version 1: numbers, big-endian.
const BYTES: usize = 6;
const DECIMAL: usize = 9;
/// `ValueType` of decimals, whose wrapper is that of bytes.
const TYPE_DECIMAL: i64 = 10;

pub(super) type Record<'a> = Vec<(&'a str, Value<'a>)>;

/// The record that versions, oldest first, come to; None where it is gone.
pub(super) fn combined<'a>(versions: &[Datum<'a>]) -> Result<Option<Record<'a>>, String> {
    let Some(newest) = versions.last() else {
        return Ok(None);
    };
    let mut record = fields(newest)?;
    match newest.field("type").number() {
        Some(KIND_ALL_PARTITIONS | KIND_FILES) => {
            set(&mut record, "filesystemMetadata", listing(versions)?);
        }
        Some(KIND_COLUMN_STATS | KIND_PARTITION_STATS) => {
            set(&mut record, "ColumnStatsMetadata", statistics(versions)?);
        }
        Some(KIND_SECONDARY) => {
            let entry = newest.field("SecondaryIndexMetadata");
            if entry.field("isDeleted").is_true() {
                return Ok(None);
            }
        }
        _ => {}
    }
    Ok(Some(record))
}

/// Gives a field of the record another value.
pub(super) fn set<'a>(record: &mut Record<'a>, name: &'a str, value: Value<'a>) {
    match record.iter_mut().find(|(known, _)| *known == name) {
        Some((_, old)) => *old = value,
        None => record.push((name, value)),
    }
}

fn fields<'a>(record: &Datum<'a>) -> Result<Record<'a>, String> {
    match record {
        Datum::Record(fields) => fields
            .iter()
            .map(|(name, datum)| Ok((name, value(datum)?)))
            .collect(),
        other => Err(format!("{other:?} in place of a record")),
    }
}

fn value<'a>(datum: &Datum<'a>) -> Result<Value<'a>, String> {
    Ok(match datum {
        Datum::Null => Value::Null,
        Datum::Boolean(value) => Value::Boolean(*value),
        Datum::Int(value) => Value::Whole(i64::from(*value)),
        Datum::Long(value) => Value::Whole(*value),
        Datum::Float(value) => Value::Float(*value),
        Datum::Double(value) => Value::Double(*value),
        Datum::Bytes(bytes) => Value::Bytes(bytes),
        Datum::String(text) => Value::Text(text),
        Datum::Map(entries) => {
            let pairs = entries.iter().map(|(key, one)| Ok((*key, value(one)?)));
            Value::Map(pairs.collect::<Result<_, String>>()?)
        }
        Datum::Record(_) => Value::Record(fields(datum)?),
        Datum::Branch(number, inner) => Value::Branch(*number, Box::new(value(inner)?)),
        Datum::Array(_) => return Err("an array, which no such record has".to_owned()),
    })
}

fn listing<'a>(versions: &[Datum<'a>]) -> Result<Value<'a>, String> {
    let entries = files::merged(versions)?.into_iter();
    let entry = |(name, (size, deleted))| {
        let info = vec![
            ("size", Value::Whole(size)),
            ("isDeleted", Value::Boolean(deleted)),
        ];
        (name, Value::Record(info))
    };
    Ok(Value::Map(entries.map(entry).collect()))
}

const SUMS: [&str; 4] = [
    "nullCount",
    "valueCount",
    "totalSize",
    "totalUncompressedSize",
];

/// A deletion on either side or tight newer bounds put the newer one in place of the older, else
/// both hold together (`HoodieTableMetadataUtil.mergeColumnStatsRecords`).
fn statistics<'a>(versions: &[Datum<'a>]) -> Result<Value<'a>, String> {
    let mut held: Option<Held<'_, 'a>> = None;
    for version in versions {
        let newer = Held::of(version.field("ColumnStatsMetadata"));
        held = Some(match held {
            Some(older) if !older.gone() && !newer.gone() && !newer.tight() => older.with(newer)?,
            _ => newer,
        });
    }
    match held {
        Some(held) if held.stored != &Datum::Null => held.value(),
        _ => Ok(Value::Null),
    }
}

#[derive(Clone, Copy)]
struct Held<'d, 'a> {
    stored: &'d Datum<'a>,
    /// Where the type of the values is from.
    kind: &'d Datum<'a>,
    least: &'d Datum<'a>,
    greatest: &'d Datum<'a>,
    sums: [Option<i64>; 4],
}

impl<'d, 'a> Held<'d, 'a> {
    fn of(stored: &'d Datum<'a>) -> Self {
        Self {
            stored,
            kind: stored.field("valueType"),
            least: stored.field("minValue"),
            greatest: stored.field("maxValue"),
            sums: SUMS.map(|name| stored.field(name).number()),
        }
    }

    fn gone(&self) -> bool {
        self.stored == &Datum::Null || self.stored.field("isDeleted").is_true()
    }

    fn tight(&self) -> bool {
        self.stored.field("isTightBound").is_true()
    }

    fn with(self, newer: Self) -> Result<Self, String> {
        let mut sums = self.sums;
        for (sum, more) in sums.iter_mut().zip(newer.sums) {
            *sum = Some(sum.unwrap_or(0).saturating_add(more.unwrap_or(0)));
        }
        let without = newer.least == &Datum::Null;
        let has_both = !without && self.least != &Datum::Null;
        let info = |kind: &Datum<'_>| kind.field("additionalInfo").text().map(str::to_owned);
        if has_both && info(self.kind) != info(newer.kind) {
            return Err("bounds of decimals with different scales".to_owned());
        }
        let order = Order::of(if without { self.kind } else { newer.kind });
        Ok(Self {
            stored: newer.stored,
            kind: if without { self.kind } else { newer.kind },
            least: order.outer(self.least, newer.least, Ordering::Less)?,
            greatest: order.outer(self.greatest, newer.greatest, Ordering::Greater)?,
            sums,
        })
    }

    fn value(&self) -> Result<Value<'a>, String> {
        let mut record = fields(self.stored)?;
        for (name, sum) in SUMS.into_iter().zip(self.sums) {
            set(&mut record, name, sum.map_or(Value::Null, Value::Whole));
        }
        set(&mut record, "minValue", value(self.least)?);
        set(&mut record, "maxValue", value(self.greatest)?);
        set(&mut record, "valueType", value(self.kind)?);
        Ok(Value::Record(record))
    }
}

/// How bounds compare.
#[derive(Clone, Copy)]
struct Order {
    /// Bytes are those of a number, as a value type says.
    has_numbers: bool,
}

impl Order {
    fn of(kind: &Datum<'_>) -> Self {
        Self {
            has_numbers: kind.field("typeOrdinal").number() == Some(TYPE_DECIMAL),
        }
    }

    /// The one of two bounds that lies on that side.
    fn outer<'d, 'a>(
        self,
        older: &'d Datum<'a>,
        newer: &'d Datum<'a>,
        side: Ordering,
    ) -> Result<&'d Datum<'a>, String> {
        match (older, newer) {
            (Datum::Null, bound) | (bound, Datum::Null) => Ok(bound),
            (Datum::Branch(a, old), Datum::Branch(b, new)) if a == b => {
                let side_of_new = self
                    .compare(*a, new.field("value"), old.field("value"))
                    .ok_or_else(|| format!("bounds that do not compare: {old:?} and {new:?}"))?;
                Ok(if side_of_new == side { newer } else { older })
            }
            _ => Err("bounds of different kinds".to_owned()),
        }
    }

    /// The order of Java: text by UTF-16 units, bytes signed, NaN greatest.
    fn compare(self, branch: usize, a: &Datum<'_>, b: &Datum<'_>) -> Option<Ordering> {
        match (a, b) {
            (Datum::Boolean(a), Datum::Boolean(b)) => Some(a.cmp(b)),
            (Datum::Float(a), Datum::Float(b)) => Some(double_order(f64::from(*a), f64::from(*b))),
            (Datum::Double(a), Datum::Double(b)) => Some(double_order(*a, *b)),
            (Datum::String(a), Datum::String(b)) => Some(text_order(a, b)),
            (Datum::Bytes(a), Datum::Bytes(b)) if branch == DECIMAL || self.has_numbers => {
                Some(number(a)?.cmp(&number(b)?))
            }
            (Datum::Bytes(a), Datum::Bytes(b)) if branch == BYTES => {
                let signed =
                    |bytes: &&[u8]| bytes.iter().map(|b| b.cast_signed()).collect::<Vec<_>>();
                Some(signed(a).cmp(&signed(b)))
            }
            _ => Some(a.number()?.cmp(&b.number()?)),
        }
    }
}

fn number(bytes: &[u8]) -> Option<i128> {
    let mut wide = if *bytes.first()? < 0x80 {
        [0; 16]
    } else {
        [0xff; 16]
    };
    let start = wide.len().checked_sub(bytes.len())?;
    wide.get_mut(start..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pyhudi_avro::{DatumReader, DatumWriter};

    const SCHEMA: &str = r#"{"type": "record", "name": "r", "fields": [
        {"name": "type", "type": "int"},
        {"name": "ColumnStatsMetadata", "type": ["null", {"type": "record", "name": "s", "fields": [
            {"name": "minValue", "type": ["null",
                {"type": "record", "name": "B", "fields": [{"name": "value", "type": "boolean"}]},
                {"type": "record", "name": "I", "fields": [{"name": "value", "type": "int"}]},
                {"type": "record", "name": "Y", "fields": [{"name": "value", "type": "bytes"}]}]},
            {"name": "valueType", "type": ["null", {"type": "record", "name": "v", "fields": [
                {"name": "typeOrdinal", "type": "int"},
                {"name": "additionalInfo", "type": ["null", "string"]}]}]},
            {"name": "nullCount", "type": ["null", "long"]},
            {"name": "isTightBound", "type": "boolean"},
            {"name": "isDeleted", "type": "boolean"}]}]},
        {"name": "SecondaryIndexMetadata", "type": ["null",
            {"type": "record", "name": "e", "fields": [
                {"name": "isDeleted", "type": "boolean"}]}]}]}"#;

    fn stats(least: i64, nulls: i64, marks: &[&'static str]) -> Vec<u8> {
        let least = Value::Record(vec![("value", Value::Whole(least))]);
        let mut fields = vec![
            ("minValue", Value::Branch(2, Box::new(least))),
            ("nullCount", Value::Whole(nulls)),
        ];
        fields.extend(marks.iter().map(|mark| (*mark, Value::Boolean(true))));
        let writer = DatumWriter::new(SCHEMA).unwrap();
        let fields = [
            ("type", Value::Whole(6)),
            ("ColumnStatsMetadata", Value::Record(fields)),
        ];
        writer.write(&fields).unwrap()
    }

    /// Least value and count of nulls of what the versions come to.
    fn after(stored: &[Vec<u8>]) -> (Option<i64>, Option<i64>) {
        let reader = DatumReader::new(SCHEMA).unwrap();
        let versions: Vec<_> = stored.iter().map(|one| reader.read(one).unwrap()).collect();
        let record = combined(&versions).unwrap().unwrap();
        let bytes = DatumWriter::new(SCHEMA).unwrap().write(&record).unwrap();
        let record = reader.read(&bytes).unwrap();
        let found = record.field("ColumnStatsMetadata");
        let least = match found.field("minValue") {
            Datum::Branch(_, wrapped) => wrapped.field("value").number(),
            _ => None,
        };
        (least, found.field("nullCount").number())
    }

    #[test]
    fn statistics_hold_together_unless_newer_ones_are_tight_or_gone() {
        let (old, new) = (stats(3, 1, &[]), stats(5, 2, &[]));
        assert_eq!(after(&[old.clone(), new]), (Some(3), Some(3)));
        let tight = stats(5, 2, &["isTightBound"]);
        assert_eq!(after(&[old.clone(), tight]), (Some(5), Some(2)));
        let gone = stats(9, 0, &["isDeleted"]);
        assert_eq!(after(&[old, gone.clone()]), (Some(9), Some(0)));
        assert_eq!(after(&[gone, stats(4, 1, &[])]), (Some(4), Some(1)));
    }

    #[test]
    fn a_deleted_entry_of_a_secondary_index_is_gone() {
        let entry = Value::Record(vec![("isDeleted", Value::Boolean(true))]);
        let fields = [("type", Value::Whole(7)), ("SecondaryIndexMetadata", entry)];
        let bytes = DatumWriter::new(SCHEMA).unwrap().write(&fields).unwrap();
        let reader = DatumReader::new(SCHEMA).unwrap();
        assert_eq!(combined(&[reader.read(&bytes).unwrap()]).unwrap(), None);
    }

    #[test]
    fn bounds_are_ordered_as_java_does() {
        let text = |one| Datum::String(one);
        let order = |branch, a: Datum<'_>, b: Datum<'_>| {
            let plain = Order { has_numbers: false };
            plain.compare(branch, &a, &b).unwrap()
        };
        assert!(order(7, text("\u{10000}"), text("\u{ffff}")).is_lt());
        let (low, high): (&[u8], &[u8]) = (&[0x80], &[0x01]);
        assert!(order(BYTES, Datum::Bytes(low), Datum::Bytes(high)).is_lt());
        let (low, high): (&[u8], &[u8]) = (&[0xff, 0x7f], &[0xff]);
        assert!(order(DECIMAL, Datum::Bytes(low), Datum::Bytes(high)).is_lt());
        assert!(order(5, Datum::Double(f64::NAN), Datum::Double(1.0)).is_gt());
    }

    /// Statistics of a decimal column of index version 2: its least value and "precision,scale".
    fn decimals(least: &[u8], info: &str) -> Vec<u8> {
        let least = Value::Record(vec![("value", Value::Bytes(least))]);
        let value_type = vec![
            ("typeOrdinal", Value::Whole(TYPE_DECIMAL)),
            ("additionalInfo", Value::Text(info)),
        ];
        let stats = vec![
            ("minValue", Value::Branch(3, Box::new(least))),
            ("valueType", Value::Record(value_type)),
        ];
        let fields = [
            ("type", Value::Whole(KIND_PARTITION_STATS)),
            ("ColumnStatsMetadata", Value::Record(stats)),
        ];
        DatumWriter::new(SCHEMA).unwrap().write(&fields).unwrap()
    }

    #[test]
    fn decimals_in_bytes_are_ordered_as_numbers() {
        let (five, hundreds) = (decimals(&[0x05], "5,2"), decimals(&[0x01, 0x2c], "5,2"));
        let reader = DatumReader::new(SCHEMA).unwrap();
        for stored in [[&five, &hundreds], [&hundreds, &five]] {
            let versions: Vec<_> = stored.iter().map(|one| reader.read(one).unwrap()).collect();
            let record = combined(&versions).unwrap().unwrap();
            let bytes = DatumWriter::new(SCHEMA).unwrap().write(&record).unwrap();
            let record = reader.read(&bytes).unwrap();
            let Datum::Branch(_, least) = record.field("ColumnStatsMetadata").field("minValue")
            else {
                panic!("a bound has a wrapper");
            };
            assert_eq!(least.field("value"), &Datum::Bytes(&[0x05]));
        }
    }

    #[test]
    fn decimals_of_different_scales_are_refused() {
        let stored = [decimals(&[0x05], "5,2"), decimals(&[0x05], "7,4")];
        let reader = DatumReader::new(SCHEMA).unwrap();
        let versions: Vec<_> = stored.iter().map(|one| reader.read(one).unwrap()).collect();
        let error = combined(&versions).unwrap_err();
        assert!(error.contains("scales"), "{error}");
    }
}
