//! Replies.

use switchward_machine::{Micros, OpenId, SessionId};
use switchward_state::approval::{ReplyOutcome, Warning};
use switchward_state::policy::{Authorized, CallEffect, CallGrounds, Remaining};
use switchward_state::run::ResultProblem;
use switchward_state::{Level, Reply};

use super::policy::limits;

const SESSION: SessionId = SessionId([7; 16]);

fn authorized() -> Authorized {
    Authorized {
        effect: CallEffect::Ask,
        reason: None,
        grounds: Some(CallGrounds::Ask { capability: "bash".into() }),
        rule: None,
        gate: Some(OpenId(5)),
        granted_by: None,
        call_id: "c-1".into(),
        retry_after_ms: Some(5),
        remaining: Remaining { calls: Some(1), usd: Some(Micros(2)) },
        layers: Vec::new(),
        sequence: 4,
        unnotified: true,
        warnings: vec![Warning::TooFewRecipients { wanted: 3, can: 1, need: 2 }, Warning::NoRecipients],
    }
}

/// The name of a reply; a new one does not compile until it is in [`all`].
pub(crate) fn name(reply: &Reply) -> &'static str {
    match reply {
        Reply::Session { .. } => "session",
        Reply::Authorized(..) => "authorized",
        Reply::Gate { .. } => "gate",
        Reply::PageCode { .. } => "page-code",
        Reply::Limits(..) => "limits",
        Reply::Done => "done",
        Reply::Tenant(..) => "tenant",
        Reply::Key(..) => "key",
        Reply::Version { .. } => "version",
        Reply::Leased { .. } => "leased",
        Reply::Worked { .. } => "worked",
        Reply::Recorded { .. } => "recorded",
        Reply::Replied { .. } => "replied",
        Reply::Definition(..) => "definition",
        Reply::Policy(..) => "policy",
        Reply::Assistant(..) => "assistant",
        Reply::Endpoint(..) => "endpoint",
        Reply::Source(..) => "source",
        Reply::Effect { .. } => "effect",
        Reply::Metered { .. } => "metered",
        Reply::Removed { .. } => "removed",
        Reply::Cluster(..) => "cluster",
        Reply::Level { .. } => "level",
        Reply::Directory(..) => "directory",
        Reply::Retention(..) => "retention",
    }
}

pub(crate) fn all() -> Vec<(&'static str, Reply)> {
    let (session, sequence, gate) = (SESSION, 4, OpenId(5));
    [
        Reply::Session { sequence, position: None },
        Reply::Authorized(authorized().into()),
        Reply::Gate { gate, sequence, summary: None },
        Reply::PageCode { gate, accepted: true, left: 2 },
        Reply::Limits(limits()),
        Reply::Done,
        Reply::Worked { session, sequence, wrong: Some(ResultProblem::NoObject) },
        Reply::Recorded { session, sequence, event: 3, position: None },
        Reply::Replied { session, sequence, outcome: ReplyOutcome::Decided, position: None },
        Reply::Level { level: Level(2), epoch: 7 },
    ]
    .into_iter()
    .chain(crate::replies::all())
    .map(|reply| (name(&reply), reply))
    .collect()
}
