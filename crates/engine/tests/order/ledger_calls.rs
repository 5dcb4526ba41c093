//! What the oracle knows of limited calls: when each one counts, what it holds and what was spent, by the events of sessions.

use std::collections::{BTreeMap, BTreeSet};
use switchward_machine::{Digest, Micros, SessionId, Time};
use switchward_state::approval::Call;
use switchward_state::delivery::{DeliveryEvent, EffectBody};
use switchward_state::policy::PolicyEvent;
use switchward_state::{Event, Scope, TurnRecord};
use switchward_testkit::Counts;

use crate::commands::COUNTERS;

/// The counter of a limit: whose ledger, and which calls.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counter {
    pub(crate) process: String,
    pub(crate) capability: String,
}

/// See the module.
#[derive(Default)]
pub(crate) struct LedgerCalls {
    /// The definition of each session with limited calls.
    definitions: BTreeMap<SessionId, &'static str>,
    /// When the permitted calls of a counter count, by the ledger's time.
    counted: BTreeMap<Counter, Vec<Time>>,
    /// What was reported.
    charges: BTreeMap<Counter, Vec<Micros>>,
    /// Permitted calls with money that were neither reported nor lapsed.
    open: BTreeMap<(SessionId, u64), Call>,
    /// Calls whose confirmation has reached the ledger.
    confirmed: BTreeSet<String>,
}

/// The words with which the names of requests to ledgers begin.
const CONFIRM: &str = "confirm:";
const SETTLE: &str = "settle:call:";

impl LedgerCalls {
    /// A session of this definition has limited calls.
    pub(crate) fn start(&mut self, session: SessionId, definition: &'static str) {
        self.definitions.insert(session, definition);
    }

    /// Follows a turn of a session or of a ledger.
    pub(crate) fn look(&mut self, turn: &TurnRecord, seen: &mut Counts) -> Result<(), String> {
        match &turn.scope {
            Scope::Ledger(_) => self.ledger(turn, seen),
            Scope::Session(session) => self.session(*session, turn)?,
            Scope::Catalogue | Scope::Shard => {}
        }
        Ok(())
    }

    fn ledger(&mut self, turn: &TurnRecord, seen: &mut Counts) {
        let Some((id, _)) = &turn.request else { return };
        if let Some(call) = id.strip_prefix(CONFIRM) {
            self.confirmed.insert(call.to_owned());
            seen.add("- calls confirmed");
        } else if let Some(call) = id.strip_prefix(SETTLE) {
            seen.add("- calls settled");
            if !self.confirmed.contains(call) {
                seen.add("settle before confirm");
            }
        }
    }

    fn session(&mut self, session: SessionId, turn: &TurnRecord) -> Result<(), String> {
        let Some(process) = self.definitions.get(&session).copied() else { return Ok(()) };
        let redeems =
            turn.events.iter().any(|event| matches!(event, Event::Policy(PolicyEvent::GrantUsed { .. })));
        let counter =
            |capability: &str| Counter { process: process.to_owned(), capability: capability.to_owned() };
        let mut cost = Micros(0);
        for event in &turn.events {
            match event {
                Event::Policy(PolicyEvent::CallPermitted { call, number, .. }) => {
                    if !redeems {
                        let held = held_at(turn, process)?;
                        self.counted.entry(counter(&call.capability)).or_default().push(held);
                    }
                    if let Some(number) = number.filter(|_| call.reservation.is_some() && call.reserved.0 > 0)
                    {
                        self.open.insert((session, number), call.clone());
                    }
                }
                Event::Policy(PolicyEvent::GrantMade { grant, .. }) => {
                    let held = held_at(turn, process)?;
                    self.counted.entry(counter(&grant.capability)).or_default().push(held);
                }
                Event::Policy(PolicyEvent::CallLapsed { number }) => {
                    self.open.remove(&(session, *number));
                }
                Event::Policy(PolicyEvent::Metered { cost: metered, .. }) => cost = *metered,
                _ => {}
            }
        }
        for event in &turn.events {
            if let Event::Policy(PolicyEvent::CallReported { number, capability, .. }) = event {
                if let Some(number) = number {
                    self.open.remove(&(session, *number));
                }
                self.charges.entry(counter(capability)).or_default().push(cost);
            }
        }
        Ok(())
    }

    /// The counters of calls that were permitted.
    pub(crate) fn counters(&self) -> impl Iterator<Item = Counter> {
        let capabilities = ["bash", "read", "pay", "ship", "deploy"];
        COUNTERS.into_iter().flat_map(move |process| {
            capabilities
                .map(|capability| Counter { process: process.to_owned(), capability: capability.to_owned() })
        })
    }

    /// When the calls of a counter count, oldest first.
    pub(crate) fn counted(&self, counter: &Counter) -> Vec<Time> {
        let mut times = self.counted.get(counter).cloned().unwrap_or_default();
        times.sort_unstable();
        times
    }

    /// What was reported of the calls of a counter.
    pub(crate) fn charges(&self, counter: &Counter) -> &[Micros] {
        self.charges.get(counter).map(Vec::as_slice).unwrap_or_default()
    }

    /// The names of open calls of a counter that hold money.
    pub(crate) fn open(&self, counter: &Counter) -> BTreeSet<Digest> {
        let process = |session: &SessionId| self.definitions.get(session).copied();
        let is_of = |session: &SessionId, call: &Call| {
            process(session) == Some(counter.process.as_str()) && call.capability == counter.capability
        };
        let open = self.open.iter().filter(|((session, _), call)| is_of(session, call));
        open.filter_map(|(_, call)| call.reservation).collect()
    }
}

/// When a call that this turn permits counts in a ledger: each permitted call is confirmed there.
fn held_at(turn: &TurnRecord, ledger: &str) -> Result<Time, String> {
    let found = turn.events.iter().find_map(|event| match event {
        Event::Delivery(DeliveryEvent::Queued { effect }) => match &effect.body {
            EffectBody::Confirm { process, at, .. } if process == ledger => Some(*at),
            _ => None,
        },
        _ => None,
    });
    found.ok_or_else(|| format!("a limited call was permitted and is not confirmed: {turn:?}"))
}
