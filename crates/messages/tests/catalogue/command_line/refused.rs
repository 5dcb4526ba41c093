//! What the command line proposes after a refusal, compared with `expected/`.

use crate::support::{entry, same};
use switchward_messages::cli::refused::{Listed, NextStep, next_step};

#[test]
fn what_is_proposed_after_a_refusal_is_rendered() {
    let steps = [
        NextStep::CheckDefinition,
        NextStep::OtherRequestId,
        NextStep::OtherCallId,
        NextStep::SetKey,
        NextStep::AskOtherRole,
        NextStep::AskOtherPerson,
        NextStep::AskApprovers,
        NextStep::LookAtSession,
        NextStep::CreateKeyRing,
        NextStep::LookAtCluster,
        NextStep::DiscardResult,
        NextStep::TryAgain,
        NextStep::FreeSpace,
        NextStep::Repeat,
        NextStep::CheckConnection,
        NextStep::CheckVersion,
    ];
    let listed = [
        Listed::Session,
        Listed::Gate,
        Listed::Definition,
        Listed::Effect,
        Listed::Endpoint,
        Listed::Source,
        Listed::Assistant,
        Listed::Work,
        Listed::Server,
        Listed::QuarantinedMail,
        Listed::Other,
    ];
    let mut made: String = steps.iter().map(|step| entry("refusal", next_step(*step))).collect();
    made.extend(listed.iter().map(|kind| entry("not found", next_step(NextStep::List(*kind)))));
    same(&made, include_str!("../../expected/command_line/refused.txt"));
}
