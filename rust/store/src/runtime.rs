//! The one runtime of this process. A forked child makes its own: threads do not cross a fork.

use std::future::Future;
use std::io;
use std::process;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that move bytes; waiting and decoding is done by the callers' threads.
const THREADS: usize = 2;

/// The runtime and the process that made it.
static CURRENT: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

/// Runs the future to its end on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    Ok(current()?.block_on(future))
}

/// The runtime for clients that begin tasks by themselves.
pub(crate) fn handle() -> io::Result<Handle> {
    Ok(current()?.handle().clone())
}

/// This process's runtime. It is never dropped: in a forked child its threads are gone, and taking
/// it apart would wait for them, or close connections that the parent uses.
fn current() -> io::Result<&'static Runtime> {
    let owner = process::id();
    // Held for a comparison only, so that a fork does not meet it locked.
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, runtime)) = *current
        && process == owner
    {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("pyhudi-store")
        .enable_all()
        .build()?;
    let runtime: &'static Runtime = Box::leak(Box::new(runtime));
    *current = Some((owner, runtime));
    Ok(runtime)
}
