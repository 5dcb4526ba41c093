//! Waits for the tasks that are ready, and for nothing else.

use std::future::poll_fn;
use std::task::Poll;

/// Lets the tasks run that are ready on this thread.
pub(crate) async fn after_ready_tasks() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        // Woken while it runs, a task is put behind those that are ready. Another thread may take it over, so that it
        // does not wait for one of them that takes long.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
