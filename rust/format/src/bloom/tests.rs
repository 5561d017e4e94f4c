use super::*;

fn keys(filter: &mut BloomFilter, count: usize) {
    for number in 1..=count {
        filter.add(format!("k{number}").as_bytes());
    }
}

#[test]
fn default_sizes() {
    assert_eq!(shape(60_000, 1e-9), (30, 2_587_966));
    assert_eq!(shape(10_000, 1e-9), (30, 431_328));
}

#[test]
fn places_are_those_of_java() {
    let row = Row::new(30, 2_587_966);
    for (key, first, second) in [
        ("k1", 249_653, 2_170_140),
        ("key-12345", 1_566_522, 1_995_069),
        ("é", 1_021_365, 1_225_260),
        ("日本語キー", 1_055_287, 1_502_702),
        ("😀x", 1_052_251, 1_574_420),
        ("abcÿ", 1_100_668, 982_664),
    ] {
        let places: Vec<_> = row.places(key.as_bytes()).take(2).collect();
        assert_eq!(
            places,
            [first, second].map(|place| (place >> 3, 1 << (place & 7))),
            "{key}"
        );
    }
}

#[test]
fn simple_is_the_same_as_java() {
    let mut filter = BloomFilter::simple(10, 0.01);
    filter.add(b"k1");
    filter.add("é".as_bytes());
    assert_eq!(filter.to_base64(), "/////wAAAAcBAAAAYBIgAEEgAEQCgAIAQA==");
    assert_eq!(filter.type_code(), "SIMPLE");
    let read = BloomFilter::from_base64(&filter.to_base64()).unwrap();
    assert_eq!(read, filter);
    assert!(read.contains(b"k1") && read.contains("é".as_bytes()) && !read.contains(b"k2"));
}

/// From `BloomFilterFactory` of 1.2.0 at error rate 0.01: keys k1, k2, ... added to a new filter,
/// then x1, x2, x3 added to one read from its text.
#[test]
fn dynamic_is_the_same_as_java() {
    for (entries, max, count, text, grown) in [
        (
            2,
            4,
            5,
            "/////wAAAAcBAAAAFAAAAAIAAAADAAAAAv////8AAAAHAQAAABRvNg7/////AAAABwEAAAAU+GIE",
            None,
        ),
        (
            2,
            4,
            9,
            "/////wAAAAcBAAAAFAAAAAIAAAAHAAAAAv////8AAAAHAQAAABT/tw7/////AAAABwEAAAAU+GcP",
            Some("/////wAAAAcBAAAAFAAAAAIAAAAKAAAAAv////8AAAAHAQAAABT/tw7/////AAAABwEAAAAU+XcP"),
        ),
        (
            3,
            7,
            12,
            "/////wAAAAcBAAAAHQAAAAMAAAAGAAAAA/////8AAAAHAQAAAB1+Fx8f/////wAAAAcBAAAAHafeORD/////AAAABwEAAAAdc1/oAA==",
            Some(
                "/////wAAAAcBAAAAHQAAAAMAAAAJAAAAA/////8AAAAHAQAAAB1/l38f/////wAAAAcBAAAAHa/eeRD/////AAAABwEAAAAdc1/oAA==",
            ),
        ),
        (
            2,
            100,
            5,
            "/////wAAAAcBAAAAFAAAAAIAAAABAAAAA/////8AAAAHAQAAABRpJgr/////AAAABwEAAAAU+GIE/////wAAAAcBAAAAFEYQDA==",
            Some(
                "/////wAAAAcBAAAAFAAAAAIAAAAEAAAAA/////8AAAAHAQAAABR7Nw7/////AAAABwEAAAAU+GIE/////wAAAAcBAAAAFHa0DA==",
            ),
        ),
        (
            4,
            2,
            9,
            "/////wAAAAcBAAAAJwAAAAQAAAAJAAAAAf////8AAAAHAQAAACf//P75Vw==",
            Some("/////wAAAAcBAAAAJwAAAAQAAAAMAAAAAf////8AAAAHAQAAACf//f7/dw=="),
        ),
    ] {
        let mut filter = BloomFilter::dynamic(entries, 0.01, max);
        keys(&mut filter, count);
        assert_eq!(filter.to_base64(), text, "{entries} {max} {count}");
        assert_eq!(filter.type_code(), "DYNAMIC_V0");
        let mut read = BloomFilter::from_base64(text).unwrap();
        assert_eq!(read.to_base64(), text);
        for key in ["x1", "x2", "x3"] {
            read.add(key.as_bytes());
            assert!(read.contains(key.as_bytes()));
        }
        assert_eq!(
            read.to_base64(),
            *grown.as_ref().unwrap_or(&read.to_base64().as_str())
        );
    }
}

#[test]
fn old_layouts_are_refused_by_name() {
    let old = [
        &[0, 0, 0, 7, 0, 0, 0, 8, 0xff][..],
        &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 7, 0, 0, 0, 0, 8, 0],
    ];
    for bytes in old {
        assert!(matches!(
            BloomFilter::parse(bytes),
            Err(FormatError::Unsupported { .. })
        ));
    }
}

#[test]
fn damage_never_panics_and_cuts_are_errors() {
    let mut simple = BloomFilter::simple(10, 0.01);
    let mut dynamic = BloomFilter::dynamic(2, 0.01, 4);
    keys(&mut simple, 3);
    keys(&mut dynamic, 5);
    for filter in [simple, dynamic] {
        let bytes = filter.to_bytes();
        for at in 0..bytes.len() {
            let cut = BloomFilter::parse(&bytes[..at]);
            assert!(
                cut.and_then(|cut| cut.expect_type(filter.type_code()))
                    .is_err()
            );
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                if let Ok(mut read) = BloomFilter::parse(&damaged) {
                    assert_eq!(read.to_bytes(), damaged);
                    read.add(b"k");
                    assert!(read.contains(b"k"));
                }
            }
        }
    }
}

#[test]
fn a_filled_filter_lets_every_key_through_and_is_read_again() {
    for mut filter in [BloomFilter::simple(3, 0.1), BloomFilter::dynamic(3, 0.1, 9)] {
        for key in ["a", "b", "c", "d", "e"] {
            filter.add(key.as_bytes());
        }
        let size = filter.to_bytes().len();
        filter.fill();
        let read = BloomFilter::from_base64(&filter.to_base64()).unwrap();
        assert_eq!(read.to_bytes().len(), size);
        for number in 0..1000 {
            assert!(read.contains(format!("k{number}").as_bytes()));
        }
    }
}
