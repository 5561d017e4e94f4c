//! Ends of files that were opened or written, kept for the next reader.
//!
//! A small commit reads what the commits before it wrote: dozens of files of some kilobytes, each a
//! request. An object's entity tag stands for its bytes, and listings tell it: what is kept of a file
//! goes when a listing of its folder shows another tag, or no such file. Until then the file counts
//! as what it was, as one does that was opened at the time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use object_store::ObjectMeta;
use object_store::path::Path;

/// Bytes kept of all files of a bucket.
const MOST: usize = 32 << 20;

/// The overhead of a small file.
const BESIDE: usize = 256;

/// The last bytes of a file; all of a small one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) bytes: Bytes,
    /// Of the file.
    pub(super) size: u64,
    pub(super) e_tag: String,
}

/// How far below its folder a listing looked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    One,
    All,
}

#[derive(Default)]
pub(super) struct Ends(Mutex<Kept>);

/// By key; the least recently used go first.
#[derive(Default)]
struct Kept {
    ends: BTreeMap<String, (u64, End)>,
    by_use: BTreeMap<u64, String>,
    uses: u64,
    weight: usize,
}

impl Ends {
    /// What is kept of a file.
    pub(super) fn get(&self, key: &Path) -> Option<End> {
        self.kept().get(key.as_ref())
    }

    /// Keeps the end of a file, unless the storage gave it no tag.
    pub(super) fn keep(&self, key: &Path, bytes: Bytes, size: u64, e_tag: Option<String>) {
        if let Some(e_tag) = e_tag {
            let end = End { bytes, size, e_tag };
            self.kept().put(key.as_ref(), end);
        }
    }

    /// A file was replaced or deleted.
    pub(super) fn forget(&self, key: &Path) {
        self.kept().remove(key.as_ref());
    }

    /// What a listing of a folder has shown: all files in it, or all below it.
    pub(super) fn listed(&self, folder: &Path, depth: Depth, found: &[ObjectMeta]) {
        let mut kept = self.kept();
        let folder = match folder.as_ref() {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let known = kept.below(&folder, depth);
        if known.is_empty() {
            return;
        }
        let tags: HashMap<&str, &str> = found
            .iter()
            .filter_map(|meta| Some((meta.location.as_ref(), meta.e_tag.as_deref()?)))
            .collect();
        for (key, e_tag) in known {
            if tags
                .get(key.as_str())
                .is_none_or(|tag| bare(tag) != bare(&e_tag))
            {
                kept.remove(&key);
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Azure's listings have no quotes about tags, its answers do.
fn bare(e_tag: &str) -> &str {
    e_tag.trim_matches('"')
}

impl Kept {
    fn get(&mut self, key: &str) -> Option<End> {
        let (used, end) = self.ends.get_mut(key)?;
        self.uses += 1;
        self.by_use.remove(used);
        self.by_use.insert(self.uses, key.to_owned());
        *used = self.uses;
        Some(end.clone())
    }

    fn put(&mut self, key: &str, end: End) {
        self.remove(key);
        self.uses += 1;
        self.weight += weight(&end);
        self.by_use.insert(self.uses, key.to_owned());
        self.ends.insert(key.to_owned(), (self.uses, end));
        while self.weight > MOST {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some((used, end)) = self.ends.remove(key) {
            self.by_use.remove(&used);
            self.weight -= weight(&end);
        }
    }

    /// Keys below a folder that ends with its slash, with their tags.
    fn below(&self, folder: &str, depth: Depth) -> Vec<(String, String)> {
        let after = self.ends.range(folder.to_owned()..);
        after
            .map_while(|(key, (_, end))| Some((key, key.strip_prefix(folder)?, end)))
            .filter(|(_, name, _)| depth == Depth::All || !name.contains('/'))
            .map(|(key, _, end)| (key.clone(), end.e_tag.clone()))
            .collect()
    }
}

fn weight(end: &End) -> usize {
    end.bytes.len() + BESIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Path {
        Path::parse(text).unwrap()
    }

    fn meta(text: &str, e_tag: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            location: key(text),
            last_modified: std::time::SystemTime::UNIX_EPOCH.into(),
            size: 1,
            e_tag: e_tag.map(str::to_owned),
            version: None,
        }
    }

    fn kept(texts: &[&str]) -> Ends {
        let ends = Ends::default();
        for text in texts {
            let bytes = Bytes::from((*text).to_owned());
            ends.keep(&key(text), bytes, 1, Some("\"1\"".to_owned()));
        }
        ends
    }

    fn left(ends: &Ends) -> Vec<String> {
        ends.kept().ends.keys().cloned().collect()
    }

    #[test]
    fn what_a_listing_shows_otherwise_goes() {
        let ends = kept(&["t/a", "t/b", "t/c", "t/d", "t/e/x", "t2/a"]);
        let found = [
            meta("t/a", Some("1")),
            meta("t/b", Some("\"2\"")),
            meta("t/c", None),
        ];
        ends.listed(&key("t"), Depth::One, &found);
        assert_eq!(left(&ends), ["t/a", "t/e/x", "t2/a"]);
        assert_eq!(ends.get(&key("t/a")).unwrap().bytes, "t/a");
        assert_eq!(ends.get(&key("t/b")), None);
        ends.listed(&key("t"), Depth::All, &[meta("t/a", Some("1"))]);
        assert_eq!(left(&ends), ["t/a", "t2/a"]);
        ends.listed(&Path::default(), Depth::All, &[]);
        assert!(left(&ends).is_empty());
        assert_eq!(ends.kept().weight, 0);
    }

    #[test]
    fn those_without_a_tag_are_not_kept_and_the_deleted_forgotten() {
        let ends = kept(&["a", "b"]);
        ends.keep(&key("c"), Bytes::new(), 0, None);
        ends.forget(&key("a"));
        assert_eq!(left(&ends), ["b"]);
        assert_eq!(ends.kept().by_use.len(), 1);
    }

    #[test]
    fn those_asked_for_last_stay() {
        let ends = Ends::default();
        let put = |name: usize| {
            let bytes = Bytes::from(vec![0; 1 << 20]);
            ends.keep(&key(&name.to_string()), bytes, 1, Some("1".to_owned()));
        };
        (0..31).for_each(put);
        assert!(ends.get(&key("0")).is_some());
        (31..40).for_each(put);
        assert!(ends.get(&key("0")).is_some());
        assert_eq!(ends.get(&key("1")), None);
        assert!(ends.kept().weight <= MOST);
    }
}
