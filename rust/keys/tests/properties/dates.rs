//! Local times by patterns of Joda-Time.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, TimestampMillisecondArray};
use arrow::datatypes::{Int32Type, TimestampMillisecondType};
use proptest::prelude::*;
use pyhudi_keys::{format_times, parse_times};

const DAY: i64 = 86_400_000;
/// Of the years 1 to 9999.
const TIMES: std::ops::Range<i64> = -62_135_596_800_000..253_402_300_800_000;

fn pattern(text: &str) -> Vec<String> {
    text.split('|').map(str::to_owned).collect()
}

fn formatted(millis: i64, parts: &str) -> String {
    let times = TimestampMillisecondArray::from(vec![millis]);
    format_times(&times, &pattern(parts))
        .unwrap()
        .value(0)
        .to_owned()
}

fn parsed(text: &str, parts: &str) -> Option<(i64, Option<i32>)> {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let found = parse_times(&texts, &[pattern(parts)]).ok()?;
    let offsets = found.column(1).as_primitive::<Int32Type>();
    let times = found.column(0).as_primitive::<TimestampMillisecondType>();
    Some((
        times.value(0),
        offsets.is_valid(0).then(|| offsets.value(0)),
    ))
}

proptest! {
    #[test]
    fn a_time_is_told_by_its_text(millis in TIMES) {
        for (parts, unit) in [
            ("yyyy|MM|dd|HH|mm|ss|SSS", 1),
            ("yyyy|'-|MM|'-|dd|'T|HH|':|mm|':|ss|'.|SSS", 1),
            ("yyyy|'/|M|'/|d|' |H|':|m|':|s", 1000),
            ("yyyy|MM|dd|HH", 3_600_000),
            ("yyyy|'-|MM|'-|dd", DAY),
        ] {
            let text = formatted(millis, parts);
            prop_assert_eq!(
                parsed(&text, parts),
                Some((millis.div_euclid(unit) * unit, None)),
                "{} {}",
                text,
                parts
            );
        }
    }

    #[test]
    fn texts_of_times_rise_with_them(a in TIMES, b in TIMES) {
        let parts = "yyyy|MM|dd|HH|mm|ss|SSS";
        prop_assert_eq!(formatted(a, parts).cmp(&formatted(b, parts)), a.cmp(&b));
    }

    #[test]
    fn an_offset_is_told(millis in TIMES, minutes in -1439..1440_i32, colon in any::<bool>()) {
        let sign = if minutes < 0 { '-' } else { '+' };
        let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
        let colon = if colon { ":" } else { "" };
        let parts = "yyyy|'-|MM|'-|dd|'T|HH|':|mm|':|ss|'.|SSS";
        let text = format!(
            "{}{sign}{hours:02}{colon}{rest:02}",
            formatted(millis, parts)
        );
        prop_assert_eq!(
            parsed(&text, &format!("{parts}|Z")),
            Some((millis, Some(minutes)))
        );
    }

    /// Of any pattern that key generators have, and any text.
    #[test]
    fn no_text_and_no_time_panics(
        text in prop_oneof![any::<String>(), "[0-9:T.+Z-]{0,25}"],
        parts in prop::collection::vec("([yYMdHmsSZ]{1,5})|('[^|]{0,3})", 0..6),
        millis in any::<i64>(),
    ) {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
        let _ = parse_times(&texts, std::slice::from_ref(&parts));
        let times = TimestampMillisecondArray::from(vec![millis]);
        let _ = format_times(&times, &parts);
    }
}
