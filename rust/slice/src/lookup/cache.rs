//! What an open table keeps in memory for reads of few keys, up to a number of bytes.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Builds of different items run concurrently, those of one item one after the other.
const LOCKS: usize = 32;

type Value = Arc<dyn Any + Send + Sync>;

/// Items of two generations: those that were not used while the younger one filled up are dropped.
pub struct Cache<K> {
    generations: Mutex<Generations<K>>,
    /// Bytes of a generation.
    room: usize,
    locks: [Mutex<()>; LOCKS],
}

struct Generations<K> {
    young: HashMap<K, (Value, usize)>,
    young_bytes: usize,
    old: HashMap<K, (Value, usize)>,
    old_bytes: usize,
}

impl<K: Hash + Eq + Clone> Cache<K> {
    /// Keeps at most about this number of bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            generations: Mutex::new(Generations {
                young: HashMap::new(),
                young_bytes: 0,
                old: HashMap::new(),
                old_bytes: 0,
            }),
            room: max_bytes / 2,
            locks: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Bytes that are kept, by estimate.
    pub fn bytes(&self) -> usize {
        let generations = self.lock();
        generations.young_bytes + generations.old_bytes
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
        self.lock().add(
            item.clone(),
            (Arc::clone(&value) as Value, bytes),
            self.room,
        );
        Ok(value)
    }

    /// Keeps an item that was built already.
    pub fn put<T: Any + Send + Sync>(&self, item: K, value: T, bytes: usize) {
        self.put_shared(item, Arc::new(value), bytes);
    }

    /// Keeps an item that its builder uses, too.
    pub fn put_shared<T: Any + Send + Sync>(&self, item: K, value: Arc<T>, bytes: usize) {
        self.lock().add(item, (value as Value, bytes), self.room);
    }

    /// An item if it is here.
    pub fn find<T: Any + Send + Sync>(&self, item: &K) -> Option<Arc<T>> {
        let mut generations = self.lock();
        if let Some((value, _)) = generations.young.get(item) {
            return Arc::clone(value).downcast().ok();
        }
        let (item, entry) = generations.old.remove_entry(item)?;
        generations.old_bytes -= entry.1;
        let value = Arc::clone(&entry.0);
        generations.add(item, entry, self.room);
        value.downcast().ok()
    }

    fn lock(&self) -> MutexGuard<'_, Generations<K>> {
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Generations<K> {
    fn add(&mut self, item: K, (value, bytes): (Value, usize), room: usize) {
        if bytes > room {
            return;
        }
        if self.young_bytes + bytes > room {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
        self.young_bytes += bytes;
        if let Some((_, before)) = self.young.insert(item, (value, bytes)) {
            self.young_bytes -= before;
        }
    }
}

impl<K: Hash + Eq + Clone> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({} of {} bytes)", self.bytes(), 2 * self.room)
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
