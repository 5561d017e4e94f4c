//! Base files: what is asked of one, read or written, whatever its format, and the formats that there are.
//!
//! One more format is a file like `parquet` and its line in [`FORMATS`].

mod bootstrap;
mod calendar;
mod damage;
mod halves;
mod int96;
mod kept;
mod open;
mod orc;
mod page_file;
mod parquet;
mod parquet_out;
mod portions;
mod spark;
mod splice;

use std::ops::Range;
use std::sync::Arc;

use ::parquet::schema::types::SchemaDescPtr;
use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use pyhudi_store::{Store, StoreWriter};

use crate::base_options::BaseFileOptions;
use crate::error::{Result, SliceError};
use crate::evolve::Source;
use crate::lookup::Lookup;
use crate::prune::Filter;
use crate::row_test::RowTest;

pub(crate) use bootstrap::BaseReader;
pub use bootstrap::BootstrapSource;
pub use calendar::{has_old_calendar, is_of_both_calendars};
pub use damage::{Coverage, verify_base_file};
pub(crate) use damage::{checksum, verify_parquet_block};
pub(crate) use halves::Pages;
pub(crate) use kept::{Keeping, Kept, KeptColumn, KeptForm, KeptGroup};
pub(crate) use open::{Merging, Opening, open_base};
pub use parquet::parquet_footer;
pub(crate) use parquet::{
    BATCH_BYTES, Fetched, Groups, check_range, check_ranges, read_parquet_block,
};
pub use spark::columns_for_spark;
pub(crate) use splice::{Dictionary, TakenRows, UnpackedPage};

/// What is asked of a base file. A format may do without what only saves work: filters, row test,
/// the second thread.
pub(crate) struct BaseRead<'a> {
    /// Top-level columns; those that are not in the file are left out.
    pub(crate) columns: &'a [String],
    /// Row groups that cannot hold a matching row are left out.
    pub(crate) filters: &'a [Filter],
    /// Row groups after the last one that can hold a matching row are left out.
    pub(crate) end_filters: &'a [Filter],
    pub(crate) batch_rows: usize,
    /// Add the column [`ROW_NUMBER`](crate::log_side::ROW_NUMBER).
    pub(crate) row_numbers: bool,
    /// Another thread may decode some of the columns.
    pub(crate) two_threads: bool,
    /// Only row groups that begin in this range of the file's bytes.
    pub(crate) part: Option<Range<u64>>,
    /// Rows that fail it are left out.
    pub(crate) test: Option<RowTest>,
    /// Where the table's columns are in the file, when it names them otherwise.
    pub(crate) map: Option<Arc<[Source]>>,
    /// Only these row groups, of a Parquet file whose footer was read.
    pub(crate) groups: Option<Groups>,
    /// Only rows that may have these keys, of a Parquet file whose footer was read.
    pub(crate) lookup: Option<&'a Lookup>,
}

impl<'a> BaseRead<'a> {
    /// All rows.
    pub(crate) fn all(columns: &'a [String], batch_rows: usize) -> Self {
        Self {
            columns,
            filters: &[],
            end_filters: &[],
            batch_rows,
            row_numbers: false,
            two_threads: false,
            part: None,
            test: None,
            map: None,
            groups: None,
            lookup: None,
        }
    }
}

/// Batches of one base file, in file order, with the file's own types and the table's names.
pub(crate) trait BaseRows: Iterator<Item = Result<RecordBatch>> + Send {
    fn path(&self) -> &str;
    /// Names of all top-level columns of the file.
    fn columns(&self) -> Vec<String>;
    /// Rows in the file, by its footer.
    fn rows(&self) -> i64;
    /// Parts of the file that no row was read of, since the filters say that none fits.
    fn pruned_row_groups(&self) -> u64;
}

/// A base file that is being written. If it is dropped before its end, no file exists.
pub(crate) trait BaseOut {
    /// Of its batches.
    fn schema(&self) -> &SchemaRef;
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;
    /// How large it is so far, by estimate.
    fn bytes(&self) -> u64;
    /// A string in its metadata.
    fn footer(&mut self, key: &str, value: String);
    /// What row groups of other files must be like to be taken over as they are; none where none can.
    fn kept_schema(&self) -> Option<&SchemaDescPtr> {
        None
    }
    /// Adds a row group, but for a column that gets these texts, again and again.
    fn keep(&mut self, _: KeptGroup, _: Option<(usize, &StringArray)>) -> Result<()> {
        let what = "a row group of another file, where none can be".to_owned();
        Err(SliceError::Schema(what))
    }
    /// Writes its end, and gives back what it was written to.
    fn finish(self: Box<Self>) -> Result<StoreWriter>;
}

/// A format of base files.
pub(crate) trait BaseFormat: Sync {
    /// What names of its files end with.
    fn extension(&self) -> &'static str;
    /// Whether parts of a file can be copied to another as they are.
    fn keeps_groups(&self) -> bool {
        false
    }
    fn open(&self, store: &Store, path: &str, read: BaseRead<'_>) -> Result<Box<dyn BaseRows>>;
    /// A new file.
    fn create(
        &self,
        store: &Store,
        path: &str,
        options: &BaseFileOptions,
    ) -> Result<Box<dyn BaseOut>>;
    fn schema(&self, store: &Store, path: &str) -> Result<BaseSchema>;
    /// The strings in a file's metadata, by name: bloom filter, key range.
    fn values(&self, store: &Store, path: &str, keys: &[&str]) -> Result<Vec<Option<String>>>;
}

const FORMATS: [&dyn BaseFormat; 2] = [&parquet::Parquet, &orc::Orc];

/// The format of a file by its name. Sources of bootstrapped tables may have any: those are Parquet.
pub(crate) fn format_of(path: &str) -> &'static dyn BaseFormat {
    let mut formats = FORMATS.into_iter();
    let named = formats.find(|format| path.ends_with(format.extension()));
    named.unwrap_or(&parquet::Parquet)
}

pub(crate) fn is_parquet(path: &str) -> bool {
    format_of(path).extension() == parquet::Parquet.extension()
}

/// A base file's Avro schema, where its footer has one, and its Arrow schema.
#[derive(Debug, Clone)]
pub struct BaseSchema {
    /// `parquet.avro.schema`, `orc.avro.schema`.
    pub avro: Option<String>,
    /// The schema that the file's own types give.
    pub arrow: SchemaRef,
    /// Rows in the file.
    pub rows: i64,
}

/// Reads the footer of a base file.
///
/// # Errors
/// The file is missing or damaged.
pub fn base_schema(store: &Store, path: &str) -> Result<BaseSchema> {
    format_of(path).schema(store, path)
}

/// The strings in a base file's metadata, by name.
///
/// # Errors
/// The file is missing or damaged.
pub fn base_values(store: &Store, path: &str, keys: &[&str]) -> Result<Vec<Option<String>>> {
    format_of(path).values(store, path, keys)
}

/// All rows of a base file; of these columns those that it has.
///
/// # Errors
/// The file is missing or damaged.
pub fn base_rows(
    store: &Store,
    path: &str,
    columns: &[String],
    batch_rows: usize,
) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<>> {
    let read = BaseRead::all(columns, batch_rows);
    format_of(path).open(store, path, read)
}
