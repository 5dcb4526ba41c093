//! Bugs that the simulation of the engine must find. They are planted one at a time, by the rows that decisions are made
//! and applied on. Only builds with the feature `planted` contain them, which no build of the product has.

/// A bug that a simulation plants, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A request of a session that comes again is carried out again.
    RequestForgotten,
    /// The time of a batch may be before that of the last entry.
    ClockBack,
    /// A timer fires when it is swept, due or not.
    TimerUnchecked,
    /// A failed attempt defers its effect, although it is not the attempt that is next.
    DeferredByAnotherAttempt,
    /// A failed attempt makes a dead letter of an effect that was sent again after it.
    FailedByAnotherRound,
    /// A failed attempt leaves its effect at the attempt that it was.
    AttemptNotCounted,
    /// A confirmation that comes again counts its call again.
    ConfirmedTwice,
    /// A confirmation that comes after the report of its call holds money that nobody gives back.
    ConfirmedAfterReport,
    /// A ledger forgets what a call has cost.
    SettleLost,
    /// A call that was reported holds its money for ever.
    EstimateHeld,
    /// A report that comes before its confirmation frees what counts the call until then.
    FreedEarly,
    /// A call that is reported without a cost is not settled.
    FreeCallNotSettled,
    /// Calls that are reserved, and not confirmed yet, do not count.
    PendingNotCounted,
    /// A reservation whose call was never permitted does not lapse.
    ReservationPermanent,
}

impl Bug {
    /// The name under which tests report it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestForgotten => "request-forgotten",
            Self::ClockBack => "clock-back",
            Self::TimerUnchecked => "timer-unchecked",
            Self::DeferredByAnotherAttempt => "deferred-by-another-attempt",
            Self::FailedByAnotherRound => "failed-by-another-round",
            Self::AttemptNotCounted => "attempt-not-counted",
            Self::ConfirmedTwice => "confirmed-twice",
            Self::ConfirmedAfterReport => "confirmed-after-report",
            Self::SettleLost => "settle-lost",
            Self::EstimateHeld => "estimate-held",
            Self::FreedEarly => "freed-early",
            Self::FreeCallNotSettled => "free-call-not-settled",
            Self::PendingNotCounted => "pending-not-counted",
            Self::ReservationPermanent => "reservation-permanent",
        }
    }
}
