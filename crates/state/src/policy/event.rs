//! Events about calls, what they use and what limits them.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{BudgetUnit, Digest, Micros, OpenId, ParamIx, RunId, Time};

use crate::Reason;
use crate::approval::{Call, Grant};
use crate::policy::{LayerDecision, LedgerRule, MatchedRule, PinnedPolicy};

/// An event about calls, what they use and what limits them. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(flat)]
pub enum PolicyEvent {
    /// A caller may make a call, which is counted and may be reserved.
    #[n(0)]
    CallPermitted {
        /// Its number; `None` if the state does not remember it.
        #[n(0)]
        number: Option<u64>,
        /// What is called, and what is held for it until the report.
        #[n(1)]
        call: Call,
        /// The digest of its arguments.
        #[n(2)]
        digest: Digest,
        /// The rule that decided.
        #[n(3)]
        rule: Option<MatchedRule>,
        /// Whether it counts as a mail.
        #[n(4)]
        mail: bool,
        /// What each layer said, if several did.
        #[cbor(n(5), default, skip_if = "Vec::is_empty")]
        layers: Vec<LayerDecision>,
    },
    /// A caller may not make a call; nobody is asked.
    #[n(1)]
    CallDenied {
        /// What would have been called.
        #[n(0)]
        capability: String,
        /// The digest of its arguments.
        #[n(1)]
        digest: Digest,
        /// Why; its caller is answered with the code.
        #[n(2)]
        reason: Reason,
        /// The rule that decided.
        #[n(3)]
        rule: Option<MatchedRule>,
        /// The call's name.
        #[n(4)]
        call_id: String,
        /// What each layer said, if several did.
        #[cbor(n(5), default, skip_if = "Vec::is_empty")]
        layers: Vec<LayerDecision>,
    },
    /// A person is asked about a call.
    #[n(2)]
    CallAsked {
        /// What would be called.
        #[n(0)]
        capability: String,
        /// The digest of its arguments.
        #[n(1)]
        digest: Digest,
        /// The number of the gate that it opens.
        #[n(2)]
        gate: OpenId,
        /// The rule that decided.
        #[n(3)]
        rule: Option<MatchedRule>,
        /// The call's name.
        #[n(4)]
        call_id: String,
        /// What each layer said, if several did.
        #[cbor(n(5), default, skip_if = "Vec::is_empty")]
        layers: Vec<LayerDecision>,
    },
    /// A call was made.
    #[n(3)]
    CallReported {
        /// Its number, if the state remembered it.
        #[n(0)]
        number: Option<u64>,
        /// What was called.
        #[n(1)]
        capability: String,
        /// Whether it worked.
        #[n(2)]
        success: bool,
        /// The run that has called; `None` in events that were written before a session had several.
        #[n(3)]
        run: Option<RunId>,
    },
    /// A permitted call was not reported in time.
    #[n(4)]
    CallLapsed {
        /// The number of the call's row in its session.
        #[n(0)]
        number: u64,
    },
    /// A call may be made once.
    #[n(5)]
    GrantMade {
        /// The number of the grant's row in its session.
        #[n(0)]
        number: u64,
        /// The call with its arguments, until when, and the money that is held for it.
        #[n(1)]
        grant: Grant,
    },
    /// The call that an approval allowed is permitted now.
    #[n(6)]
    GrantUsed {
        /// The number of the grant's row in its session.
        #[n(0)]
        number: u64,
    },
    /// An approved call was not made in time.
    #[n(7)]
    GrantLapsed {
        /// The number of the grant's row in its session.
        #[n(0)]
        number: u64,
    },
    /// Something was used.
    #[n(8)]
    Metered {
        /// Money.
        #[n(0)]
        cost: Micros,
        /// Tokens that models have used, as the caller counts them.
        #[n(1)]
        tokens: u64,
    },
    /// A cap is reached.
    #[n(9)]
    BudgetExhausted {
        /// Which of the meters has reached its cap.
        #[n(0)]
        unit: BudgetUnit,
        /// The cap, in the unit.
        #[n(1)]
        cap: u64,
    },
    /// A cap is another one from now on.
    #[n(10)]
    CapRaised {
        /// The run whose value it is.
        #[n(0)]
        run: RunId,
        /// The parameter of the run's machine that is the cap.
        #[n(1)]
        param: ParamIx,
        /// The new cap, in the unit of the parameter.
        #[n(2)]
        value: u64,
    },
    /// A ledger holds a call.
    #[n(11)]
    LedgerReserved {
        /// The name of the reservation.
        #[n(0)]
        call: Digest,
        /// The rules of this ledger that count it.
        #[n(1)]
        rules: Vec<LedgerRule>,
        /// Money held.
        #[n(2)]
        estimate: Micros,
    },
    /// A ledger counts a call.
    #[n(12)]
    LedgerConfirmed {
        /// The name of the reservation.
        #[n(0)]
        call: Digest,
        /// The rules of this ledger that count it.
        #[n(1)]
        rules: Vec<LedgerRule>,
        /// Money held until the report.
        #[n(2)]
        estimate: Micros,
        /// The time at which it counts.
        #[n(3)]
        at: Time,
    },
    /// A ledger releases a call.
    #[n(13)]
    LedgerSettled {
        /// The name of the reservation, if there was one.
        #[n(0)]
        call: Option<Digest>,
        /// The rules of this ledger that count it.
        #[n(1)]
        rules: Vec<LedgerRule>,
        /// What is charged in the end, millionths of a US dollar.
        #[n(2)]
        cost: Micros,
        /// When it was reported.
        #[n(3)]
        at: Time,
    },
    /// Reservations that nobody confirmed, old replies, counts of mails, or messages and calls that were known again, are
    /// given up.
    #[n(14)]
    Swept(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// Other policy documents hold for a definition, or for a session.
    #[n(15)]
    Policies(#[n(0)] PolicyFact),
}

impl PolicyEvent {
    /// Returns true if the event is about one session, and so counts in its sequence.
    #[must_use]
    pub fn counts(&self) -> bool {
        match self {
            Self::CallPermitted { .. }
            | Self::CallDenied { .. }
            | Self::CallAsked { .. }
            | Self::CallReported { .. }
            | Self::CallLapsed { .. }
            | Self::GrantMade { .. }
            | Self::GrantUsed { .. }
            | Self::GrantLapsed { .. }
            | Self::Metered { .. }
            | Self::BudgetExhausted { .. }
            | Self::CapRaised { .. }
            | Self::Policies(PolicyFact::Pinned { .. }) => true,
            Self::LedgerReserved { .. }
            | Self::LedgerConfirmed { .. }
            | Self::LedgerSettled { .. }
            | Self::Swept(_)
            | Self::Policies(PolicyFact::Attached { .. }) => false,
        }
    }
}

/// A fact about what policy documents hold for. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum PolicyFact {
    /// Sessions of a definition that start from now on have these.
    #[n(0)]
    Attached {
        /// The definition.
        #[n(0)]
        name: String,
        /// All of its documents, by name.
        #[n(1)]
        policies: Vec<String>,
    },
    /// A session has these from now on.
    #[n(1)]
    Pinned {
        /// Each with the definition that it is attached to.
        #[n(0)]
        policies: Vec<PinnedPolicy>,
    },
}
