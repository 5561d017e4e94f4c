//! Reading ahead: what is kept of a file, and how much more to fetch.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// Bytes fetched at least.
const LEAST: u64 = 256 << 10;

/// Bytes fetched ahead at most, and bytes beyond which a read is not kept.
pub(crate) const MOST: u64 = 4 << 20;

/// Bytes kept of one file.
const KEPT: u64 = 32 << 20;

/// Parts of one file that were fetched, least recently used first.
#[derive(Default)]
pub(crate) struct Windows(Vec<Window>);

struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The bytes of a range, none where some of it is elsewhere.
    fn part(&self, range: &Range<u64>) -> Option<Bytes> {
        let holds = self.start <= range.start && range.end <= self.end();
        let skip = range.start.saturating_sub(self.start) as usize;
        let len = (range.end - range.start) as usize;
        holds.then(|| self.bytes.slice(skip..skip + len))
    }
}

/// What a range takes.
pub(crate) enum Plan {
    /// All of it.
    Known(Bytes),
    /// The beginning of the range is `known`; from there on fetch `ahead` bytes or all that is
    /// wanted, whichever is more.
    Fetch { known: Bytes, ahead: u64 },
}

impl Windows {
    /// Of one part.
    pub(crate) fn of(start: u64, bytes: Bytes) -> Self {
        Self(vec![Window { start, bytes }])
    }

    /// What there is of a range, and what to fetch for it.
    pub(crate) fn plan(&mut self, range: &Range<u64>) -> Plan {
        let meets = |one: &Window| one.start <= range.start && range.start <= one.end();
        // The newest that reaches farthest: windows may overlap.
        let met = self.0.iter().enumerate().filter(|(_, one)| meets(one));
        let Some((at, _)) = met.max_by_key(|(_, one)| one.end()) else {
            return Plan::Fetch {
                known: Bytes::new(),
                ahead: LEAST,
            };
        };
        let window = self.0.remove(at);
        if let Some(bytes) = window.part(range) {
            self.0.push(window);
            return Plan::Known(bytes);
        }
        let skip = (range.start - window.start) as usize;
        // The window has been read to its end: the next one takes its place.
        let most = (KEPT / (self.0.len() as u64 + 1)).clamp(LEAST, MOST);
        Plan::Fetch {
            known: window.bytes.slice(skip..),
            ahead: (window.bytes.len() as u64 * 2).clamp(LEAST, most),
        }
    }

    /// All of a range, none where some of it is to be fetched.
    pub(crate) fn known(&self, range: &Range<u64>) -> Option<Bytes> {
        self.0.iter().rev().find_map(|window| window.part(range))
    }

    /// Keeps what was fetched, and lets go what was used longest ago.
    pub(crate) fn add(&mut self, start: u64, bytes: Bytes) {
        self.0.push(Window { start, bytes });
        let mut kept: u64 = self.0.iter().map(|one| one.bytes.len() as u64).sum();
        while kept > KEPT && self.0.len() > 1 {
            kept -= self.0.remove(0).bytes.len() as u64;
        }
    }
}

/// The bytes of `range`: those that were known, then those fetched.
pub(crate) fn joined(known: &Bytes, fetched: &Bytes, range: &Range<u64>) -> Bytes {
    let wanted = (range.end - range.start) as usize;
    let missing = wanted - known.len();
    if known.is_empty() {
        return fetched.slice(..missing);
    }
    let mut both = BytesMut::with_capacity(wanted);
    both.extend_from_slice(known);
    both.extend_from_slice(&fetched.slice(..missing));
    both.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(windows: &mut Windows, range: Range<u64>) -> Option<(usize, u64)> {
        match windows.plan(&range) {
            Plan::Known(bytes) => {
                assert_eq!(bytes.len() as u64, range.end - range.start);
                None
            }
            Plan::Fetch { known, ahead } => Some((known.len(), ahead)),
        }
    }

    #[test]
    fn going_on_fetches_more_each_time() {
        let mut windows = Windows::default();
        let (mut at, mut fetched) = (1000, Vec::new());
        for _ in 0..400 {
            if let Some((known, ahead)) = fetch(&mut windows, at..at + 100_000) {
                fetched.push(ahead);
                let len = ahead.max(100_000) as usize;
                windows.add(at + known as u64, Bytes::from(vec![0; len]));
            }
            at += 100_000;
        }
        assert_eq!(&fetched[..3], [LEAST, 2 * LEAST, 4 * LEAST]);
        assert!(fetched.iter().all(|ahead| *ahead <= MOST));
        assert!(fetched.len() < 20, "{fetched:?}");
    }

    #[test]
    fn a_range_across_the_end_keeps_what_is_known() {
        let mut windows = Windows::default();
        windows.add(10, Bytes::from_static(b"0123456789"));
        assert_eq!(fetch(&mut windows, 12..15), None);
        assert_eq!(windows.known(&(12..15)).unwrap(), "234");
        assert_eq!(windows.known(&(17..30)), None);
        assert_eq!(fetch(&mut windows, 17..30), Some((3, LEAST)));
        assert_eq!(fetch(&mut windows, 5..11), Some((0, LEAST)));
        let whole = joined(
            &Bytes::from_static(b"ab"),
            &Bytes::from_static(b"cdef"),
            &(0..5),
        );
        assert_eq!(whole, "abcde");
    }

    #[test]
    fn what_is_kept_of_a_file_is_bounded() {
        let mut windows = Windows::default();
        for number in 0..64 {
            windows.add(number << 30, Bytes::from(vec![0; 1 << 20]));
        }
        assert_eq!(windows.0.len(), 32);
        assert_eq!(windows.0[0].start, 32 << 30);
    }
}
