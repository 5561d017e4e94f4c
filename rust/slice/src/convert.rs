//! Values whose type was changed, where a plain cast would give others than Hudi does.
//!
//! Hudi turns floats into doubles, and floats and doubles into decimals, by their printed digits
//! (`HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType`, Hudi 1.2.0). A value that the new type
//! cannot hold is an error here, where Hudi gives null, another number, or an error.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, Decimal128Array, Float64Array, StringArray,
    TimestampMicrosecondArray, TimestampMillisecondArray,
};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::Parser;
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};

use crate::error::{Result, SliceError};
use pyhudi_keys::java_text;

/// Floats as the doubles that print the same.
pub(crate) fn floats_to_doubles(column: &ArrayRef) -> ArrayRef {
    let floats = column.as_primitive::<Float32Type>();
    // Small whole numbers print the same as either; infinities and NaN have no digits.
    let double = |value: f32| match f64::from(value) {
        same if !same.is_finite() || same.fract() == 0.0 && same.abs() < 1e7 => same,
        other => value.to_string().parse().unwrap_or(other),
    };
    Arc::new(
        floats
            .iter()
            .map(|v| v.map(double))
            .collect::<Float64Array>(),
    )
}

/// Floats, doubles or text as decimals, rounded half up.
pub(crate) fn to_decimals(column: &ArrayRef, name: &str, to: &DataType) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, scale) = *to else {
        return Err(SliceError::Schema(format!("{to} is no decimal")));
    };
    let texts = java_text(column, name)?;
    let values = parsed(&texts, name, to, |text| decimal(text, precision, scale))?;
    let array = values.into_iter().collect::<Decimal128Array>();
    Ok(Arc::new(array.with_precision_and_scale(precision, scale)?))
}

/// Text as dates, in the form that `java.sql.Date.valueOf` takes.
pub(crate) fn texts_to_dates(column: &ArrayRef, name: &str) -> Result<ArrayRef> {
    let texts = cast(column, &DataType::Utf8)?;
    let values = parsed(texts.as_string(), name, &DataType::Date32, date)?;
    Ok(Arc::new(values.into_iter().collect::<Date32Array>()))
}

/// The same numbers, taken for milliseconds.
///
/// Hudi before 1.1 stamped millisecond columns as microseconds: where the table says milliseconds
/// and a file microseconds, the file is wrong (`AvroSchemaRepair.repairLogicalTypes`, Hudi 1.1).
pub(crate) fn micros_meant_as_millis(column: &ArrayRef, zone: Option<Arc<str>>) -> ArrayRef {
    let micros = column.as_primitive::<TimestampMicrosecondType>();
    let millis = TimestampMillisecondArray::new(micros.values().clone(), micros.nulls().cloned());
    Arc::new(millis.with_timezone_opt(zone))
}

/// Plain longs as local timestamps: Avro before 1.10 dropped that logical type (see above).
pub(crate) fn longs_to_local_timestamps(column: &ArrayRef, unit: TimeUnit) -> Option<ArrayRef> {
    let longs = column.as_primitive::<Int64Type>();
    let (values, nulls) = (longs.values().clone(), longs.nulls().cloned());
    match unit {
        TimeUnit::Millisecond => Some(Arc::new(TimestampMillisecondArray::new(values, nulls))),
        TimeUnit::Microsecond => Some(Arc::new(TimestampMicrosecondArray::new(values, nulls))),
        TimeUnit::Second | TimeUnit::Nanosecond => None,
    }
}

fn parsed<T>(
    texts: &StringArray,
    name: &str,
    to: &DataType,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<Option<T>>> {
    let value = |text: Option<&str>| match text {
        None => Ok(None),
        Some(text) => parse(text).map(Some).ok_or_else(|| {
            SliceError::Schema(format!("column {name} holds {text:?}, which is no {to}"))
        }),
    };
    texts.iter().map(value).collect()
}

fn date(text: &str) -> Option<i32> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let well_formed = parts.next().is_none()
        && year.len() == 4
        && digits(year, 4)
        && digits(month, 2)
        && digits(day, 2);
    if !well_formed {
        return None;
    }
    Date32Type::parse(&format!("{year}-{month:0>2}-{day:0>2}"))
}

/// The unscaled value of what `new BigDecimal(text)` takes; none for other text, or too many digits.
fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = [whole, fraction].concat();
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // 0.<digits> times ten to this power, then how many digits stay of it at this scale.
    let significant = all.trim_start_matches('0');
    let point = i64::try_from(whole.len()).ok()? + i64::from(exponent)
        - i64::try_from(all.len() - significant.len()).ok()?;
    let kept = point + i64::from(scale);
    if significant.is_empty() || kept < 0 {
        return Some(0);
    }
    if kept > i64::from(precision) {
        return None;
    }
    let kept = usize::try_from(kept).ok()?;
    let cut = significant.len().min(kept);
    let mut unscaled: i128 = match &significant[..cut] {
        "" => 0,
        digits => digits.parse().ok()?,
    };
    unscaled *= 10_i128.checked_pow(u32::try_from(kept - cut).ok()?)?;
    if significant
        .as_bytes()
        .get(kept)
        .is_some_and(|next| *next >= b'5')
    {
        unscaled += 1;
    }
    let fits = unscaled < 10_i128.checked_pow(u32::from(precision))?;
    fits.then_some(if negative { -unscaled } else { unscaled })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float32Array;

    #[test]
    fn floats_keep_their_digits() {
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![
            0.1,
            -1.17,
            3.402_823_5e38,
            1e-10,
            -5.0,
            f32::INFINITY,
        ]));
        let doubles = floats_to_doubles(&floats);
        let expected = [0.1, -1.17, 3.402_823_5e38, 1e-10, -5.0, f64::INFINITY];
        assert_eq!(doubles.as_ref(), &Float64Array::from(expected.to_vec()));
    }

    #[test]
    fn decimals_round_half_up_and_must_fit() {
        let cases = [
            ("1.0005", 6, 3, Some(1001)),
            ("-0.00005", 20, 4, Some(-1)),
            ("0.00004999", 20, 4, Some(0)),
            ("1e2", 6, 3, Some(100_000)),
            ("1.0E10", 20, 8, Some(1_000_000_000_000_000_000)),
            ("12.345", 12, 3, Some(12_345)),
            ("+.5", 4, 2, Some(50)),
            ("7", 4, 2, Some(700)),
            ("99.995", 4, 2, None),
            ("100", 4, 2, None),
            ("1e30", 20, 4, None),
            ("1e-2147483648", 20, 4, Some(0)),
            ("0e2147483647", 20, 4, Some(0)),
            ("0.0", 1, 0, Some(0)),
            (" 1.5 ", 6, 3, None),
            ("abc", 6, 3, None),
            ("", 6, 3, None),
            (".", 6, 3, None),
            ("NaN", 6, 3, None),
        ];
        for (text, precision, scale, value) in cases {
            assert_eq!(decimal(text, precision, scale), value, "{text}");
        }
    }

    #[test]
    fn dates_are_whole_and_without_blanks() {
        assert_eq!(date("1970-01-02"), Some(1));
        assert_eq!(date("1969-12-31"), Some(-1));
        assert_eq!(date("2024-2-9"), date("2024-02-09"));
        for bad in [
            "2023-02-29",
            "abc",
            "2024-02-09T10:00:00",
            " 2024-02-09",
            "",
            "+024-1-1",
        ] {
            assert_eq!(date(bad), None, "{bad}");
        }
    }
}
