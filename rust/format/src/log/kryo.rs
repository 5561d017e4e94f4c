//! Delete blocks of versions 1 and 2: arrays of keys as Kryo 4 writes them.
//!
//! Not a Kryo reader: it knows the classes `HoodieKey` and `DeleteRecord` and the ordering values
//! that Kryo has numbers for, and refuses everything else by name.

mod text;

use std::borrow::Cow;

use super::{DeleteRecord, OrderingValue};
use crate::cursor::Cursor;
use crate::{FormatError, Result};

/// The same text may be referred to from many records: how much may come from one input byte.
const TEXT_PER_BYTE: usize = 256;

/// Where the data starts in the content: errors count from there.
const BODY_AT: u64 = 8;

const KEY: &str = "org.apache.hudi.common.model.HoodieKey";
const RECORD: &str = "org.apache.hudi.common.model.DeleteRecord";

/// ```text
/// class | reference | count + 1, varint | count × ( class | object )
/// class:       varint 0 null | 1 by name: number, varint; at its first use: name, text | n + 2 number n
/// object:      reference varint: 0 null | 1 new: fields follow | n + 2 the n-th object of the data
/// HoodieKey:     partition path object | record key object
/// DeleteRecord:  class and object of the HoodieKey | class and object of the ordering value
/// numbers (int, long: zig-zag; float, double: big-endian) are not objects: no reference
/// ```
///
/// `SerializationUtils.serialize` of `HoodieKey[]` (until Hudi 0.9) and `DeleteRecord[]` (0.10 to
/// 0.12). Checked against what the same call gives in 0.15.0 and 1.2.0, which both still read
/// such blocks; no block written by an old release was at hand.
pub(super) fn decode(bytes: &[u8], version: u32) -> Result<Vec<DeleteRecord<'static>>> {
    let budget = bytes.len().saturating_mul(TEXT_PER_BYTE);
    let mut reader = Reader {
        cursor: Cursor::at(bytes, BODY_AT),
        classes: Vec::new(),
        objects: Vec::new(),
        budget,
    };
    let records = if version == 1 {
        reader.keys()?
    } else {
        reader.records()?
    };
    reader.cursor.finish()?;
    Ok(records)
}

#[derive(Clone)]
enum Object {
    Text(String),
    Key {
        key: String,
        partition: Option<String>,
    },
    Record(DeleteRecord<'static>),
    /// The array itself, or an object whose fields are still being read.
    Other,
}

/// The class of the next object.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Class {
    Null,
    Number(u64),
    Name(String),
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    classes: Vec<String>,
    objects: Vec<Object>,
    budget: usize,
}

impl Reader<'_> {
    fn keys(&mut self) -> Result<Vec<DeleteRecord<'static>>> {
        let count = self.array(KEY)?;
        let mut records = Vec::new();
        for _ in 0..count {
            let (key, partition) = self.key()?;
            records.push(delete_record(key, partition, OrderingValue::Int(0)));
        }
        Ok(records)
    }

    fn records(&mut self) -> Result<Vec<DeleteRecord<'static>>> {
        let count = self.array(RECORD)?;
        let mut records = Vec::new();
        for _ in 0..count {
            records.push(self.record()?);
        }
        Ok(records)
    }

    /// Head of an array of the class; the number of its items.
    fn array(&mut self, item: &str) -> Result<u64> {
        self.expect_class(&format!("[L{item};"))?;
        match self.reference()? {
            None => self.objects.push(Object::Other),
            Some(_) => return unknown("array by reference"),
        }
        let at = self.cursor.clone();
        match self.cursor.varint()?.checked_sub(1) {
            Some(count) if count <= self.cursor.remaining() as u64 => Ok(count),
            _ => at.corrupt("number of deleted keys"),
        }
    }

    fn record(&mut self) -> Result<DeleteRecord<'static>> {
        self.expect_class(RECORD)?;
        match self.reference()? {
            Some(Object::Record(record)) => return self.spend(record),
            Some(_) => return self.cursor.corrupt("reference to something else"),
            None => {}
        }
        let number = self.new_object();
        let (key, partition) = self.key()?;
        let ordering = self.ordering()?;
        let record = delete_record(key, partition, ordering);
        self.set(number, Object::Record(record.clone()));
        Ok(record)
    }

    /// Record key and partition path.
    fn key(&mut self) -> Result<(String, Option<String>)> {
        self.expect_class(KEY)?;
        match self.reference()? {
            Some(Object::Key { key, partition }) => {
                self.charge(key.len() + partition.as_ref().map_or(0, String::len))?;
                return Ok((key, partition));
            }
            Some(_) => return self.cursor.corrupt("reference to something else"),
            None => {}
        }
        let number = self.new_object();
        let partition = self.text_object()?;
        let Some(key) = self.text_object()? else {
            return self.cursor.corrupt("deleted key without a key");
        };
        self.set(
            number,
            Object::Key {
                key: key.clone(),
                partition: partition.clone(),
            },
        );
        Ok((key, partition))
    }

    fn ordering(&mut self) -> Result<OrderingValue<'static>> {
        let number = match self.class()? {
            Class::Null => return Ok(OrderingValue::Null),
            Class::Number(number) => number,
            Class::Name(name) => return unknown(&format!("ordering value of {name}")),
        };
        let cursor = &mut self.cursor;
        Ok(match number {
            0 => {
                let at = cursor.clone();
                let value = cursor.zigzag()?;
                OrderingValue::Int(i32::try_from(value).or_else(|_| at.corrupt("int too large"))?)
            }
            1 => match self.text_object()? {
                Some(text) => OrderingValue::String(Cow::Owned(text)),
                None => return self.cursor.corrupt("ordering value is null"),
            },
            2 => OrderingValue::Float(f32::from_bits(cursor.u32()?)),
            3 => OrderingValue::Boolean(cursor.u8()? != 0),
            7 => OrderingValue::Long(text::long(cursor)?),
            8 => OrderingValue::Double(f64::from_bits(cursor.u64()?)),
            other => return unknown(&format!("ordering value of Kryo class {other}")),
        })
    }

    fn expect_class(&mut self, expected: &str) -> Result<()> {
        match self.class()? {
            Class::Name(name) if name == expected => Ok(()),
            Class::Name(name) => unknown(&format!("class {name}")),
            Class::Number(number) => unknown(&format!("Kryo class {number}")),
            Class::Null => self.cursor.corrupt("null where an object belongs"),
        }
    }

    fn class(&mut self) -> Result<Class> {
        match self.cursor.varint()? {
            0 => return Ok(Class::Null),
            1 => {}
            number => return Ok(Class::Number(number - 2)),
        }
        let at = self.cursor.clone();
        let number = usize::try_from(self.cursor.varint()?).unwrap_or(usize::MAX);
        if number == self.classes.len() {
            let Some(name) = text::text(&mut self.cursor)? else {
                return at.corrupt("class without a name");
            };
            self.classes.push(name);
        }
        match self.classes.get(number) {
            Some(name) => Ok(Class::Name(name.clone())),
            None => at.corrupt(format!("class name {number} was never given")),
        }
    }

    /// [`None`] for a new object, otherwise one that was read before.
    fn reference(&mut self) -> Result<Option<Object>> {
        let at = self.cursor.clone();
        let number = self.cursor.varint()?;
        if number == 1 {
            return Ok(None);
        }
        let object = number
            .checked_sub(2)
            .and_then(|number| usize::try_from(number).ok());
        match object.and_then(|number| self.objects.get(number)) {
            Some(object) => Ok(Some(object.clone())),
            None => at.corrupt(format!("reference {number}")),
        }
    }

    fn new_object(&mut self) -> usize {
        self.objects.push(Object::Other);
        self.objects.len() - 1
    }

    fn set(&mut self, number: usize, object: Object) {
        if let Some(place) = self.objects.get_mut(number) {
            *place = object;
        }
    }

    fn text_object(&mut self) -> Result<Option<String>> {
        if self.cursor.clone().u8()? == 0 {
            self.cursor.u8()?;
            return Ok(None);
        }
        let text = match self.reference()? {
            Some(Object::Text(text)) => {
                self.charge(text.len())?;
                return Ok(Some(text));
            }
            Some(_) => return self.cursor.corrupt("reference to something else"),
            None => text::text(&mut self.cursor)?,
        };
        let at = &self.cursor;
        let Some(text) = text else {
            return at.corrupt("null text as an object");
        };
        self.objects.push(Object::Text(text.clone()));
        Ok(Some(text))
    }

    fn spend(&mut self, record: DeleteRecord<'static>) -> Result<DeleteRecord<'static>> {
        let ordering = match &record.ordering {
            OrderingValue::String(text) => text.len(),
            _ => 0,
        };
        let partition = record.partition_path.as_ref().map_or(0, |path| path.len());
        self.charge(record.record_key.len() + partition + ordering)?;
        Ok(record)
    }

    fn charge(&mut self, len: usize) -> Result<()> {
        match self.budget.checked_sub(len) {
            Some(budget) => {
                self.budget = budget;
                Ok(())
            }
            None => self.cursor.corrupt("delete block that grows beyond reason"),
        }
    }
}

fn delete_record(
    key: String,
    partition: Option<String>,
    ordering: OrderingValue<'static>,
) -> DeleteRecord<'static> {
    DeleteRecord {
        record_key: Cow::Owned(key),
        partition_path: partition.map(Cow::Owned),
        ordering,
    }
}

fn unknown<T>(what: &str) -> Result<T> {
    Err(FormatError::unsupported(format!(
        "delete block version 1/2 with {what}"
    )))
}

#[cfg(test)]
mod tests;
