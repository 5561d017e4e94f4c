//! VARIANT values as JSON text, as Spark writes it where JSON has a form of its own.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::parts::MAX_DEPTH;
use super::{VariantNames, VariantPart, variant_size};
use crate::{FormatError, Result};

/// The longest text that is made of one value: few bytes can repeat a long name very often.
const MAX_TEXT: usize = 128 << 20;
const DAY: i64 = 86_400;

/// The JSON text of a value.
///
/// Dates and times become text, as do bytes (base64), UUIDs, and numbers that JSON lacks, such as
/// `"NaN"`. Decimals lose zeros at their end.
///
/// # Errors
/// The bytes are damaged, nest too deeply, or stand for too long a text.
pub fn variant_to_json(metadata: &[u8], value: &[u8]) -> Result<String> {
    let mut json = Json {
        names: VariantNames::parse(metadata)?,
        out: String::with_capacity(2 * value.len()),
        left: value.len(),
    };
    json.value(value, MAX_DEPTH)?;
    Ok(json.out)
}

struct Json<'a> {
    names: VariantNames<'a>,
    out: String,
    /// Values may share bytes, so that few bytes could stand for very many values.
    left: usize,
}

impl Json<'_> {
    fn value(&mut self, value: &[u8], depth: usize) -> Result<()> {
        if depth == 0 {
            let what = format!("VARIANT of more than {MAX_DEPTH} levels");
            return Err(FormatError::unsupported(what));
        }
        let part = VariantPart::parse(value)?;
        let own = match &part {
            VariantPart::Object(_) | VariantPart::Array(_) => 1,
            _ => variant_size(value)?,
        };
        let Some(left) = self.left.checked_sub(own) else {
            return Err(FormatError::corrupt(0, "more values than bytes"));
        };
        self.left = left;
        match part {
            VariantPart::Object(fields) => {
                self.out.push('{');
                for (at, (id, field)) in fields.into_iter().enumerate() {
                    if at > 0 {
                        self.out.push(',');
                    }
                    let Some(name) = self.names.get(id) else {
                        let what = format!("field name {id} of {}", self.names.len());
                        return Err(FormatError::corrupt(0, what));
                    };
                    self.text(name)?;
                    self.out.push(':');
                    self.value(field, depth - 1)?;
                }
                self.out.push('}');
            }
            VariantPart::Array(items) => {
                self.out.push('[');
                for (at, item) in items.into_iter().enumerate() {
                    if at > 0 {
                        self.out.push(',');
                    }
                    self.value(item, depth - 1)?;
                }
                self.out.push(']');
            }
            leaf => self.leaf(&leaf)?,
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: &VariantPart<'_>) -> Result<()> {
        match leaf {
            VariantPart::Null => self.out.push_str("null"),
            VariantPart::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            VariantPart::Int(value) => self.plain(format_args!("{value}")),
            VariantPart::Float(value) if value.is_finite() => self.plain(format_args!("{value:?}")),
            VariantPart::Double(value) if value.is_finite() => {
                self.plain(format_args!("{value:?}"));
            }
            VariantPart::Float(value) => self.not_finite(f64::from(*value)),
            VariantPart::Double(value) => self.not_finite(*value),
            VariantPart::Decimal(unscaled, scale) => self.decimal(*unscaled, usize::from(*scale)),
            VariantPart::Date(days) => {
                let day = date(i64::from(*days));
                self.plain(format_args!("\"{day}\""));
            }
            VariantPart::Time(micros) => {
                let time = time(*micros, 6);
                self.plain(format_args!("\"{time}\""));
            }
            VariantPart::Timestamp { value, nanos, utc } => self.timestamp(*value, *nanos, *utc),
            VariantPart::Binary(bytes) => {
                let text = STANDARD.encode(bytes);
                self.plain(format_args!("\"{text}\""));
            }
            VariantPart::String(text) => self.text(text)?,
            VariantPart::Uuid(bytes) => self.uuid(bytes),
            VariantPart::Object(_) | VariantPart::Array(_) => {}
        }
        Ok(())
    }

    fn plain(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.out.write_fmt(text);
    }

    fn not_finite(&mut self, value: f64) {
        self.out.push_str(match value {
            value if value.is_nan() => "\"NaN\"",
            value if value > 0.0 => "\"Infinity\"",
            _ => "\"-Infinity\"",
        });
    }

    fn decimal(&mut self, unscaled: i128, mut scale: usize) {
        let mut digits = unscaled.unsigned_abs();
        while scale > 0 && digits.is_multiple_of(10) {
            digits /= 10;
            scale -= 1;
        }
        if unscaled < 0 {
            self.out.push('-');
        }
        let text = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = text.split_at(text.len() - scale);
        self.out.push_str(whole);
        if scale > 0 {
            self.out.push('.');
            self.out.push_str(fraction);
        }
    }

    fn timestamp(&mut self, value: i64, nanos: bool, utc: bool) {
        let (unit, digits) = if nanos {
            (1_000_000_000, 9)
        } else {
            (1_000_000, 6)
        };
        let day = date(value.div_euclid(DAY * unit));
        let time = time(value.rem_euclid(DAY * unit), digits);
        let zone = if utc { "+00:00" } else { "" };
        self.plain(format_args!("\"{day} {time}{zone}\""));
    }

    fn uuid(&mut self, bytes: &[u8]) {
        self.out.push('"');
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                self.out.push('-');
            }
            self.plain(format_args!("{byte:02x}"));
        }
        self.out.push('"');
    }

    fn text(&mut self, text: &str) -> Result<()> {
        if self.out.len().saturating_add(text.len()) > MAX_TEXT {
            let what = format!("VARIANT of more than {MAX_TEXT} bytes of JSON");
            return Err(FormatError::unsupported(what));
        }
        self.out.push('"');
        for letter in text.chars() {
            match letter {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                letter if letter < ' ' => self.plain(format_args!("\\u{:04X}", u32::from(letter))),
                letter => self.out.push(letter),
            }
        }
        self.out.push('"');
        Ok(())
    }
}

/// A day of the Gregorian calendar, by days since 1970, as Java writes it.
fn date(days: i64) -> String {
    // Years begin with March here, in spans of 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let sign = match year {
        ..0 => "-",
        0..=9_999 => "",
        _ => "+",
    };
    format!("{sign}{:04}-{month:02}-{day:02}", year.unsigned_abs())
}

/// A time of day in units of which a second has `digits` digits; zeros at the end are left out.
fn time(value: i64, digits: u32) -> String {
    let unit = 10_i64.pow(digits);
    let (seconds, fraction) = (value.div_euclid(unit), value.rem_euclid(unit));
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let mut text = format!("{hours:02}:{minutes:02}:{:02}", seconds.rem_euclid(60));
    if fraction > 0 {
        let width = digits as usize;
        let fraction = format!("{fraction:0width$}");
        text.push('.');
        text.push_str(fraction.trim_end_matches('0'));
    }
    text
}
