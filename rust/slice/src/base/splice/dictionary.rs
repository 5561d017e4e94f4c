//! A dictionary that outlives the read of its column.

use parquet::column::page::Page;
use parquet::schema::types::ColumnDescriptor;

use super::values::Values;

/// The values of a dictionary.
pub(crate) struct Dictionary(Values<'static>);

impl Dictionary {
    /// None if the page is no dictionary of the column.
    pub(crate) fn of(page: Page, column: &ColumnDescriptor) -> Option<Self> {
        let Page::DictionaryPage {
            buf, num_values, ..
        } = page
        else {
            return None;
        };
        let count = usize::try_from(num_values).ok()?;
        let (ty, width) = (column.physical_type(), column.type_length());
        Values::plain(buf, ty, width, count).map(Self)
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let places = match &self.0 {
            Values::Texts(_, begins) => begins.len(),
            _ => 0,
        };
        self.0.plain_size() + places * size_of::<usize>()
    }

    /// A value of a column of texts; none if there is no such value.
    pub(super) fn text(&self, at: usize) -> Option<&[u8]> {
        match &self.0 {
            Values::Texts(..) => self.0.value(at),
            Values::Fixed(..) | Values::Bits(_) | Values::Indexes(..) => None,
        }
    }

    /// The bytes of a value, without its length; none if there is no such value.
    pub(super) fn value(&self, at: usize) -> Option<&[u8]> {
        match &self.0 {
            Values::Fixed(..) | Values::Texts(..) => self.0.value(at),
            Values::Bits(_) | Values::Indexes(..) => None,
        }
    }
}
