//! One shard that owns every bucket: commands in, decisions into a log, rows out of them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use switchward_engine::policy::{Plan, plan};
use switchward_engine::{Decided, decide, evolve};
use switchward_machine::{TenantId, Time};
use switchward_state::approval::ApprovalCommand;
use switchward_state::catalogue::Settings;
use switchward_state::delivery::{
    AckEffect, DeferEffect, DeliveryCommand, DeliveryDetail, DismissEffect, EffectBody, EffectStatus,
    FailEffect, FailureCode, RetryEffect,
};
use switchward_state::policy::{Confirm, LimitCheck, PolicyCommand, Reserve, Settle, check_limits};
use switchward_state::session::{SessionCommand, Sweep};
use switchward_state::{
    Actor, Body, Changes, Command, Decision, Due, IndexKey, Key, Rejection, Reply, RequestId, Row, Scope,
    View, ViewError,
};
use switchward_testkit::{CommandGenerator, Rng, Rows, TENANTS, kind};

use crate::oracle::{Oracle, sequences};
use crate::sent;

/// Turns a decision into rows; a test may plant another one than the engine's.
pub(crate) type Evolve = fn(&Decision, &dyn View) -> Result<Changes, ViewError>;

/// How often the harness restarts and replays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Its rows are written and read back now and then; it is replayed at the end.
    Live,
    /// Both after every step.
    RestartAlways,
}

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
/// The start time.
const BEGIN: Time = Time(1_750_064_400_000);

/// Runs a harness, and fails with the first violation.
pub(crate) fn play(seed: u64, steps: usize, mode: Mode, replayed_by: Evolve) -> Result<Seen, String> {
    let mut rng = Rng::new(seed);
    let mut harness = Harness { now: BEGIN, ..Harness::default() };
    for command in harness.generator.first(&mut rng) {
        harness.submit(vec![command])?;
    }
    for _ in 0..steps {
        harness.step(&mut rng)?;
        if mode == Mode::RestartAlways || rng.once_in(15) {
            let reopened = harness.rows.reopened()?;
            harness.rows.same(&reopened, "rows are others when they are read back")?;
            harness.rows = reopened;
        }
        if mode == Mode::RestartAlways {
            harness.replay(replayed_by)?;
        }
    }
    harness.rows.indexed()?;
    if sent::views(&harness.rows, harness.now)? == 0 {
        return Err("nothing was read of the rows".into());
    }
    harness.replay(replayed_by)?;
    Ok(harness.seen)
}

#[derive(Default)]
struct Harness {
    rows: Rows,
    log: Vec<Vec<u8>>,
    now: Time,
    generator: CommandGenerator,
    oracle: Oracle,
    seen: Seen,
}

type Answer = Result<Reply, Rejection>;

impl Harness {
    fn step(&mut self, rng: &mut Rng) -> Result<(), String> {
        match rng.below(21) {
            0..=12 => {
                let mut batch = Vec::new();
                for _ in 0..1 + rng.below(4) {
                    let command = self.generator.next(rng, &self.rows, self.now);
                    batch.extend(self.planned(rng, command)?);
                }
                self.submit(batch).map(|_| ())
            }
            13 | 14 => self.repeat(rng),
            15..=17 => self.carry(),
            18 => self.sweep(),
            19 => self.deliver(rng),
            _ => self.later(rng),
        }
    }

    /// Advances the time. Before a long step, effects are carried to the ledgers: the expiry of a reservation relies on
    /// that.
    fn later(&mut self, rng: &mut Rng) -> Result<(), String> {
        let short = [0, 1, 500, 30_000, MINUTE_MS + 1, 5 * MINUTE_MS];
        let long = [20 * MINUTE_MS, HOUR_MS, 25 * HOUR_MS, 40 * 24 * HOUR_MS];
        if rng.once_in(3) {
            self.carry()?;
            self.now = self.now.after_ms(*rng.pick(&long));
            return self.sweep();
        }
        self.now = self.now.after_ms(*rng.pick(&short));
        Ok(())
    }

    /// Sends an answered command again: the same reply, and no decision.
    fn repeat(&mut self, rng: &mut Rng) -> Result<(), String> {
        let Some((command, reply)) = self.generator.again(rng) else { return Ok(()) };
        if !self.remembered(&command) {
            return Ok(());
        }
        let entries = self.log.len();
        let again = self.submit(vec![command.clone()])?;
        if again != [Ok(reply)] || self.log.len() != entries {
            return Err(format!("{command:?} came to {again:?} when it was sent again"));
        }
        self.seen.repetitions += 1;
        Ok(())
    }

    /// Returns true if the reply of a request id is still remembered: bounded in number and in time.
    fn remembered(&self, command: &Command) -> bool {
        switchward_engine::is_remembered(&self.rows, command).is_ok_and(|known| known)
    }

    /// Asks the ledger if a limit applies; returns `None` if the ledger refuses.
    fn planned(&mut self, rng: &mut Rng, mut command: Command) -> Result<Option<Command>, String> {
        let asked = plan(&self.rows, &command, self.now);
        let mut limits = match asked.map_err(|error| error.to_string())? {
            Plan::Direct => None,
            Plan::Look(asked) => {
                let check = check_limits(&self.rows, command.tenant, &asked.rules, asked.estimate, self.now);
                Some(check.map_err(|error| error.to_string())?)
            }
            Plan::Reserve(asked) => {
                let process = asked.rules[0].process.clone();
                let body = Reserve { call: asked.call, rules: asked.rules, estimate: asked.estimate };
                let reserve =
                    inner(&command, Scope::Ledger(process), None, Body::Policy(PolicyCommand::Reserve(body)));
                match self.submit(vec![reserve])?.pop() {
                    Some(Ok(Reply::Limits(check))) => Some(check),
                    _ => return Ok(None),
                }
            }
        };
        if limits.is_some() && rng.once_in(30) {
            // The ledger's reply becomes stale.
            let passed_ms = *rng.pick(&[1_000, MINUTE_MS]);
            self.now = self.now.after_ms(passed_ms);
            limits = limits.map(|check| check.aged(passed_ms));
        }
        set(&mut command, limits);
        Ok(Some(command))
    }

    /// Carries every internal effect to its ledger.
    fn carry(&mut self) -> Result<(), String> {
        for due in self.due(&IndexKey::relay()) {
            let Ok(Some(row)) = self.rows.row(&due.key) else { continue };
            let (Row::Outbox(effect), Some(id)) = (&*row, due.key.session_of()) else { continue };
            let (process, request, body) = match effect.body.clone() {
                EffectBody::Notice { .. } | EffectBody::Message { .. } | EffectBody::Publish { .. } => {
                    continue;
                }
                EffectBody::Confirm { process, call, rules, estimate, at } => {
                    let confirm = Confirm { call, rules, estimate, at };
                    (process, confirm.request(), Body::Policy(PolicyCommand::Confirm(confirm)))
                }
                EffectBody::Settle { process, call, rules, cost, at, release } => {
                    let settle = Settle { call, rules, cost, at, release };
                    let request = settle.request(id, effect.number);
                    (process, request, Body::Policy(PolicyCommand::Settle(settle)))
                }
            };
            let tenant = due.key.tenant_of();
            let server = |scope, request, body| server(tenant, scope, request, body);
            // Sent twice, it counts once.
            for _ in 0..2 {
                self.submit(vec![server(
                    Scope::Ledger(process.clone()),
                    Some(request.clone()),
                    body.clone(),
                )])?;
            }
            let ack = Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number: effect.number }));
            self.submit(vec![server(Scope::Session(id), None, ack)])?;
        }
        Ok(())
    }

    /// Outgoing effects are delivered or fail, and failed ones are retried or dismissed; each command is sent twice.
    fn deliver(&mut self, rng: &mut Rng) -> Result<(), String> {
        let mut effects = Vec::new();
        for due in self.deliveries() {
            let Ok(Some(row)) = self.rows.row(&due.key) else { return Err(format!("{due:?} is no more")) };
            let Row::Outbox(effect) = &*row else { return Err(format!("{due:?} is no effect")) };
            let (number, code, detail) = (effect.number, FailureCode::TooLarge, DeliveryDetail::quote("why"));
            let body = if rng.once_in(3) {
                Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number }))
            } else if rng.once_in(3) {
                let (attempt, wait_ms) = (effect.attempt(), rng.between(0, 9));
                Body::Delivery(DeliveryCommand::DeferEffect(DeferEffect {
                    number,
                    attempt,
                    wait_ms,
                    code,
                    detail,
                    made: number.is_multiple_of(2),
                }))
            } else {
                Body::Delivery(DeliveryCommand::FailEffect(FailEffect {
                    number,
                    code,
                    detail,
                    round: Some(effect.round()),
                }))
            };
            effects.push((due.key.tenant_of(), due.key.session_of(), body));
        }
        for tenant in TENANTS {
            let listed = &mut |entry: &Key, _: &_| {
                if let Some((session, number)) = IndexKey::effect_of(entry) {
                    let dismissed = Body::Delivery(DeliveryCommand::DismissEffect(DismissEffect { number }));
                    let body = if rng.once_in(2) {
                        Body::Delivery(DeliveryCommand::RetryEffect(RetryEffect { number }))
                    } else {
                        dismissed
                    };
                    effects.push((tenant, Some(session), body));
                }
                ControlFlow::Continue(())
            };
            self.rows
                .scan(&IndexKey::effects(tenant, Some(EffectStatus::DeadLetter)), None, listed)
                .map_err(|error| error.to_string())?;
        }
        for (tenant, session, body) in effects {
            let Some(session) = session else { return Err("an effect has no session".into()) };
            for _ in 0..2 {
                self.submit(vec![server(tenant, Scope::Session(session), None, body.clone())])?;
            }
        }
        Ok(())
    }

    fn sweep(&mut self) -> Result<(), String> {
        for due in self.due(&IndexKey::due()) {
            let sweep = Body::Session(SessionCommand::Sweep(Sweep { key: due.key.clone() }));
            self.submit(vec![server(due.key.tenant_of(), due.scope(), None, sweep)])?;
        }
        Ok(())
    }

    /// The effects that go to a destination outside, deliverable or not.
    fn deliveries(&self) -> Vec<Due> {
        let mut found = Vec::new();
        for tenant in TENANTS {
            let read = self.rows.scan(
                &IndexKey::effects(tenant, Some(EffectStatus::Pending)),
                None,
                &mut |entry, _| {
                    let key = IndexKey::effect_of(entry).map(|(id, number)| Key::outbox(tenant, id, number));
                    found.extend(key.map(|key| Due { at: self.now, key }));
                    ControlFlow::Continue(())
                },
            );
            if read.is_err() {
                return Vec::new();
            }
        }
        found
    }

    fn due(&self, prefix: &[u8]) -> Vec<Due> {
        let mut found = Vec::new();
        let read = self.rows.scan(prefix, None, &mut |entry, _| {
            found.extend(IndexKey::due_of(entry).filter(|due| due.at <= self.now));
            ControlFlow::Continue(())
        });
        read.map(|()| found).unwrap_or_default()
    }

    /// Decides a batch, writes the decision down, reads it back and applies it.
    fn submit(&mut self, batch: Vec<Command>) -> Result<Vec<Answer>, String> {
        for command in &batch {
            self.refusals_change_nothing(command)?;
        }
        let decided = decide(&batch, &self.rows, self.now).map_err(|error| error.to_string())?;
        let Decided { decision, changes, answers, .. } = decided;
        if answers.len() != batch.len() {
            return Err(format!("{} commands have {} answers", batch.len(), answers.len()));
        }
        match decision {
            None => self.rows.agree(&changes, &Changes::new(), "rows are changed without a decision")?,
            Some(decision) => self.write(&decision, &changes)?,
        }
        for (command, answer) in batch.iter().zip(&answers) {
            read_back(command, answer)?;
            match answer {
                Ok(reply) => self.generator.answered(command, reply),
                Err(_) => self.seen.rejections += 1,
            }
        }
        Ok(answers)
    }

    fn write(&mut self, decision: &Decision, pending: &Changes) -> Result<(), String> {
        let bytes = decision.encode();
        let read = Decision::decode(&bytes).map_err(|error| error.to_string())?;
        if read != *decision || read.encode() != bytes {
            return Err(format!("a decision is another one when it is read back: {decision:?}"));
        }
        let changes = evolve(&read, &self.rows).map_err(|error| error.to_string())?;
        self.rows.agree(&changes, pending, "what was decided on is not what comes of it")?;
        let before = sequences(&read, &self.rows);
        self.rows.apply(changes);
        self.oracle.look(&read, &before, &self.rows)?;
        self.seen.decision(&read);
        self.log.push(bytes);
        Ok(())
    }

    /// A command that is rejected when it is decided alone changes nothing.
    fn refusals_change_nothing(&self, command: &Command) -> Result<(), String> {
        let alone = decide(std::slice::from_ref(command), &self.rows, self.now);
        let Decided { decision, changes, answers, .. } = alone.map_err(|error| error.to_string())?;
        if !matches!(answers.as_slice(), [Err(_)]) {
            return Ok(());
        }
        if let Some(decision) = decision {
            return Err(format!("a refusal was written down: {decision:?}"));
        }
        self.rows.agree(&changes, &Changes::new(), "a refusal changed rows")
    }

    /// Builds the rows from the first decision on, and compares them.
    fn replay(&self, evolve: Evolve) -> Result<(), String> {
        let mut rows = Rows::default();
        for bytes in &self.log {
            let decision = Decision::decode(bytes).map_err(|error| error.to_string())?;
            rows.apply(evolve(&decision, &rows).map_err(|error| error.to_string())?);
        }
        self.rows.same(&rows, "a replay builds other rows")
    }
}

fn set(command: &mut Command, limits: Option<LimitCheck>) {
    if let Body::Policy(PolicyCommand::Authorize(call)) = &mut command.body {
        call.limits = limits;
    } else if let Body::Approval(ApprovalCommand::DecideGate(decide)) = &mut command.body {
        decide.limits = limits;
    }
}

fn inner(of: &Command, scope: Scope, request: Option<RequestId>, body: Body) -> Command {
    Command { scope, request, expected_sequence: None, body, ..of.clone() }
}

fn server(tenant: TenantId, scope: Scope, request: Option<RequestId>, body: Body) -> Command {
    Command {
        tenant,
        scope,
        request,
        expected_sequence: None,
        actor: Actor::server(),
        settings: Settings::default(),
        trace: None,
        address: None,
        body,
    }
}

/// Counts what happened, to check that the runs cover enough.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    events: BTreeMap<String, usize>,
    rejections: usize,
    repetitions: usize,
}

impl Seen {
    fn decision(&mut self, decision: &Decision) {
        for event in decision.turns.iter().flat_map(|turn| &turn.events) {
            *self.events.entry(kind(event)).or_default() += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (name, count) in &other.events {
            *self.events.entry(name.clone()).or_default() += count;
        }
        self.rejections += other.rejections;
        self.repetitions += other.repetitions;
    }

    /// Every kind of event, and how often it happened.
    pub(crate) fn events(&self) -> impl Iterator<Item = (&str, usize)> {
        self.events.iter().map(|(name, count)| (name.as_str(), *count))
    }

    pub(crate) fn rejections(&self) -> usize {
        self.rejections
    }

    pub(crate) fn repetitions(&self) -> usize {
        self.repetitions
    }
}

/// A command and its answer are the same after another server has read them.
fn read_back(command: &Command, answer: &Answer) -> Result<(), String> {
    let read = Command::decode(&command.encode()).map_err(|error| error.to_string())?;
    if read != *command {
        return Err(format!("a command is another one when it is read back: {command:?}"));
    }
    let same = match answer {
        Ok(reply) => Reply::decode(&reply.encode()).as_ref() == Ok(reply),
        Err(rejection) => Rejection::decode(&rejection.encode()).as_ref() == Ok(rejection),
    };
    if same { Ok(()) } else { Err(format!("an answer is another one when it is read back: {answer:?}")) }
}
