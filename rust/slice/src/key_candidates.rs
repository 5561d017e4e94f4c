//! Which of some keys a base file may hold, by the bloom filter and the key range in its footer.

use arrow::array::{BooleanArray, StringArray};
use pyhudi_format::BloomFilter;
use pyhudi_keys::text_order;
use pyhudi_store::Store;

use crate::base::format_of;
use crate::error::{Result, SliceError};

const FILTER: &str = "org.apache.hudi.bloomfilter";
const OLD_FILTER: &str = "com.uber.hoodie.bloomfilter";
const KIND: &str = "hoodie_bloom_filter_type_code";
const LEAST: &str = "hoodie_min_record_key";
const GREATEST: &str = "hoodie_max_record_key";

/// For each key whether the base file may hold it; false is certain, and null is not held. A file
/// without filter and range may hold anything.
///
/// # Errors
/// The file is missing or damaged.
pub fn key_candidates(store: &Store, path: &str, keys: &StringArray) -> Result<BooleanArray> {
    let names = [FILTER, OLD_FILTER, KIND, LEAST, GREATEST];
    let mut values = format_of(path).values(store, path, &names)?.into_iter();
    let [filter, old, kind, least, greatest] = names.map(|_| values.next().flatten());
    let filter = match filter.or(old) {
        Some(text) => Some(parse(&text, kind.as_deref().unwrap_or("SIMPLE"), path)?),
        None => None,
    };
    // Spark's row writer orders keys by bytes, every other writer as Java does.
    let within = |key: &str| match (&least, &greatest) {
        (Some(least), Some(greatest)) => {
            text_order(key, least).is_ge() && text_order(key, greatest).is_le()
                || (least.as_str()..=greatest.as_str()).contains(&key)
        }
        _ => true,
    };
    let may = |key: &str| within(key) && filter.as_ref().is_none_or(|f| f.contains(key.as_bytes()));
    Ok(keys.iter().map(|key| Some(key.is_some_and(may))).collect())
}

fn parse(text: &str, kind: &str, path: &str) -> Result<BloomFilter> {
    BloomFilter::from_base64(text)
        .and_then(|filter| filter.expect_type(kind))
        .map_err(|error| SliceError::format(path, 0, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_of_another_kind_is_damage() {
        let text = BloomFilter::simple(10, 0.01).to_base64();
        assert!(parse(&text, "SIMPLE", "f").is_ok());
        assert!(parse(&text, "DYNAMIC_V0", "f").is_err());
    }
}
