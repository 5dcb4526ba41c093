//! Warnings in the history of a session.

use switchward_machine::{Micros, OpenId};
use switchward_state::session::{GateTrouble, NoAudience, SessionWarning};

use super::faults::{data_full, fault, outbox_excess, write_problem};
use super::people::so_far;

/// A warning in the history of a session, in a sentence.
#[must_use]
pub fn session_warning(warning: &SessionWarning) -> String {
    match warning {
        SessionWarning::Definition { text } | SessionWarning::Logged { text } => text.clone(),
        SessionWarning::Unsent { state, excess } => {
            format!("{state}: a message is not sent: {}", outbox_excess(*excess))
        }
        SessionWarning::EndpointsFull { count } => {
            format!("{count} messages to endpoints are not sent: too many others have not arrived")
        }
        SessionWarning::StillCapped { layer, cap } => still_caps(layer, Micros(*cap)),
        SessionWarning::NotCarriedOver { key, workflow } => {
            format!("{key:?} is not carried over: {workflow} reserves it")
        }
        SessionWarning::NotMerged { problem } => write_problem(problem),
        SessionWarning::DataFull { key, state } => data_full(key, state),
        SessionWarning::Ignored { state, fault: ignored } => {
            format!("{state}: {}, which is ignored", fault(ignored))
        }
        SessionWarning::NoParticipants { state } => {
            format!("{state}: the task has no participants, so it is done")
        }
        SessionWarning::WaitedDataFull { problem } => {
            format!("data that waited for an approval do not fit any more: {}", write_problem(problem))
        }
        SessionWarning::NobodyBehind { name } => {
            format!("{name} is to be notified, and leads to no address now")
        }
        SessionWarning::NoRecipients { fault: of_gate } => {
            format!("nobody can be asked, so the session stays in this state: {}", fault(of_gate))
        }
        SessionWarning::AtGate { gate, trouble } => at_gate(*gate, trouble),
    }
}

fn at_gate(gate: OpenId, trouble: &GateTrouble) -> String {
    let gate = gate.0;
    match trouble {
        GateTrouble::TooFewRecipients { need, asks, open: false } => format!(
            "gate {gate} needs {need} approvals and asks {asks} who may decide: it stays open until more are asked"
        ),
        GateTrouble::TooFewRecipients { need, asks, open: true } => format!(
            "gate {gate} needs {need} approvals and notifies {asks} who may decide: others must approve as well"
        ),
        GateTrouble::SharedAddresses { people, addresses } => {
            let noun = if *people == 1 { "person" } else { "people" };
            format!("gate {gate} asks {people} {noun} at {addresses} addresses: each approves once")
        }
        GateTrouble::Unnotified { why } => format!("nobody is notified of gate {gate}: {}", no_audience(why)),
        GateTrouble::NotInDirectory { who } => {
            format!("gate {gate} does not ask {}: they are not in the directory", who.join(", "))
        }
        GateTrouble::NobodyElse { fault: of_round } => {
            format!("nobody else is asked at gate {gate} in its next round: {}", fault(of_round))
        }
        GateTrouble::NotReminded { excess } => {
            format!("nobody is reminded of gate {gate}: {}", outbox_excess(*excess))
        }
        GateTrouble::QuorumLost { progress, unreached } => format!(
            "gate {gate} cannot get the approvals that it needs: {}; no mail reaches {}",
            so_far(progress),
            unreached.join(", ")
        ),
    }
}

fn no_audience(why: &NoAudience) -> String {
    match why {
        NoAudience::NoAddress { owner } => {
            format!("no address is found for the session's audience, {owner:?} or the default audience")
        }
        NoAudience::TooMuch { excess } => outbox_excess(*excess),
    }
}

/// A policy of the tenant caps a session.
fn still_caps(layer: &str, cap: Micros) -> String {
    format!(
        "{layer} still caps the session at {cap} USD; only an admin of the tenant can change that, by setting another \
         version of the policy"
    )
}
