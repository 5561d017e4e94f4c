//! Local dates and times to text and back, by patterns of Joda-Time, as timestamp key generators
//! make partition paths from them.
//!
//! Time zones are not known here: the times are local ones. Which letters of a pattern are allowed
//! is the caller's decision; [`parts`] refuses those that this file does not know.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Builder, StringArray, StringBuilder, StructArray,
    TimestampMillisecondArray, TimestampMillisecondBuilder,
};
use arrow::datatypes::{DataType, Field, Fields, TimeUnit, TimestampMillisecondType};

use crate::error::{KeysError, Result};

const DAY: i64 = 86_400_000;

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// A letter and its number of repetitions.
    Field(char, usize),
    /// Text as it is.
    Text(String),
}

/// The parts of a pattern: runs of one letter, or `'` and the literal text after it.
fn parts(pattern: &[String], letters: &str) -> Result<Vec<Part>> {
    pattern
        .iter()
        .map(|part| match part.strip_prefix('\'') {
            Some(text) => Ok(Part::Text(text.to_owned())),
            None => match part.chars().next() {
                Some(letter) if letters.contains(letter) => Ok(Part::Field(letter, part.len())),
                _ => Err(KeysError::Schema(format!(
                    "the date pattern has {part}, which is not supported"
                ))),
            },
        })
        .collect()
}

/// Local times (milliseconds) as text. Null stays null.
///
/// # Errors
/// A pattern with a letter other than y, Y, M, d, D, H, h, k, K, m, s and S.
pub fn format_times(times: &TimestampMillisecondArray, pattern: &[String]) -> Result<StringArray> {
    let parts = parts(pattern, "yYMdDHhkKmsS")?;
    let mut texts = StringBuilder::with_capacity(times.len(), times.len() * 12);
    let mut text = String::new();
    for time in times {
        let Some(time) = time else {
            texts.append_null();
            continue;
        };
        text.clear();
        let local = Local::of(time);
        for part in &parts {
            local.write(part, &mut text);
        }
        texts.append_value(&text);
    }
    Ok(texts.finish())
}

/// The fields of a local time.
struct Local {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    millis_of_day: i64,
}

impl Local {
    fn of(millis: i64) -> Self {
        let days = millis.div_euclid(DAY);
        let (year, month, day) = date_of(days);
        Self {
            year,
            month,
            day,
            day_of_year: days - days_of(year, 1, 1) + 1,
            millis_of_day: millis.rem_euclid(DAY),
        }
    }

    fn write(&self, part: &Part, text: &mut String) {
        let (letter, width) = match part {
            Part::Text(literal) => return text.push_str(literal),
            Part::Field(letter, width) => (*letter, *width),
        };
        let hour = self.millis_of_day / 3_600_000;
        let value = match letter {
            'y' | 'Y' => return self.write_year(letter, width, text),
            'S' => return self.write_fraction(width, text),
            'M' => self.month,
            'd' => self.day,
            'D' => self.day_of_year,
            'H' => hour,
            'k' => (hour + 23) % 24 + 1,
            'K' => hour % 12,
            'h' => (hour + 11) % 12 + 1,
            'm' => self.millis_of_day / 60_000 % 60,
            _ => self.millis_of_day / 1000 % 60,
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "{value:0width$}");
    }

    /// `Y` is the year of the era: 1 BC, which is year 0, has 1.
    fn write_year(&self, letter: char, width: usize, text: &mut String) {
        let year = if letter == 'Y' && self.year <= 0 {
            1 - self.year
        } else {
            self.year
        };
        let (sign, size) = if width == 2 {
            ("", year.rem_euclid(100))
        } else {
            (if year < 0 { "-" } else { "" }, year.abs())
        };
        let _ = write!(text, "{sign}{size:0width$}");
    }

    fn write_fraction(&self, width: usize, text: &mut String) {
        let millis = format!("{:03}", self.millis_of_day % 1000);
        text.extend(millis.chars().chain(std::iter::repeat('0')).take(width));
    }
}

/// Year, month and day of a day since 1970 in the proleptic Gregorian calendar.
fn date_of(days: i64) -> (i64, i64, i64) {
    // Years begin in March, so that the leap day is the last one; 719468 days lie before 1970.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Days since 1970 of a date.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

/// Texts as local times: a struct of `time` (milliseconds) and `offset` (minutes east of UTC, null
/// where the text names none). The first pattern that takes a whole text wins; null stays null.
///
/// # Errors
/// A text that no pattern takes, with its row; a pattern with a letter other than y, Y, M, d, H, m,
/// s, S and Z.
pub fn parse_times(texts: &ArrayRef, patterns: &[Vec<String>]) -> Result<StructArray> {
    let patterns = patterns
        .iter()
        .map(|pattern| parts(pattern, "yYMdHmsSZ"))
        .collect::<Result<Vec<_>>>()?;
    let texts = arrow::compute::cast(texts, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let mut times = TimestampMillisecondBuilder::with_capacity(texts.len());
    let mut offsets = Int32Builder::with_capacity(texts.len());
    for (row, text) in texts.iter().enumerate() {
        let Some(text) = text else {
            times.append_null();
            offsets.append_null();
            continue;
        };
        let found = patterns.iter().find_map(|pattern| parse(text, pattern));
        let (time, offset) = found.ok_or_else(|| {
            KeysError::Schema(format!(
                "row {row}: {text:?} is no date of the table's input patterns"
            ))
        })?;
        times.append_value(time);
        offsets.append_option(offset);
    }
    let fields = Fields::from(vec![
        Field::new(
            "time",
            DataType::Timestamp(TimeUnit::Millisecond, None),
            true,
        ),
        Field::new("offset", DataType::Int32, true),
    ]);
    let columns: Vec<ArrayRef> = vec![Arc::new(times.finish()), Arc::new(offsets.finish())];
    Ok(StructArray::try_new(fields, columns, None)?)
}

/// What a parse has found so far; what no part sets stays at 1970-01-01 00:00, the year at 2000
/// where the largest part is a month or a day (`DateTimeParserBucket.computeMillis`, Joda-Time).
struct Found {
    year: i64,
    month: i64,
    day: i64,
    millis: i64,
    offset: Option<i32>,
}

fn parse(text: &str, pattern: &[Part]) -> Option<(i64, Option<i32>)> {
    let has = |letters: &str| {
        pattern
            .iter()
            .any(|part| matches!(part, Part::Field(letter, _) if letters.contains(*letter)))
    };
    let of_a_year = has("Md") && !has("yY");
    let mut found = Found {
        year: if of_a_year { 2000 } else { 1970 },
        month: 1,
        day: 1,
        millis: 0,
        offset: None,
    };
    let mut rest = text;
    for (at, part) in pattern.iter().enumerate() {
        rest = match part {
            Part::Text(literal) => strip_ignoring_case(rest, literal)?,
            Part::Field('Z', _) => found.take_offset(rest)?,
            Part::Field(letter, width) => {
                let next_is_number =
                    matches!(pattern.get(at + 1), Some(Part::Field(next, _)) if *next != 'Z');
                found.take_number(*letter, *width, next_is_number, rest)?
            }
        };
    }
    if !rest.is_empty() || date_of(days_of(found.year, found.month, found.day)).1 != found.month {
        return None;
    }
    let days = days_of(found.year, found.month, found.day);
    Some((days * DAY + found.millis, found.offset))
}

fn strip_ignoring_case<'a>(text: &'a str, literal: &str) -> Option<&'a str> {
    let mut chars = text.chars();
    for wanted in literal.chars() {
        let given = chars.next()?;
        if given != wanted && !given.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
    }
    Some(chars.as_str())
}

/// The longest run of at most `most` digits, at least one, and what follows.
fn digits(text: &str, most: usize) -> Option<(&str, &str)> {
    let length = text
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    (length > 0).then(|| text.split_at(length))
}

impl Found {
    fn take_number<'a>(
        &mut self,
        letter: char,
        width: usize,
        next_is_number: bool,
        text: &'a str,
    ) -> Option<&'a str> {
        let most = match letter {
            'y' | 'Y' if !next_is_number => 9,
            'y' | 'Y' | 'S' => width,
            _ => 2,
        };
        let (taken, rest) = digits(text, most)?;
        let value: i64 = taken.parse().ok()?;
        let within =
            |least: i64, greatest: i64| (least..=greatest).contains(&value).then_some(value);
        match letter {
            'y' | 'Y' => self.year = value,
            'M' => self.month = within(1, 12)?,
            'd' => self.day = within(1, 31)?,
            'H' => self.millis += within(0, 23)? * 3_600_000,
            'm' => self.millis += within(0, 59)? * 60_000,
            's' => self.millis += within(0, 59)? * 1000,
            _ => self.millis += format!("{taken:0<3}").get(..3)?.parse::<i64>().ok()?,
        }
        Some(rest)
    }

    /// `Z`, or a sign with hours and perhaps minutes: `+02`, `+0200`, `+02:00`.
    fn take_offset<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        if let Some(rest) = text.strip_prefix(['Z', 'z']) {
            self.offset = Some(0);
            return Some(rest);
        }
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+')?),
        };
        let (hours, rest) = two_digits(text, 23)?;
        let minutes = rest.strip_prefix(':').unwrap_or(rest);
        let (minutes, rest) = match two_digits(minutes, 59) {
            Some(found) => found,
            None => (0, rest),
        };
        self.offset = Some(sign * (hours * 60 + minutes));
        Some(rest)
    }
}

fn two_digits(text: &str, greatest: i32) -> Option<(i32, &str)> {
    let (taken, rest) = digits(text, 2).filter(|(taken, _)| taken.len() == 2)?;
    let value = taken.parse().ok().filter(|value| *value <= greatest)?;
    Some((value, rest))
}

/// The column as local times; `None` when it is of another type.
#[must_use]
pub fn as_times(column: &ArrayRef) -> Option<&TimestampMillisecondArray> {
    column.as_primitive_opt::<TimestampMillisecondType>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, AsArray, StringArray, TimestampMillisecondArray};
    use arrow::datatypes::{Int32Type, TimestampMillisecondType};

    use super::{date_of, format_times, parse_times};

    fn pattern(text: &str) -> Vec<String> {
        text.split('|').map(str::to_owned).collect()
    }

    fn formatted(millis: i64, parts: &str) -> String {
        let times = TimestampMillisecondArray::from(vec![millis]);
        let texts = format_times(&times, &pattern(parts)).unwrap();
        texts.value(0).to_owned()
    }

    fn parsed(text: &str, patterns: &[&str]) -> Option<(i64, Option<i32>)> {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
        let patterns: Vec<_> = patterns.iter().map(|p| pattern(p)).collect();
        let found = parse_times(&texts, &patterns).ok()?;
        let offsets = found.column(1).as_primitive::<Int32Type>();
        let offset = offsets.is_valid(0).then(|| offsets.value(0));
        let times = found.column(0).as_primitive::<TimestampMillisecondType>();
        Some((times.value(0), offset))
    }

    #[test]
    fn dates_of_days() {
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(date_of(19_782), (2024, 2, 29));
        assert_eq!(date_of(-1), (1969, 12, 31));
    }

    #[test]
    fn numbers_are_padded_to_the_width() {
        let noon = 1_709_209_800_007; // 2024-02-29T12:30:00.007
        assert_eq!(formatted(noon, "yyyy|'/|MM|'/|dd"), "2024/02/29");
        assert_eq!(
            formatted(noon, "yy|M|d|' at |H|':|mm|':|s|'.|SSSS"),
            "24229 at 12:30:0.0070"
        );
        assert_eq!(formatted(noon, "hh|' |K|' |k|' |D"), "12 0 12 60");
        assert_eq!(formatted(-1, "yyyy|MM|dd|HH|kk"), "196912312323");
    }

    #[test]
    fn texts_are_taken_by_the_first_pattern_that_fits_whole() {
        let day = |days: i64| days * 86_400_000;
        let both = ["yyyy|'-|MM|'-|dd", "yyyy|MM|dd"];
        assert_eq!(parsed("2024-2-29", &both), Some((day(19_782), None)));
        assert_eq!(parsed("20240229", &both), Some((day(19_782), None)));
        assert_eq!(parsed("2024-02-30", &both), None);
        assert_eq!(parsed("2024-02-29x", &both), None);
    }

    #[test]
    fn a_day_without_a_year_is_of_2000() {
        let days = |text, pattern| parsed(text, &[pattern]).map(|(millis, _)| millis / 86_400_000);
        assert_eq!(days("03-01", "MM|'-|dd"), Some(11_017));
        assert_eq!(days("02-29", "MM|'-|dd"), Some(11_016));
        assert_eq!(days("02 12", "dd|' |HH"), Some(10_958));
        assert_eq!(days("12:30", "HH|':|mm"), Some(0));
    }

    #[test]
    fn offsets_are_told() {
        let iso = [
            "yyyy|'-|MM|'-|dd|'T|HH|':|mm|':|ss|Z",
            "yyyy|'-|MM|'-|dd|'T|HH|':|mm|':|ss|'.|SSS|Z",
        ];
        assert_eq!(parsed("1970-01-01T00:00:01Z", &iso), Some((1000, Some(0))));
        assert_eq!(
            parsed("1970-01-01t00:00:00.12+0530", &iso),
            Some((120, Some(330)))
        );
        assert_eq!(
            parsed("1970-01-01T00:00:00-03:00", &iso),
            Some((0, Some(-180)))
        );
        assert_eq!(parsed("1970-01-01T24:00:00Z", &iso), None);
    }
}
