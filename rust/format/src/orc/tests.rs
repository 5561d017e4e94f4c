//! The examples of ORC's specification, and streams in chunks.

use bytes::Bytes;

use super::{
    Bits, ByteRuns, Codec, ColumnCount, Ints, IntsForm, Kind, OutFile, OutRuns, OutStream,
    RunsForm, Stream, StreamKind, StripeFooter, StripeStream, Tail, Type,
};
use crate::FormatError;

fn plain(bytes: &[u8]) -> Stream<Bytes> {
    let source = Bytes::copy_from_slice(bytes);
    let range = 0..source.len() as u64;
    Stream::new(source, Codec::None, 1 << 10, range)
}

fn numbers(bytes: &[u8], v2: bool, signed: bool, count: usize) -> Vec<i64> {
    let mut ints = Ints::new(plain(bytes), IntsForm { v2, signed });
    let found = (0..count).map(|_| ints.next().unwrap()).collect();
    assert!(ints.next().is_err(), "more than {count}");
    found
}

#[test]
fn runs_of_version_1() {
    assert_eq!(numbers(&[0x61, 0, 7], false, false, 100), [7; 100]);
    let falling: Vec<i64> = (1..=100).rev().collect();
    assert_eq!(numbers(&[0x61, 0xff, 0x64], false, false, 100), falling);
    let written_out = [0xfb, 2, 3, 6, 7, 0xb];
    assert_eq!(numbers(&written_out, false, false, 5), [2, 3, 6, 7, 11]);
    assert_eq!(numbers(&[0, 0, 1], false, true, 3), [-1; 3]);
}

#[test]
fn runs_of_version_2() {
    assert_eq!(numbers(&[0x0a, 0x27, 0x10], true, false, 5), [10000; 5]);
    let direct = [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef];
    assert_eq!(
        numbers(&direct, true, false, 4),
        [23713, 43806, 57005, 48879]
    );
    let delta = [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46];
    let primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29];
    assert_eq!(numbers(&delta, true, false, 10), primes);
}

fn written(form: RunsForm, values: &[i64]) -> Vec<u8> {
    let mut runs = OutRuns::new(Codec::None, form);
    for value in values {
        runs.put(*value).unwrap();
    }
    runs.take().unwrap()
}

#[test]
fn runs_are_written_as_the_specification_has_them() {
    assert_eq!(written(RunsForm::Counts, &[7; 100]), [0x61, 0, 7]);
    let falling: Vec<i64> = (1..=100).rev().collect();
    assert_eq!(written(RunsForm::Counts, &falling), [0x61, 0xff, 0x64]);
    let written_out = [0xfb, 2, 3, 6, 7, 0xb];
    assert_eq!(written(RunsForm::Counts, &[2, 3, 6, 7, 11]), written_out);
    assert_eq!(written(RunsForm::Bytes, &[0; 100]), [0x61, 0]);
    assert_eq!(written(RunsForm::Bytes, &[0x44, 0x45]), [0xfe, 0x44, 0x45]);
    assert_eq!(written(RunsForm::Signed, &[]), [0_u8; 0]);
}

#[test]
fn chunks_are_packed_where_that_helps() {
    let noise: Vec<u8> = (0..300_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for codec in [
        Codec::None,
        Codec::Zlib,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ] {
        for bytes in [&noise, &vec![7; 600_000], &Vec::new()] {
            let mut out = OutStream::new(codec);
            out.put(bytes).unwrap();
            let packed = Bytes::from(out.take().unwrap());
            let range = 0..packed.len() as u64;
            let mut stream = Stream::new(packed, codec, 256 << 10, range);
            assert_eq!(&stream.all(1 << 20).unwrap(), bytes);
        }
    }
}

#[test]
fn a_file_comes_back() {
    let of = |kind, parts: Vec<usize>, names: &[&str]| Type {
        kind,
        parts,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        precision: 20,
        scale: 4,
    };
    let types = vec![
        of(Kind::Struct, vec![1, 2], &["n", "d"]),
        of(Kind::Long, Vec::new(), &[]),
        of(Kind::Decimal, Vec::new(), &[]),
    ];
    let mut file = OutFile::create(Vec::new(), Codec::Zlib, types).unwrap();
    for rows in [3, 5] {
        let mut runs = OutRuns::new(Codec::Zlib, RunsForm::Signed);
        (0..rows).for_each(|at| runs.put(at).unwrap());
        let data = StripeStream {
            column: 1,
            kind: StreamKind::Data,
            bytes: runs.take().unwrap(),
        };
        file.stripe(rows as u64, &[data]).unwrap();
    }
    file.keep("key", "value".to_owned());
    let bytes = Bytes::from(file.finish(&[ColumnCount::default(); 3]).unwrap());
    let tail = Tail::read(&bytes).unwrap();
    assert_eq!((tail.rows, tail.stripes.len()), (8, 2));
    assert_eq!(tail.value("key").as_deref(), Some("value"));
    let decimal = tail.types.get(2).unwrap();
    assert_eq!((decimal.precision, decimal.scale), (20, 4));
    let stripe = tail.stripes.get(1).unwrap();
    let footer = StripeFooter::read(&bytes, &tail, stripe).unwrap();
    let data = footer.stream(&bytes, &tail, 1, StreamKind::Data);
    let mut ints = Ints::new(
        data,
        IntsForm {
            v2: false,
            signed: true,
        },
    );
    assert!((0..5).all(|at| ints.next().unwrap() == at));
    assert!(!footer.has_nulls(1));
}

#[test]
fn a_patched_run() {
    let bytes = [
        0x8e, 0x13, 0x2b, 0x21, 0x07, 0xd0, 0x1e, 0x00, 0x14, 0x70, 0x28, 0x32, 0x3c, 0x46, 0x50,
        0x5a, 0x64, 0x6e, 0x78, 0x82, 0x8c, 0x96, 0xa0, 0xaa, 0xb4, 0xbe, 0xfc, 0xe8,
    ];
    let mut expected = vec![2030, 2000, 2020, 1_000_000];
    expected.extend((204..=219).map(|tens| tens * 10));
    assert_eq!(numbers(&bytes, true, true, 20), expected);
}

#[test]
fn bytes_and_bits() {
    let mut runs = ByteRuns::new(plain(&[0x61, 0, 0xfe, 0x44, 0x45]));
    let found: Vec<u8> = (0..102).map(|_| runs.next().unwrap()).collect();
    assert_eq!(found.get(98..), Some([0, 0, 0x44, 0x45].as_slice()));
    let mut bits = Bits::new(plain(&[0xff, 0x80]));
    let found: Vec<bool> = (0..8).map(|_| bits.next().unwrap()).collect();
    assert_eq!(found.first(), Some(&true));
    assert_eq!(found.iter().filter(|bit| **bit).count(), 1);
}

#[test]
fn chunks_follow_each_other() {
    // Two chunks that are not packed, of three bytes and of one.
    let bytes = [7, 0, 0, 1, 2, 3, 3, 0, 0, 4];
    let source = Bytes::copy_from_slice(&bytes);
    let mut stream = Stream::new(source.clone(), Codec::Zlib, 10, 0..10);
    assert_eq!(stream.array::<4>().unwrap(), [1, 2, 3, 4]);
    assert!(stream.byte().is_err());
    let mut cut = Stream::new(source, Codec::Zlib, 10, 0..9);
    let mut found = Vec::new();
    assert!(cut.append(4, &mut found).is_err());
}

#[test]
fn chunks_are_no_larger_than_the_file_says() {
    let zeros = vec![0; 100_000];
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &zeros).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(
        Codec::Zlib.unpack(&packed, 100_000, 0).unwrap().len(),
        100_000
    );
    for codec in [Codec::Zlib, Codec::Zstd, Codec::Snappy, Codec::Lz4] {
        let error = codec.unpack(&packed, 99_999, 5).unwrap_err();
        assert!(
            matches!(error, FormatError::Corrupt { offset: 5, .. }),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_orc_file_is_an_error() {
    for bytes in [&b""[..], b"ORC", b"PAR1 and more PAR1", &[0; 300]] {
        let error = Tail::read(&Bytes::copy_from_slice(bytes)).unwrap_err();
        assert!(matches!(error, FormatError::Corrupt { .. }), "{error}");
    }
}
