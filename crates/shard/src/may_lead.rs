//! Whether this server's replica of a group may lead it: not while the server's clock bars it, and not once the server stops.

use parking_lot::Mutex;

/// A change of what decides whether a replica may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeadingChange {
    /// The server's clock differs from those of the others.
    ClockDiffers,
    /// The server's clock does not bar it.
    ClockAgrees,
    /// The server stops. Nothing takes that back.
    Stopping,
}

/// What is known of a replica.
#[derive(Debug, Default)]
pub(crate) struct MayLead(Mutex<Bars>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Bars {
    clock: bool,
    stopping: bool,
}

impl Bars {
    fn with(self, change: LeadingChange) -> Self {
        match change {
            LeadingChange::ClockDiffers => Self { clock: true, ..self },
            LeadingChange::ClockAgrees => Self { clock: false, ..self },
            LeadingChange::Stopping => Self { stopping: true, ..self },
        }
    }

    fn may_lead(self) -> bool {
        !self.clock && !self.stopping
    }
}

impl MayLead {
    /// Takes in a change, and calls `elect` with whether the replica may stand for election. A replica that leads goes on
    /// until it hands over.
    pub(crate) fn note(&self, change: LeadingChange, elect: impl FnOnce(bool)) {
        // Held meanwhile: of two that note something, the later one decides.
        let mut bars = self.0.lock();
        *bars = bars.with(change);
        elect(bars.may_lead());
    }

    /// Returns true if nothing bars the replica from leading.
    pub(crate) fn may_lead(&self) -> bool {
        self.0.lock().may_lead()
    }

    /// Returns true if the server's clock bars the replica from leading.
    pub(crate) fn is_barred_by_clock(&self) -> bool {
        self.0.lock().clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LeadingChange::{ClockAgrees, ClockDiffers, Stopping};

    #[test]
    fn a_replica_leads_only_while_its_clock_agrees_and_its_server_does_not_stop() {
        for (change, may_lead, clock) in [
            (vec![], true, false),
            (vec![ClockAgrees], true, false),
            (vec![ClockDiffers], false, true),
            (vec![ClockDiffers, ClockDiffers, ClockAgrees], true, false),
            (vec![Stopping], false, false),
            (vec![Stopping, ClockAgrees], false, false),
            (vec![Stopping, ClockDiffers, ClockAgrees], false, false),
        ] {
            let bars = change.iter().fold(Bars::default(), |bars, change| bars.with(*change));
            assert_eq!((bars.may_lead(), bars.clock), (may_lead, clock), "{change:?}");
        }
    }
}
