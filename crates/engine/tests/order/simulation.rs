//! The order of all that happens: messages, entries, elections, answers and faults, at virtual times.

use std::collections::BTreeMap;
use switchward_engine::answered;
use switchward_machine::Time;
use switchward_state::delivery::Attempt;
use switchward_state::{Body, Command, Scope, policy::PolicyCommand};
use switchward_testkit::Rng;

use crate::callers::{Caller, Known};
use crate::clocks::Clocks;
use crate::commands::{TENANT, request};
use crate::effects::EffectId;
use crate::message::{Answer, Attempted, Failure, Message, Origin, ShardIx};
use crate::oracle::{Oracle, encoded};
use crate::plan::{Plan, Rate};
use crate::shard::{Answered, Shard};

/// How a step of a run ends; the error says what is wrong.
pub(crate) type Checked = Result<(), String>;

/// The pause between two looks of a leader at what it has to do, milliseconds.
const TICK_MS: u64 = 40;
/// The longest delay of a late message, milliseconds: longer than a caller waits.
const LATE_MS: u64 = 2_500;

/// See the module.
pub(crate) struct Simulation {
    pub(crate) rng: Rng,
    /// Milliseconds since the start.
    pub(crate) now: u64,
    events: BTreeMap<Stamp, Event>,
    stamps: u64,
    /// Events that are under way beside ticks, faults and callers.
    busy: usize,
    pub(crate) plan: Plan,
    pub(crate) clocks: Clocks,
    pub(crate) servers: usize,
    pub(crate) shards: Vec<Shard>,
    /// The number of the message that each shard got last.
    arrived: Vec<u64>,
    pub(crate) callers: Vec<Caller>,
    /// Sessions that callers know.
    pub(crate) sessions: Vec<Known>,
    pub(crate) attempts: u64,
    /// The last report of a failed attempt of each effect.
    pub(crate) failures: BTreeMap<EffectId, (Attempt, Command)>,
    pub(crate) oracle: Oracle,
}

/// When an event happens; the number orders those of one millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    at: u64,
    number: u64,
}

/// Something that happens.
pub(crate) enum Event {
    /// A message reaches a shard.
    Arrives(Box<Message>),
    /// An answer reaches the sender.
    Answered(Box<Answered>),
    /// The entry of the leader of this term is committed.
    Committed { shard: ShardIx, term: u64 },
    /// A majority confirms that the leader of this term leads: it may answer without an entry.
    Confirmed { shard: ShardIx, term: u64, answers: Vec<Answered> },
    /// An election is over.
    Elected { shard: ShardIx, term: u64 },
    /// A delivery worker attempts to deliver an effect.
    Attempted(Attempted),
    /// The leader of a shard, and its followers, look at what they have to do.
    Tick { shard: ShardIx },
    /// The next fault of a server.
    Fault,
    /// A caller goes on.
    Step { caller: usize },
    /// A caller has waited long enough for the answer to this attempt.
    TimedOut { caller: usize, attempt: u64 },
}

impl Event {
    fn keeps_busy(&self) -> bool {
        !matches!(self, Self::Tick { .. } | Self::Fault | Self::Step { .. } | Self::TimedOut { .. })
    }
}

impl Simulation {
    /// A simulation of shards that exist, with nothing under way.
    pub(crate) fn new(mut rng: Rng, shards: Vec<Shard>, servers: usize) -> Self {
        let (plan, clocks) = (Plan::new(&mut rng), Clocks::new(&mut rng, servers));
        let arrived = vec![0; shards.len()];
        Self {
            rng,
            now: 0,
            events: BTreeMap::new(),
            stamps: 0,
            busy: 0,
            plan,
            clocks,
            servers,
            shards,
            arrived,
            callers: Vec::new(),
            sessions: Vec::new(),
            attempts: 0,
            failures: BTreeMap::new(),
            oracle: Oracle::default(),
        }
    }

    /// Counts something that happened.
    pub(crate) fn saw(&mut self, kind: &str) {
        self.oracle.seen.add(kind);
    }

    /// Returns true if a fault of this rate occurs now.
    pub(crate) fn draws(&mut self, rate: Rate) -> bool {
        rate.is_some_and(|times| self.rng.once_in(times))
    }

    /// Has an event happen after a time, milliseconds.
    pub(crate) fn after(&mut self, ms: u64, event: Event) {
        self.stamps += 1;
        self.busy += usize::from(event.keeps_busy());
        self.events.insert(Stamp { at: self.now + ms, number: self.stamps }, event);
    }

    /// Does what happens next.
    pub(crate) fn next(&mut self) -> Checked {
        let Some((stamp, event)) = self.events.pop_first() else { return Err("nothing happens".into()) };
        self.busy -= usize::from(event.keeps_busy());
        self.now = self.now.max(stamp.at);
        match event {
            Event::Arrives(message) => self.arrives(*message),
            Event::Answered(answered) => self.answered(*answered),
            Event::Committed { shard, term } => self.committed(shard, term),
            Event::Confirmed { shard, term, answers } => self.confirmed(shard, term, answers),
            Event::Elected { shard, term } => self.elected(shard, term),
            Event::Attempted(attempted) => self.attempted(attempted),
            Event::Tick { shard } => {
                self.after(TICK_MS, Event::Tick { shard });
                self.tick(shard)
            }
            Event::Fault => self.fault(),
            Event::Step { caller } => self.step(caller),
            Event::TimedOut { caller, attempt } => self.timed_out(caller, attempt),
        }
    }

    /// Returns true if nothing is on its way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.busy == 0
    }

    /// The time of a shard by its leader's clock and its last entry; `None` between two leaders.
    pub(crate) fn time(&self, shard: ShardIx) -> Option<Time> {
        let leader = self.shards[shard].leader.as_ref()?;
        Some(self.shards[shard].time(self.clocks.read(leader.server, self.now)))
    }

    /// The shard of a command.
    pub(crate) fn home(&self, command: &Command) -> ShardIx {
        let bucket = command.scope.bucket(TENANT).map_or(0, |bucket| usize::from(bucket.number()));
        bucket % self.shards.len()
    }

    /// Sends a command to the shard of its scope.
    pub(crate) fn send(&mut self, origin: Origin, command: Command) {
        let to = self.home(&command);
        self.send_to(to, origin, command);
    }

    /// Sends a command to a shard: it may be lost, late, and arrive twice if that does no harm in the product either.
    pub(crate) fn send_to(&mut self, to: ShardIx, origin: Origin, command: Command) {
        let repeatable = command.request.is_some()
            || !matches!(origin, Origin::Caller { .. })
            || matches!(command.body, Body::Policy(PolicyCommand::Reserve(_)));
        if self.draws(self.plan.lost) {
            return self.saw("message lost");
        }
        let message = Message { sent: self.stamps, to, origin, command };
        if repeatable && self.draws(self.plan.repeated) {
            self.saw("message repeated");
            let delay = self.delay();
            self.after(delay, Event::Arrives(Box::new(message.clone())));
        }
        let delay = self.delay();
        self.after(delay, Event::Arrives(Box::new(message)));
    }

    /// Has a command reach the shard of its scope after a time, milliseconds.
    pub(crate) fn arrives_after(&mut self, ms: u64, origin: Origin, command: Command) {
        let to = self.home(&command);
        let message = Message { sent: self.stamps, to, origin, command };
        self.after(ms, Event::Arrives(Box::new(message)));
    }

    /// How long a message takes, milliseconds.
    pub(crate) fn delay(&mut self) -> u64 {
        if self.draws(self.plan.late) {
            self.saw("message late");
            return self.rng.between(100, LATE_MS);
        }
        self.rng.between(1, 12)
    }

    /// Sends an answer back.
    pub(crate) fn answer(&mut self, answered: Answered) {
        if self.draws(self.plan.answer_lost) {
            return self.saw("answer lost");
        }
        let delay = self.delay();
        self.after(delay, Event::Answered(Box::new(answered)));
    }

    fn arrives(&mut self, message: Message) -> Checked {
        let at = message.to;
        if message.sent < self.arrived[at] {
            self.saw("message reordered");
        }
        self.arrived[at] = self.arrived[at].max(message.sent);
        match &mut self.shards[at].leader {
            Some(leader) => leader.queue.push_back(message),
            None => self.answer(Answered { message, answer: Err(Failure::NoLeader) }),
        }
        self.decide(at)
    }

    /// The leader of a shard decides what waits, if it can.
    fn decide(&mut self, at: ShardIx) -> Checked {
        loop {
            let Some(leader) = &self.shards[at].leader else { return Ok(()) };
            let now = self.clocks.read(leader.server, self.now);
            let most = self.rng.below(8);
            let term = self.shards[at].term;
            let answers = self.shards[at].decide(now, most)?;
            if answers.is_empty() {
                break;
            }
            let delay = self.rng.between(1, 12);
            self.after(delay, Event::Confirmed { shard: at, term, answers });
        }
        let shard = &self.shards[at];
        if shard.leader.as_ref().is_some_and(|leader| leader.proposal.is_some() && !leader.is_writing) {
            let term = shard.term;
            let delay = if self.rng.once_in(8) { self.rng.between(50, 400) } else { self.rng.between(1, 12) };
            self.shards[at].leader.iter_mut().for_each(|leader| leader.is_writing = true);
            self.after(delay, Event::Committed { shard: at, term });
        }
        Ok(())
    }

    fn committed(&mut self, at: ShardIx, term: u64) -> Checked {
        if self.shards[at].term != term {
            return Ok(());
        }
        self.shards[at].leader.iter_mut().for_each(|leader| leader.is_writing = false);
        for answered in self.shards[at].commit(&mut self.oracle)? {
            self.answer(answered);
        }
        self.decide(at)
    }

    fn confirmed(&mut self, at: ShardIx, term: u64, answers: Vec<Answered>) -> Checked {
        let leads = self.shards[at].term == term;
        for Answered { message, answer } in answers {
            let answer = if leads { answer } else { Err(Failure::NoLeader) };
            self.answer(Answered { message, answer });
        }
        Ok(())
    }

    /// A server leads a shard from now on: it must know every reply that a caller has got.
    pub(crate) fn elected(&mut self, at: ShardIx, term: u64) -> Checked {
        if self.shards[at].term != term || self.shards[at].leader.is_some() {
            return Ok(());
        }
        let drawn = self.rng.below(self.servers);
        let server = self.shards[at].next_leader.take().unwrap_or(drawn);
        self.shards[at].elect(server, &mut self.oracle)?;
        self.all_answered(at)?;
        self.decide(at)
    }

    /// Each request of the sessions of this shard that was answered is known to its leader, with the same reply.
    pub(crate) fn all_answered(&self, at: ShardIx) -> Checked {
        let Some(rows) = self.shards[at].read() else { return Ok(()) };
        for (session, id, reply) in self.oracle.answered() {
            let scope = Scope::Session(session);
            if usize::from(session.bucket().number()) % self.shards.len() != at {
                continue;
            }
            let known = answered(rows, TENANT, &scope, &request(id)).map_err(|error| error.to_string())?;
            if known.as_ref().map(|known| encoded(&known.reply)).as_deref() != Some(reply) {
                return Err(format!(
                    "the request {id} of {session} was answered, and its leader has {known:?}"
                ));
            }
        }
        Ok(())
    }

    /// An answer reaches the sender of the command.
    fn answered(&mut self, Answered { message, answer }: Answered) -> Checked {
        if let (Ok(reply), Some(id), Origin::Caller { .. }) =
            (&answer, &message.command.request, &message.origin)
        {
            self.oracle.replied(&message.command.scope, &id.id, reply)?;
        }
        self.returns(message.origin, &message.command, answer)
    }

    fn returns(&mut self, origin: Origin, command: &Command, answer: Answer) -> Checked {
        match origin {
            Origin::Caller { caller, attempt } => self.returned(caller, attempt, answer),
            Origin::OtherBody => self.other_body(command, &answer),
            Origin::Relay(task) => {
                self.relayed(task, command, &answer);
                Ok(())
            }
            Origin::Relayed(task) => {
                if let Some(leader) = self.leader_of(&task) {
                    leader.relayed.remove(&task.key);
                }
                Ok(())
            }
            Origin::Timer(task) => {
                if let Some(leader) = self.leader_of(&task) {
                    leader.firing.remove(&task.key);
                }
                Ok(())
            }
            Origin::Outcome(task) => {
                if let (Ok(_), Some(leader)) = (&answer, self.leader_of(&task)) {
                    leader.published.remove(&task.key);
                }
                Ok(())
            }
            Origin::Nobody => Ok(()),
        }
    }
}
