//! Writing a base file as Hudi's Avro writers do: with the Avro schema, the bloom filter and the key
//! range in its footer. What it is like inside is its format's part (`base/`).

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use pyhudi_keys::text_order;
use pyhudi_store::Store;

use crate::FILE_NAME;
use crate::adapt::{adapt, check_required};
use crate::base::{BaseOut, Keeping, Kept, KeptForm, format_of};
use crate::base_options::BaseFileOptions;
use crate::changes::Batches;
use crate::error::{Result, SliceError};
use crate::key_filter::KeyFilter;
use crate::leaf_writers::Helped;
use crate::meta::{Repeated, with_column};
use crate::read::SliceReader;
use crate::read_ahead::read_ahead;
use crate::request::{ReadStats, SliceRead};

/// Rows of a file before their size is known.
const FIRST_ROWS: usize = 1024;

/// How often a file's name is written at once.
const NAMES: usize = 8192;

/// What was written.
#[derive(Debug, Clone)]
pub struct BaseFile {
    /// Where.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Rows.
    pub rows: u64,
    /// Least and greatest record key, where a key column was given and there are rows.
    pub keys: Option<(String, String)>,
}

/// Writes batches as one new base file. A failure leaves no file.
///
/// # Errors
/// Rows that do not fit the schema, the file exists, failing storage.
pub fn write_base_file(
    store: &Store,
    path: &str,
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    options: &BaseFileOptions,
) -> Result<BaseFile> {
    let mut writer = BaseWriter::create(store, path, options, options.file_name.clone())?;
    for batch in helped(Box::new(batches), options) {
        writer.write(&batch?)?;
    }
    writer.finish()
}

/// The batches as they are, or made by another thread where a processor is free.
pub(crate) fn helped(batches: Batches, options: &BaseFileOptions) -> Batches {
    if options.two_threads && Helped::has_room() {
        read_ahead(batches)
    } else {
        batches
    }
}

/// The options of a rewrite besides the slice.
#[derive(Default)]
pub struct Rewrite {
    /// Rows that come to those of the slice, with all of its columns.
    pub appended: Option<Batches>,
    /// How many, if only about.
    pub new_rows: u64,
    /// Row groups with fewer rows are rewritten.
    pub least_rows: u64,
}

/// Writes a slice, merged, as one new base file, and the rows that are appended. Row groups that
/// nothing is merged into are copied where the new file can have them as they are. A failure leaves
/// no file.
///
/// read: all columns, but for the file's name where the options have it.
///
/// # Errors
/// As [`write_base_file`], damaged files, a feature that is not supported.
pub fn rewrite_base_file(
    path: &str,
    read: SliceRead,
    rewrite: Rewrite,
    options: &BaseFileOptions,
) -> Result<(BaseFile, Arc<ReadStats>)> {
    let mut writer = BaseWriter::create(&read.store, path, options, options.file_name.clone())?;
    let mut reader = SliceReader::new(read)?;
    let kept = match writer.out.kept_schema() {
        Some(schema) => reader.keep(Keeping {
            schema: Arc::clone(schema),
            new_rows: rewrite.new_rows,
            least_rows: rewrite.least_rows,
            codec: options.codec,
        })?,
        None => None,
    };
    if let Some(kept) = kept {
        writer.inherit(&kept);
        for number in kept.numbers() {
            writer.keep(&kept, number)?;
        }
    }
    let stats = reader.stats();
    let batches = reader.chain(rewrite.appended.into_iter().flatten());
    for batch in helped(Box::new(batches), options) {
        writer.write(&batch?)?;
    }
    Ok((writer.finish()?, stats))
}

/// A base file that is being written.
pub(crate) struct BaseWriter<'a> {
    path: String,
    options: &'a BaseFileOptions,
    file_name: Option<Repeated>,
    out: Box<dyn BaseOut>,
    filter: Option<KeyFilter>,
    /// The filter has the keys of row groups that are kept.
    inherited: bool,
    keys: Option<(String, String)>,
    rows: u64,
}

impl<'a> BaseWriter<'a> {
    pub(crate) fn create(
        store: &Store,
        path: &str,
        options: &'a BaseFileOptions,
        file_name: Option<String>,
    ) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            options,
            file_name: file_name.map(Repeated::new),
            out: format_of(path).create(store, path, options)?,
            filter: options.bloom.map(KeyFilter::new),
            inherited: false,
            keys: None,
            rows: 0,
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = adapt(batch, self.out.schema())?;
        check_required(&batch, self.out.schema())?;
        let batch = self.with_file_name(batch)?;
        self.note_keys(&batch, false)?;
        self.rows += batch.num_rows() as u64;
        self.out.write(&batch)
    }

    /// Takes over the filter of a file, all of whose keys come again but those that are deleted.
    fn inherit(&mut self, kept: &Kept) {
        let stored = kept.value("org.apache.hudi.bloomfilter");
        let stored = stored.zip(kept.value("hoodie_bloom_filter_type_code"));
        if let (Some(filter), Some((text, code))) = (&mut self.filter, stored) {
            self.inherited = filter.inherit(&text, &code, kept.file_rows());
        }
    }

    /// A row group of another file, without the rows that it loses.
    pub(crate) fn keep(&mut self, kept: &Kept, number: usize) -> Result<()> {
        let key = self.options.key_column.as_ref();
        let stay = kept.pass(number, key, &mut |keys| {
            self.note_keys(keys, self.inherited)
        })?;
        let column = self.out.schema().index_of(FILE_NAME).ok();
        let names = match &mut self.file_name {
            Some(names) => Some(names.rows(NAMES)?),
            None => None,
        };
        let form = KeptForm {
            schema: self.out.schema(),
            codec: self.options.codec,
            own: column.filter(|_| names.is_some()),
        };
        let group = kept.group(number, stay, &form)?;
        if group.rows == 0 {
            return Ok(());
        }
        self.rows += group.rows;
        self.out.keep(group, column.zip(names.as_ref()))
    }

    /// Whether this number of additional bytes is too much for a file of about `most_bytes`.
    pub(crate) fn is_too_full_for(&self, bytes: u64, most_bytes: u64) -> bool {
        self.rows > 0 && self.out.bytes() + bytes > most_bytes
    }

    /// How many of `rows` rows the file still takes, if they are as large as those in it.
    pub(crate) fn rows_within(&self, most_bytes: u64, rows: usize) -> usize {
        let bytes = self.out.bytes();
        let Some(each) = bytes.checked_div(self.rows) else {
            return rows.min(FIRST_ROWS);
        };
        let fit = most_bytes.saturating_sub(bytes) / each.max(1);
        rows.min(usize::try_from(fit).unwrap_or(rows))
    }

    fn with_file_name(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let (Some(names), Ok(at)) = (&mut self.file_name, self.out.schema().index_of(FILE_NAME))
        else {
            return Ok(batch);
        };
        let mine = Arc::new(names.rows(batch.num_rows())?);
        with_column(&batch, at, mine)
    }

    /// known: the filter has them.
    fn note_keys(&mut self, batch: &RecordBatch, known: bool) -> Result<()> {
        let Some(name) = &self.options.key_column else {
            return Ok(());
        };
        let keys = batch
            .column_by_name(name)
            .and_then(|column| column.as_string_opt::<i32>())
            .ok_or_else(|| SliceError::Schema(format!("there is no text column {name}")))?;
        let (mut least, mut greatest): (Option<&str>, Option<&str>) = (None, None);
        for key in keys.iter().flatten() {
            if least.is_none_or(|least| text_order(key, least).is_lt()) {
                least = Some(key);
            }
            if greatest.is_none_or(|greatest| text_order(key, greatest).is_gt()) {
                greatest = Some(key);
            }
        }
        if let Some(filter) = self.filter.as_mut().filter(|_| !known) {
            filter.add(keys);
        }
        if let (Some(least), Some(greatest)) = (least, greatest) {
            self.widen_range(least, greatest);
        }
        Ok(())
    }

    fn widen_range(&mut self, least: &str, greatest: &str) {
        let range = self
            .keys
            .get_or_insert_with(|| (least.to_owned(), greatest.to_owned()));
        if text_order(least, &range.0).is_lt() {
            least.clone_into(&mut range.0);
        }
        if text_order(greatest, &range.1).is_gt() {
            greatest.clone_into(&mut range.1);
        }
    }

    pub(crate) fn finish(mut self) -> Result<BaseFile> {
        if let Some(filter) = self.filter.take() {
            let filter = filter.finish();
            let (text, code) = (filter.to_base64(), filter.type_code());
            self.out.footer("org.apache.hudi.bloomfilter", text);
            self.out
                .footer("hoodie_bloom_filter_type_code", code.to_owned());
            if let Some((least, greatest)) = self.keys.clone() {
                self.out.footer("hoodie_min_record_key", least);
                self.out.footer("hoodie_max_record_key", greatest);
            }
        }
        Ok(BaseFile {
            path: self.path,
            size: self.out.finish()?.finish()?,
            rows: self.rows,
            keys: self.keys,
        })
    }
}
