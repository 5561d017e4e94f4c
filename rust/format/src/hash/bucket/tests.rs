use super::*;

#[test]
fn buckets_of_plain_keys() {
    for (key, of_4, of_256, with_a) in [
        ("k1", 1, 69, 166),
        ("key-12345", 0, 100, 197),
        ("é", 0, 8, 105),
        ("日本語キー", 1, 229, 70),
        ("😀x", 0, 148, 245),
        ("abcÿ", 0, 252, 93),
    ] {
        assert_eq!(bucket_of([Some(key)], 4), of_4);
        assert_eq!(bucket_of([Some(key)], 256), of_256);
        assert_eq!(bucket_of([Some("a"), Some(key)], 256), with_a);
        for parts in [KeyParts::Split, KeyParts::Scan] {
            assert_eq!(bucket_id(key, &["id"], 4, parts), of_4);
        }
    }
    assert_eq!(bucket_of([], 0), 0);
}

/// Computed with `BucketIdentifier.getBucketId` of 0.15.0 and of 1.2.0, 256 buckets.
#[test]
fn buckets_of_keys_with_field_names() {
    let both: &[&str] = &["id", "city"];
    for (key, fields, in_0_15, in_1_2) in [
        ("id:k1", both, 69, 4),
        ("id:k1,city:sf", both, 174, 174),
        ("id:k1,city:sf", &["id"], 69, 69),
        ("id:k1,city:sf", &["nope"], 1, 26),
        ("id:2014-10-22 13:50:42,city:sf", both, 113, 113),
        ("id:2014-10-22 13:50:42,city:sf", &["id"], 34, 34),
        ("id:__null__,city:__empty__", both, 193, 193),
        ("id:__null__,city:__empty__", &["id"], 31, 31),
        ("a,b", both, 246, 246),
        ("a:b", both, 1, 168),
        ("a:b,c", both, 130, 31),
        ("a:1,b:2,", both, 1, 69),
        ("a:,b:", both, 1, 202),
        ("id:a,b:c", both, 128, 128),
        ("id::,city:,", both, 199, 243),
        ("id::,city:,", &["id"], 89, 89),
        ("a,b:c", both, 128, 159),
        ("id:x:y,z:w,city:q:r,s", both, 128, 218),
        (",:", both, 31, 173),
        ("k:__null__,city:__empty__,id:v", both, 55, 55),
        ("id:1,id:2", both, 226, 226),
        ("id:日,city:é", both, 101, 101),
    ] {
        assert_eq!(
            bucket_id(key, fields, 256, KeyParts::Split),
            in_0_15,
            "0.15 {key} {fields:?}"
        );
        assert_eq!(
            bucket_id(key, fields, 256, KeyParts::Scan),
            in_1_2,
            "1.2 {key} {fields:?}"
        );
    }
}

#[test]
fn values_may_hold_commas_and_colons() {
    let scan = |key| key_values(key, &[], KeyParts::Scan);
    assert_eq!(scan("id:a,b,city:sf"), [Some("a,b"), Some("sf")]);
    assert_eq!(
        bucket_id("id:a,b,city:sf", &["id", "city"], 256, KeyParts::Scan),
        29
    );
    assert_eq!(
        bucket_id("id:a,b,city:sf", &["id"], 256, KeyParts::Scan),
        246
    );
    assert_eq!(
        scan("id:x:y,z:w,city:q:r,s"),
        [Some("x:y"), Some("w"), Some("q:r,s")]
    );
    assert_eq!(scan("a:1,b:2,"), [Some("1"), Some("2,")]);
    assert_eq!(scan("a,b:c"), [Some("c")]);
    assert_eq!(scan("a:,b:"), [Some(""), Some("")]);
    assert_eq!(
        key_values("id:x:y,z:w,city:q", &["id"], KeyParts::Scan),
        [Some("x:y")]
    );
}
