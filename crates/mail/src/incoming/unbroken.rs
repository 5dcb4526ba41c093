//! Catches panics of the mail parser, so that only the message is put aside, and the server or the connection goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt as _;

/// Returns the result; `None` on a panic.
pub(super) fn run<T>(read: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(read)).inspect_err(|_| log_panic()).ok()
}

/// The same for a future.
pub(super) async fn wait<T>(read: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(read).catch_unwind().await.inspect_err(|_| log_panic()).ok()
}

fn log_panic() {
    tracing::error!("a message made its parser panic and is put aside");
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn what_breaks_gives_nothing() {
        assert_eq!(super::run(|| "".chars().next().expect("a character")), None);
        assert_eq!(super::run(|| 1), Some(1));
        assert_eq!(super::wait(async { "".chars().next().expect("a character") }).await, None);
        assert_eq!(super::wait(async { 1 }).await, Some(1));
    }
}
