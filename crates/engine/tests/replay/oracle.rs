//! Invariants of every run, checked by counting and independently of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_engine::session_view;
use switchward_machine::{Layer, Limit, Machine, Rule, SessionId, Target, TenantId, Time};
use switchward_state::delivery::{DeliveryEvent, EffectBody};
use switchward_state::policy::{LedgerRule, PolicyEvent};
use switchward_state::run::RunEvent;
use switchward_state::session::Session;
use switchward_state::{Decision, Event, Key, Row, Scope, TurnRecord, View};
use switchward_testkit::Rows;

/// A limit's counter: tenant, process, role, pattern.
type Counter = (TenantId, String, String, String);

/// How many events each session's history holds.
pub(crate) type Sequences = BTreeMap<(TenantId, SessionId), u64>;

/// The sequences of the sessions that a decision is about.
pub(crate) fn sequences(decision: &Decision, rows: &Rows) -> Sequences {
    let session_key = |turn: &TurnRecord| match turn.scope {
        Scope::Session(id) => Some((turn.tenant, id)),
        Scope::Ledger(_) | Scope::Catalogue | Scope::Shard => None,
    };
    decision
        .turns
        .iter()
        .filter_map(session_key)
        .map(|session_key| (session_key, sequence(rows, session_key)))
        .collect()
}

fn sequence(rows: &Rows, (tenant, id): (TenantId, SessionId)) -> u64 {
    session(rows, tenant, id).map_or(0, |session| session.sequence)
}

/// Counts permitted calls, and follows sessions from node to node.
#[derive(Default)]
pub(crate) struct Oracle {
    permitted: BTreeMap<Counter, Vec<(Time, u64)>>,
}

impl Oracle {
    /// Checks one decision, with the rows before it and after it.
    pub(crate) fn look(
        &mut self,
        decision: &Decision,
        before: &Sequences,
        after: &Rows,
    ) -> Result<(), String> {
        let mut events: Sequences = BTreeMap::new();
        for turn in &decision.turns {
            if turn.events.is_empty() && turn.request.is_none() {
                return Err(format!("a turn without events or request was written down: {turn:?}"));
            }
            let Scope::Session(id) = turn.scope else { continue };
            *events.entry((turn.tenant, id)).or_default() += u64::try_from(turn.events.len()).unwrap();
            moves(turn, id, after)?;
            self.permits(turn, id, after)?;
            stands(turn, id, after)?;
        }
        for (session_key, was) in before {
            let (is, events) = (sequence(after, *session_key), events[session_key]);
            if is != was + events {
                return Err(format!("{session_key:?} went from sequence {was} to {is} by {events} events"));
            }
        }
        Ok(())
    }

    /// Counts the calls that a turn permits, against every limit of the list that decides about them.
    fn permits(&mut self, turn: &TurnRecord, id: SessionId, rows: &Rows) -> Result<(), String> {
        let session = session(rows, turn.tenant, id).ok_or("a session without a row")?;
        let machine = machine(rows, turn.tenant, &session)?;
        for event in &turn.events {
            let charged = match event {
                // A call that an approval granted was counted when it was approved.
                Event::Policy(PolicyEvent::CallPermitted { call, .. }) if !redeems(turn) => {
                    charged(&machine, &session, &call.capability, false)
                }
                Event::Policy(PolicyEvent::GrantMade { grant, .. }) => {
                    charged(&machine, &session, &grant.capability, true)
                }
                _ => continue,
            };
            let limited: Vec<&Rule> = charged.into_iter().filter(|rule| !rule.limits.is_empty()).collect();
            let confirmed = confirmed(turn);
            if limited.len() != confirmed.map_or(0, |(rules, _)| rules.len()) {
                return Err(format!("{limited:?} must count the call, and {confirmed:?} does"));
            }
            let Some((_, at)) = confirmed else { continue };
            let role = machine.opening.role.clone().unwrap_or_default();
            for rule in limited {
                let pattern = rule.pattern.as_str().to_owned();
                let counter = (turn.tenant, session.definition.clone(), role.clone(), pattern);
                self.count(counter, rule, at)?;
            }
        }
        Ok(())
    }

    fn count(&mut self, counter: Counter, rule: &Rule, at: Time) -> Result<(), String> {
        let windows = rule.limits.iter().filter_map(|limit| match limit {
            Limit::Rate { max, window_ms } => Some((*max, *window_ms)),
            _ => None,
        });
        // A later version keeps the counts of an earlier one for as long as the earlier one had to.
        let Some(longest) = windows.clone().map(|(_, window)| window).max() else { return Ok(()) };
        let times = self.permitted.entry(counter.clone()).or_default();
        times.push((at, longest));
        for (max, window) in windows {
            let inside = times.iter().filter(|(time, kept)| at.since_ms(*time) < window.min(*kept)).count();
            if u64::try_from(inside).unwrap() > max {
                return Err(format!(
                    "{inside} calls of {counter:?} within {window} ms, and {max} are allowed"
                ));
            }
        }
        Ok(())
    }
}

fn redeems(turn: &TurnRecord) -> bool {
    turn.events.iter().any(|event| matches!(event, Event::Policy(PolicyEvent::GrantUsed { .. })))
}

/// The rules by which a turn has a ledger count a call, and the time of the count.
fn confirmed(turn: &TurnRecord) -> Option<(&Vec<LedgerRule>, Time)> {
    turn.events.iter().find_map(|event| match event {
        Event::Delivery(DeliveryEvent::Queued { effect }) => match &effect.body {
            EffectBody::Confirm { rules, at, .. } => Some((rules, *at)),
            EffectBody::Notice { .. }
            | EffectBody::Message { .. }
            | EffectBody::Settle { .. }
            | EffectBody::Publish { .. } => None,
        },
        _ => None,
    })
}

/// The rules of the policy's list that decides about a capability.
fn charged<'m>(machine: &'m Machine, session: &Session, capability: &str, asked: bool) -> Vec<&'m Rule> {
    let policy = |layer: &&Layer| layer.name == "policy" && !session.without_policy;
    let Some(layer) = machine.policy.layers.iter().find(policy) else { return Vec::new() };
    let covering = |rules: &'m [Rule]| -> Vec<&'m Rule> {
        rules.iter().filter(|rule| rule.pattern.covers(capability)).collect()
    };
    if asked { covering(&layer.ask) } else { covering(&layer.allow) }
}

/// A session moves only along exits of its current node.
fn moves(turn: &TurnRecord, id: SessionId, rows: &Rows) -> Result<(), String> {
    let session = session(rows, turn.tenant, id).ok_or("a session without a row")?;
    let machine = machine(rows, turn.tenant, &session)?;
    let mut due: Option<Target> = None;
    for event in &turn.events {
        match event {
            Event::Run(RunEvent::Left { node, exit, .. }) => {
                let node = machine.node(*node).ok_or("a node that is not declared was left")?;
                let exit = node.exits.get(usize::from(exit.0)).ok_or("an exit that is not declared")?;
                due = Some(exit.to.clone());
            }
            Event::Run(RunEvent::Entered { node, .. }) => match due.take() {
                Some(Target::Node(to)) if to == *node => {}
                None if *node == machine.start && session.sequence >= 3 => {}
                other => return Err(format!("{node:?} was entered, and the way led to {other:?}")),
            },
            Event::Run(RunEvent::Ended { ending, .. }) => match due.take() {
                Some(Target::End(to)) if to == *ending => {}
                None => {}
                other => return Err(format!("it ended {ending:?}, and the way led to {other:?}")),
            },
            _ => {}
        }
    }
    match due {
        Some(target) => Err(format!("a node was left, and {target:?} was not reached")),
        None => Ok(()),
    }
}

/// A session is at a node that its machine declares.
fn stands(turn: &TurnRecord, id: SessionId, rows: &Rows) -> Result<(), String> {
    let view = session_view(rows, turn.tenant, id).map_err(|error| error.to_string())?;
    let view = view.ok_or("a session without a row")?;
    view.machine.node(view.run.node).ok_or_else(|| format!("{id} stands at {:?}", view.run.node))?;
    if view.session.status.ended() != view.run.ending.is_some() {
        return Err(format!("{id} and its run do not agree whether it has ended"));
    }
    Ok(())
}

fn session(rows: &Rows, tenant: TenantId, id: SessionId) -> Option<Session> {
    let row = rows.row(&Key::session(tenant, id)).ok()?;
    let Some(Row::Session(session)) = row.as_deref() else { return None };
    Some(session.clone())
}

fn machine(rows: &Rows, tenant: TenantId, session: &Session) -> Result<Arc<Machine>, String> {
    let row = rows.row(&Key::machine(tenant, session.machine)).map_err(|error| error.to_string())?;
    let Some(Row::Machine(machine)) = row.as_deref() else {
        return Err("a session's machine is not there".into());
    };
    Ok(Arc::clone(machine))
}
