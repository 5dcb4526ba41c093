//! Where a session stands after a command, as a message: the fields that `Session` documents as those of an answer to a
//! command. The others are read with GetSession.

use switchward_api::v1;
use switchward_engine::PositionView;
use switchward_machine::{Micros, SessionId, Status};
use switchward_state::session::{GatePosition, ItemPosition, Meters, StatusReason};

use super::{sessions, timestamp};
use crate::auth::Caller;
use crate::{names, reply_tokens};

/// A session after a command.
pub(crate) fn session(caller: &Caller, view: &PositionView) -> v1::Session {
    let (row, at) = (view.session(), &view.position);
    let (prompt, question) = view.shows();
    let checkpoint =
        sessions::checkpoint_of(view.node(), prompt.unwrap_or_default(), question, view.answers());
    let instructions = question.filter(|_| view.answers().next().is_none()).unwrap_or_default();
    v1::Session {
        name: names::of_session(caller, view.id),
        session_id: row.key.unwrap_or_default().to_owned(),
        definition: if row.definition.is_empty() {
            String::new()
        } else {
            names::of_definition(caller, row.definition)
        },
        version: row.version,
        status: sessions::status(at.status).into(),
        status_word: view.word().to_owned(),
        reason: at.reason.map(StatusReason::word).unwrap_or_default().to_owned(),
        at: vec![view.at().to_owned()],
        checkpoint: at.active.is_empty().then_some(checkpoint),
        role: row.role.to_owned(),
        budget: Some(budget(at.meters, at.usd_cap, at.mail_cap)),
        sequence: at.sequence,
        waiting_on: at.gates.iter().map(|gate| open_gate(caller, view.id, gate)).collect(),
        open: at.items.iter().map(item).collect(),
        labels: row.labels.iter().cloned().collect(),
        resumable: at.status == Status::Suspended,
        create_time: Some(timestamp(row.created)),
        update_time: Some(timestamp(at.updated)),
        end_time: at.ended.map(timestamp),
        without_policy: row.without_policy,
        instructions: instructions.to_owned(),
        assistant: row.assistant.map(|it| names::of_assistant(caller, &it.name)).unwrap_or_default(),
        assistant_instructions: row.assistant.map(|it| it.instructions.clone()).unwrap_or_default(),
        reply_token: reply_tokens::shown(caller, view.reply_token()),
        caller_role: super::role(caller.actor.role).into(),
        voided_gates: at.voided.iter().map(|gate| names::of_gate(caller, view.id, *gate)).collect(),
        active_runs: sessions::active_runs(caller, at.status, &at.active),
        active_run_count: at.active.count,
        ..v1::Session::default()
    }
}

/// What a session has used; the caps are in millionths of a dollar and in mails.
pub(crate) fn budget(meters: Meters, usd_cap: Option<u64>, mail_cap: Option<u64>) -> v1::Budget {
    let Meters { usd_micros, reserved_micros, tokens, mails } = meters;
    v1::Budget {
        cap_usd: usd_cap.map(|cap| Micros(cap).to_string()),
        used_usd: Micros(usd_micros).to_string(),
        reserved_usd: Micros(reserved_micros).to_string(),
        cap_tokens: None,
        used_tokens: tokens,
        cap_mails: mail_cap,
        used_mails: mails,
    }
}

fn item(item: &ItemPosition) -> v1::OpenItem {
    v1::OpenItem {
        kind: item.item.kind().word().to_owned(),
        r#type: item.item.word().to_owned(),
        state: item.state.clone(),
        create_time: Some(timestamp(item.at)),
        due_time: item.due.map(timestamp),
        run: item.run.map_or(0, |run| run.0),
    }
}

fn open_gate(caller: &Caller, session: SessionId, gate: &GatePosition) -> v1::OpenGate {
    let (asked, notified) = if gate.open { (&[][..], &gate.to[..]) } else { (&gate.to[..], &[][..]) };
    v1::OpenGate {
        name: names::of_gate(caller, session, gate.gate),
        kind: super::gates::kind(gate.kind).into(),
        state: gate.state.clone(),
        capability: gate.capability.clone().unwrap_or_default(),
        args_digest: gate.shown.map(|digest| digest.to_string()).unwrap_or_default(),
        create_time: Some(timestamp(gate.at)),
        approvers: asked.to_vec(),
        notified: notified.to_vec(),
        approvals_needed: gate.needed,
        approvals: gate.approvals,
        unnotified: gate.unnotified,
        run: gate.run.map_or(0, |run| run.0),
        ..v1::OpenGate::default()
    }
}
