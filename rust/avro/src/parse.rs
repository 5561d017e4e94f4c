//! Avro schema text to [`Type`]. Follows the Avro 1.11 rules for names and references.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::TimeUnit;
use serde_json::{Map, Value};

use crate::error::{AvroError, Result, schema_error, unsupported};
use crate::model::{Decimal, Record, RecordField, Type, below};
use crate::semi_structured::SemiStructured;
use crate::vector::{Element, Vector};

/// Named references let a short text stand for an enormous or endlessly deep type.
const MAX_TYPES: usize = 100_000;
const MAX_DEPTH: usize = 64;
const MAX_TEXT: usize = 8 << 20;
/// A null of a fixed type still takes its width in an Arrow array.
const MAX_FIXED: u64 = 1 << 20;

/// Whether a schema's text may be parsed as JSON, which takes some fifty times its bytes.
pub(crate) fn check_size(avro_json: &str) -> Result<()> {
    if avro_json.len() > MAX_TEXT {
        return unsupported(format!(
            "schema of {} bytes, {MAX_TEXT} at most",
            avro_json.len()
        ));
    }
    Ok(())
}

/// Parses a schema that must be a record.
pub(crate) fn parse_record(avro_json: &str) -> Result<Arc<Record>> {
    match parse(avro_json)? {
        Type::Record(record) => Ok(record),
        other => schema_error(format!("a record is needed, found {}", other.name())),
    }
}

/// Parses any schema.
pub(crate) fn parse(avro_json: &str) -> Result<Type> {
    check_size(avro_json)?;
    let value: Value =
        serde_json::from_str(avro_json).map_err(|e| AvroError::Schema(format!("not JSON: {e}")))?;
    let mut parser = Parser {
        names: HashMap::new(),
        types: 0,
    };
    let site = Site {
        namespace: "",
        path: "",
        depth: 0,
    };
    parser.parse(&value, &site)
}

struct Parser {
    /// Named types by full name; `None` while their own definition is being read.
    names: HashMap<String, Option<Type>>,
    types: usize,
}

/// Where in the schema a type stands.
struct Site<'a> {
    namespace: &'a str,
    path: &'a str,
    depth: usize,
}

impl<'a> Site<'a> {
    fn inner<'b>(&self, namespace: &'b str, path: &'b str) -> Site<'b> {
        Site {
            namespace,
            path,
            depth: self.depth + 1,
        }
    }

    fn same(&self) -> Site<'a> {
        Site {
            namespace: self.namespace,
            path: self.path,
            depth: self.depth + 1,
        }
    }
}

impl Parser {
    fn parse(&mut self, value: &Value, site: &Site) -> Result<Type> {
        self.count(1, site.depth)?;
        match value {
            Value::String(name) => self.named_or_primitive(name, site),
            Value::Array(branches) => self.union(branches, site),
            Value::Object(object) => self.object(object, site),
            other => schema_error(format!("{}: not a type: {other}", place(site.path))),
        }
    }

    fn count(&mut self, types: usize, depth: usize) -> Result<()> {
        self.types = self.types.saturating_add(types);
        if self.types > MAX_TYPES || depth > MAX_DEPTH {
            return unsupported(format!(
                "schema of more than {MAX_TYPES} types or {MAX_DEPTH} levels"
            ));
        }
        Ok(())
    }

    fn union(&mut self, branches: &[Value], site: &Site) -> Result<Type> {
        let mut types = Vec::with_capacity(branches.len());
        for branch in branches {
            let ty = self.parse(branch, &site.same())?;
            if matches!(ty, Type::Union(_)) {
                return schema_error(format!("{}: a union in a union", place(site.path)));
            }
            types.push(ty);
        }
        if types.is_empty() {
            return schema_error(format!("{}: an empty union", place(site.path)));
        }
        Ok(Type::Union(types.into()))
    }

    fn object(&mut self, object: &Map<String, Value>, site: &Site) -> Result<Type> {
        match object.get("type") {
            Some(Value::String(name)) => match name.as_str() {
                "record" | "error" => self.record(object, site),
                "enum" => self.enumeration(object, site),
                "fixed" => self.fixed(object, site),
                "array" => {
                    let items = self.items(object, "items", site)?;
                    if items.is_zero_width() {
                        return unsupported(format!(
                            "array of values without bytes at {}",
                            place(site.path)
                        ));
                    }
                    Ok(Type::Array(Arc::new(items)))
                }
                "map" => Ok(Type::Map(Arc::new(self.items(object, "values", site)?))),
                name => {
                    let base = self.named_or_primitive(name, site)?;
                    logical(base, object, site.path)
                }
            },
            Some(inner) => self.parse(inner, &site.same()),
            None => schema_error(format!("{}: a type without \"type\"", place(site.path))),
        }
    }

    fn items(&mut self, object: &Map<String, Value>, key: &str, site: &Site) -> Result<Type> {
        let Some(value) = object.get(key) else {
            return schema_error(format!("{}: no \"{key}\"", place(site.path)));
        };
        let path = below(site.path, key);
        self.parse(value, &site.inner(site.namespace, &path))
    }

    fn record(&mut self, object: &Map<String, Value>, site: &Site) -> Result<Type> {
        let full_name = full_name(object, site)?;
        let namespace = full_name.rsplit_once('.').map_or("", |(ns, _)| ns);
        self.names.insert(full_name.clone(), None);
        let Some(Value::Array(list)) = object.get("fields") else {
            return schema_error(format!("{}: a record without fields", place(site.path)));
        };
        let before = self.types;
        let mut fields = Vec::with_capacity(list.len());
        let mut seen = HashSet::with_capacity(list.len());
        for field in list {
            let field = self.field(field, namespace, site)?;
            if !seen.insert(field.name.clone()) {
                return schema_error(format!("duplicate field {}", below(site.path, &field.name)));
            }
            fields.push(field);
        }
        let depth = 1 + fields.iter().map(|f| depth(&f.ty)).max().unwrap_or(0);
        let logical = object.get("logicalType").and_then(Value::as_str);
        let record = Type::Record(Arc::new(Record {
            kind: SemiStructured::of_record(logical, &fields),
            fields,
            size: self.types - before + 1,
            depth,
        }));
        self.names.insert(full_name, Some(record.clone()));
        Ok(record)
    }

    fn field(&mut self, value: &Value, namespace: &str, site: &Site) -> Result<RecordField> {
        let name = value.get("name").and_then(Value::as_str);
        let (Some(name), Some(ty)) = (name, value.get("type")) else {
            return schema_error(format!(
                "{}: a field without name or type",
                place(site.path)
            ));
        };
        let path = below(site.path, name);
        let aliases = value.get("aliases").and_then(Value::as_array);
        Ok(RecordField {
            name: name.to_owned(),
            aliases: aliases.map_or_else(Vec::new, |list| {
                let names = list.iter().filter_map(Value::as_str);
                names.map(ToOwned::to_owned).collect()
            }),
            ty: self.parse(ty, &site.inner(namespace, &path))?,
            default: value.get("default").cloned(),
        })
    }

    fn enumeration(&mut self, object: &Map<String, Value>, site: &Site) -> Result<Type> {
        let symbols = object.get("symbols").and_then(Value::as_array);
        let symbols: Option<Vec<String>> = symbols.and_then(|list| {
            let names = list.iter().map(|s| s.as_str().map(ToOwned::to_owned));
            names.collect()
        });
        let Some(symbols) = symbols else {
            return schema_error(format!("{}: an enum without symbols", place(site.path)));
        };
        let ty = Type::Enum(symbols.into());
        self.names
            .insert(full_name(object, site)?, Some(ty.clone()));
        Ok(ty)
    }

    fn fixed(&mut self, object: &Map<String, Value>, site: &Site) -> Result<Type> {
        let Some(width) = object.get("size").and_then(Value::as_u64) else {
            return schema_error(format!("{}: a fixed without size", place(site.path)));
        };
        if width == 0 || width > MAX_FIXED {
            return unsupported(format!("fixed of {width} bytes at {}", place(site.path)));
        }
        let width = width as usize;
        let ty = match object.get("logicalType").and_then(Value::as_str) {
            Some("decimal") => decimal(object, Some(width), site.path)?,
            Some("vector") => vector(object, width, site.path)?,
            _ => Type::Fixed(width),
        };
        self.names
            .insert(full_name(object, site)?, Some(ty.clone()));
        Ok(ty)
    }

    fn named_or_primitive(&mut self, name: &str, site: &Site) -> Result<Type> {
        Ok(match name {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "int" => Type::Int,
            "long" => Type::Long,
            "float" => Type::Float,
            "double" => Type::Double,
            "bytes" => Type::Bytes,
            "string" => Type::String,
            name => return self.reference(name, site),
        })
    }

    fn reference(&mut self, name: &str, site: &Site) -> Result<Type> {
        let full = qualify(name, site.namespace);
        let found = self.names.get(&full).or_else(|| self.names.get(name));
        match found.cloned() {
            Some(Some(ty)) => {
                if let Type::Record(record) = &ty {
                    self.count(record.size, site.depth + record.depth)?;
                }
                Ok(ty)
            }
            Some(None) => unsupported(format!("recursive type {name} at {}", place(site.path))),
            None => schema_error(format!("{}: unknown type {name}", place(site.path))),
        }
    }
}

fn depth(ty: &Type) -> usize {
    match ty {
        Type::Array(inner) | Type::Map(inner) => 1 + depth(inner),
        Type::Union(branches) => 1 + branches.iter().map(depth).max().unwrap_or(0),
        Type::Record(record) => 1 + record.depth,
        _ => 1,
    }
}

fn place(path: &str) -> &str {
    if path.is_empty() { "the record" } else { path }
}

fn qualify(name: &str, namespace: &str) -> String {
    if namespace.is_empty() || name.contains('.') {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

fn full_name(object: &Map<String, Value>, site: &Site) -> Result<String> {
    let Some(name) = object.get("name").and_then(Value::as_str) else {
        return schema_error(format!("{}: a type without name", place(site.path)));
    };
    let namespace = object.get("namespace").and_then(Value::as_str);
    Ok(qualify(name, namespace.unwrap_or(site.namespace)))
}

/// Applies a logical type. One that Avro does not know, or that stands on another type than
/// its own, is ignored, as the specification and Java do.
fn logical(base: Type, object: &Map<String, Value>, path: &str) -> Result<Type> {
    let name = object.get("logicalType").and_then(Value::as_str);
    let timestamp = |unit, utc| Type::Timestamp { unit, utc };
    Ok(match (name, base) {
        (Some("date"), Type::Int) => Type::Date,
        (Some("time-millis"), Type::Int) => Type::TimeMillis,
        (Some("time-micros"), Type::Long) => Type::TimeMicros,
        (Some("timestamp-millis"), Type::Long) => timestamp(TimeUnit::Millisecond, true),
        (Some("timestamp-micros"), Type::Long) => timestamp(TimeUnit::Microsecond, true),
        (Some("local-timestamp-millis"), Type::Long) => timestamp(TimeUnit::Millisecond, false),
        (Some("local-timestamp-micros"), Type::Long) => timestamp(TimeUnit::Microsecond, false),
        (Some("decimal"), Type::Bytes) => decimal(object, None, path)?,
        (_, base) => base,
    })
}

/// A VECTOR, whose attributes must say what its bytes are.
fn vector(object: &Map<String, Value>, size: usize, path: &str) -> Result<Type> {
    let told = |key| object.get(key).and_then(Value::as_str);
    let (element, backing) = (told("elementType"), told("storageBacking"));
    let backing = backing.unwrap_or("FIXED_BYTES");
    let Some(kind) = element
        .and_then(Element::named)
        .filter(|_| backing == "FIXED_BYTES")
    else {
        return unsupported(format!(
            "VECTOR with elementType {} and storageBacking {backing} at {path}",
            element.unwrap_or("unknown")
        ));
    };
    let dimension = object.get("dimension").and_then(Value::as_u64);
    let vector = Vector {
        dimension: dimension.map_or(0, |dimension| dimension as usize),
        element: kind,
    };
    if vector.dimension > size || vector.size() != size {
        return schema_error(format!("{path}: {} in {size} bytes", vector.text()));
    }
    Ok(Type::Vector(vector))
}

fn decimal(object: &Map<String, Value>, size: Option<usize>, path: &str) -> Result<Type> {
    let number = |key| object.get(key).and_then(Value::as_i64);
    let precision = number("precision").unwrap_or(0);
    let scale = number("scale").unwrap_or(0);
    if precision < 1 || scale < 0 || scale > precision {
        return schema_error(format!("{path}: decimal({precision}, {scale})"));
    }
    if precision > 76 || size.is_some_and(|size| size > 32) {
        return unsupported(format!("decimal({precision}, {scale}) at {path}"));
    }
    let precision = precision as u8;
    if size.is_some_and(|size| size < Decimal::fewest_bytes(precision)) {
        return schema_error(format!(
            "{path}: decimal of {precision} digits in too few bytes"
        ));
    }
    Ok(Type::Decimal(Decimal {
        precision,
        scale: scale as i8,
        size,
    }))
}
