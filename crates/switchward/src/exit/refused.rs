//! A server's refusal: its details, the exit code of its reason, and what to do next.

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;
use switchward_gateway::{QUARANTINED_MAIL, Reason};
use switchward_messages::cli::refused::{Listed, NextStep, next_step};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::{CONFLICT, DENIED, FAILED, FINDINGS, NOT_FOUND, UNAVAILABLE, USAGE, WAITING};
use crate::output::period;

/// The descriptors of `google.rpc`, to show an error's details in words.
static DETAILS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(tonic_types::pb::FILE_DESCRIPTOR_SET).expect("tonic-types ships valid descriptors")
});

/// The metadata entry that lists what would have been accepted.
const ALLOWED: &str = "allowed";

/// A refusal with its details.
#[derive(Debug)]
pub(super) struct Refused {
    code: Code,
    reason: String,
    message: String,
    metadata: BTreeMap<String, String>,
    /// Field, and what is wrong with it.
    violations: Vec<(String, String)>,
    retry_after: Option<Duration>,
    nearest: Option<String>,
    details: Vec<Value>,
    /// The type of the resource that it is about; empty if there is none.
    kind: String,
}

impl Refused {
    /// Reads a status.
    pub(super) fn of(status: &Status) -> Self {
        let said = status.get_error_details();
        let info = said.error_info();
        let violations = said.bad_request().map(|bad| bad.field_violations.as_slice()).unwrap_or_default();
        let text = if status.message().is_empty() { status.code().description() } else { status.message() };
        // Without our error details, the message is the transport's, and says little alone.
        let message =
            if info.is_some() { text.to_owned() } else { format!("no response from the server: {text}") };
        Self {
            code: status.code(),
            reason: info.map(|info| info.reason.clone()).unwrap_or_default(),
            message,
            metadata: info.map(|info| info.metadata.clone().into_iter().collect()).unwrap_or_default(),
            violations: violations.iter().map(|it| (it.field.clone(), it.description.clone())).collect(),
            retry_after: said.retry_info().and_then(|info| info.retry_delay),
            nearest: None,
            details: details(status.details()),
            kind: said.resource_info().map(|info| info.resource_type.clone()).unwrap_or_default(),
        }
    }

    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn call(&mut self, field: &str, flag: &str) {
        if let Some(rest) = self.message.strip_prefix(field) {
            self.message = format!("{flag}{rest}");
        }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Finds the one of what is allowed that was probably meant.
    pub(super) fn find_nearest(&mut self, typed: &str) {
        let allowed = self.allowed();
        let mut report = switchward_formats::Report::new("");
        self.nearest = report.nearest(typed, allowed.iter().map(String::as_str));
    }

    pub(super) fn allowed(&self) -> Vec<String> {
        let Some(text) = self.metadata.get(ALLOWED) else { return Vec::new() };
        serde_json::from_str(text).unwrap_or_else(|_| text.split(',').map(str::to_owned).collect())
    }

    /// The labelled lines below the message.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if !self.reason.is_empty() {
            facts.push(("reason", self.reason.clone()));
        }
        // A refusal about one field has said it in its message.
        if self.violations.len() > 1 || self.reason == Reason::DefinitionInvalid.word() {
            facts.extend(self.violations.iter().map(|(field, problem)| ("at", format!("{field} {problem}"))));
        }
        let allowed = self.allowed();
        if !allowed.is_empty() {
            facts.push(("allowed", allowed.join(", ")));
        }
        facts.extend(self.nearest.clone().map(|nearest| ("nearest", nearest)));
        let metadata = self.metadata.iter().filter(|(name, value)| *name != ALLOWED && !value.is_empty());
        facts.extend(metadata.map(|(name, value)| ("fact", format!("{name} = {value}"))));
        facts.extend(self.retry_after.map(|delay| ("retry", format!("in {}", period(delay)))));
        facts
    }

    /// The exit code that goes with the reason.
    pub(super) fn exit_code(&self) -> u8 {
        if let Some(reason) = Reason::from_word(&self.reason) {
            return of_reason(reason);
        }
        match self.code {
            Code::Ok => 0,
            Code::InvalidArgument | Code::OutOfRange => USAGE,
            Code::NotFound => NOT_FOUND,
            Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted | Code::ResourceExhausted => {
                CONFLICT
            }
            Code::PermissionDenied | Code::Unauthenticated => DENIED,
            // Cancelled is the client's own word for a call whose time ran out, Unknown and Internal for a connection
            // that broke: our server gives a reason with each of its own.
            Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Unknown
            | Code::Internal
            | Code::DataLoss => UNAVAILABLE,
            Code::Unimplemented => FAILED,
        }
    }

    /// What to do next, if the message does not say it.
    pub(super) fn next(&self) -> Vec<String> {
        let step = match Reason::from_word(&self.reason) {
            Some(Reason::NotFound) => Some(NextStep::List(listed(&self.kind))),
            Some(Reason::RequestIdReused) if self.metadata.contains_key("call_id") => {
                Some(NextStep::OtherCallId)
            }
            Some(reason) => after(reason),
            None if self.exit_code() == UNAVAILABLE => Some(NextStep::CheckConnection),
            None if self.code == Code::Unimplemented => Some(NextStep::CheckVersion),
            None => None,
        };
        let lines = step.map(next_step).unwrap_or_default();
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    /// What the server answers in JSON, with the reason and its metadata on top.
    pub(super) fn json(&self) -> Value {
        let mut error = json!({
            "code": word(self.code),
            "message": self.message,
            "metadata": self.metadata,
            "details": self.details,
        });
        if !self.reason.is_empty() {
            error["reason"] = self.reason.clone().into();
        }
        if let Some(nearest) = &self.nearest {
            error["nearest"] = nearest.clone().into();
        }
        error
    }
}

fn of_reason(reason: Reason) -> u8 {
    match reason {
        Reason::DefinitionInvalid => FINDINGS,
        Reason::SchemaViolation | Reason::FieldInvalid => USAGE,
        Reason::NotFound => NOT_FOUND,
        Reason::RequestIdReused
        | Reason::AlreadyExists
        | Reason::AnswerNotAllowed
        | Reason::TransitionIllegal
        | Reason::WriteNotDeclared
        | Reason::GuardNotMet
        | Reason::OutputContractMissing
        | Reason::SessionTerminal
        | Reason::AlreadyResolved
        | Reason::RetryExhausted
        | Reason::StateMismatch
        | Reason::VersionRetired
        | Reason::DefinitionArchived
        | Reason::DefinitionInUse
        | Reason::NoSuchWorkflow
        | Reason::SignInNotConfigured
        | Reason::RateLimited
        | Reason::BudgetExhausted
        | Reason::QuotaExceeded
        | Reason::SequenceConflict
        | Reason::EtagMismatch
        | Reason::KeyRingMissing
        | Reason::ServerVotes
        | Reason::TooFewVoters
        | Reason::ServerNotLost
        | Reason::ServerNotReady
        | Reason::LeaseLost => CONFLICT,
        Reason::CredentialInvalid
        | Reason::PolicyDenied
        | Reason::SelfApproval
        | Reason::NotAnApprover
        | Reason::EventSourceNotAllowed
        | Reason::TenantSuspended
        | Reason::RoleNotAllowed => DENIED,
        Reason::ApprovalPending => WAITING,
        Reason::OutcomeUnknown
        | Reason::ShardElecting
        | Reason::LeaderNotMoved
        | Reason::Draining
        | Reason::ShardStopped
        | Reason::ServerUnreachable
        | Reason::StreamBackendDown
        | Reason::DiskLow
        | Reason::DeadlineExceeded => UNAVAILABLE,
        Reason::Unimplemented | Reason::InternalError => FAILED,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the message of most refusals needs no hint")]
fn after(reason: Reason) -> Option<NextStep> {
    Some(match reason {
        Reason::DefinitionInvalid => NextStep::CheckDefinition,
        Reason::RequestIdReused => NextStep::OtherRequestId,
        Reason::CredentialInvalid => NextStep::SetKey,
        Reason::RoleNotAllowed => NextStep::AskOtherRole,
        Reason::SelfApproval => NextStep::AskOtherPerson,
        Reason::NotAnApprover => NextStep::AskApprovers,
        Reason::SequenceConflict => NextStep::LookAtSession,
        Reason::KeyRingMissing => NextStep::CreateKeyRing,
        Reason::ServerVotes
        | Reason::TooFewVoters
        | Reason::ServerNotLost
        | Reason::ServerNotReady
        | Reason::LeaderNotMoved => NextStep::LookAtCluster,
        Reason::LeaseLost => NextStep::DiscardResult,
        Reason::ShardElecting | Reason::Draining | Reason::StreamBackendDown => NextStep::TryAgain,
        Reason::DiskLow => NextStep::FreeSpace,
        Reason::OutcomeUnknown | Reason::DeadlineExceeded => NextStep::Repeat,
        _ => return None,
    })
}

/// Which resources can be listed if one of this type does not exist.
fn listed(kind: &str) -> Listed {
    match kind {
        "session" => Listed::Session,
        "gate" => Listed::Gate,
        "definition" | "version" => Listed::Definition,
        "effect" => Listed::Effect,
        "endpoint" => Listed::Endpoint,
        "source" => Listed::Source,
        "assistant" => Listed::Assistant,
        "work" => Listed::Work,
        "server" | "group" => Listed::Server,
        QUARANTINED_MAIL => Listed::QuarantinedMail,
        _ => Listed::Other,
    }
}

/// The code's word in JSON: `failed_precondition`.
pub(super) fn word(code: Code) -> String {
    // The one code whose word is spelt otherwise than its name.
    if code == Code::Cancelled {
        return "canceled".to_owned();
    }
    let mut word = String::new();
    for c in format!("{code:?}").chars() {
        if c.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}

/// The details of an encoded `google.rpc.Status`, each with its type and its words.
fn details(encoded: &[u8]) -> Vec<Value> {
    let status = tonic_types::pb::Status::decode(encoded).unwrap_or_default();
    let details = status.details.iter().filter_map(|detail| {
        let name = detail.type_url.rsplit('/').next().unwrap_or_default();
        let message =
            DynamicMessage::decode(DETAILS.get_message_by_name(name)?, detail.value.as_slice()).ok()?;
        Some(json!({ "type": name, "debug": serde_json::to_value(message).ok()? }))
    });
    details.collect()
}
