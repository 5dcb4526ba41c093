//! What must hold for every entry, counted by the events of the log and independently of the rows.

use std::collections::BTreeMap;
use switchward_machine::{OpenId, SessionId, Time};
use switchward_state::delivery::{DeliveryEvent, EffectBody};
use switchward_state::limits::CALL_KEPT_MS;
use switchward_state::policy::PolicyEvent;
use switchward_state::session::SessionEvent;
use switchward_state::work::{OpenItemBody, WorkEvent};
use switchward_state::{Actor, Decision, Event, Reply, Scope, TurnRecord};
use switchward_testkit::Counts;

use crate::effects::Effects;
use crate::ledger_calls::LedgerCalls;

/// A request id and what it is about.
type RequestOf = (Scope, String);

/// See the module.
#[derive(Default)]
pub(crate) struct Oracle {
    /// The replies in the log, encoded.
    turns: BTreeMap<RequestOf, Vec<u8>>,
    /// The replies that callers have got, encoded.
    replies: BTreeMap<RequestOf, Vec<u8>>,
    /// The sequence of each session.
    sequences: BTreeMap<SessionId, u64>,
    /// When each open wait or timer is due.
    timers: BTreeMap<(SessionId, OpenId), Time>,
    /// When each permitted call that is remembered was permitted.
    permitted: BTreeMap<(SessionId, u64), Time>,
    pub(crate) effects: Effects,
    pub(crate) calls: LedgerCalls,
    pub(crate) seen: Counts,
    /// A hash of all that happened.
    pub(crate) trace: Trace,
}

/// The FNV-1a hash of a run.
pub(crate) struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    /// Adds bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The hash of all that was added.
    pub(crate) fn hash(&self) -> u64 {
        self.0
    }
}

/// The stored form of a reply.
pub(crate) fn encoded(reply: &Reply) -> Vec<u8> {
    minicbor::to_vec(reply).unwrap()
}

impl Oracle {
    /// Looks at an entry when the first replica applies it.
    pub(crate) fn look(&mut self, decision: &Decision, entry: &[u8]) -> Result<(), String> {
        self.trace.add(entry);
        for turn in &decision.turns {
            self.remembered(turn)?;
            self.calls.look(turn, &mut self.seen)?;
            let Scope::Session(session) = turn.scope else { continue };
            self.moved(session, turn)?;
            for event in &turn.events {
                self.event(session, turn, event, decision.at)?;
            }
        }
        Ok(())
    }

    /// A request id has one turn.
    fn remembered(&mut self, turn: &TurnRecord) -> Result<(), String> {
        let Some((id, _)) = &turn.request else { return Ok(()) };
        let of = (turn.scope.clone(), id.clone());
        let reply = encoded(&turn.reply);
        if self.turns.insert(of, reply).is_some() {
            return Err(format!("{id} of {:?} was carried out twice", turn.scope));
        }
        Ok(())
    }

    /// The sequence of a session is the number of its events, and never that of an earlier reply.
    fn moved(&mut self, session: SessionId, turn: &TurnRecord) -> Result<(), String> {
        let sequence = self.sequences.entry(session).or_default();
        *sequence += u64::try_from(turn.events.len()).unwrap();
        let at = *sequence;
        match &turn.reply {
            Reply::Session { sequence: said, .. } if *said != at => {
                Err(format!("{session} is at {at}, and {:?} was answered with {said}", turn.request))
            }
            _ => Ok(()),
        }
    }

    fn event(
        &mut self,
        session: SessionId,
        turn: &TurnRecord,
        event: &Event,
        at: Time,
    ) -> Result<(), String> {
        let by_time = turn.by == Actor::server();
        match event {
            Event::Delivery(event) => {
                if let DeliveryEvent::Queued { effect } = event
                    && let EffectBody::Settle { release: true, .. } = &effect.body
                {
                    self.seen.add("release of a reservation");
                }
                self.effects.look(session, event)
            }
            Event::Work(WorkEvent::Opened { item, body, .. }) => {
                let due = match body {
                    OpenItemBody::Wait(wait) => wait.due,
                    OpenItemBody::Timer(timer) => timer.due,
                    OpenItemBody::Work(_) => return Ok(()),
                };
                self.timers.insert((session, *item), due);
                Ok(())
            }
            Event::Work(WorkEvent::Closed { item, .. }) => {
                let due = self.timers.remove(&(session, *item));
                if due.is_some() && by_time {
                    self.seen.add("- timers fired");
                }
                let early = due.filter(|due| by_time && at < *due);
                early.map_or(Ok(()), |due| {
                    Err(format!("{item:?} of {session} fires at {at:?}, is due {due:?}"))
                })
            }
            Event::Policy(PolicyEvent::CallPermitted { number: Some(number), call, .. }) => {
                self.permitted.insert((session, *number), call.at);
                Ok(())
            }
            Event::Policy(PolicyEvent::CallLapsed { number }) => {
                let permitted = self.permitted.remove(&(session, *number));
                let permitted =
                    permitted.ok_or_else(|| format!("call {number} of {session} was never permitted"))?;
                if by_time && at.since_ms(permitted) < CALL_KEPT_MS {
                    return Err(format!("call {number} of {session} lapses early, at {at:?}"));
                }
                Ok(())
            }
            Event::Session(SessionEvent::RequestsForgotten) => {
                self.turns.retain(|(scope, _), _| *scope != Scope::Session(session));
                self.replies.retain(|(scope, _), _| *scope != Scope::Session(session));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A caller got a reply: it must be the one of the log, and the same each time.
    pub(crate) fn replied(&mut self, scope: &Scope, id: &str, reply: &Reply) -> Result<(), String> {
        let (of, reply) = ((scope.clone(), id.to_owned()), encoded(reply));
        let known = self.turns.get(&of);
        if known != Some(&reply) {
            return Err(format!("{id} of {scope:?} got the reply {reply:x?}, and {known:x?} is in the log"));
        }
        if self.replies.insert(of, reply).is_some() {
            self.seen.add("request repeated after its answer");
        }
        Ok(())
    }

    /// The requests of sessions that were answered.
    pub(crate) fn answered(&self) -> impl Iterator<Item = (SessionId, &str, &[u8])> {
        self.replies.iter().filter_map(|((scope, id), reply)| match scope {
            Scope::Session(session) => Some((*session, id.as_str(), reply.as_slice())),
            _ => None,
        })
    }

    /// Timers that have not fired.
    pub(crate) fn timers(&self) -> usize {
        self.timers.len()
    }
}
