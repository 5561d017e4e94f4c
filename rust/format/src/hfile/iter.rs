//! Reading pairs: all, those of a prefix, or those of given keys.

use std::iter::Enumerate;
use std::vec;

use bytes::Bytes;

use super::HFile;
use super::ahead::Ahead;
use super::entry::{Pairs, Search};
use super::index::{Entry, Walk};
use super::order::{KeyOrder, Orders, is_ambiguous};
use crate::{FormatError, ReadAt, Result};

/// Pairs in file order; made by [`HFile::scan`] and [`HFile::prefix`]. An error ends it.
#[derive(Debug)]
pub struct Entries<'f, R> {
    file: &'f HFile<R>,
    prefix: Option<Bytes>,
    /// A scan of all pairs reads many blocks at once.
    ahead: Ahead,
    state: State,
    seen: u64,
    /// The order in which the prefix is looked for.
    order: KeyOrder,
    orders: Orders,
    /// The key that was passed last.
    last: Bytes,
}

#[derive(Debug)]
enum State {
    Start,
    Block(Walk, Pairs),
    Done,
}

impl<'f, R: ReadAt> Entries<'f, R> {
    pub(super) fn new(file: &'f HFile<R>, prefix: Option<Bytes>) -> Self {
        Self {
            file,
            prefix,
            ahead: file.ahead(),
            state: State::Start,
            seen: 0,
            order: file.orders.first(),
            orders: file.orders,
            last: Bytes::new(),
        }
    }

    fn pair(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        loop {
            // An error on the way leaves the state at its end.
            let (walk, mut pairs) = match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return Ok(None),
                State::Start => match self.first()? {
                    Some(start) => start,
                    None if self.turns() => continue,
                    None => return self.end(),
                },
                State::Block(walk, pairs) => (walk, pairs),
            };
            match pairs.next()? {
                Some(pair) if self.is_past(&pair.0) && self.turns() => {}
                Some(pair) if self.is_past(&pair.0) => return Ok(None),
                Some(pair) => {
                    self.orders.pass(&self.last, &pair.0, pairs.at())?;
                    self.last = pair.0.clone();
                    self.seen += 1;
                    self.state = State::Block(walk, pairs);
                    return Ok(Some(pair));
                }
                None => match self.following(walk)? {
                    Some((walk, pairs)) => self.state = State::Block(walk, pairs),
                    None if self.turns() => {}
                    None => return self.end(),
                },
            }
        }
    }

    /// Whether the search begins again in another order: in the wrong one, a prefix that the file has
    /// is not found, and in the right one all of its pairs are.
    fn turns(&mut self) -> bool {
        let Some(other) = self.orders.after(self.order) else {
            return false;
        };
        let is_ambiguous = self
            .prefix
            .as_ref()
            .is_some_and(|prefix| is_ambiguous(prefix));
        let turns = self.seen == 0 && is_ambiguous;
        if turns {
            self.order = other;
            self.last = Bytes::new();
            self.state = State::Start;
        }
        turns
    }

    fn first(&mut self) -> Result<Option<(Walk, Pairs)>> {
        let mut walk = self.file.walk(self.order)?;
        let (source, codec) = (&self.file.source, self.file.codec);
        let entry = match &self.prefix {
            Some(prefix) => walk.seek(source, codec, prefix, &mut self.orders)?,
            None => walk.next(source, codec, &mut self.orders)?,
        };
        let Some(entry) = entry.filter(|_| self.orders.allow(self.order)) else {
            return Ok(None);
        };
        let mut pairs = self.block(&entry)?;
        if let Some(prefix) = &self.prefix {
            let skipped = pairs.skip_before(prefix, self.order, &mut self.orders)?;
            self.last = skipped.unwrap_or_default();
        }
        Ok(Some((walk, pairs)))
    }

    fn following(&mut self, mut walk: Walk) -> Result<Option<(Walk, Pairs)>> {
        let orders = &mut self.orders;
        let Some(entry) = walk.next(&self.file.source, self.file.codec, orders)? else {
            return Ok(None);
        };
        let pairs = self.block(&entry)?;
        Ok(Some((walk, pairs)))
    }

    fn block(&mut self, entry: &Entry) -> Result<Pairs> {
        match self.prefix {
            Some(_) => self.file.data_block(entry),
            None => self.file.data_block_of(entry, &mut self.ahead),
        }
    }

    fn is_past(&self, key: &[u8]) -> bool {
        self.prefix
            .as_ref()
            .is_some_and(|prefix| !key.starts_with(prefix))
    }

    /// After the last block: a whole scan must have met as many pairs as the trailer counts.
    fn end(&self) -> Result<Option<(Bytes, Bytes)>> {
        let expected = self.file.entry_count();
        if self.prefix.is_none() && self.seen != expected {
            let what = format!("{} pairs in an HFile of {expected}", self.seen);
            return Err(FormatError::corrupt(self.file.source.size(), what));
        }
        Ok(None)
    }
}

impl<R: ReadAt> Iterator for Entries<'_, R> {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pair().transpose()
    }
}

/// Copies of the pairs of given keys; made by [`HFile::lookup`].
///
/// Keys are looked for in one order first. Those that were not found, and would be at another place in
/// the other order, are looked for in that one at the end, unless the keys passed by then rule it out.
#[derive(Debug)]
pub struct Lookup<'f, 'k, R, I> {
    finder: Finder<'f, 'k, R>,
    keys: Enumerate<I>,
    missed: Vec<(usize, &'k [u8])>,
    again: Option<vec::IntoIter<(usize, &'k [u8])>>,
}

impl<'f, 'k, R: ReadAt, I: Iterator<Item = &'k [u8]>> Lookup<'f, 'k, R, I> {
    pub(super) fn new(file: &'f HFile<R>, keys: I) -> Self {
        Self {
            finder: Finder::new(file, file.orders.first(), file.orders),
            keys: keys.enumerate(),
            missed: Vec::new(),
            again: None,
        }
    }

    /// The number of the next key that is in the file, and its value.
    pub(super) fn value(&mut self) -> Result<Option<(usize, &[u8])>> {
        let Some((number, _)) = self.seek()? else {
            return Ok(None);
        };
        Ok(Some((number, self.finder.value())))
    }

    fn pair(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        let Some((_, key)) = self.seek()? else {
            return Ok(None);
        };
        let value = Bytes::copy_from_slice(self.finder.value());
        Ok(Some((Bytes::copy_from_slice(key), value)))
    }

    /// Moves to the next key that is in the file.
    fn seek(&mut self) -> Result<Option<(usize, &'k [u8])>> {
        loop {
            if let Some(again) = &mut self.again {
                let Some(key) = again.next() else {
                    return Ok(None);
                };
                if self.finder.find(key.1)? {
                    return Ok(Some(key));
                }
                continue;
            }
            let Some(key) = self.keys.next() else {
                self.again = Some(self.missed().into_iter());
                continue;
            };
            if self.finder.find(key.1)? {
                return Ok(Some(key));
            }
            if !self.finder.is_right() || is_ambiguous(key.1) {
                self.missed.push(key);
            }
        }
    }

    /// The keys to look for in the other order, and turns the finder to it.
    fn missed(&mut self) -> Vec<(usize, &'k [u8])> {
        let mut missed = std::mem::take(&mut self.missed);
        let Finder {
            file,
            order,
            orders,
            ..
        } = self.finder;
        match orders.after(order) {
            Some(order) if !missed.is_empty() => {
                missed.sort_by(|a, b| order.compare(a.1, b.1));
                self.finder = Finder::new(file, order, orders);
                missed
            }
            _ => Vec::new(),
        }
    }
}

impl<'k, R: ReadAt, I: Iterator<Item = &'k [u8]>> Iterator for Lookup<'_, 'k, R, I> {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pair().transpose()
    }
}

/// Finds keys in a file as if it had an order.
#[derive(Debug)]
struct Finder<'f, 'k, R> {
    file: &'f HFile<R>,
    order: KeyOrder,
    orders: Orders,
    last: Option<&'k [u8]>,
    walk: Option<Walk>,
    /// The block that the last key led to.
    block: Option<Search>,
}

impl<'f, 'k, R: ReadAt> Finder<'f, 'k, R> {
    fn new(file: &'f HFile<R>, order: KeyOrder, orders: Orders) -> Self {
        Self {
            file,
            order,
            orders,
            last: None,
            walk: None,
            block: None,
        }
    }

    /// Whether the file may have the order.
    fn is_right(&self) -> bool {
        self.orders.allow(self.order)
    }

    /// Whether a key is there, unless the file is known to have another order.
    fn find(&mut self, key: &'k [u8]) -> Result<bool> {
        if !self.is_right() {
            return Ok(false);
        }
        let before = self.last.replace(key);
        if before.is_some_and(|before| self.order.compare(before, key).is_gt()) {
            (self.walk, self.block) = (None, None);
        }
        let walk = match &mut self.walk {
            Some(walk) => walk,
            none => none.insert(self.file.walk(self.order)?),
        };
        let (source, codec) = (&self.file.source, self.file.codec);
        if let Some(entry) = walk.seek_forward(source, codec, key, &mut self.orders)? {
            let memory = self.block.take().map_or_else(Vec::new, Search::into_memory);
            self.block = Some(self.file.searched(&entry, memory)?);
        }
        match &mut self.block {
            Some(pairs) => pairs.find(key, self.order, &mut self.orders),
            None => Ok(false),
        }
    }

    /// The value of the key that was found last.
    fn value(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], Search::value)
    }
}
