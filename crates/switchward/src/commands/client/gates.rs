//! The commands about gates.

use switchward_api::v1;
use switchward_messages::CALL_TO_REPEAT;

use super::show;
use super::talk::Talk;
use super::values::typed;
use crate::args::{AssignGate, Decide, GateAction, GateCommand, GatesCommand, Output};
use crate::exit::Exit;

pub(super) async fn run(command: GatesCommand, output: Output) -> Result<(), Exit> {
    match command {
        GatesCommand::Decide(on) => decide(&Talk::open(&on.connection, output).await?, on.what).await,
        GatesCommand::Gate(on) => gate(&Talk::open(&on.connection, output).await?, on.what.what).await,
    }
}

async fn decide(talk: &Talk, decide: Decide) -> Result<(), Exit> {
    let decision = match decide.decision {
        GateAction::Approve => v1::GateDecision::Approve,
        GateAction::Reject => v1::GateDecision::Reject,
        GateAction::Discuss => v1::GateDecision::Discuss,
        GateAction::Answer => v1::GateDecision::Answer,
    };
    let request = v1::DecideGateRequest {
        name: decide.gate,
        decision: decision.into(),
        comment: decide.comment.unwrap_or_default(),
        args_digest: decide.args_digest,
        answer: decide.answer.map(typed),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.gates.decide_gate(request).await })
        .await?;
    let gate = reply.gate.clone().unwrap_or_default();
    talk.printer.message("DecideGateResponse", &reply, || show::gate(&gate))?;
    let decided = gate.status() == v1::GateStatus::Decided;
    if decided && gate.kind() == v1::GateKind::ToolAsk && decision == v1::GateDecision::Approve {
        talk.printer.advice(CALL_TO_REPEAT);
    }
    Ok(())
}

async fn gate(talk: &Talk, what: GateCommand) -> Result<(), Exit> {
    match what {
        GateCommand::Assign(of) => assign(talk, of).await,
    }
}

async fn assign(talk: &Talk, assign: AssignGate) -> Result<(), Exit> {
    let request = v1::AssignGateRequest {
        name: assign.gate,
        to: assign.to,
        from: assign.from,
        args_digest: assign.args_digest,
        comment: assign.comment.unwrap_or_default(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.gates.assign_gate(request).await })
        .await?;
    let gate = reply.gate.clone().unwrap_or_default();
    talk.printer.message("AssignGateResponse", &reply, || show::gate(&gate))
}
