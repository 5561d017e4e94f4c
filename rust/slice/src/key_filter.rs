//! The bloom filter of a base file that is being written, sized by the keys that came.

use arrow::array::{StringArray, StringBuilder};
use pyhudi_format::bloom::BloomFilter;

use crate::base_options::BloomOptions;

/// The minimum number of keys of a filter.
const LEAST: u32 = 16;
/// Bytes of keys that are held back.
const HELD_MOST: usize = 8 << 20;

/// Where the keys say its size, holds them back until there are as many as options say at most.
/// Readers use the size that the filter records.
pub(crate) struct KeyFilter {
    options: BloomOptions,
    /// A copy: the column of a batch can keep all of the batch in memory.
    held: StringBuilder,
    filter: Option<BloomFilter>,
}

impl KeyFilter {
    pub(crate) fn new(options: BloomOptions) -> Self {
        let mut made = Self {
            options,
            held: StringBuilder::new(),
            filter: None,
        };
        if !options.by_keys {
            made.filter = Some(made.filled(options.entries));
        }
        made
    }

    pub(crate) fn add(&mut self, keys: &StringArray) {
        if let Some(filter) = &mut self.filter {
            add_all(filter, keys);
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
        let mut filter = match self.options.max_entries {
            Some(most) => BloomFilter::dynamic(entries, self.options.fpp, most),
            None => BloomFilter::simple(entries, self.options.fpp),
        };
        add_all(&mut filter, &self.held.finish());
        filter
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
}
