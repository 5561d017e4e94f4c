//! Any bytes as a VARIANT: checked, as JSON and of JSON, it ends without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pyhudi_format::variant::{
    VariantNames, VariantPart, VariantWriter, check_variant, object_fields, variant_from_json,
    variant_size, variant_to_json,
};

// The text of a value repeats names, as often as there are fields.
fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(1 << 16, data, decode);
});

fn decode(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok((metadata, value)) = variant_from_json(text)
    {
        check_variant(&metadata, &value).expect("what is written can be read");
        let again = variant_to_json(&metadata, &value).expect("a text");
        variant_from_json(&again).expect("JSON");
    }
    // The first byte tells how long the metadata are.
    let Some((&length, rest)) = data.split_first() else {
        return;
    };
    let (metadata, value) = rest.split_at(usize::from(length).min(rest.len()));
    let is_sound = check_variant(metadata, value).is_ok();
    let text = variant_to_json(metadata, value);
    let _ = variant_size(value);
    let _ = VariantPart::parse(value);
    if is_sound && let Ok(text) = text {
        rewrite(metadata, value);
        // A field may be there twice.
        let _ = variant_from_json(&text);
    }
}

/// An object of the same fields, as reading a shredded one makes it.
fn rewrite(metadata: &[u8], value: &[u8]) {
    let names = VariantNames::parse(metadata).expect("sound");
    let Ok(Some(fields)) = object_fields(value) else {
        return;
    };
    let mut out = VariantWriter::default();
    let mut starts = Vec::new();
    for (id, field) in fields {
        starts.push((id, out.len()));
        out.raw(field);
    }
    if out.object(&names, 0, &starts).is_ok() {
        check_variant(metadata, out.bytes()).expect("what is written can be read");
    }
}
