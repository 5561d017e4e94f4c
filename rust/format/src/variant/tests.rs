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
