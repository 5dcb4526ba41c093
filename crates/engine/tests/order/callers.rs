//! Callers: each does one operation after the other, and repeats a request with an id until it is answered.

use std::collections::VecDeque;
use switchward_machine::{Decision, Digest, Micros, OpenId, SessionId};
use switchward_state::delivery::EffectStatus;
use switchward_state::policy::CallEffect;
use switchward_state::{Command, IndexKey, Key, Reason, Reply, RequestId, Scope, View as _};

use crate::commands::{
    COUNTERS, NAPS_MS, TENANT, VALUES, authorize, cancel, decide, dismiss, price, report, request, retry,
    session, set, start,
};
use crate::effects::EffectId;
use crate::ledgers::{Asking, Next};
use crate::message::{Answer, Failure, Origin};
use crate::simulation::{Checked, Event, Simulation};

/// How long a caller waits for an answer, milliseconds.
const WAIT_MS: u64 = 400;
/// How long it waits before it tries again, milliseconds.
const PAUSE_MS: u64 = 60;
/// Rounds of ledgers after which a call is given up.
const ROUNDS_MAX: u32 = 6;

/// A session that callers know.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) id: SessionId,
    pub(crate) definition: String,
    /// The sequence that was seen last.
    sequence: u64,
}

/// A caller.
pub(crate) struct Caller {
    number: usize,
    requests: u64,
    operation: Option<Operation>,
    /// What it does next.
    pub(crate) next: VecDeque<Todo>,
    /// Whether it begins operations by itself.
    pub(crate) begins: Begins,
}

/// Whether a caller begins operations by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    Always,
    Never,
}

/// An operation.
#[derive(Debug, Clone)]
pub(crate) enum Todo {
    Start { definition: String },
    Set { session: SessionId, to: usize, at: Option<u64> },
    Call { session: SessionId, capability: &'static str },
    Report { session: SessionId, call: String, cost: Micros },
    Decide { session: SessionId, gate: OpenId, decision: Decision },
    Cancel { session: SessionId },
    Retry { session: SessionId, number: u64 },
    Dismiss { session: SessionId, number: u64 },
}

impl Todo {
    fn kind(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::Set { .. } => "set",
            Self::Call { capability, .. } => capability,
            Self::Report { .. } => "report",
            Self::Decide { .. } => "decide",
            Self::Cancel { .. } => "cancel",
            Self::Retry { .. } => "retry",
            Self::Dismiss { .. } => "dismiss",
        }
    }
}

/// An operation that is under way.
#[derive(Debug, Clone)]
struct Operation {
    todo: Todo,
    command: Command,
    attempt: u64,
    rounds: u32,
    /// The ledgers that are being asked; `None` if the command itself was sent.
    asking: Option<Box<Asking>>,
}

impl Caller {
    /// A caller that does this first.
    pub(crate) fn new(number: usize, first: impl IntoIterator<Item = Todo>) -> Self {
        let next = first.into_iter().collect();
        Self { number, requests: 0, operation: None, next, begins: Begins::Always }
    }

    /// Returns true if it has nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.operation.is_none() && self.next.is_empty()
    }
}

impl Simulation {
    /// A caller begins its next operation.
    pub(crate) fn step(&mut self, at: usize) -> Checked {
        if self.callers[at].operation.is_some() {
            return Ok(());
        }
        let next = self.callers[at].next.pop_front();
        let todo = match (next, self.callers[at].begins) {
            (Some(todo), _) => Some(todo),
            (None, Begins::Always) => self.draw(),
            (None, Begins::Never) => None,
        };
        let Some(todo) = todo else {
            self.after(PAUSE_MS, Event::Step { caller: at });
            return Ok(());
        };
        self.saw(&format!("- {}", todo.kind()));
        let command = self.command_of(at, &todo);
        let operation = Operation { todo, command, attempt: 0, rounds: 0, asking: None };
        self.callers[at].operation = Some(operation);
        self.attempt(at)
    }

    /// The command of an operation; most have a request id.
    fn command_of(&mut self, at: usize, todo: &Todo) -> Command {
        let has_id = !self.rng.once_in(6) || matches!(todo, Todo::Start { .. });
        let caller = &mut self.callers[at];
        caller.requests += 1;
        let id = format!("request {} {}", caller.number, caller.requests);
        let command = match todo {
            Todo::Start { definition } => {
                let counter = COUNTERS.into_iter().find(|name| name == definition);
                counter.into_iter().for_each(|name| self.oracle.calls.start(session(&id), name));
                start(definition, &id)
            }
            Todo::Set { session, to, at } => set(*session, *to, *at),
            Todo::Call { session, capability } => authorize(*session, &id, capability),
            Todo::Report { session, call, cost } => report(*session, call, *cost),
            Todo::Decide { session, gate, decision } => decide(*session, *gate, *decision),
            Todo::Cancel { session } => cancel(*session),
            Todo::Retry { session, number } => retry(*session, *number),
            Todo::Dismiss { session, number } => dismiss(*session, *number),
        };
        Command { request: has_id.then(|| request(&id)), ..command }
    }

    /// Draws an operation.
    fn draw(&mut self) -> Option<Todo> {
        match self.rng.below(20) {
            0 => Some(Todo::Start { definition: (*self.rng.pick(&COUNTERS)).to_owned() }),
            1 => Some(Todo::Start { definition: format!("nap-{}", self.rng.pick(&NAPS_MS)) }),
            2 => Some(Todo::Start { definition: "post".to_owned() }),
            3 => {
                let session = self.pick(|known| known.definition == COUNTERS[0])?.id;
                self.rng.once_in(3).then_some(Todo::Cancel { session })
            }
            4..=6 => self.dead_letter(),
            7..=10 => {
                let Known { id, sequence, .. } = self.pick(|known| known.definition == "register")?;
                let (to, at) = (self.rng.below(VALUES), self.rng.once_in(2).then_some(sequence));
                Some(Todo::Set { session: id, to, at })
            }
            _ => {
                let capability =
                    *self.rng.pick(&["bash", "read", "pay", "pay", "pay", "ship", "ship", "deploy"]);
                let session = self.pick(|known| known.definition.starts_with("counter"))?.id;
                Some(Todo::Call { session, capability })
            }
        }
    }

    fn pick(&mut self, is: impl Fn(&Known) -> bool) -> Option<Known> {
        let known: Vec<&Known> = self.sessions.iter().filter(|known| is(known)).collect();
        (!known.is_empty()).then(|| (*self.rng.pick(&known)).clone())
    }

    /// A dead letter is sent again or given up.
    fn dead_letter(&mut self) -> Option<Todo> {
        let mut found = Vec::new();
        for rows in self.shards.iter().filter_map(|shard| shard.read()) {
            let look = &mut |entry: &Key, _: &_| {
                found.extend(IndexKey::effect_of(entry));
                std::ops::ControlFlow::Continue(())
            };
            rows.scan(&IndexKey::effects(TENANT, Some(EffectStatus::DeadLetter)), None, look).unwrap();
        }
        let (session, number) = *found.get(self.rng.below(found.len().max(1)))?;
        if self.rng.once_in(5) {
            return Some(Todo::Dismiss { session, number });
        }
        Some(Todo::Retry { session, number })
    }

    /// Makes an attempt: plans, asks ledgers, or sends the command.
    fn attempt(&mut self, at: usize) -> Checked {
        let Some(mut operation) = self.callers[at].operation.take() else { return Ok(()) };
        self.attempts += 1;
        operation.attempt = self.attempts;
        operation.asking = None;
        let attempt = self.attempts;
        self.after(WAIT_MS, Event::TimedOut { caller: at, attempt });
        let next = if operation.command.body.may_need_ledger() {
            self.plan_of(&mut operation.command)?
        } else {
            Next::Send
        };
        match next {
            Next::Wait => {}
            Next::Send => self.send(Origin::Caller { caller: at, attempt }, operation.command.clone()),
            Next::Ask(asking) => {
                operation.rounds += 1;
                operation.asking = Some(asking);
                self.ask_next(at, &mut operation);
            }
        }
        self.callers[at].operation = Some(operation);
        Ok(())
    }

    /// Asks the next ledger, or sends the command with what they have said.
    fn ask_next(&mut self, at: usize, operation: &mut Operation) {
        let origin = Origin::Caller { caller: at, attempt: operation.attempt };
        let Some(asking) = &mut operation.asking else { return };
        let Some(check) = self.ask(asking, origin.clone()) else { return };
        operation.asking = None;
        operation.command.take_along(Some(check));
        self.send(origin, operation.command.clone());
    }

    /// No answer has come in time. Without a request id, nobody knows what became of the command.
    pub(crate) fn timed_out(&mut self, at: usize, attempt: u64) -> Checked {
        let Some(operation) = self.callers[at].operation.as_ref().filter(|it| it.attempt == attempt) else {
            return Ok(());
        };
        let may_repeat = operation.command.request.is_some() || operation.asking.is_some();
        if may_repeat {
            return self.attempt(at);
        }
        self.saw("- outcome unknown");
        self.ends(at);
        Ok(())
    }

    fn ends(&mut self, at: usize) {
        self.callers[at].operation = None;
        let pause = self.rng.between(5, PAUSE_MS);
        self.after(pause, Event::Step { caller: at });
    }

    /// An answer has come.
    pub(crate) fn returned(&mut self, at: usize, attempt: u64, answer: Answer) -> Checked {
        let operation = self.callers[at].operation.as_ref().filter(|it| it.attempt == attempt);
        let Some(mut operation) = operation.cloned() else { return Ok(()) };
        match answer {
            Ok(reply) => {
                let Some(asking) = &mut operation.asking else { return self.done(at, &operation, &reply) };
                self.ledger_said(asking, &reply)?;
                if self.draws(self.plan.gone) {
                    self.saw("caller gone after a reservation");
                    self.ends(at);
                    return Ok(());
                }
                // An answer that comes twice must not be taken twice.
                self.attempts += 1;
                operation.attempt = self.attempts;
                self.after(WAIT_MS, Event::TimedOut { caller: at, attempt: self.attempts });
                self.ask_next(at, &mut operation);
                self.callers[at].operation = Some(operation);
                Ok(())
            }
            Err(Failure::NoLeader) => Ok(()),
            Err(Failure::Unknown) => self.timed_out(at, attempt),
            Err(Failure::Refused(no)) => {
                let stale = no.reason == Reason::LimitsStale
                    || (operation.asking.is_some() && no.reason == Reason::RequestIdReused);
                if stale && operation.rounds < ROUNDS_MAX {
                    return Ok(());
                }
                self.saw(&format!("- refused: {:?}", no.reason));
                self.ends(at);
                Ok(())
            }
        }
    }

    /// An operation was answered. What follows from it is done next.
    fn done(&mut self, at: usize, operation: &Operation, reply: &Reply) -> Checked {
        self.saw("- operations answered");
        match (&operation.todo, reply) {
            (Todo::Start { definition }, Reply::Session { sequence, .. }) => {
                let Scope::Session(id) = operation.command.scope else { return Ok(()) };
                self.sessions.push(Known { id, definition: definition.clone(), sequence: *sequence });
            }
            (Todo::Set { session, .. }, Reply::Session { sequence, .. }) => {
                let known = self.sessions.iter_mut().find(|known| known.id == *session);
                known.into_iter().for_each(|known| known.sequence = *sequence);
            }
            (Todo::Call { session, capability }, Reply::Authorized(said)) => {
                self.saw(&format!("- {capability}: {:?}", said.effect));
                let (session, capability, call) = (*session, *capability, said.call_id.clone());
                match (said.effect, said.gate) {
                    (CallEffect::Allow, _) if !self.rng.once_in(5) => {
                        let price = price(capability).filter(|_| !self.rng.once_in(4));
                        let cost = price.map_or(Micros(0), |price| price.cost);
                        let again = (capability == "ship").then_some(Todo::Call { session, capability });
                        let next = [Todo::Report { session, call, cost }].into_iter().chain(again);
                        self.callers[at].next.extend(next);
                    }
                    (CallEffect::Ask, Some(gate)) => {
                        let decision = if self.rng.once_in(4) { Decision::Refuse } else { Decision::Approve };
                        self.callers[at].next.push_back(Todo::Decide { session, gate, decision });
                    }
                    _ => {}
                }
            }
            (Todo::Retry { session, number }, _) => {
                self.report_again(EffectId { session: *session, number: *number });
            }
            (Todo::Decide { session, decision: Decision::Approve, .. }, _) => {
                let todo = Todo::Call { session: *session, capability: "deploy" };
                self.callers[at].next.push_back(todo);
            }
            _ => {}
        }
        let command = operation.command.clone();
        if let Some(id) = command.request.clone().filter(|_| self.draws(self.plan.other_body)) {
            self.saw("request id with another body");
            let other = RequestId { body: Digest::of(b"another body"), ..id };
            self.send(Origin::OtherBody, Command { request: Some(other), ..command });
        }
        self.ends(at);
        Ok(())
    }

    /// A request id that came before with another body is refused.
    pub(crate) fn other_body(&self, command: &Command, answer: &Answer) -> Checked {
        match answer {
            Err(Failure::NoLeader | Failure::Unknown) => Ok(()),
            Err(Failure::Refused(no)) if no.reason == Reason::RequestIdReused => Ok(()),
            other => Err(format!("{command:?} came with another body, and its answer is {other:?}")),
        }
    }
}
