//! ORC: runs, bits and wide numbers in files of each compression.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use pyhudi_format::Result;
use pyhudi_format::orc::{
    Bits, ByteRuns, Codec, ColumnCount, Ints, IntsForm, Kind, OutBits, OutFile, OutRuns, OutStream,
    RunsForm, StreamKind, StripeFooter, StripeStream, Tail, Type,
};

use crate::damage::damage;

/// The streams of a stripe.
#[derive(Debug, Clone, PartialEq)]
struct Rows {
    there: Vec<bool>,
    numbers: Vec<i64>,
    lengths: Vec<i64>,
    bytes: Vec<u8>,
    wide: Vec<i128>,
}

/// Numbers with runs: equal ones, and ones that grow by a step.
fn numbers(number: impl Strategy<Value = i64> + Clone) -> impl Strategy<Value = Vec<i64>> {
    let run = (
        number.clone(),
        -130..130_i64,
        prop_oneof![1..6_i64, 125..135_i64, 500..530_i64],
    )
        .prop_map(|(start, step, length)| {
            (0..length)
                .map(|at| start.saturating_add(step * at))
                .collect()
        });
    vec(prop_oneof![run, vec(number, 0..9)], 0..6).prop_map(|runs| runs.concat())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let run = (any::<u8>(), prop_oneof![1..5_usize, 125..135_usize])
        .prop_map(|(byte, count)| vec![byte; count]);
    vec(prop_oneof![run, vec(any::<u8>(), 0..9)], 0..6).prop_map(|runs| runs.concat())
}

fn rows() -> impl Strategy<Value = Rows> {
    let number = prop_oneof![any::<i64>(), -5..5_i64, Just(i64::MIN), Just(i64::MAX)];
    (
        bytes(),
        numbers(number),
        numbers(0..1_000_000_i64),
        bytes(),
        vec(any::<i128>(), 0..20),
    )
        .prop_map(|(there, numbers, lengths, bytes, wide)| Rows {
            there: there.iter().map(|byte| byte % 2 == 0).collect(),
            numbers,
            lengths: lengths.into_iter().map(|length| length.max(0)).collect(),
            bytes,
            wide,
        })
}

fn codec() -> impl Strategy<Value = Codec> {
    prop::sample::select(vec![
        Codec::None,
        Codec::Zlib,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ])
}

fn runs(codec: Codec, form: RunsForm, values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    let mut out = OutRuns::new(codec, form);
    for value in values {
        out.put(value).unwrap();
    }
    out.take().unwrap()
}

fn written(codec: Codec, stripes: &[Rows]) -> Bytes {
    let of = |kind, parts: Vec<usize>| Type {
        kind,
        names: parts.iter().map(|part| format!("c{part}")).collect(),
        parts,
        precision: 38,
        scale: 0,
    };
    let kinds = [Kind::Long, Kind::String, Kind::Byte, Kind::Decimal];
    let mut types = vec![of(Kind::Struct, vec![1, 2, 3, 4])];
    types.extend(kinds.map(|kind| of(kind, Vec::new())));
    let mut file = OutFile::create(Vec::new(), codec, types).unwrap();
    for rows in stripes {
        let mut bits = OutBits::new(codec);
        rows.there.iter().for_each(|bit| bits.put(*bit).unwrap());
        let mut wide = OutStream::new(codec);
        rows.wide
            .iter()
            .for_each(|number| wide.put_wide_zigzag(*number).unwrap());
        let bytes = rows.bytes.iter().map(|byte| i64::from(*byte));
        let streams = [
            (1, StreamKind::Present, bits.take().unwrap()),
            (
                1,
                StreamKind::Data,
                runs(codec, RunsForm::Signed, rows.numbers.iter().copied()),
            ),
            (
                2,
                StreamKind::Length,
                runs(codec, RunsForm::Counts, rows.lengths.iter().copied()),
            ),
            (3, StreamKind::Data, runs(codec, RunsForm::Bytes, bytes)),
            (4, StreamKind::Data, wide.take().unwrap()),
        ];
        let streams = streams.map(|(column, kind, bytes)| StripeStream {
            column,
            kind,
            bytes,
        });
        file.stripe(rows.numbers.len() as u64, &streams).unwrap();
    }
    file.keep("key", "value".to_owned());
    file.finish(&[ColumnCount::default(); 5]).unwrap().into()
}

/// The streams as they are in the file, as long as those of `wanted`; an error where one is shorter.
fn read(source: &Bytes, wanted: &[Rows]) -> Result<Vec<Rows>> {
    let tail = Tail::read(source)?;
    let stripes = tail.stripes.iter().zip(wanted).map(|(stripe, wanted)| {
        let footer = StripeFooter::read(source, &tail, stripe)?;
        let open = |column, kind| footer.stream(source, &tail, column, kind);
        let ints = |column, kind, signed| {
            let v2 = footer.encoding(column).v2;
            Ints::new(open(column, kind), IntsForm { v2, signed })
        };
        let mut there = Bits::new(open(1, StreamKind::Present));
        let mut numbers = ints(1, StreamKind::Data, true);
        let mut lengths = ints(2, StreamKind::Length, false);
        let mut bytes = ByteRuns::new(open(3, StreamKind::Data));
        let mut wide = open(4, StreamKind::Data);
        Ok(Rows {
            there: wanted
                .there
                .iter()
                .map(|_| there.next())
                .collect::<Result<_>>()?,
            numbers: wanted
                .numbers
                .iter()
                .map(|_| numbers.next())
                .collect::<Result<_>>()?,
            lengths: wanted
                .lengths
                .iter()
                .map(|_| lengths.next())
                .collect::<Result<_>>()?,
            bytes: wanted
                .bytes
                .iter()
                .map(|_| bytes.next())
                .collect::<Result<_>>()?,
            wide: wanted
                .wide
                .iter()
                .map(|_| wide.wide_zigzag())
                .collect::<Result<_>>()?,
        })
    });
    stripes.collect()
}

proptest! {
    #[test]
    fn streams_are_read_as_they_were_written(codec in codec(), stripes in vec(rows(), 0..3)) {
        let file = written(codec, &stripes);
        let tail = Tail::read(&file).unwrap();
        prop_assert_eq!(
            tail.rows,
            stripes
                .iter()
                .map(|rows| rows.numbers.len() as u64)
                .sum::<u64>()
        );
        let (key, other) = (tail.value("key"), tail.value("other"));
        prop_assert_eq!((key.as_deref(), other), (Some("value"), None));
        prop_assert_eq!(read(&file, &stripes).unwrap(), stripes);
    }

    /// ORC has no checksums: damage may also change values.
    #[test]
    fn a_damaged_file_never_panics_and_a_cut_one_is_an_error(
        codec in codec(),
        stripes in vec(rows(), 1..3),
        damage in damage(),
    ) {
        let file = written(codec, &stripes);
        let (damaged, at) = damage.of(&file);
        let is_cut = damaged.len() == at;
        let found = read(&Bytes::from(damaged), &stripes);
        prop_assert!(!is_cut || found.is_err());
    }
}
