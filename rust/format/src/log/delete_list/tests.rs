use super::*;

fn record(
    key: &str,
    partition: Option<&str>,
    ordering: OrderingValue<'static>,
) -> DeleteRecord<'static> {
    DeleteRecord {
        record_key: Cow::Owned(key.to_owned()),
        partition_path: partition.map(|path| Cow::Owned(path.to_owned())),
        ordering,
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn decoded(bytes: &[u8]) -> Result<Vec<DeleteRecord<'_>>> {
    decode(bytes)?.collect()
}

/// Java's own bytes: `docs/format/log-files.md`, delete block.
#[test]
fn same_bytes_as_java() {
    let cases = [
        (
            "04 020264 0200 0400 020263 0200 0400 00",
            vec![
                record("d", Some(""), OrderingValue::Int(0)),
                record("c", Some(""), OrderingValue::Int(0)),
            ],
        ),
        (
            "04 020264 0200 0614 020263 0200 060a 00",
            vec![
                record("d", Some(""), OrderingValue::Long(10)),
                record("c", Some(""), OrderingValue::Long(5)),
            ],
        ),
        (
            "02 02046b32 02047366 0400 00",
            vec![record("k2", Some("sf"), OrderingValue::Int(0))],
        ),
        ("00", vec![]),
    ];
    for (bytes, records) in cases {
        let bytes = hex(bytes);
        assert_eq!(encode(records.iter().cloned()), bytes);
        assert_eq!(decoded(&bytes).unwrap(), records);
    }
}

#[test]
fn every_value_survives_the_round_trip() {
    let scalars = [
        OrderingValue::Null,
        OrderingValue::Boolean(true),
        OrderingValue::Int(i32::MIN),
        OrderingValue::Long(i64::MIN),
        OrderingValue::Float(1.5),
        OrderingValue::Double(-0.0),
        OrderingValue::Bytes(Cow::Borrowed(b"\0\xff")),
        OrderingValue::String(Cow::Borrowed("日本")),
        OrderingValue::Date(-1),
        OrderingValue::Decimal(Cow::Borrowed(&[0x80, 0])),
        OrderingValue::TimeMicros(86_399_999_999),
        OrderingValue::TimestampMicros(i64::MAX),
    ];
    let mut items = scalars.to_vec();
    items.push(OrderingValue::LocalDate(20_000));
    let records: Vec<_> = scalars
        .into_iter()
        .chain([OrderingValue::Array(items), OrderingValue::Array(vec![])])
        .map(|ordering| record("key", None, ordering))
        .collect();
    assert_eq!(decoded(&encode(records.iter().cloned())).unwrap(), records);
}

/// Other Avro writers may split the array and announce byte sizes.
#[test]
fn several_array_blocks_with_byte_sizes() {
    let bytes = hex("01 0e 020261 0200 0400 02 020262 00 0402 00");
    let keys: Vec<_> = decoded(&bytes)
        .unwrap()
        .into_iter()
        .map(|found| found.record_key)
        .collect();
    assert_eq!(keys, ["a", "b"]);
}

#[test]
fn damage_is_an_error() {
    let bad = [
        "",
        "02",
        "02 00 00 00 00",
        "02 0400 00 00 00",
        "fe01 00",
        "01 ff01 00",
        "02 02026b 00 1a 00",
        "02 02026b 00 0400",
        "02 02026b 00 0400 00 00",
        "02 0202ff 00 0400 00",
        "02 02026b 00 04feffffffff01 00",
        "02 02046b 00",
    ];
    for bytes in bad {
        assert!(decoded(&hex(bytes)).is_err(), "{bytes}");
    }
    let valid = encode(
        [record(
            "k",
            Some("p"),
            OrderingValue::Array(vec![OrderingValue::Int(7)]),
        )]
        .into_iter(),
    );
    for at in 0..valid.len() {
        assert!(decoded(&valid[..at]).is_err());
        for bit in 0..8 {
            let mut damaged = valid.clone();
            damaged[at] ^= 1 << bit;
            let _ = decoded(&damaged);
        }
    }
}
