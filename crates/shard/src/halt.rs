//! How a shard ends its server: with one line, which is passed on once.

use parking_lot::Mutex;
use std::sync::Arc;

/// Called once with one line when the server must end: its log or its state can no longer be trusted.
pub type OnFatal = Box<dyn Fn(&str) + Send + Sync>;

/// Called once with one line when a shard's state can no longer be trusted; the server must end.
pub(crate) type Halt = Arc<dyn Fn(&str) + Send + Sync>;

/// Calls `on_fatal` once, for the first error.
pub(crate) fn once(on_fatal: OnFatal) -> Halt {
    let said = Mutex::new(false);
    Arc::new(move |why: &str| {
        let mut said = said.lock();
        if !*said {
            *said = true;
            on_fatal(why);
        }
    })
}
