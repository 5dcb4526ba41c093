//! What callers do: registers that are set, exchanged and read, calls that are counted and cost money, sessions that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use switchward_machine::Micros;
use switchward_state::policy::CallEffect;
use switchward_state::{Reason, Reply};
use switchward_testkit::{Operation, Rng};

use crate::callers::{Callers, Unanswered};
use crate::commands::{ESTIMATE, VALUES, authorize, exchange, exchange_at, report, start, write};
use crate::records::{Call, Did, Nap};

/// Registers that are used at one time.
const REGISTERS: u64 = 4;
/// How long the same registers are used, milliseconds: histories stay short.
const AGE: u64 = 2_000;
/// Sessions whose calls are counted.
const COUNTERS: usize = 4;

/// The key of a register.
fn register(age: u64, number: u64) -> String {
    format!("register {age} {number}")
}

fn counter(number: usize) -> String {
    format!("counter {number}")
}

/// Makes all that callers need for this long, milliseconds.
pub(crate) async fn prepare(callers: Callers, lasts: u64) {
    let counters = (0..COUNTERS).map(|number| start(&callers.definitions.counter, &counter(number)));
    for command in callers.definitions.install().into_iter().chain(counters) {
        if let Err(why) = callers.insist(command).await {
            return callers.wrong(format!("nothing could be prepared: {why:?}"));
        }
    }
    for key in (0..=lasts / AGE).flat_map(|age| (0..REGISTERS).map(move |number| register(age, number))) {
        let made = callers.insist(start(&callers.definitions.register, &key)).await;
        let Ok(Reply::Session { sequence, .. }) = made else {
            return callers.wrong(format!("{key} was not made: {made:?}"));
        };
        callers.records.lock().made.insert(key, (sequence, 0));
    }
}

/// Works until `stop` is set.
pub(crate) async fn work(caller: Caller, stop: Arc<AtomicBool>) {
    let mut caller = caller;
    while !stop.load(Ordering::Relaxed) {
        caller.callers.pause(10, 90).await;
        let known = match caller.rng.below(20) {
            0 => Some(caller.call("bash", None).await),
            1 | 2 => Some(caller.call("pay", Some(ESTIMATE)).await),
            3 => Some(caller.nap().await),
            4..=9 => caller.look().await,
            _ => caller.set().await,
        };
        let Some(known) = known else { continue };
        let mut records = caller.callers.records.lock();
        records.begun += 1;
        records.known += u64::from(known);
    }
}

/// One caller.
pub(crate) struct Caller {
    callers: Callers,
    rng: Rng,
    number: u64,
    requests: u64,
    begun: u64,
    /// The register that it saw last, and what it held.
    seen: Option<(String, (u64, u8))>,
}

impl Caller {
    pub(crate) fn new(callers: &Callers, number: u64, seed: u64) -> Self {
        let begun = callers.network.timeline.now();
        Self { callers: callers.clone(), rng: Rng::new(seed), number, requests: 0, begun, seen: None }
    }

    fn request(&mut self) -> String {
        self.requests += 1;
        format!("request {} {}", self.number, self.requests)
    }

    /// A register that is used now; `None` if there are none any longer.
    fn register(&mut self) -> Option<String> {
        let age = (self.callers.network.timeline.now() - self.begun) / AGE;
        let key = register(age, self.rng.between(0, REGISTERS - 1));
        self.callers.records.lock().made.contains_key(&key).then_some(key)
    }

    fn record(&self, key: String, invoked: u64, did: Did, known: bool) {
        let timeline = &self.callers.network.timeline;
        let returned = known.then(|| timeline.stamp());
        timeline.note(format_args!("caller {} {key} {did:?}", self.number));
        let operation = Operation { invoked, returned, what: did };
        self.callers.records.lock().registers.entry(key).or_default().push(operation);
    }

    /// Reads a register; `None` if there is none to read.
    async fn look(&mut self) -> Option<bool> {
        let key = self.register()?;
        let invoked = self.callers.network.timeline.stamp();
        let Some(found) = self.callers.read(&key).await else { return Some(false) };
        self.seen = Some((key.clone(), found));
        self.record(key, invoked, Did::Read(found), true);
        Some(true)
    }

    /// Sets a register; `None` if there is none to set.
    async fn set(&mut self) -> Option<bool> {
        let request = (!self.rng.once_in(3)).then(|| self.request());
        let request = request.as_deref();
        let to = u8::try_from(self.rng.below(usize::from(VALUES))).unwrap();
        let seen = self.seen.take().filter(|_| self.rng.once_in(2));
        let (key, command, did) = match seen {
            Some((key, (at, _))) if self.rng.once_in(2) => {
                let command = exchange_at(&key, request, at, to);
                (key, command, Did::ExchangedAt { at, to, after: None })
            }
            Some((key, (_, from))) => {
                let command = exchange(&key, request, from, to);
                (key, command, Did::Exchanged { from, to, after: None })
            }
            None => {
                let key = self.register()?;
                let command = write(&key, request, to);
                (key, command, Did::Wrote { to, after: None })
            }
        };
        let invoked = self.callers.network.timeline.stamp();
        let answered = self.callers.insist(command).await;
        match (answered, did) {
            (Ok(Reply::Session { sequence, .. }), did) => {
                self.seen = Some((key.clone(), (sequence, to)));
                if let Some(request) = request {
                    let answered = (key.clone(), request.to_owned(), sequence);
                    self.callers.records.lock().answered.push(answered);
                }
                self.record(key, invoked, after(did, sequence), true);
            }
            (Err(Unanswered::Refused(no)), Did::Exchanged { from, .. })
                if no.reason == Reason::SequenceConflict =>
            {
                self.record(key, invoked, Did::NotFrom(from), true);
            }
            (Err(Unanswered::Refused(no)), Did::ExchangedAt { at, .. })
                if no.reason == Reason::SequenceConflict =>
            {
                self.record(key, invoked, Did::NotAt(at), true);
            }
            (Err(Unanswered::Nothing), _) => return Some(false),
            (Err(Unanswered::Unknown), did) => {
                self.record(key, invoked, did, false);
                return Some(false);
            }
            (other, did) => self.callers.wrong(format!("{key}: {did:?} was answered with {other:?}")),
        }
        Some(true)
    }

    /// Asks whether a call may be made, and reports what it has cost.
    async fn call(&mut self, capability: &'static str, estimate: Option<Micros>) -> bool {
        let (key, name) = (counter(self.rng.below(COUNTERS)), self.request());
        let answered = self.callers.insist(authorize(&key, &name, capability, estimate)).await;
        let allowed = match &answered {
            Ok(Reply::Authorized(said)) => Some(said.effect == CallEffect::Allow),
            Err(Unanswered::Nothing | Unanswered::Unknown) => None,
            Ok(_) | Err(Unanswered::Refused(_)) => {
                self.callers.wrong(format!("{name} of {key} was answered with {answered:?}"));
                None
            }
        };
        let mut call = Call { key, name, capability, allowed, reported: None };
        if allowed == Some(true) && capability == "pay" {
            let answered = self.callers.insist(report(&call.key, &call.name)).await;
            call.reported = Some(answered.is_ok());
            if let Err(Unanswered::Refused(no)) = answered {
                self.callers.wrong(format!("the report of {} was refused: {}", call.name, no.message));
            }
        }
        self.callers.network.timeline.note(format_args!("caller {} {call:?}", self.number));
        self.callers.records.lock().calls.push(call);
        allowed.is_some()
    }

    /// Begins a session that waits.
    async fn nap(&mut self) -> bool {
        let key = self.request().replace("request", "nap");
        let naps = &self.callers.definitions.naps;
        let (ms, definition) = &naps[self.rng.below(naps.len())];
        let (ms, command) = (*ms, start(definition, &key));
        let timeline = &self.callers.network.timeline;
        let begun = (!timeline.is_unsettled()).then(|| timeline.true_time());
        match self.callers.insist(command).await {
            Ok(_) => {
                self.callers.records.lock().naps.insert(key, Nap { ms, begun, is_over: false });
                true
            }
            Err(Unanswered::Nothing | Unanswered::Unknown) => false,
            Err(Unanswered::Refused(no)) => {
                self.callers.wrong(format!("{key} was refused: {}", no.message));
                false
            }
        }
    }
}

fn after(did: Did, sequence: u64) -> Did {
    let after = Some(sequence);
    match did {
        Did::Wrote { to, .. } => Did::Wrote { to, after },
        Did::Exchanged { from, to, .. } => Did::Exchanged { from, to, after },
        Did::ExchangedAt { at, to, .. } => Did::ExchangedAt { at, to, after },
        Did::NotFrom(_) | Did::NotAt(_) | Did::Read(_) => did,
    }
}

/// Looks at every register once, after all else.
pub(crate) async fn look_at_all(callers: Callers) {
    let keys: Vec<String> = callers.records.lock().registers.keys().cloned().collect();
    for key in keys {
        let invoked = callers.network.timeline.stamp();
        let Some(found) = callers.read(&key).await else {
            callers.wrong(format!("{key} cannot be read"));
            return;
        };
        let returned = Some(callers.network.timeline.stamp());
        let operation = Operation { invoked, returned, what: Did::Read(found) };
        callers.records.lock().registers.entry(key).or_default().push(operation);
    }
}

/// Makes calls until the limit of calls is reached; not more than `most`.
pub(crate) async fn exhaust(callers: Callers, most: usize) {
    for number in 0..most {
        let (key, name) = (counter(number % COUNTERS), format!("last {number}"));
        let answered = callers.insist(authorize(&key, &name, "bash", None)).await;
        let Ok(Reply::Authorized(said)) = &answered else {
            callers.wrong(format!("{name} of {key} was answered with {answered:?}"));
            return;
        };
        let allowed = said.effect == CallEffect::Allow;
        let call = Call { key, name, capability: "bash", allowed: Some(allowed), reported: None };
        callers.records.lock().calls.push(call);
        if !allowed {
            return;
        }
    }
}
