use super::*;

const NAMES: &[u8] = &[1, 2, 0, 1, 2, b'b', b'a'];

/// {"a": [1, "x"], "b": 1.5}, of parts.
fn written() -> Vec<u8> {
    let names = VariantNames::parse(NAMES).unwrap();
    let mut out = VariantWriter::default();
    let b = out.len();
    out.decimal(15, 1);
    let a = out.len();
    out.int(1);
    let text = out.len();
    out.string("x").unwrap();
    out.array(a, &[a, text]).unwrap();
    out.object(&names, 0, &[(0, b), (1, a)]).unwrap();
    out.bytes().to_vec()
}

#[test]
fn a_value_of_parts_is_read_as_its_parts() {
    let bytes = written();
    check_variant(NAMES, &bytes).unwrap();
    assert_eq!(variant_size(&bytes).unwrap(), bytes.len());
    let fields = object_fields(&bytes).unwrap().unwrap();
    // In the order of their names.
    assert_eq!(fields.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 0]);
    let VariantPart::Array(items) = VariantPart::parse(fields[0].1).unwrap() else {
        panic!("no array");
    };
    assert_eq!(VariantPart::parse(items[0]).unwrap(), VariantPart::Int(1));
    let text = VariantPart::parse(items[1]).unwrap();
    assert_eq!(text, VariantPart::String("x"));
    let decimal = VariantPart::parse(fields[1].1).unwrap();
    assert_eq!(decimal, VariantPart::Decimal(15, 1));
}

#[test]
fn numbers_take_the_fewest_bytes() {
    let sizes = |write: &dyn Fn(&mut VariantWriter)| {
        let mut out = VariantWriter::default();
        write(&mut out);
        out.len()
    };
    assert_eq!(sizes(&|out| out.int(-128)), 2);
    assert_eq!(sizes(&|out| out.int(128)), 3);
    assert_eq!(sizes(&|out| out.int(i64::MIN)), 9);
    assert_eq!(sizes(&|out| out.decimal(-999_999_999, 9)), 6);
    assert_eq!(sizes(&|out| out.decimal(1_000_000_000, 0)), 10);
    assert_eq!(sizes(&|out| out.decimal(1, 19)), 18);
}

#[test]
fn large_objects_have_wide_numbers() {
    let names: Vec<String> = (0..300).map(|n| format!("{n:03}")).collect();
    let mut metadata = vec![0x41];
    metadata.extend(300_u16.to_le_bytes());
    for number in 0..=300_u16 {
        metadata.extend((3 * number).to_le_bytes());
    }
    for name in &names {
        metadata.extend(name.bytes());
    }
    let parsed = VariantNames::parse(&metadata).unwrap();
    let mut out = VariantWriter::default();
    let mut fields = Vec::new();
    for number in 0..300 {
        fields.push((number, out.len()));
        out.int(i64::from(number));
    }
    out.object(&parsed, 0, &fields).unwrap();
    check_variant(&metadata, out.bytes()).unwrap();
    let read = object_fields(out.bytes()).unwrap().unwrap();
    assert_eq!(
        VariantPart::parse(read[299].1).unwrap(),
        VariantPart::Int(299)
    );
}

#[test]
fn damage_is_an_error_and_no_panic() {
    let bytes = written();
    for end in 0..bytes.len() {
        assert!(check_variant(NAMES, &bytes[..end]).is_err(), "{end}");
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let _ = check_variant(NAMES, &damaged);
        }
    }
    for end in 0..NAMES.len() {
        assert!(check_variant(&NAMES[..end], &bytes).is_err(), "{end}");
    }
    assert!(check_variant(&[1, 0, 0], &bytes).is_err());
    assert!(check_variant(&[2, 0, 0], &[0]).is_err());
    // An array of itself: a few bytes that would stand for endlessly many values.
    let endless = [3, 2, 0, 0, 0];
    assert!(check_variant(NAMES, &endless).is_err());
}

#[test]
fn a_field_twice_is_refused() {
    let names = VariantNames::parse(NAMES).unwrap();
    let mut out = VariantWriter::default();
    out.null();
    out.null();
    assert!(out.object(&names, 0, &[(0, 0), (0, 1)]).is_err());
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
    pairs.collect()
}

/// What Spark 4.3's `parse_json` makes of a text: the text, value and metadata.
const SPARK: [(&str, &str, &str); 7] = [
    (
        r#"{"age":30,"name":"Ana","tags":["x","y"],"o":{"a":1.5,"b":null}}"#,
        "02040001030200020f061d0c1e0d416e610302000204057805790202040500060720010f00000000",
        "01060003070b0c0d0e6167656e616d65746167736f6162",
    ),
    (
        r#"{"age":99999999999,"name":null}"#,
        "0202000100090a18ffe776481700000000",
        "01020003076167656e616d65",
    ),
    ("12.50", "2002e2040000", "010000"),
    (
        r#"[1,2,{"age":7}]"#,
        "03030002040b0c010c0202010000020c07",
        "01010003616765",
    ),
    ("{}", "020000", "010000"),
    ("1e300", "1c9c7500883ce4377e", "010000"),
    (r#""just text""#, "256a7573742074657874", "010000"),
];

#[test]
fn json_becomes_the_bytes_that_spark_makes() {
    for (text, value, metadata) in SPARK {
        let made = variant_from_json(text).unwrap();
        assert_eq!(made, (bytes(metadata), bytes(value)), "{text}");
        check_variant(&made.0, &made.1).unwrap();
    }
}

#[test]
fn json_text_of_each_type() {
    type Write = fn(&mut VariantWriter);
    let cases: [(Write, &str); 24] = [
        (|out| out.null(), "null"),
        (|out| out.bool(true), "true"),
        (|out| out.int(i64::MIN), "-9223372036854775808"),
        (|out| out.float(0.1), "0.1"),
        (|out| out.double(-0.0), "-0.0"),
        (|out| out.double(1e300), "1e300"),
        (|out| out.double(f64::NAN), "\"NaN\""),
        (|out| out.double(f64::NEG_INFINITY), "\"-Infinity\""),
        (|out| out.float(f32::INFINITY), "\"Infinity\""),
        (|out| out.decimal(-1250, 2), "-12.5"),
        (|out| out.decimal(5, 3), "0.005"),
        (|out| out.decimal(0, 3), "0"),
        (|out| out.decimal(100, 0), "100"),
        (|out| out.date(0), "\"1970-01-01\""),
        (|out| out.date(-719_529), "\"-0001-12-31\""),
        (|out| out.date(11_016), "\"2000-02-29\""),
        (|out| out.date(2_932_897), "\"+10000-01-01\""),
        (|out| out.time(3_661_000_500), "\"01:01:01.0005\""),
        (
            |out| out.timestamp(-1, false, true),
            "\"1969-12-31 23:59:59.999999+00:00\"",
        ),
        (
            |out| out.timestamp(0, true, false),
            "\"1970-01-01 00:00:00\"",
        ),
        (|out| out.binary(b"\xff\x00").unwrap(), "\"/wA=\""),
        (
            |out| out.string("\"\\\n\u{1}ü").unwrap(),
            "\"\\\"\\\\\\n\\u0001ü\"",
        ),
        (
            |out| out.uuid(&[0xab; 16]),
            "\"abababab-abab-abab-abab-abababababab\"",
        ),
        (|out| out.array(0, &[]).unwrap(), "[]"),
    ];
    for (write, wanted) in cases {
        let mut out = VariantWriter::default();
        write(&mut out);
        assert_eq!(variant_to_json(&[1, 0, 0], out.bytes()).unwrap(), wanted);
    }
    assert_eq!(
        variant_to_json(NAMES, &written()).unwrap(),
        r#"{"a":[1,"x"],"b":1.5}"#
    );
}

#[test]
fn numbers_of_json_keep_their_value() {
    let kinds = [
        ("0", VariantPart::Int(0)),
        ("-1", VariantPart::Int(-1)),
        ("9223372036854775807", VariantPart::Int(i64::MAX)),
        (
            "9223372036854775808",
            VariantPart::Decimal(9_223_372_036_854_775_808, 0),
        ),
        ("0.00", VariantPart::Decimal(0, 2)),
        ("-0.10", VariantPart::Decimal(-10, 2)),
        ("1E2", VariantPart::Double(100.0)),
        ("1e-2", VariantPart::Double(0.01)),
    ];
    for (text, wanted) in kinds {
        let (_, value) = variant_from_json(text).unwrap();
        assert_eq!(VariantPart::parse(&value).unwrap(), wanted, "{text}");
    }
    let long = format!("1{}", "0".repeat(38));
    let (_, value) = variant_from_json(&long).unwrap();
    assert_eq!(
        VariantPart::parse(&value).unwrap(),
        VariantPart::Double(1e38)
    );
    let most = "9".repeat(38);
    let (_, value) = variant_from_json(&most).unwrap();
    assert_eq!(variant_to_json(&[1, 0, 0], &value).unwrap(), most);
}

#[test]
fn text_that_is_no_json_is_refused() {
    let odd = [
        "",
        " ",
        "nul",
        "tru e",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "NaN",
        "1e999",
        "\"",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\\u12\"",
        "\"\n\"",
        "[",
        "[1",
        "[1,]",
        "[1 2]",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "1 2",
        "{\"a\":1,\"a\":2}",
        "\"\\ué123\"",
    ];
    for text in odd {
        assert!(variant_from_json(text).is_err(), "{text}");
    }
    let (_, value) = variant_from_json("\"\\ud83d\\ude00\\u00fc\\/\"").unwrap();
    assert_eq!(
        VariantPart::parse(&value).unwrap(),
        VariantPart::String("😀ü/")
    );
}

#[test]
fn deep_and_repeated_values_end() {
    let deep = "[".repeat(1001) + &"]".repeat(1001);
    assert!(variant_from_json(&deep).is_err());
    let fits = "[".repeat(999) + "1" + &"]".repeat(999);
    let (metadata, value) = variant_from_json(&fits).unwrap();
    assert_eq!(variant_to_json(&metadata, &value).unwrap(), fits);
    check_variant(&metadata, &value).unwrap();
    // An array of itself, and one text that many elements share.
    assert!(variant_to_json(&[1, 0, 0], &[3, 2, 0, 0, 0]).is_err());
    let mut shared = vec![3, 200];
    shared.extend([0; 200]);
    shared.push(33);
    shared.push(32 << 2 | 1);
    shared.extend([b'x'; 32]);
    assert!(variant_to_json(&[1, 0, 0], &shared).is_err());
    for end in 0..shared.len() {
        let _ = variant_to_json(&[1, 0, 0], &shared[..end]);
    }
}
