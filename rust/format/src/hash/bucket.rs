//! The simple bucket index: from a record key to a bucket number.

use super::list_hash;

const NULL: &str = "__null__";
const EMPTY: &str = "__empty__";

/// How field values are cut out of a record key. The two give other buckets for a key of one
/// field with its name in front (`id:k1`), and for values with commas or colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyParts {
    /// Until Hudi 0.15: split at every comma, then at the first colon.
    Split,
    /// Hudi 1.0 and later: names are found by their colons, so that values may hold commas.
    Scan,
}

/// The values of the hash fields in a record key, in the order of the key. Null for `__null__`.
///
/// `BucketIdentifier.getHashKeys` and `KeyGenUtils.extractRecordKeysByFields`. No fields means
/// all. Where 1.x loops for ever (a field left out whose successor's value holds a colon), this
/// goes on after the field.
pub fn key_values<'k>(
    record_key: &'k str,
    fields: &[&str],
    parts: KeyParts,
) -> Vec<Option<&'k str>> {
    let wanted = |name: &str| fields.is_empty() || fields.contains(&name);
    match parts {
        KeyParts::Split => split(record_key, &wanted),
        KeyParts::Scan => scan(record_key, &wanted),
    }
}

fn split<'k>(record_key: &'k str, wanted: &dyn Fn(&str) -> bool) -> Vec<Option<&'k str>> {
    if !record_key.contains(':') {
        return vec![Some(record_key)];
    }
    // Java's split drops empty pieces at the end.
    let pieces = record_key.trim_end_matches(',').split(',');
    pieces
        .filter_map(|piece| match piece.split_once(':') {
            None => Some(value(piece)),
            Some((name, text)) => wanted(name).then(|| value(text)),
        })
        .collect()
}

fn scan<'k>(record_key: &'k str, wanted: &dyn Fn(&str) -> bool) -> Vec<Option<&'k str>> {
    let mut values = Vec::new();
    let mut rest = Some(record_key).filter(|key| key.contains(','));
    while let Some((name, text)) = rest.and_then(|rest| rest.split_once(':')) {
        // A value ends at the last comma before a later colon: the name of the next field
        // stands between the two.
        let end = text
            .match_indices(':')
            .find_map(|(colon, _)| text.get(..colon)?.rfind(','));
        let found = end.and_then(|end| text.split_at_checked(end));
        let (text, next) =
            found.map_or((text, None), |(text, next)| (text, next.strip_prefix(',')));
        if wanted(name) {
            values.push(value(text));
        }
        rest = next;
    }
    if values.is_empty() {
        values.push(Some(record_key));
    }
    values
}

fn value(text: &str) -> Option<&str> {
    match text {
        NULL => None,
        EMPTY => Some(""),
        text => Some(text),
    }
}

/// The bucket of these field values; 0 when there are no buckets.
pub fn bucket_of<'a>(values: impl IntoIterator<Item = Option<&'a str>>, buckets: u32) -> u32 {
    (list_hash(values) & i32::MAX)
        .cast_unsigned()
        .checked_rem(buckets)
        .unwrap_or(0)
}

/// The bucket of a record key: `BucketIdentifier.getBucketId`.
pub fn bucket_id(record_key: &str, fields: &[&str], buckets: u32, parts: KeyParts) -> u32 {
    bucket_of(key_values(record_key, fields, parts), buckets)
}

#[cfg(test)]
mod tests;
