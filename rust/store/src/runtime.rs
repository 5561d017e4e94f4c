//! The one runtime of this process. A forked child makes its own: threads do not cross a fork.

use std::any::Any;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that move bytes; waiting and decoding is done by the callers' threads.
const THREADS: usize = 2;

/// The runtime and the process that made it.
static CURRENT: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

/// Runs the future to its end on this thread. A client's panic is an error: some take options that
/// they cannot use, and all of them need threads to look names up.
pub(crate) fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = current()?;
    caught(|| runtime.block_on(future))
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
    // Which panics where the system gives no thread.
    let runtime = caught(|| {
        Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("pyhudi-store")
            .enable_all()
            .build()
    })??;
    let runtime: &'static Runtime = Box::leak(Box::new(runtime));
    *current = Some((owner, runtime));
    Ok(runtime)
}

/// What the work gives; its panic as an error.
fn caught<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| io::Error::other(text_of(&*panic)))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "the client gave up".to_owned())
}
