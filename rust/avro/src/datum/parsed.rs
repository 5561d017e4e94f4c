//! Schemas of metadata files, parsed once: a timeline has a handful of them over thousands of files,
//! and parsing one takes many times longer than reading the record behind it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use apache_avro::Schema;

use super::schema::schema;
use crate::error::{AvroError, Result};
use crate::model::Type;
use crate::parse::parse;

/// More than the actions of a timeline, with each release's form of them.
const KEPT: usize = 32;
/// A longer text is parsed each time, so that little memory stays with what is kept.
const LONGEST: usize = 64 << 10;

static KNOWN: Mutex<Known> = Mutex::new(Known(VecDeque::new()));

/// A schema in both forms that reading a datum takes.
pub(crate) struct Parsed {
    pub(crate) ty: Type,
    pub(crate) schema: Schema,
}

impl Parsed {
    /// The schema of this text; those that were used last are not parsed again.
    pub(crate) fn of(json: &str) -> Result<Arc<Self>> {
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parsed) = known().get(json) {
            return Ok(parsed);
        }
        let parsed = Arc::new(Self::parse(json)?);
        known().keep(json, &parsed);
        Ok(parsed)
    }

    fn parse(json: &str) -> Result<Self> {
        let ty = parse(json)?;
        let schema = schema(&ty).map_err(|error| AvroError::Schema(error.to_string()))?;
        Ok(Self { ty, schema })
    }
}

/// Schemas by their text, the one that was used last first.
struct Known(VecDeque<(String, Arc<Parsed>)>);

impl Known {
    fn get(&mut self, json: &str) -> Option<Arc<Parsed>> {
        let at = self.0.iter().position(|(text, _)| text == json)?;
        let used = self.0.remove(at)?;
        let parsed = Arc::clone(&used.1);
        self.0.push_front(used);
        Some(parsed)
    }

    fn keep(&mut self, json: &str, parsed: &Arc<Parsed>) {
        if json.len() <= LONGEST {
            self.0.push_front((json.to_owned(), Arc::clone(parsed)));
            self.0.truncate(KEPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_used_last_are_kept() {
        let mut known = Known(VecDeque::new());
        let parsed = Arc::new(Parsed::parse(r#""int""#).unwrap());
        for number in 0..=KEPT {
            known.keep(&format!("{number}"), &parsed);
            assert!(known.get("0").is_some());
        }
        assert_eq!(known.0.len(), KEPT);
        assert!(known.get("1").is_none());
        assert!(known.get("2").is_some());
        known.keep(&" ".repeat(LONGEST + 1), &parsed);
        assert_eq!(known.0.len(), KEPT);
    }

    #[test]
    fn a_text_means_the_same_each_time() {
        for _ in 0..2 {
            assert!(matches!(Parsed::of(r#""long""#).unwrap().ty, Type::Long));
            assert!(matches!(Parsed::of(r#""int""#).unwrap().ty, Type::Int));
            assert!(Parsed::of("no schema").is_err());
        }
    }
}
