//! Warnings of a history: each variant once.

use switchward_machine::OpenId;
use switchward_state::Event;
use switchward_state::approval::{Decider, Progress, Via};
use switchward_state::session::{GateTrouble, NoAudience, SessionEvent, SessionWarning};

/// Every problem of a gate.
fn troubles() -> Vec<GateTrouble> {
    let problem = || "too many mails".to_owned();
    let approved = vec![Decider { by: "kim".into(), via: Via::Mail }];
    vec![
        GateTrouble::FewAsked { need: 3, asks: 2, open: true },
        GateTrouble::SharedAddresses { people: 1, addresses: 2 },
        GateTrouble::Unnotified { why: NoAudience::NoAddress { owner: "owner:refund".into() } },
        GateTrouble::Unnotified { why: NoAudience::TooMuch { problem: problem() } },
        GateTrouble::NotInDirectory { who: vec!["eve@example.com".into()] },
        GateTrouble::NobodyElse { problem: problem() },
        GateTrouble::NotReminded { problem: problem() },
        GateTrouble::QuorumLost {
            progress: Progress { approved, need: 3 },
            unreached: vec!["sam@example.com".into()],
        },
    ]
}

/// Every other warning.
fn warnings() -> Vec<SessionWarning> {
    let (state, problem) = (|| "ship".to_owned(), || "too large".to_owned());
    vec![
        SessionWarning::Definition { text: "a state is never reached".into() },
        SessionWarning::Unsent { state: state(), problem: problem() },
        SessionWarning::EndpointsFull { count: 4 },
        SessionWarning::StillCapped { layer: "tenant".into(), cap: 5 },
        SessionWarning::NotCarriedOver { key: "wait".into(), workflow: "refund".into() },
        SessionWarning::NobodyBehind { name: "group:none".into() },
        SessionWarning::NotMerged { problem: problem() },
        SessionWarning::DataFull { key: "tasks".into(), state: state() },
        SessionWarning::Ignored { state: state(), problem: problem() },
        SessionWarning::NobodyAsked { problem: problem() },
        SessionWarning::NoParticipants { state: state() },
        SessionWarning::WaitedDataFull { problem: problem() },
    ]
}

/// An event for each.
pub(crate) fn events() -> Vec<Event> {
    let gates = troubles().into_iter().map(|trouble| SessionWarning::AtGate { gate: OpenId(6), trouble });
    let all = warnings().into_iter().chain(gates);
    all.map(|warning| Event::Session(SessionEvent::Warned { warning })).collect()
}
