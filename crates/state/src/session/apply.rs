//! What moves a session.

use switchward_machine::{RunId, Status};

use crate::catalogue::apply_usage;
use crate::session::{
    FIRST_ID, LastMessage, Meters, Replies, Session, SessionEvent, Speaker, StatusReason, apply_removal,
    remember,
};
use crate::{Key, Row, Site, ViewError, WriteRows};

/// Applies an event about a session.
pub(crate) fn apply(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    event: &SessionEvent,
) -> Result<(), ViewError> {
    match event {
        SessionEvent::Started { .. } => {
            rows.put(site.session_key()?, Row::Session(started(site, event)));
            apply_usage::began(rows, site.tenant)?;
        }
        SessionEvent::Warned { .. } => {}
        SessionEvent::Paused { .. } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.status = Status::Suspended;
            session.reason = Some(StatusReason::Paused);
        }
        SessionEvent::Unpaused { .. } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.status = Status::Waiting;
            session.reason = None;
            let (id, root) = (site.session()?, session.root);
            for run in rows.active(site.tenant, id, root)? {
                let at = rows.run_at_mut(&Key::run(site.tenant, id, run))?;
                (at.due, at.requester) = (None, None);
            }
        }
        SessionEvent::RequestsForgotten => remember::sweep(rows, site)?,
        SessionEvent::MessagePosted { text, speaker } => posted(rows, site, text, *speaker)?,
        SessionEvent::MessageRecorded { message, until } => {
            rows.put(Key::recorded(site.tenant, site.session()?, *message), Row::Recorded(*until));
        }
        SessionEvent::Assisted { assistant } => {
            rows.session_at_mut(&site.session_key()?)?.assistant = Some(Box::new(assistant.clone()));
        }
        SessionEvent::ReplyTokensBegun { tenant } => {
            rows.session_at_mut(&site.session_key()?)?.reply_tenant = Some(tenant.clone());
        }
        SessionEvent::Removals(fact) => apply_removal::apply(rows, site, fact)?,
    }
    Ok(())
}

/// Keeps what was said last, for guards that ask for the user's word; an agent's own words are none.
fn posted(rows: &mut dyn WriteRows, site: &Site<'_>, text: &str, speaker: Speaker) -> Result<(), ViewError> {
    if speaker != Speaker::Agent {
        let sequence = rows.session_at_mut(&site.session_key()?)?.sequence;
        let said = LastMessage { text: text.to_owned(), by_user: speaker == Speaker::User, sequence };
        rows.put(Key::last_message(site.tenant, site.session()?), Row::LastMessage(said));
    }
    Ok(())
}

/// A session of which nothing is known yet but when it began.
fn blank(site: &Site<'_>) -> Session {
    Session {
        machine: switchward_machine::Digest([0; 32]),
        head: switchward_machine::Digest([0; 32]),
        definition: String::new(),
        version: 0,
        key: None,
        role: String::new(),
        without_policy: false,
        labels: Vec::new(),
        created: site.at,
        updated: site.at,
        ended: None,
        sequence: 0,
        next_id: FIRST_ID,
        root: RunId(1),
        status: Status::Waiting,
        reason: None,
        meters: Meters::default(),
        items: Vec::new(),
        calls: Vec::new(),
        grants: Vec::new(),
        replies: Replies::default(),
        queue: Vec::new(),
        runs: 0,
        contact: None,
        early: Vec::new(),
        workflows: Vec::new(),
        answered: Vec::new(),
        assistant: None,
        reply_tenant: None,
        outbox: None,
        stable_from: None,
        audience: Vec::new(),
        mailed: None,
        uncounted: Vec::new(),
        reminders: None,
        quorum: None,
        escalation: Vec::new(),
        any_approver_address: false,
        callees: Vec::new(),
        policies: Vec::new(),
        removal: None,
        bytes: 0,
    }
}

fn started(site: &Site<'_>, event: &SessionEvent) -> Session {
    let mut session = blank(site);
    if let SessionEvent::Started {
        definition,
        version,
        machine,
        key,
        role,
        without_policy,
        labels,
        input: _,
        contact,
        workflows,
        any_approver_address,
    } = event
    {
        session.machine = *machine;
        session.definition.clone_from(definition);
        session.version = *version;
        session.key.clone_from(key);
        session.role.clone_from(role);
        session.without_policy = *without_policy;
        session.labels.clone_from(labels);
        session.contact.clone_from(contact);
        session.workflows.clone_from(workflows);
        session.any_approver_address = *any_approver_address;
    }
    session
}
