//! ORC files that Hudi wrote, through Java's writer: what their tails say, and columns of them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use bytes::Bytes;
use pyhudi_format::orc::{Bits, Ints, IntsForm, Kind, StreamKind, StripeFooter, Tail};

fn file(name: &str) -> Bytes {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/orc/");
    Bytes::from(std::fs::read(format!("{folder}{name}")).unwrap())
}

fn number_of(tail: &Tail, name: &str) -> usize {
    let root = &tail.types[0];
    let at = root.names.iter().position(|found| found == name).unwrap();
    root.parts[at]
}

#[test]
fn the_tail_tells_schema_keys_and_filter() {
    let tail = Tail::read(&file("v6_cow_orc_types.orc")).unwrap();
    assert_eq!((tail.rows, tail.stripes.len()), (60, 1));
    assert_eq!(tail.types[number_of(&tail, "at")].kind, Kind::Timestamp);
    let wide = &tail.types[number_of(&tail, "wide")];
    assert_eq!(
        (wide.kind, wide.precision, wide.scale),
        (Kind::Decimal, 38, 6)
    );
    assert!(tail.value("orc.avro.schema").unwrap().contains("\"wide\""));
    assert_eq!(tail.value("hoodie_min_record_key").unwrap(), "k0000");
    assert_eq!(tail.value("hoodie_max_record_key").unwrap(), "k0059");
    assert!(tail.value("org.apache.hudi.bloomfilter").is_some());
    assert!(tail.value("another").is_none());
}

#[test]
fn a_column_with_nulls() {
    let source = file("v6_cow_orc_types.orc");
    let tail = Tail::read(&source).unwrap();
    let footer = StripeFooter::read(&source, &tail, &tail.stripes[0]).unwrap();
    assert_eq!(footer.time_zone, "UTC");
    let ts = number_of(&tail, "ts");
    assert!(!footer.has_nulls(ts));
    let column = number_of(&tail, "i");
    let mut there = Bits::new(footer.stream(&source, &tail, column, StreamKind::Present));
    let valid = (0..60).filter(|_| there.next().unwrap()).count();
    // Each ninth row from the fourth on has no values.
    assert_eq!(valid, 60 - 7);
    let form = IntsForm {
        v2: footer.encoding(column).v2,
        signed: true,
    };
    let mut ints = Ints::new(
        footer.stream(&source, &tail, column, StreamKind::Data),
        form,
    );
    let found: Vec<i64> = (0..valid).map(|_| ints.next().unwrap()).collect();
    assert_eq!(
        found.iter().filter(|n| **n == i64::from(i32::MAX)).count(),
        13
    );
    assert!(ints.next().is_err());
}

#[test]
fn every_flipped_byte_is_noticed_or_harmless() {
    let whole = file("v9_mor_orc.orc");
    let mut unread = 0;
    for at in 0..whole.len() {
        let mut damaged = whole.to_vec();
        damaged[at] ^= 0x10;
        let source = Bytes::from(damaged);
        let read = Tail::read(&source).and_then(|tail| {
            for stripe in &tail.stripes {
                StripeFooter::read(&source, &tail, stripe)?;
            }
            Ok(tail.rows)
        });
        unread += usize::from(read.is_err());
    }
    assert!(unread > 50, "{unread}");
}
