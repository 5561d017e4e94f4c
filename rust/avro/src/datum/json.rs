//! What apache-avro reads, as JSON values.
//!
//! Through serde and not through its `Value`: that one loses the order of maps, and where the
//! bytes end early it takes strings, booleans and unions for null.

use std::fmt;

use serde::de::{
    Deserialize, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Map, Number, Value};

pub(super) struct Json(pub(super) Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(Json)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an avro value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(match Number::from_f64(value) {
            Some(number) => Value::Number(number),
            None if value.is_nan() => "NaN".into(),
            None if value > 0.0 => "Infinity".into(),
            None => "-Infinity".into(),
        })
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Value, E> {
        let chars = value.iter().map(|byte| char::from(*byte));
        Ok(chars.collect::<String>().into())
    }

    /// The list grows by what is read, not by `size_hint`: that is a number in the file.
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    /// Maps and records. Not `String` for the key: names of fields come as identifiers only.
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((Json(key), Json(value))) = entries.next_entry()? {
            let Value::String(key) = key else {
                return Err(A::Error::custom("a key that is not a string"));
            };
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, symbol: A) -> Result<Value, A::Error> {
        let (Json(symbol), content) = symbol.variant()?;
        content.unit_variant()?;
        Ok(symbol)
    }
}
