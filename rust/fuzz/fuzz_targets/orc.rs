//! Any bytes as an ORC file: its tail, its stripes and each kind of stream end without a panic.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use pyhudi_format::orc::{Bits, ByteRuns, Ints, IntsForm, StreamKind, StripeFooter, Tail};

/// Values of a stream that are read; a few bytes can encode any number.
const VALUES: usize = 2000;

// A chunk may be a thousand times as large as it is packed, and a type some times as large as its text.
fuzz_target!(|data: &[u8]| {
    pyhudi_fuzz::within(1 << 16, data, decode);
});

fn decode(data: &[u8]) {
    let source = Bytes::copy_from_slice(data);
    let Ok(tail) = Tail::read(&source) else {
        return;
    };
    let _ = tail.value("orc.avro.schema");
    for stripe in tail.stripes.iter().take(4) {
        let Ok(footer) = StripeFooter::read(&source, &tail, stripe) else {
            continue;
        };
        for column in 0..tail.types.len().min(50) {
            streams(&source, &tail, &footer, column);
        }
    }
}

fn streams(source: &Bytes, tail: &Tail, footer: &StripeFooter, column: usize) {
    let open = |kind| footer.stream(source, tail, column, kind);
    let mut bits = Bits::new(open(StreamKind::Present));
    let _ = (0..VALUES).try_for_each(|_| bits.next().map(drop));
    let mut bytes = ByteRuns::new(open(StreamKind::Data));
    let _ = (0..VALUES).try_for_each(|_| bytes.next().map(drop));
    let mut wide = open(StreamKind::Data);
    let _ = (0..VALUES).try_for_each(|_| wide.wide_zigzag().map(drop));
    let mut plain = open(StreamKind::DictionaryData);
    let _ = plain.append(VALUES, &mut Vec::new());
    let v2 = footer.encoding(column).v2;
    for kind in [StreamKind::Data, StreamKind::Length, StreamKind::Secondary] {
        for signed in [true, false] {
            let mut ints = Ints::new(open(kind), IntsForm { v2, signed });
            let _ = (0..VALUES).try_for_each(|_| ints.next().map(drop));
        }
    }
}
