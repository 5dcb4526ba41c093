//! What moves a session.

use switchward_machine::{ActIx, Digest, NodeIx, RunId, Status, Time};

use super::{Site, usage};
use crate::intent;
use crate::state::{FIRST_ID, Meters, Run, Session};
use crate::working::Working;
use crate::{Event, Key, Row, ViewError};

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the match in evolve/mod.rs is exhaustive and says what comes here"
)]
pub(super) fn apply(rows: &mut Working<'_>, site: &Site<'_>, event: &Event) -> Result<(), ViewError> {
    let id = site.session()?;
    let run_key = |run: RunId| Key::run(site.tenant, id, run);
    match event {
        Event::SessionStarted { .. } => {
            rows.put(site.session_key()?, Row::Session(started(site, event)));
            usage::began(rows, site.tenant)?;
        }
        Event::RunCreated { .. } => create(rows, site, event)?,
        Event::Entered { run, node } => {
            let sequence = rows.session_at_mut(&site.session_key()?)?.sequence;
            let at = rows.run_at_mut(&run_key(*run))?;
            at.node = *node;
            at.act = ActIx(0);
            at.entry += 1;
            at.drained += 1;
            at.since = site.at;
            at.entered = sequence;
            (at.attempt, at.asked, at.rests) = (1, 0, false);
            at.refused = None;
            at.called.clear();
            at.seen.clear();
            at.loops.clear();
            at.choice = None;
            at.unknown = None;
        }
        Event::ActBegun { run, act } => rows.run_at_mut(&run_key(*run))?.act = *act,
        Event::Answered { run, .. } => rows.run_at_mut(&run_key(*run))?.drained = 0,
        Event::Deferred { run, due } => rows.run_at_mut(&run_key(*run))?.due = Some(due.clone()),
        Event::CapRaised { run, param, value } => {
            let params = &mut rows.run_at_mut(&run_key(*run))?.params;
            params.retain(|(known, _)| known != param);
            params.push((*param, *value));
        }
        Event::RunEnded { run, ending, .. } => {
            let at = rows.run_at_mut(&run_key(*run))?;
            at.ending = Some(ending.clone());
            at.held = None;
            at.due = None;
            at.choice = None;
            at.pending.clear();
            let session = rows.session_at_mut(&site.session_key()?)?;
            if session.root == *run && session.queue.is_empty() {
                session.status = ending.outcome.status();
                session.reason = ending.reason.clone();
                session.ended = Some(site.at);
            }
        }
        Event::Paused { .. } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.status = Status::Suspended;
            session.reason = Some("paused".into());
        }
        Event::Unpaused { .. } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.status = Status::Waiting;
            session.reason = None;
            let root = session.root;
            let leaf = rows.leaf(site.tenant, id, root)?;
            rows.run_at_mut(&run_key(leaf))?.due = None;
        }
        Event::RequestsForgotten => rows.session_at_mut(&site.session_key()?)?.requests.clear(),
        _ => {}
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
        opens: Vec::new(),
        calls: Vec::new(),
        grants: Vec::new(),
        requests: Vec::new(),
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

fn started(site: &Site<'_>, event: &Event) -> Session {
    let mut session = blank(site);
    if let Event::SessionStarted {
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

/// A run exists from now on.
fn create(rows: &mut Working<'_>, site: &Site<'_>, event: &Event) -> Result<(), ViewError> {
    let Event::RunCreated { run, machine, of, queued } = event else { return Ok(()) };
    let key = Key::run(site.tenant, site.session()?, *run);

    let session = rows.session_at_mut(&site.session_key()?)?;
    if *run == intent::RUN {
        session.root = *run;
    } else {
        session.runs += 1;
    }
    if *queued {
        session.queue.push(*run);
    }
    let (definition, version) = of.clone().unwrap_or_else(|| (session.definition.clone(), session.version));
    rows.put(key, Row::Run(fresh(site.at, *machine, definition, version)));
    Ok(())
}

/// A run that has not begun.
pub(super) fn fresh(since: Time, machine: Digest, definition: String, version: u32) -> Run {
    Run {
        machine,
        node: NodeIx(0),
        act: ActIx(0),
        entry: 0,
        drained: 0,
        since,
        params: Vec::new(),
        held: None,
        due: None,
        ending: None,
        definition,
        version,
        attempt: 1,
        asked: 0,
        rests: false,
        called: Vec::new(),
        loops: Vec::new(),
        items: Vec::new(),
        seen: Vec::new(),
        choice: None,
        refused: None,
        mailed: Vec::new(),
        recipients: Vec::new(),
        answered_back: Vec::new(),
        parent: None,
        slots: 0,
        unknown: None,
        pending: Vec::new(),
        entered: 0,
    }
}
