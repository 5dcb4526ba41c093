//! Samples of the warnings in histories.

use switchward_machine::OpenId;
use switchward_state::approval::{Decider, Progress, Via};
use switchward_state::run::{FaultCause, OutboxExcess, RecipientsProblem, WriteProblem};
use switchward_state::session::{GateTrouble, NoAudience, SessionWarning};

/// Every warning of a history at least once: stored forms and texts are checked with them.
#[must_use]
pub fn session_warnings() -> Vec<SessionWarning> {
    let (state, problem) = (|| "ship".to_owned(), || WriteProblem::TooLarge { key: "total".to_owned() });
    let excess = OutboxExcess::ActEffects;
    let mut all = vec![
        SessionWarning::Definition { text: "a state is never reached".into() },
        SessionWarning::Logged { text: "shipped".into() },
        SessionWarning::Unsent { state: state(), excess },
        SessionWarning::EndpointsFull { count: 4 },
        SessionWarning::StillCapped { layer: "tenant".into(), cap: 5_000_000 },
        SessionWarning::NotCarriedOver { key: "wait".into(), workflow: "refund".into() },
        SessionWarning::NobodyBehind { name: "group:none".into() },
        SessionWarning::NotMerged { problem: problem() },
        SessionWarning::DataFull { key: "tasks".into(), state: state() },
        SessionWarning::Ignored { state: state(), fault: FaultCause::HttpStatus { status: 503 }.into() },
        SessionWarning::NoRecipients { fault: RecipientsProblem::Nobody.into() },
        SessionWarning::NoParticipants { state: state() },
        SessionWarning::WaitedDataFull { problem: problem() },
    ];
    let at_gate = |trouble| SessionWarning::AtGate { gate: OpenId(6), trouble };
    all.extend(gate_troubles().into_iter().map(at_gate));
    all
}

/// Every problem of a gate.
fn gate_troubles() -> Vec<GateTrouble> {
    let excess = OutboxExcess::OutboxBytes;
    let approved =
        vec![Decider { by: "ann".into(), via: Via::Mail }, Decider { by: "ops".into(), via: Via::Vouched }];
    vec![
        GateTrouble::TooFewRecipients { need: 3, asks: 2, open: false },
        GateTrouble::TooFewRecipients { need: 3, asks: 2, open: true },
        GateTrouble::SharedAddresses { people: 1, addresses: 2 },
        GateTrouble::Unnotified { why: NoAudience::NoAddress { owner: "owner:refund".into() } },
        GateTrouble::Unnotified { why: NoAudience::TooMuch { excess } },
        GateTrouble::NotInDirectory { who: vec!["eve@a.example".into(), "sam".into()] },
        GateTrouble::NobodyElse { fault: RecipientsProblem::TooMany.into() },
        GateTrouble::NotReminded { excess },
        GateTrouble::QuorumLost {
            progress: Progress { approved, need: 3 },
            unreached: vec!["ann@a.example".into()],
        },
    ]
}
