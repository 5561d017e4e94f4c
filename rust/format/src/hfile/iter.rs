//! Reading pairs: all, those of a prefix, or those of given keys.

use bytes::Bytes;

use super::HFile;
use super::ahead::Ahead;
use super::entry::{Pairs, Search};
use super::index::{Entry, Walk};
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
        }
    }

    fn pair(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        loop {
            // An error on the way leaves the state at its end.
            let (walk, mut pairs) = match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return Ok(None),
                State::Start => match self.first()? {
                    Some(start) => start,
                    None => return self.end(),
                },
                State::Block(walk, pairs) => (walk, pairs),
            };
            match pairs.next()? {
                Some(pair) if self.is_past(&pair.0) => return Ok(None),
                Some(pair) => {
                    self.seen += 1;
                    self.state = State::Block(walk, pairs);
                    return Ok(Some(pair));
                }
                None => match self.following(walk)? {
                    Some((walk, pairs)) => self.state = State::Block(walk, pairs),
                    None => return self.end(),
                },
            }
        }
    }

    fn first(&mut self) -> Result<Option<(Walk, Pairs)>> {
        let mut walk = self.file.walk()?;
        let (source, codec) = (&self.file.source, self.file.codec);
        let entry = match &self.prefix {
            Some(prefix) => walk.seek(source, codec, prefix)?,
            None => walk.next(source, codec)?,
        };
        let Some(entry) = entry else {
            return Ok(None);
        };
        let mut pairs = self.block(&entry)?;
        if let Some(prefix) = &self.prefix {
            pairs.skip_before(prefix)?;
        }
        Ok(Some((walk, pairs)))
    }

    fn following(&mut self, mut walk: Walk) -> Result<Option<(Walk, Pairs)>> {
        let Some(entry) = walk.next(&self.file.source, self.file.codec)? else {
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
#[derive(Debug)]
pub struct Lookup<'f, 'k, R, I> {
    file: &'f HFile<R>,
    keys: I,
    last: Option<&'k [u8]>,
    walk: Option<Walk>,
    /// The block that the last key led to.
    block: Option<Search>,
}

impl<'f, 'k, R: ReadAt, I: Iterator<Item = &'k [u8]>> Lookup<'f, 'k, R, I> {
    pub(super) fn new(file: &'f HFile<R>, keys: I) -> Self {
        Self {
            file,
            keys,
            last: None,
            walk: None,
            block: None,
        }
    }

    fn find(&mut self, key: &'k [u8]) -> Result<Option<(Bytes, Bytes)>> {
        if self.last.replace(key).is_some_and(|last| last > key) {
            (self.walk, self.block) = (None, None);
        }
        let walk = match &mut self.walk {
            Some(walk) => walk,
            none => none.insert(self.file.walk()?),
        };
        if let Some(entry) = walk.seek_forward(&self.file.source, self.file.codec, key)? {
            self.block = Some(self.file.searched(&entry)?);
        }
        match &mut self.block {
            Some(pairs) => pairs.find(key),
            None => Ok(None),
        }
    }
}

impl<'k, R: ReadAt, I: Iterator<Item = &'k [u8]>> Iterator for Lookup<'_, 'k, R, I> {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let key = self.keys.next()?;
            if let Some(item) = self.find(key).transpose() {
                return Some(item);
            }
        }
    }
}
