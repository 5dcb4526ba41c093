//! The road that batches of timers take from a leader to whoever fires them.

use futures::future::BoxFuture;

use super::TimerBatch;

/// Carries batches to whoever calls [`Cluster::fire`](crate::Cluster::fire) with them: at once or later, once, several
/// times or never, in any order.
pub trait TimerRoad: Send + Sync + 'static {
    /// Takes a batch on, or refuses it. The leader waits [`ROAD_ACCEPT_WAIT`](crate::limits::ROAD_ACCEPT_WAIT) for it; a
    /// road that was slower has refused, whatever it does with the batch.
    ///
    /// # Errors
    /// The road is full, or down.
    fn hand_out(&self, batch: TimerBatch) -> BoxFuture<'_, Result<(), NotAccepted>>;
}

/// Why a batch was not taken on, for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAccepted(pub String);

/// What became of a batch that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    /// So many timers of it were fired.
    Timers(usize),
    /// Nobody waits for it: it came before, its leader has given it up, or another leads now.
    Stale,
}
