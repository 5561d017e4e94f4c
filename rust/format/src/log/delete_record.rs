//! One deleted key, with the ordering value that decides whether the delete wins.

use std::borrow::Cow;

/// `HoodieDeleteRecord`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteRecord<'a> {
    /// Record key.
    pub record_key: Cow<'a, str>,
    /// Partition path; [`None`] where the writer had none.
    pub partition_path: Option<Cow<'a, str>>,
    /// Value of the ordering field. `Int(0)` is Hudi's mark of a delete that wins by commit time.
    pub ordering: OrderingValue<'a>,
}

/// An ordering value in one of the wrapper records of `HoodieDeleteRecord.avsc`.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderingValue<'a> {
    /// No value.
    Null,
    /// `BooleanWrapper`
    Boolean(bool),
    /// `IntWrapper`
    Int(i32),
    /// `LongWrapper`
    Long(i64),
    /// `FloatWrapper`
    Float(f32),
    /// `DoubleWrapper`
    Double(f64),
    /// `BytesWrapper`
    Bytes(Cow<'a, [u8]>),
    /// `StringWrapper`
    String(Cow<'a, str>),
    /// `DateWrapper`: days since 1970-01-01.
    Date(i32),
    /// `DecimalWrapper`: unscaled value in two's complement, big-endian; the scale is 15.
    Decimal(Cow<'a, [u8]>),
    /// `TimeMicrosWrapper`: microseconds since midnight.
    TimeMicros(i64),
    /// `TimestampMicrosWrapper`: microseconds since 1970-01-01.
    TimestampMicros(i64),
    /// `LocalDateWrapper`: days since 1970-01-01. Occurs only inside an array.
    LocalDate(i32),
    /// `ArrayWrapper` (1.1 and later): one value for each of several ordering fields.
    Array(Vec<OrderingValue<'a>>),
}

impl OrderingValue<'_> {
    /// The same value with its own memory.
    pub fn into_owned(self) -> OrderingValue<'static> {
        match self {
            Self::Null => OrderingValue::Null,
            Self::Boolean(value) => OrderingValue::Boolean(value),
            Self::Int(value) => OrderingValue::Int(value),
            Self::Long(value) => OrderingValue::Long(value),
            Self::Float(value) => OrderingValue::Float(value),
            Self::Double(value) => OrderingValue::Double(value),
            Self::Bytes(value) => OrderingValue::Bytes(Cow::Owned(value.into_owned())),
            Self::String(value) => OrderingValue::String(Cow::Owned(value.into_owned())),
            Self::Date(value) => OrderingValue::Date(value),
            Self::Decimal(value) => OrderingValue::Decimal(Cow::Owned(value.into_owned())),
            Self::TimeMicros(value) => OrderingValue::TimeMicros(value),
            Self::TimestampMicros(value) => OrderingValue::TimestampMicros(value),
            Self::LocalDate(value) => OrderingValue::LocalDate(value),
            Self::Array(values) => {
                OrderingValue::Array(values.into_iter().map(OrderingValue::into_owned).collect())
            }
        }
    }
}

impl DeleteRecord<'_> {
    /// The same record with its own memory.
    pub fn into_owned(self) -> DeleteRecord<'static> {
        DeleteRecord {
            record_key: Cow::Owned(self.record_key.into_owned()),
            partition_path: self
                .partition_path
                .map(|path| Cow::Owned(path.into_owned())),
            ordering: self.ordering.into_owned(),
        }
    }
}

/// The shortest two's complement of the unscaled value in a `DecimalWrapper`, as
/// `BigInteger.toByteArray` gives it.
#[must_use]
pub fn big_endian(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let sign = if value < 0 { 0xff } else { 0 };
    let mut skipped = 0;
    while let [first, second, ..] = bytes.get(skipped..).unwrap_or_default()
        && *first == sign
        && (*second ^ sign) < 0x80
    {
        skipped += 1;
    }
    bytes.get(skipped..).unwrap_or_default().to_vec()
}
