//! The bloom filter of a base file that is being written, sized by the keys that came.

use arrow::array::{Array, StringArray, StringBuilder};
use pyhudi_format::bloom::BloomFilter;

use crate::base_options::BloomOptions;

/// The minimum number of keys of a filter.
const LEAST: u32 = 16;
/// Bytes of keys that are held back.
const HELD_MOST: usize = 8 << 20;
/// A filter that lets more of all other keys through saves no reader any work.
const MOST_PASSED: f64 = 0.5;

/// Hashing a key for a filter takes longer than encoding it, so a filter that has become useless is filled
/// up, and the other keys of the file are not hashed. Where the keys say its size, holds them back until there are as many as options say at most.
/// Readers use the size that the filter records.
pub(crate) struct KeyFilter {
    options: BloomOptions,
    /// A copy: the column of a batch can keep all of the batch in memory.
    held: StringBuilder,
    filter: Option<BloomFilter>,
    /// Keys since the filter was measured.
    unmeasured: usize,
    /// It lets every key through.
    passes_all: bool,
}

impl KeyFilter {
    pub(crate) fn new(options: BloomOptions) -> Self {
        let mut made = Self {
            options,
            held: StringBuilder::new(),
            filter: None,
            unmeasured: 0,
            passes_all: false,
        };
        if !options.by_keys {
            made.filter = Some(made.filled(options.entries));
        }
        made
    }

    /// Goes on with the filter of a file whose keys come again, most of them. Only if that has twice
    /// the keys that a filter is made for: what is left of keys that are gone adds little then.
    ///
    /// Returns whether the keys of the file need not be added.
    pub(crate) fn inherit(&mut self, stored: &str, type_code: &str, rows: u64) -> bool {
        let BloomOptions {
            entries,
            max_entries,
            ..
        } = self.options;
        let max = max_entries.unwrap_or(entries);
        let stored = || BloomFilter::from_base64(stored)?.expect_type(type_code);
        if rows / 2 < u64::from(max) || self.count() > 0 {
            return false;
        }
        // The keys of one that is damaged are added again.
        let stored = stored().ok();
        let stored = stored.filter(|stored| stored.is_shaped_as(&self.empty(entries)));
        let inherited = stored.is_some();
        if let Some(stored) = stored {
            self.filter = Some(stored.growing_to(max));
        }
        inherited
    }

    pub(crate) fn add(&mut self, keys: &StringArray) {
        if let Some(filter) = &mut self.filter {
            if self.passes_all {
                return;
            }
            add_all(filter, keys);
            self.unmeasured += keys.len();
            if self.unmeasured >= self.options.entries as usize {
                self.unmeasured = 0;
                self.passes_all = filter.passed_share() > MOST_PASSED;
            }
            if self.passes_all {
                filter.fill();
            }
            return;
        }
        for key in keys.iter().flatten() {
            self.held.append_value(key);
        }
        if self.held.values_slice().len() >= HELD_MOST || self.count() >= self.options.entries {
            let filter = self.filled(self.options.entries);
            self.filter = Some(filter);
        }
    }

    pub(crate) fn finish(mut self) -> BloomFilter {
        match self.filter.take() {
            Some(filter) => filter,
            None => self.filled(self.count().max(LEAST).min(self.options.entries)),
        }
    }

    fn count(&self) -> u32 {
        (self.held.offsets_slice().len() - 1) as u32
    }

    fn filled(&mut self, entries: u32) -> BloomFilter {
        let mut filter = self.empty(entries);
        add_all(&mut filter, &self.held.finish());
        filter
    }

    fn empty(&self, entries: u32) -> BloomFilter {
        match self.options.max_entries {
            Some(most) => BloomFilter::dynamic(entries, self.options.fpp, most),
            None => BloomFilter::simple(entries, self.options.fpp),
        }
    }
}

fn add_all(filter: &mut BloomFilter, keys: &StringArray) {
    filter.add_all(keys.iter().flatten().map(str::as_bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(entries: u32, counts: &[usize]) -> BloomFilter {
        let mut filter = KeyFilter::new(BloomOptions {
            entries,
            by_keys: true,
            fpp: 1e-6,
            max_entries: Some(entries * 2),
        });
        for (number, count) in counts.iter().enumerate() {
            let keys = (0..*count).map(|key| format!("{number}-{key}"));
            filter.add(&StringArray::from_iter_values(keys));
        }
        filter.finish()
    }

    #[test]
    fn few_keys_have_a_small_filter() {
        let sizes = [&[][..], &[3], &[100], &[500, 500]].map(|counts| filter(1000, counts));
        let sizes = sizes.map(|filter| filter.to_bytes().len());
        assert!(sizes[0] == sizes[1] && sizes[1] < 100, "{sizes:?}");
        assert!(sizes[1] < sizes[2] && sizes[2] * 9 < sizes[3], "{sizes:?}");
        let whole = BloomFilter::dynamic(1000, 1e-6, 2000).to_bytes().len();
        assert_eq!(sizes[3], whole);
    }

    #[test]
    fn the_filter_of_a_full_file_is_inherited() {
        let options = BloomOptions {
            entries: 500,
            by_keys: true,
            fpp: 1e-6,
            max_entries: Some(1000),
        };
        let stored = filter(500, &[2500]);
        let text = stored.to_base64();
        let inherit = |options, text: &str, code, rows| {
            let mut made = KeyFilter::new(options);
            made.inherit(text, code, rows)
                .then(|| made.finish().to_bytes())
        };
        let same = inherit(options, &text, "DYNAMIC_V0", 2500) == Some(stored.to_bytes());
        assert!(same);
        assert_eq!(inherit(options, &text, "DYNAMIC_V0", 1999), None);
        assert_eq!(inherit(options, &text, "SIMPLE", 2500), None);
        assert_eq!(inherit(options, "no filter", "DYNAMIC_V0", 2500), None);
        let other = BloomOptions {
            fpp: 1e-7,
            ..options
        };
        assert_eq!(inherit(other, &text, "DYNAMIC_V0", 2500), None);
    }

    #[test]
    fn all_keys_are_in_it_whenever_they_came() {
        for counts in [&[7][..], &[400, 400], &[999, 1, 1], &[3000, 40]] {
            let filter = filter(1000, counts);
            for (number, count) in counts.iter().enumerate() {
                let has = |key| filter.contains(format!("{number}-{key}").as_bytes());
                assert!((0..*count).all(has), "{counts:?}");
            }
            let wrong = (0..1000).filter(|key| filter.contains(format!("x{key}").as_bytes()));
            assert!(wrong.count() < 5);
        }
    }

    #[test]
    fn filters_with_far_too_many_keys_pass_all() {
        let most = filter(1000, &[2000]);
        assert!(most.passed_share() < 1e-3);
        assert!(filter(1000, &[1000; 30]).passed_share() > 0.999);
    }
}
