//! What the log says about a server that cannot be reached.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::limits::UNREACHED_WARN;

/// For how long a server has not been reached. Shared by the connections to it. A start and a planned restart are no cause for
/// a warning, so it comes only after [`UNREACHED_WARN`], and once.
#[derive(Debug, Default)]
pub(crate) struct Reach(Mutex<Option<Outage>>);

#[derive(Debug, Clone, Copy)]
struct Outage {
    since: Instant,
    warned: bool,
}

/// How a failed attempt to reach a server is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is the first one since the server was reached.
    First,
    /// One more, which needs no line of its own.
    Repeated,
    /// The first one after so long that somebody must look at it.
    Lasting(Duration),
}

impl Reach {
    /// Notes a failed attempt.
    pub(crate) fn failed(&self) -> Failure {
        let mut known = self.0.lock();
        let Some(outage) = known.as_mut() else {
            *known = Some(Outage { since: Instant::now(), warned: false });
            return Failure::First;
        };
        let lasted = outage.since.elapsed();
        if outage.warned || lasted < UNREACHED_WARN {
            return Failure::Repeated;
        }
        outage.warned = true;
        Failure::Lasting(lasted)
    }

    /// Notes that it was reached. Returns for how long it was not, if that was [`Lasting`](Failure::Lasting).
    pub(crate) fn reached(&self) -> Option<Duration> {
        let outage = self.0.lock().take()?;
        outage.warned.then(|| outage.since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_starts_again_soon_is_no_cause_for_a_warning() {
        let reach = Reach::default();
        for _ in 0..2 {
            assert_eq!(reach.reached(), None);
            assert_eq!([reach.failed(), reach.failed()], [Failure::First, Failure::Repeated]);
            advance(UNREACHED_WARN - Duration::from_millis(1)).await;
            assert_eq!(reach.failed(), Failure::Repeated);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_stays_away_is_warned_of_once_and_its_return_is_logged() {
        let reach = Reach::default();
        reach.failed();
        advance(UNREACHED_WARN).await;
        assert_eq!(reach.failed(), Failure::Lasting(UNREACHED_WARN));
        advance(100 * UNREACHED_WARN).await;
        assert_eq!(reach.failed(), Failure::Repeated);
        assert_eq!(reach.reached(), Some(101 * UNREACHED_WARN));
        assert_eq!((reach.reached(), reach.failed()), (None, Failure::First), "the next outage");
    }
}
