//! The faults of a run, drawn from its seed: each kind is off, rare or frequent.

use switchward_testkit::Rng;

/// How often each kind of fault occurs: once in this many occasions; `None` never.
pub(crate) struct Plan {
    pub(crate) lost: Rate,
    pub(crate) repeated: Rate,
    pub(crate) late: Rate,
    pub(crate) answer_lost: Rate,
    pub(crate) gone: Rate,
    pub(crate) other_body: Rate,
    pub(crate) early: Rate,
    pub(crate) failing: Rate,
    pub(crate) attempt_twice: Rate,
    pub(crate) attempt_late: Rate,
    pub(crate) confirm_late: Rate,
    pub(crate) report_again: Rate,
    /// The pause between two faults of servers, milliseconds.
    pub(crate) pause_ms: u64,
}

/// Once in this many occasions; `None`: never.
pub(crate) type Rate = Option<usize>;

impl Plan {
    /// Draws one.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let mut rate = |frequent: usize| *rng.pick(&[None, Some(6 * frequent), Some(frequent)]);
        Self {
            lost: rate(12),
            repeated: rate(5),
            late: rate(8),
            answer_lost: rate(10),
            gone: rate(6),
            other_body: rate(10),
            early: rate(4),
            failing: rate(2),
            attempt_twice: rate(4),
            attempt_late: rate(4),
            confirm_late: rate(2),
            report_again: rate(2),
            pause_ms: *rng.pick(&[150, 400, 1_200]),
        }
    }

    /// No faults any longer.
    pub(crate) fn healed() -> Self {
        Self {
            lost: None,
            repeated: None,
            late: None,
            answer_lost: None,
            gone: None,
            other_body: None,
            early: None,
            failing: None,
            attempt_twice: None,
            attempt_late: None,
            confirm_late: None,
            report_again: None,
            pause_ms: u64::MAX,
        }
    }
}

/// The kinds of faults. A set of runs in which one of them never occurred shows nothing.
pub(crate) const FAULTS: [&str; 28] = [
    "message lost",
    "message repeated",
    "message late",
    "message reordered",
    "answer lost",
    "leader changed",
    "leader elected again",
    "proposal lost",
    "proposal committed after its leader",
    "queue lost",
    "clock jumped ahead",
    "clock jumped back",
    "replica restarted from older rows",
    "replica restarted from a snapshot",
    "follower lagged",
    "caller gone after a reservation",
    "request id with another body",
    "request repeated after its answer",
    "settle before confirm",
    "inner effect relayed again",
    "release of a reservation",
    "timer fired before its time",
    "timer fired again",
    "attempt failed",
    "attempt made twice",
    "outcome of an earlier attempt",
    "outcome of an earlier round",
    "outcome after its effect",
];
