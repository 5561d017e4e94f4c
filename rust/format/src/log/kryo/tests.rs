use super::*;

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

fn record(
    key: &str,
    partition: Option<&str>,
    ordering: OrderingValue<'static>,
) -> DeleteRecord<'static> {
    delete_record(key.to_owned(), partition.map(str::to_owned), ordering)
}

/// `SerializationUtils.serialize(HoodieKey[])` of 1.2.0; 0.15.0 gives the same bytes.
const KEYS: &str = "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b6579bb010601016f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f9010173e6016bb10101010401876b65792dc3a9e697a5010103010101018101c7016b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b010101000183eda0bdedb880";
/// The same of `DeleteRecord[]`, where the third item is the first again.
const RECORDS: &str = "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f7264bb010701016f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f72e40101026f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f9010173e601876b65792dc3a9e697a502d70401010101020105016bb1098080808080400101030101010102080201010101010201018101c7016b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b6b030182c3a9010101010201000183eda0bdedb880030d";
/// One `DeleteRecord` for k1 in sf, up to its ordering value.
const ONE: &str = "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f7264bb010201016f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e44656c6574655265636f72e40101026f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b65f9010173e6016bb1";

#[test]
fn version_1_keys_get_ordering_zero() {
    let zero = OrderingValue::Int(0);
    let expected = [
        record("k1", Some("sf"), zero.clone()),
        record("key-é日", Some("sf"), zero.clone()),
        record("k1", Some("sf"), zero.clone()),
        record(&"k".repeat(70), Some(""), zero.clone()),
        record("😀", None, zero),
    ];
    assert_eq!(decode(&hex(KEYS), 1).unwrap(), expected);
    let empty = "01005b4c6f72672e6170616368652e687564692e636f6d6d6f6e2e6d6f64656c2e486f6f6469654b6579bb0101";
    assert_eq!(decode(&hex(empty), 1).unwrap(), []);
}

#[test]
fn version_2_records_may_refer_to_earlier_ones() {
    let first = record("key-é日", Some("sf"), OrderingValue::Int(-300));
    let expected = [
        first.clone(),
        record("k1", Some("sf"), OrderingValue::Long(1 << 40)),
        first,
        record("k1", Some("sf"), OrderingValue::Int(-1)),
        record(&"k".repeat(70), Some(""), OrderingValue::String("é".into())),
        record("😀", None, OrderingValue::String("".into())),
    ];
    assert_eq!(decode(&hex(RECORDS), 2).unwrap(), expected);
}

#[test]
fn ordering_values() {
    for (bytes, value) in [
        ("00", OrderingValue::Null),
        ("0501", OrderingValue::Boolean(true)),
        ("020a", OrderingValue::Int(5)),
        ("090e", OrderingValue::Long(7)),
        ("09ffffffffffffffffff", OrderingValue::Long(i64::MIN)),
        ("043fc00000", OrderingValue::Float(1.5)),
        ("0ac004000000000000", OrderingValue::Double(-2.5)),
        ("03017374f2", OrderingValue::String("str".into())),
    ] {
        let read = decode(&hex(&format!("{ONE}{bytes}")), 2).unwrap();
        assert_eq!(read, [record("k1", Some("sf"), value)], "{bytes}");
    }
    for bytes in [
        // java.math.BigDecimal, java.sql.Date, Short, Byte
        "01036a6176612e6d6174682e426967446563696d61ec01020f02",
        "01036a6176612e73716c2e446174e50180d09bf3f52d",
        "080003",
        "0604",
    ] {
        let read = decode(&hex(&format!("{ONE}{bytes}")), 2);
        assert!(
            matches!(read, Err(FormatError::Unsupported { .. })),
            "{bytes}"
        );
    }
}

#[test]
fn damage_is_no_panic_and_cuts_are_errors() {
    for (bytes, version) in [(hex(KEYS), 1), (hex(RECORDS), 2)] {
        assert!(decode(&bytes, 3 - version).is_err());
        for at in 0..bytes.len() {
            assert!(decode(&bytes[..at], version).is_err());
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let _ = decode(&damaged, version);
            }
        }
    }
}
