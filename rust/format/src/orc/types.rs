//! The types of a file's columns.

use super::tail::text;
use crate::cursor::Cursor;
use crate::proto::{Value, field, put_bytes, put_number, put_varint};
use crate::{FormatError, Result};

/// Types of a schema.
pub(super) const TYPES_MOST: usize = 100_000;

/// Types that one type may have above it.
const DEPTH_MOST: usize = 64;

/// What a column is (`Type.Kind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    String,
    Binary,
    Timestamp,
    List,
    Map,
    Struct,
    Union,
    Decimal,
    Date,
    Varchar,
    Char,
    TimestampInstant,
}

/// By their numbers.
const KINDS: [Kind; 19] = [
    Kind::Boolean,
    Kind::Byte,
    Kind::Short,
    Kind::Int,
    Kind::Long,
    Kind::Float,
    Kind::Double,
    Kind::String,
    Kind::Binary,
    Kind::Timestamp,
    Kind::List,
    Kind::Map,
    Kind::Struct,
    Kind::Union,
    Kind::Decimal,
    Kind::Date,
    Kind::Varchar,
    Kind::Char,
    Kind::TimestampInstant,
];

impl Kind {
    fn of(number: u64) -> Result<Self> {
        let found = usize::try_from(number).ok().and_then(|at| KINDS.get(at));
        found
            .copied()
            .ok_or_else(|| FormatError::unsupported(format!("ORC type {number}")))
    }
}

/// A column, or a part of one. Its number is its place among the types.
#[derive(Debug, Clone)]
pub struct Type {
    /// What it is.
    pub kind: Kind,
    /// The numbers of its parts, each greater than its own and below that of all types.
    pub parts: Vec<usize>,
    /// The names of the parts of a struct, as many.
    pub names: Vec<String>,
    /// Of a decimal.
    pub precision: u64,
    /// Of a decimal.
    pub scale: u64,
}

/// Types are a tree, which the first of them, a struct, is the root of.
pub(super) fn check_types(types: &[Type], footer: u64) -> Result<()> {
    let damaged = |what: &str| Err(FormatError::corrupt(footer, what));
    if types.first().is_none_or(|root| root.kind != Kind::Struct) {
        return damaged("the first type is no struct");
    }
    let mut depths: Vec<Option<usize>> = vec![None; types.len()];
    if let Some(root) = depths.first_mut() {
        *root = Some(0);
    }
    for (number, found) in types.iter().enumerate() {
        let wanted = match found.kind {
            Kind::List => Some(1),
            Kind::Map => Some(2),
            Kind::Struct => Some(found.names.len()),
            Kind::Union => None,
            _ => Some(0),
        };
        if wanted.is_some_and(|wanted| found.parts.len() != wanted) {
            return damaged("a type with another number of parts");
        }
        let Some(Some(depth)) = depths.get(number).copied() else {
            return damaged("a type that no other has");
        };
        if depth > DEPTH_MOST {
            return damaged("types nested too deep");
        }
        for part in &found.parts {
            match depths.get_mut(*part) {
                Some(of_part @ None) if *part > number => *of_part = Some(depth + 1),
                _ => return damaged("types that are no tree"),
            }
        }
    }
    Ok(())
}

/// One of the footer's types.
pub(super) fn column_type(bytes: &[u8], start: u64) -> Result<Type> {
    let mut found = Type {
        kind: Kind::Boolean,
        parts: Vec::new(),
        names: Vec::new(),
        precision: 0,
        scale: 0,
    };
    let mut message = Cursor::at(bytes, start);
    while let Some((number, value)) = field(&mut message)? {
        match (number, value) {
            (1, Value::Number(kind)) => found.kind = Kind::of(kind)?,
            (2, Value::Number(part)) => found.parts.push(part as usize),
            (2, Value::Bytes(packed)) => {
                let mut packed = Cursor::at(packed, start);
                while packed.remaining() > 0 {
                    found.parts.push(packed.varint()? as usize);
                }
            }
            (3, Value::Bytes(name)) => found.names.push(text(name, start)?),
            (5, Value::Number(precision)) => found.precision = precision,
            (6, Value::Number(scale)) => found.scale = scale,
            _ => {}
        }
    }
    Ok(found)
}

/// The message of one of the footer's types, as [`column_type`] reads it.
pub(super) fn type_message(of: &Type) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, of.kind as u64);
    let mut parts = Vec::new();
    for part in &of.parts {
        put_varint(&mut parts, *part as u64);
    }
    if !parts.is_empty() {
        put_bytes(&mut out, 2, &parts);
    }
    for name in &of.names {
        put_bytes(&mut out, 3, name.as_bytes());
    }
    if of.kind == Kind::Decimal {
        put_number(&mut out, 5, of.precision);
        put_number(&mut out, 6, of.scale);
    }
    out
}
