//! Row numbers of a base file to entry numbers, without hashing: an array of pages of the file's rows.
//!
//! Log blocks list their rows in order, and base rows pass in order, so that a page is in the cache
//! while its rows are looked up.

use std::collections::HashMap;

/// Rows of a page.
const PAGE: usize = 256;

/// Rows beyond are hashed: a damaged number takes no memory for all rows before it.
const FAR: u64 = 1 << 28;

/// No entry. Entry numbers are stored with one added.
const NONE: u32 = 0;

/// Entry numbers by row number.
#[derive(Default)]
pub(crate) struct PositionIndex {
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    full: usize,
    far: HashMap<u64, u32>,
}

impl PositionIndex {
    /// The entry of a row, which gets `new` if it has none.
    pub(crate) fn put(&mut self, position: u64, new: u32) -> Option<u32> {
        if position >= FAR {
            let known = self.far.get(&position).copied();
            return known.or_else(|| {
                self.far.insert(position, new);
                None
            });
        }
        let (page, row) = place(position);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let full = &mut self.full;
        let page = self.pages[page].get_or_insert_with(|| {
            *full += 1;
            Box::new([NONE; PAGE])
        });
        match page[row].checked_sub(1) {
            None => {
                page[row] = new + 1;
                None
            }
            known => known,
        }
    }

    /// The entry of a row.
    pub(crate) fn get(&self, position: u64) -> Option<u32> {
        if position >= FAR {
            return self.far.get(&position).copied();
        }
        let (page, row) = place(position);
        self.pages.get(page)?.as_ref()?[row].checked_sub(1)
    }

    pub(crate) fn memory(&self) -> usize {
        self.pages.capacity() * size_of::<Option<Box<[u32; PAGE]>>>()
            + self.full * size_of::<[u32; PAGE]>()
            + self.far.capacity() * size_of::<(u64, u32)>()
    }
}

fn place(position: u64) -> (usize, usize) {
    let position = position as usize;
    (position / PAGE, position % PAGE)
}

#[cfg(test)]
mod tests {
    use super::{FAR, PositionIndex};

    #[test]
    fn rows_keep_their_first_entry_wherever_they_are() {
        let mut index = PositionIndex::default();
        let rows = [0, 255, 256, FAR - 1, FAR, u64::MAX];
        for (entry, row) in rows.iter().enumerate() {
            assert_eq!(index.put(*row, entry as u32), None);
        }
        for (entry, row) in rows.iter().enumerate() {
            assert_eq!(index.put(*row, 99), Some(entry as u32));
            assert_eq!(index.get(*row), Some(entry as u32));
        }
        assert_eq!(index.get(1), None);
        assert_eq!(index.get(FAR + 1), None);
    }

    #[test]
    fn a_row_far_away_takes_little_memory() {
        let mut index = PositionIndex::default();
        index.put(u64::MAX, 0);
        assert!(index.memory() < 1 << 10, "{}", index.memory());
        index.put(FAR - 1, 1);
        assert!(index.memory() < 1 << 24, "{}", index.memory());
    }
}
