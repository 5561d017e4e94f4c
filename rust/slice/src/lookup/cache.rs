//! What an open table keeps in memory for reads of few keys, up to a number of bytes.

use std::any::Any;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

/// Builds of different items run concurrently, those of one item one after the other.
const LOCKS: usize = 32;

/// How many generations there are when there is no room: the oldest of them is dropped.
const GENERATIONS: usize = 8;

type Value = Arc<dyn Any + Send + Sync>;

/// Items in generations by their last use: the oldest generation is dropped when there is no room.
pub struct Cache<K> {
    items: Mutex<Items<K>>,
    locks: [Mutex<()>; LOCKS],
}

struct Items<K> {
    by_key: HashMap<K, Item, RandomState>,
    /// Bytes of each generation that has items; the youngest is last.
    generations: VecDeque<usize>,
    /// Number of the first of them.
    oldest: u64,
    bytes: usize,
    max_bytes: usize,
}

struct Item {
    value: Value,
    bytes: usize,
    generation: u64,
}

impl<K: Hash + Eq + Clone> Cache<K> {
    /// Keeps at most about this number of bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            items: Mutex::new(Items {
                by_key: HashMap::default(),
                generations: VecDeque::from([0]),
                oldest: 0,
                bytes: 0,
                max_bytes,
            }),
            locks: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Bytes that are kept, by estimate.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// An item; it is built, and its bytes are counted, unless it is here.
    ///
    /// # Errors
    /// Those of `build`, after which the item is not here.
    pub fn get<T: Any + Send + Sync, E>(
        &self,
        item: &K,
        build: impl FnOnce() -> Result<(T, usize), E>,
    ) -> Result<Arc<T>, E> {
        if let Some(value) = self.find(item) {
            return Ok(value);
        }
        let mut hasher = DefaultHasher::new();
        item.hash(&mut hasher);
        let lock = self.locks.get(hasher.finish() as usize % LOCKS);
        let _building = lock.map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(value) = self.find(item) {
            return Ok(value);
        }
        let (value, bytes) = build()?;
        let value = Arc::new(value);
        self.put_shared(item.clone(), Arc::clone(&value), bytes);
        Ok(value)
    }

    /// Keeps an item that was built already.
    pub fn put<T: Any + Send + Sync>(&self, item: K, value: T, bytes: usize) {
        self.put_shared(item, Arc::new(value), bytes);
    }

    /// Keeps an item that its builder uses, too.
    pub fn put_shared<T: Any + Send + Sync>(&self, item: K, value: Arc<T>, bytes: usize) {
        let dropped = self.lock().add(item, value as Value, bytes);
        // Without the lock: there may be many.
        drop(dropped);
    }

    /// An item if it is here.
    pub fn find<T: Any + Send + Sync>(&self, item: &K) -> Option<Arc<T>> {
        let value = self.lock().find(item);
        value?.downcast().ok()
    }

    fn lock(&self) -> MutexGuard<'_, Items<K>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Items<K> {
    fn find(&mut self, key: &K) -> Option<Value> {
        let youngest = self.youngest();
        let item = self.by_key.get_mut(key)?;
        let value = Arc::clone(&item.value);
        let (bytes, before) = (item.bytes, item.generation);
        if before != youngest {
            item.generation = youngest;
            self.count(before, bytes, 0);
            self.count(youngest, 0, bytes);
        }
        Some(value)
    }

    /// Adds an item, and gives back those that have no room any more.
    fn add(&mut self, key: K, value: Value, bytes: usize) -> Vec<Value> {
        let mut dropped = Vec::new();
        if bytes > self.max_bytes / 2 {
            return dropped;
        }
        let generation = self.youngest();
        let item = Item {
            value,
            bytes,
            generation,
        };
        self.count(generation, 0, bytes);
        self.bytes += bytes;
        if let Some(before) = self.by_key.insert(key, item) {
            self.count(before.generation, before.bytes, 0);
            self.bytes -= before.bytes;
            dropped.push(before.value);
        }
        let youngest = self.generations.back().copied().unwrap_or(0);
        if youngest > self.max_bytes / GENERATIONS {
            self.generations.push_back(0);
        }
        while self.bytes > self.max_bytes && self.generations.len() > 1 {
            let oldest = self.oldest;
            let out = self.by_key.extract_if(|_, item| item.generation == oldest);
            dropped.extend(out.map(|(_, item)| item.value));
            self.bytes -= self.generations.pop_front().unwrap_or(0);
            self.oldest += 1;
        }
        dropped
    }

    fn youngest(&self) -> u64 {
        self.oldest + self.generations.len() as u64 - 1
    }

    fn count(&mut self, generation: u64, less: usize, more: usize) {
        let at = generation.checked_sub(self.oldest).map(|at| at as usize);
        if let Some(bytes) = at.and_then(|at| self.generations.get_mut(at)) {
            *bytes = *bytes + more - less;
        }
    }
}

impl<K: Hash + Eq + Clone> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.lock();
        write!(f, "Cache({} of {} bytes)", items.bytes, items.max_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn get(cache: &Cache<usize>, name: usize, bytes: usize, count: &Cell<u32>) -> usize {
        let build = || {
            count.set(count.get() + 1);
            Ok::<_, ()>((name, bytes))
        };
        *cache.get(&name, build).unwrap()
    }

    #[test]
    fn items_are_built_once_while_they_are_used() {
        let (cache, count) = (Cache::new(100), Cell::new(0));
        for other in 1..50 {
            assert_eq!(get(&cache, 0, 10, &count), 0);
            assert_eq!(get(&cache, other, 10, &count), other);
            assert!(cache.bytes() <= 100);
        }
        assert_eq!(count.get(), 50);
        assert_eq!(get(&cache, 1, 10, &count), 1);
        assert_eq!(count.get(), 51);
    }

    #[test]
    fn items_that_fit_together_stay() {
        let (cache, count) = (Cache::new(1000), Cell::new(0));
        for _ in 0..5 {
            for name in 0..95 {
                assert_eq!(get(&cache, name, 10, &count), name);
            }
        }
        assert_eq!((count.get(), cache.bytes()), (95, 950));
    }

    #[test]
    fn bytes_are_those_of_the_items() {
        let cache = Cache::new(1000);
        for step in 0..3000_usize {
            let name = step * 7919 % 130;
            if step % 3 == 0 {
                cache.put(name, name, 1 + step % 29);
            } else if let Some(found) = cache.find::<usize>(&name) {
                assert_eq!(*found, name);
            }
            let items = cache.lock();
            let bytes: usize = items.by_key.values().map(|item| item.bytes).sum();
            assert_eq!(items.bytes, bytes);
            assert_eq!(items.generations.iter().sum::<usize>(), bytes);
            assert!(bytes <= 1000);
        }
    }

    #[test]
    fn an_item_without_room_is_not_kept() {
        let (cache, count) = (Cache::new(100), Cell::new(0));
        for _ in 0..2 {
            assert_eq!(get(&cache, 7, 51, &count), 7);
        }
        assert_eq!((count.get(), cache.bytes()), (2, 0));
    }

    #[test]
    fn a_failed_build_is_tried_again() {
        let cache = Cache::new(100);
        assert!(cache.get::<usize, _>(&1, || Err("no")).is_err());
        assert_eq!(*cache.get(&1, || Ok::<_, ()>((3_usize, 1))).unwrap(), 3);
    }
}
