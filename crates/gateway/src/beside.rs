//! What takes a worker long: the decoding of a large request. Others' calls go on meanwhile on another worker.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::cpu_shares::CpuPermit;
use crate::limits::LARGE_BYTES;

/// Runs work on a request of this many bytes. Above [`LARGE_BYTES`] the worker's other tasks move to another worker first.
pub(crate) fn run<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LARGE_BYTES { aside(work) } else { work() }
}

/// Runs work that takes long: the worker's other tasks move to another worker first.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    let several = Handle::try_current().is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    if several { tokio::task::block_in_place(work) } else { work() }
}

/// A future whose every poll goes through [`run`], and which gives up its permit after the first one, in which its request is
/// decoded.
pub(crate) struct Beside<F> {
    bytes: usize,
    permit: Option<CpuPermit>,
    work: F,
}

impl<F> Beside<F> {
    pub(crate) fn new(bytes: usize, permit: Option<CpuPermit>, work: F) -> Self {
        Self { bytes, permit, work }
    }
}

impl<F: Future + Unpin> Future for Beside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let bytes = self.bytes;
        let work = Pin::new(&mut self.work);
        let polled = run(bytes, || work.poll(context));
        self.permit = None;
        polled
    }
}
