//! Batches that another thread makes while those before are used.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use arrow::array::RecordBatch;

use crate::changes::Batches;
use crate::error::{Result, SliceError};

/// Batches that may wait.
const AHEAD: usize = 2;

/// The same batches, made by a thread that ends with them, or soon after they are dropped.
pub(crate) fn read_ahead(batches: Batches) -> Batches {
    let (sender, made) = sync_channel(AHEAD);
    let held = Arc::new(Mutex::new(Some(batches)));
    let theirs = Arc::clone(&held);
    let work = move || {
        for batch in taken(&theirs).into_iter().flatten() {
            let failed = batch.is_err();
            if sender.send(batch).is_err() || failed {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("pyhudi-batches".to_owned());
    // The Parquet crate panics on some damaged files.
    match thread.spawn(move || catch_unwind(AssertUnwindSafe(work)).is_ok()) {
        Ok(maker) => Box::new(Made {
            made,
            maker: Some(maker),
        }),
        // If the system gives no thread, the consumer builds them.
        Err(_) => Box::new(taken(&held).into_iter().flatten()),
    }
}

fn taken(held: &Mutex<Option<Batches>>) -> Option<Batches> {
    held.lock().unwrap_or_else(PoisonError::into_inner).take()
}

struct Made {
    made: Receiver<Result<RecordBatch>>,
    /// Tells whether it came to an end.
    maker: Option<thread::JoinHandle<bool>>,
}

impl Iterator for Made {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Ok(batch) = self.made.recv() {
            return Some(batch);
        }
        let ended = self.maker.take()?.join().unwrap_or(false);
        (!ended).then(|| {
            Err(SliceError::Corrupt {
                file: "a file of the slice".to_owned(),
                offset: None,
                what: "its decoder gave up".to_owned(),
            })
        })
    }
}
