//! The columns of a stripe, opened: which streams each is decoded from.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use pyhudi_format::FormatError;
use pyhudi_format::orc::{
    Bits, ByteRuns, Ints, IntsForm, Kind, Stream, StreamKind, Stripe, StripeFooter, Tail,
};
use pyhudi_store::StoreFile;

use super::column::{Column, Values};
use super::values::{Dictionary, Times, damaged};

type Result<T> = std::result::Result<T, FormatError>;

/// The stripe that columns are opened in.
pub(super) struct Open<'a> {
    pub(super) file: &'a StoreFile,
    pub(super) tail: &'a Tail,
    pub(super) stripe: &'a Stripe,
    pub(super) footer: &'a StripeFooter,
}

impl Open<'_> {
    /// The column of this number, which is read as the type.
    pub(super) fn column(&self, number: usize, data_type: &DataType) -> Result<Column> {
        let present = || Bits::new(self.stream(number, StreamKind::Present));
        Ok(Column {
            present: self.footer.has_nulls(number).then(present),
            values: match data_type {
                DataType::List(_) | DataType::Map(..) | DataType::Struct(_) => {
                    self.nested(number, data_type)?
                }
                _ => self.leaf(number, data_type)?,
            },
        })
    }

    fn nested(&self, number: usize, data_type: &DataType) -> Result<Values> {
        let lengths = || self.ints(number, StreamKind::Length, false);
        Ok(match data_type {
            DataType::List(item) => {
                let child = self.part(number, 0, item)?;
                Values::List(lengths(), Box::new(child), Arc::clone(item))
            }
            DataType::Map(entries, _) => {
                let (key, value) = match entries.data_type() {
                    DataType::Struct(fields) => (fields.first(), fields.get(1)),
                    _ => (None, None),
                };
                let (Some(key), Some(value)) = (key, value) else {
                    return Err(self.lacks(number));
                };
                let keys = Box::new(self.part(number, 0, key)?);
                let values = Box::new(self.part(number, 1, value)?);
                Values::Map(lengths(), keys, values, Arc::clone(entries))
            }
            DataType::Struct(fields) => {
                let parts = fields.iter().enumerate();
                let parts = parts.map(|(at, field)| self.part(number, at, field));
                Values::Struct(parts.collect::<Result<_>>()?, fields.clone())
            }
            _ => return Err(self.lacks(number)),
        })
    }

    fn leaf(&self, number: usize, data_type: &DataType) -> Result<Values> {
        let data = || self.stream(number, StreamKind::Data);
        let signed = || self.ints(number, StreamKind::Data, true);
        Ok(match data_type {
            DataType::Boolean => Values::Booleans(Bits::new(data())),
            DataType::Int32 if self.kind(number)? == Kind::Byte => {
                Values::Bytes(ByteRuns::new(data()))
            }
            DataType::Int32 | DataType::Time32(_) | DataType::Date32 => {
                Values::Ints(signed(), data_type.clone())
            }
            DataType::Int64 | DataType::Time64(_) => Values::Longs(signed(), data_type.clone()),
            DataType::Float32 => Values::Floats(data()),
            DataType::Float64 => Values::Doubles(data()),
            DataType::Utf8 => self.texts(number, true)?,
            DataType::Binary => self.texts(number, false)?,
            DataType::Decimal128(precision, scale) => {
                let scales = self.ints(number, StreamKind::Secondary, true);
                Values::Decimals(data(), scales, *precision, *scale)
            }
            DataType::Timestamp(..) => {
                let nanos = self.ints(number, StreamKind::Secondary, false);
                // Instants are of UTC, whatever the writer's clock shows.
                let is_local = self.kind(number)? == Kind::Timestamp;
                let zone = is_local.then_some(self.footer.time_zone.as_str());
                Values::Times(Times::new(signed(), nanos, zone)?, data_type.clone())
            }
            _ => return Err(self.lacks(number)),
        })
    }

    fn texts(&self, number: usize, is_text: bool) -> Result<Values> {
        let lengths = self.ints(number, StreamKind::Length, false);
        let encoding = self.footer.encoding(number);
        if !encoding.dictionary {
            let data = self.stream(number, StreamKind::Data);
            return Ok(Values::Direct(lengths, data, is_text));
        }
        let texts = self.stream(number, StreamKind::DictionaryData);
        let numbers = self.ints(number, StreamKind::Data, false);
        let dictionary = Dictionary::read(lengths, texts, encoding.entries, numbers)?;
        Ok(Values::Dictionary(dictionary, is_text))
    }

    fn part(&self, number: usize, at: usize, field: &FieldRef) -> Result<Column> {
        let found = self.tail.types.get(number);
        let part = found.and_then(|found| found.parts.get(at)).copied();
        let part = part.ok_or_else(|| self.lacks(number))?;
        self.column(part, field.data_type())
    }

    fn ints(&self, number: usize, kind: StreamKind, signed: bool) -> Ints<StoreFile> {
        let v2 = self.footer.encoding(number).v2;
        Ints::new(self.stream(number, kind), IntsForm { v2, signed })
    }

    fn stream(&self, number: usize, kind: StreamKind) -> Stream<StoreFile> {
        let file = self.file.clone();
        self.footer.stream(file, self.tail, number, kind)
    }

    fn kind(&self, number: usize) -> Result<Kind> {
        let found = self.tail.types.get(number);
        found
            .map(|found| found.kind)
            .ok_or_else(|| self.lacks(number))
    }

    fn lacks(&self, number: usize) -> FormatError {
        damaged(self.stripe.offset, format!("column {number} lacks a part"))
    }
}
