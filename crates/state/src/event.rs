//! Events: facts. A decision carries them, and nothing else changes state. Each aggregate has its own.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::RunId;

use crate::approval::ApprovalEvent;
use crate::catalogue::CatalogueEvent;
use crate::delivery::DeliveryEvent;
use crate::policy::PolicyEvent;
use crate::run::RunEvent;
use crate::session::SessionEvent;
use crate::work::WorkEvent;

/// A fact. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(flat)]
pub enum Event {
    /// About a session: its life, what is said in it, and how its data ends.
    #[n(0)]
    Session(#[n(0)] SessionEvent),
    /// About a run: where it goes, its data, and the runs below it.
    #[n(1)]
    Run(#[n(0)] RunEvent),
    /// About gates and the people who decide them.
    #[n(2)]
    Approval(#[n(0)] ApprovalEvent),
    /// About open items: work for workers, waits and timers.
    #[n(3)]
    Work(#[n(0)] WorkEvent),
    /// About what goes out, and where it goes.
    #[n(4)]
    Delivery(#[n(0)] DeliveryEvent),
    /// About calls, what they use and what limits them.
    #[n(5)]
    Policy(#[n(0)] PolicyEvent),
    /// About the catalogue.
    #[n(6)]
    Catalogue(#[n(0)] CatalogueEvent),
}

impl Event {
    /// Returns true if the event counts in its session's sequence: it is about a session, and the session is not removed
    /// by it.
    #[must_use]
    pub fn counts(&self) -> bool {
        match self {
            Self::Session(event) => event.counts(),
            Self::Run(_) | Self::Approval(_) | Self::Work(_) => true,
            Self::Delivery(event) => event.counts(),
            Self::Policy(event) => event.counts(),
            Self::Catalogue(_) => false,
        }
    }

    /// Returns true if the event is only about the progress of an effect, or queues a message to an endpoint. A caller
    /// who saw the session before it has seen its current state.
    #[must_use]
    pub fn is_progress(&self) -> bool {
        match self {
            Self::Delivery(event) => event.is_progress(),
            Self::Session(_)
            | Self::Run(_)
            | Self::Approval(_)
            | Self::Work(_)
            | Self::Policy(_)
            | Self::Catalogue(_) => false,
        }
    }

    /// Returns true if the event changes which effects are to go out.
    #[must_use]
    pub fn changes_outbox(&self) -> bool {
        match self {
            Self::Delivery(event) => event.changes_outbox(),
            Self::Session(_)
            | Self::Run(_)
            | Self::Approval(_)
            | Self::Work(_)
            | Self::Policy(_)
            | Self::Catalogue(_) => false,
        }
    }

    /// Returns true if the event changes which work can be taken.
    #[must_use]
    pub fn changes_work(&self) -> bool {
        match self {
            Self::Work(event) => event.changes_work(),
            Self::Approval(event) => event.changes_work(),
            Self::Session(_) | Self::Run(_) | Self::Delivery(_) | Self::Policy(_) | Self::Catalogue(_) => {
                false
            }
        }
    }

    /// Returns true if the event may end what a key allows.
    #[must_use]
    pub fn changes_credentials(&self) -> bool {
        match self {
            Self::Catalogue(event) => event.changes_credentials(),
            Self::Session(_)
            | Self::Run(_)
            | Self::Approval(_)
            | Self::Work(_)
            | Self::Delivery(_)
            | Self::Policy(_) => false,
        }
    }

    /// The run that the event is about, if readers are shown which; `None` if it is about no run, or if none is shown.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Run(event) => event.run(),
            Self::Approval(event) => event.run(),
            Self::Work(event) => event.run(),
            Self::Delivery(event) => event.run(),
            Self::Session(_) | Self::Policy(_) | Self::Catalogue(_) => None,
        }
    }
}
