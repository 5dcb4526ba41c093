//! The transport of timer batches from a leader to the server that fires them.

use futures::future::BoxFuture;

use super::TimerBatch;

/// Carries batches to a server that calls [`Cluster::fire`](crate::Cluster::fire) with them: at once or later, once,
/// several times or never, in any order.
pub trait TimerTransport: Send + Sync + 'static {
    /// Accepts a batch, or refuses it. The leader waits
    /// [`TRANSPORT_ACCEPT_WAIT`](crate::limits::TRANSPORT_ACCEPT_WAIT); a slower transport counts as having refused,
    /// whatever it does with the batch.
    ///
    /// # Errors
    /// The transport is full, or down.
    fn hand_out(&self, batch: TimerBatch) -> BoxFuture<'_, Result<(), NotAccepted>>;
}

/// Why a batch was not accepted, for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAccepted(pub String);

/// The result of firing a batch that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    /// This many of its timers were fired.
    Timers(usize),
    /// No leader waits for it: it came before, its leader has given it up, or another server leads now.
    Stale,
}
