//! Values as Java's `toString` gives them: what Hudi's key generators put into keys and paths.
//!
//! Not for people: timestamps come out as their raw number, as `KeyGenUtils` (Hudi 1.2.0) has them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float32Type, Float64Type};

use crate::error::{KeysError, Result};

/// The column as text, null where it is null.
pub fn java_text(column: &ArrayRef, name: &str) -> Result<StringArray> {
    let text: ArrayRef = match column.data_type() {
        DataType::Utf8 => Arc::clone(column),
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => {
            cast(column, &DataType::Utf8)?
        }
        DataType::Date32 => cast(column, &DataType::Utf8).map_err(|error| {
            KeysError::Schema(format!(
                "column {name} has a date too far off to be text in a key or partition path, \
                 where a text column or null would do: {error}"
            ))
        })?,
        kind if kind.is_integer() => cast(column, &DataType::Utf8)?,
        DataType::Timestamp(..) | DataType::Time64(_) => {
            cast(&cast(column, &DataType::Int64)?, &DataType::Utf8)?
        }
        DataType::Float32 => {
            let values = column.as_primitive::<Float32Type>();
            Arc::new(
                values
                    .iter()
                    .map(|v| v.map(float_text))
                    .collect::<StringArray>(),
            )
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>();
            Arc::new(
                values
                    .iter()
                    .map(|v| v.map(double_text))
                    .collect::<StringArray>(),
            )
        }
        DataType::Decimal128(_, scale) => {
            let values = column.as_primitive::<Decimal128Type>();
            let texts = values
                .iter()
                .map(|v| v.map(|unscaled| decimal_text(unscaled, *scale)));
            Arc::new(texts.collect::<StringArray>())
        }
        other => {
            return Err(KeysError::Schema(format!(
                "column {name} of type {other} cannot be part of a key or partition path"
            )));
        }
    };
    Ok(text.as_string::<i32>().clone())
}

/// The column as Spark shows it when it casts to text, at UTC: timestamps as dates and times, other
/// values as Java prints them.
///
/// # Errors
/// A type that has no such text: binary and nested ones.
pub fn shown_text(column: &ArrayRef, name: &str) -> Result<StringArray> {
    let DataType::Timestamp(unit, _) = column.data_type() else {
        return java_text(column, name);
    };
    // By way of numbers: a cast would look up the zone.
    let local = DataType::Timestamp(*unit, None);
    let local = cast(&cast(column, &DataType::Int64)?, &local)?;
    let texts = cast(&local, &DataType::Utf8)?;
    let shown = |text: &str| {
        let text = text.replacen('T', " ", 1);
        match text.split_once('.') {
            Some((seconds, fraction)) => match fraction.trim_end_matches('0') {
                "" => seconds.to_owned(),
                fraction => format!("{seconds}.{fraction}"),
            },
            None => text,
        }
    };
    let texts = texts.as_string::<i32>();
    Ok(texts.iter().map(|text| text.map(shown)).collect())
}

/// `Double.toString`.
pub fn double_text(value: f64) -> String {
    java_float(
        value.is_nan(),
        value.is_infinite(),
        value.is_sign_negative(),
        value.abs(),
        &format!("{:e}", value.abs()),
    )
}

/// `Float.toString`.
pub fn float_text(value: f32) -> String {
    java_float(
        value.is_nan(),
        value.is_infinite(),
        value.is_sign_negative(),
        f64::from(value.abs()),
        &format!("{:e}", value.abs()),
    )
}

/// `scientific` is Rust's shortest form, `d.ddde<exponent>`.
fn java_float(nan: bool, infinite: bool, negative: bool, size: f64, scientific: &str) -> String {
    let sign = if negative { "-" } else { "" };
    if nan {
        return "NaN".to_owned();
    }
    if infinite {
        return format!("{sign}Infinity");
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{sign}{}", plain(mantissa, exponent.parse().unwrap_or(0)));
    }
    let dot = if mantissa.contains('.') { "" } else { ".0" };
    format!("{sign}{mantissa}{dot}E{exponent}")
}

/// Decimal notation with at least one digit on each side of the point.
fn plain(mantissa: &str, exponent: i32) -> String {
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("0.{zeros}{digits}");
    }
    let whole = exponent as usize + 1;
    let padded = format!("{digits:0<whole$}");
    let (integer, fraction) = padded.split_at(whole);
    format!(
        "{integer}.{}",
        if fraction.is_empty() { "0" } else { fraction }
    )
}

/// `BigDecimal.toString`.
fn decimal_text(unscaled: i128, scale: i8) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    let scale = i64::from(scale);
    let exponent = digits.len() as i64 - 1 - scale;
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    if scale > 0 && exponent >= -6 {
        let width = scale as usize + 1;
        let padded = format!("{digits:0>width$}");
        let (integer, fraction) = padded.split_at(padded.len() - scale as usize);
        return format!("{sign}{integer}.{fraction}");
    }
    let (first, rest) = digits.split_at(1);
    let dot = if rest.is_empty() { "" } else { "." };
    let plus = if exponent >= 0 { "+" } else { "" };
    format!("{sign}{first}{dot}{rest}E{plus}{exponent}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray, TimestampMicrosecondArray};

    use super::{decimal_text, double_text, float_text, shown_text};

    #[test]
    fn timestamps_as_spark_shows_them() {
        let micros = [1_709_209_800_000_000, -1, 1_500_000];
        let column: ArrayRef =
            Arc::new(TimestampMicrosecondArray::from(micros.to_vec()).with_timezone("UTC"));
        let texts = [
            "2024-02-29 12:30:00",
            "1969-12-31 23:59:59.999999",
            "1970-01-01 00:00:01.5",
        ];
        let shown = shown_text(&column, "at").unwrap();
        assert_eq!(shown, StringArray::from(texts.to_vec()));
    }

    #[test]
    fn doubles_as_java_prints_them() {
        let pairs = [
            (1.0, "1.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e10, "1.0E10"),
            (1.5e-5, "1.5E-5"),
            (0.001, "0.001"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (-12.25, "-12.25"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
            (123_456.789, "123456.789"),
        ];
        for (value, text) in pairs {
            assert_eq!(double_text(value), text);
        }
        assert_eq!(float_text(1.1), "1.1");
    }

    #[test]
    fn decimals_as_java_prints_them() {
        assert_eq!(decimal_text(550, 2), "5.50");
        assert_eq!(decimal_text(-5, 2), "-0.05");
        assert_eq!(decimal_text(1, 8), "1E-8");
        assert_eq!(decimal_text(12, 8), "1.2E-7");
        assert_eq!(decimal_text(0, 2), "0.00");
        assert_eq!(decimal_text(42, 0), "42");
    }
}
