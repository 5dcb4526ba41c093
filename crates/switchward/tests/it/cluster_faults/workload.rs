//! What callers do: registers that are set, exchanged and read, calls that are counted, sessions that wait, and messages.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_testkit::Operation;

use super::calls::{Answer, Caller, Repeat, is_for};
use super::definitions::{NAPS_MS, VALUES, counter_name, nap_name};
use super::endings::Ending;
use super::records::{Call, Did, Moments, Nap, Records, Register};

/// Callers at one time.
pub(crate) const CALLERS: u64 = 6;
/// The shortest and the longest pause between two operations of a caller, milliseconds.
const BETWEEN_MS: [u64; 2] = [10, 60];
/// Registers that are used at one time.
const SLOTS: usize = 4;
/// Registers of a round. Each is used until its history is as long as can be checked.
pub(crate) const REGISTERS: usize = 40;
/// Sessions whose calls are counted.
pub(crate) const COUNTERS: usize = 4;
/// How far a server's own clock may be ahead of the others before it goes by theirs.
const CLOCK_AHEAD_MAX: Duration = Duration::from_millis(2_500);

/// What the callers of a round share.
pub(crate) struct Shared {
    pub(crate) seed: u64,
    pub(crate) records: Mutex<Records>,
    pub(crate) moments: Moments,
    pub(crate) stop: AtomicBool,
}

impl Shared {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, records: Mutex::default(), moments: Moments::default(), stop: AtomicBool::new(false) }
    }

    /// The key of a register.
    pub(crate) fn register(&self, number: usize) -> String {
        format!("register-{}-{number}", self.seed)
    }

    /// The key of a session whose calls are counted.
    pub(crate) fn counter(&self, number: usize) -> String {
        format!("counter-{}-{number}", self.seed)
    }

    /// Records what must not have happened.
    fn wrong(&self, what: String) {
        self.records.lock().wrong.push(what);
    }

    /// Records what was done with a register.
    pub(crate) fn record(&self, key: String, invoked: u64, returned: Option<u64>, what: Did) {
        let operation = Operation { invoked, returned, what };
        self.records.lock().registers.entry(key).or_default().push(operation);
    }

    /// One of the first registers whose histories are not full, counted; `None` if all are full.
    fn reserve(&self, slot: usize) -> Option<String> {
        let mut records = self.records.lock();
        let mut numbers = (slot..REGISTERS).step_by(SLOTS);
        numbers.find_map(|number| {
            let key = self.register(number);
            records.reserve(&key).then_some(key)
        })
    }
}

/// The register that a session is.
pub(crate) fn register_of(session: Option<v1::Session>) -> Option<Register> {
    let session = session?;
    let value = session.at.first()?.strip_prefix('s')?.parse().ok()?;
    Some((session.sequence, value))
}

/// One caller.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    caller: Caller,
    number: u64,
    requests: u64,
    /// The register that it saw last, and its sequence.
    seen: Option<(String, u64)>,
}

impl Worker {
    pub(crate) fn new(shared: &Arc<Shared>, caller: Caller, number: u64) -> Self {
        Self { shared: Arc::clone(shared), caller, number, requests: 0, seen: None }
    }

    /// Works until `stop` is set.
    pub(crate) async fn work(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.caller.pause(BETWEEN_MS).await;
            let (kind, ending) = match self.caller.rng.below(20) {
                0 => ("calls", Some(self.call().await)),
                1 => ("timers", Some(self.nap().await)),
                2 => ("effects", Some(self.notify().await)),
                3 => ("reads of timers", self.look_at_nap().await),
                4..=10 => ("reads", self.read().await),
                11..=15 => ("writes", self.write().await),
                _ => ("exchanges", self.exchange().await),
            };
            let Some(ending) = ending else { continue };
            let mut records = self.shared.records.lock();
            *records.operations.entry(kind).or_default() += 1;
            records.endings.add(ending);
        }
    }

    /// A name that this round has only once.
    fn name(&mut self, kind: &str) -> String {
        self.requests += 1;
        format!("{kind}-{}-{}-{}", self.shared.seed, self.number, self.requests)
    }

    /// Reads a register; `None` if there was nothing to read.
    async fn read(&mut self) -> Option<Ending> {
        let key = self.shared.reserve(self.caller.rng.below(SLOTS))?;
        let invoked = self.shared.moments.now();
        let answered = self.caller.insist(Repeat::All, |line| line.get(key.clone())).await;
        let ending = answered.ending();
        match answered {
            Answer::Done(found) => {
                let returned = Some(self.shared.moments.now());
                let Some(found) = register_of(found.session) else {
                    self.shared.wrong(format!("{key} was read and is no register"));
                    return Some(Ending::Failed);
                };
                self.seen = Some((key.clone(), found.0));
                self.shared.record(key, invoked, returned, Did::Read(found));
            }
            Answer::Nothing | Answer::Unknown => {}
            Answer::Refused(status) => self.shared.wrong(format!("a read of {key} was refused: {status}")),
        }
        Some(ending)
    }

    /// Sets a register; `None` if all are full.
    async fn write(&mut self) -> Option<Ending> {
        let key = self.shared.reserve(self.caller.rng.below(SLOTS))?;
        let to = self.value();
        Some(self.set(key, None, to).await)
    }

    /// Sets the register that it saw last, if nobody has set it since; `None` if it saw none, or that one is full.
    async fn exchange(&mut self) -> Option<Ending> {
        let (key, at) = self.seen.take()?;
        if !self.shared.records.lock().reserve(&key) {
            return None;
        }
        let to = self.value();
        Some(self.set(key, Some(at), to).await)
    }

    fn value(&mut self) -> u8 {
        u8::try_from(self.caller.rng.below(usize::from(VALUES))).expect("it is small")
    }

    async fn set(&mut self, key: String, at: Option<u64>, to: u8) -> Ending {
        let request_id = if self.caller.rng.once_in(4) { String::new() } else { self.name("set") };
        let repeat = if request_id.is_empty() { Repeat::Nothing } else { Repeat::All };
        let wanted = v1::AnswerCheckpointRequest {
            name: key.clone(),
            answer: format!("to{to}"),
            expected_sequence: at,
            request_id,
            ..Default::default()
        };
        let did = |after| match at {
            Some(at) => Did::Exchanged { at, to, after },
            None => Did::Wrote { to, after },
        };
        let invoked = self.shared.moments.now();
        let answered = self.caller.insist(repeat, |line| {
            let request = line.request(wanted.clone());
            async move { line.sessions().answer_checkpoint(request).await }
        });
        let answered = answered.await;
        let returned = Some(self.shared.moments.now());
        match (answered, at) {
            (Answer::Done(done), _) => match register_of(done.session.map(|session| *session)) {
                Some((sequence, held)) if held == to => {
                    self.seen = Some((key.clone(), sequence));
                    self.shared.record(key, invoked, returned, did(Some(sequence)));
                    Ending::Succeeded
                }
                other => {
                    self.shared.wrong(format!("{key} was set to {to}, and the answer is {other:?}"));
                    Ending::Failed
                }
            },
            (Answer::Refused(status), Some(at)) if is_for(&status, "SEQUENCE_CONFLICT") => {
                self.shared.record(key, invoked, returned, Did::NotAt(at));
                Ending::Succeeded
            }
            (Answer::Refused(status), _) => {
                self.shared.wrong(format!("{key} was not set: {status}"));
                Ending::Failed
            }
            (Answer::Unknown, _) => {
                self.shared.record(key, invoked, None, did(None));
                Ending::Unknown
            }
            (Answer::Nothing, _) => Ending::Failed,
        }
    }

    /// Asks whether a call may be made.
    async fn call(&mut self) -> Ending {
        let (session, name) = (self.shared.counter(self.caller.rng.below(COUNTERS)), self.name("call"));
        match authorize(&mut self.caller, &session, &name).await {
            Ok(allowed) => {
                self.shared.records.lock().calls.push(Call { session, name, allowed });
                // What became of it is asked at the end of the round.
                if allowed.is_some() { Ending::Succeeded } else { Ending::Unknown }
            }
            Err(why) => {
                self.shared.wrong(why);
                Ending::Failed
            }
        }
    }

    /// Starts a session that waits.
    async fn nap(&mut self) -> Ending {
        let ms = *self.caller.rng.pick(&NAPS_MS);
        let (key, asked) = (self.name("nap"), Instant::now());
        let ending = self.start(&nap_name(ms), &key).await;
        if ending == Ending::Succeeded {
            self.shared.records.lock().naps.insert(key, Nap { ms, asked });
        }
        ending
    }

    /// Starts a session that sends messages.
    async fn notify(&mut self) -> Ending {
        let key = self.name("notify");
        let ending = self.start("notify", &key).await;
        if ending == Ending::Succeeded {
            self.shared.records.lock().notified.push(key);
        }
        ending
    }

    async fn start(&mut self, definition: &str, key: &str) -> Ending {
        let started =
            self.caller.insist(Repeat::All, |line| line.start(definition.to_owned(), key.to_owned()));
        let started = started.await;
        if let Answer::Refused(status) = &started {
            self.shared.wrong(format!("{key} was not started: {status}"));
        }
        started.ending()
    }

    /// Looks whether a session waits long enough, by the clock of this process; `None` if none waits.
    async fn look_at_nap(&mut self) -> Option<Ending> {
        let recent: Vec<(String, Nap)> = {
            let records = self.shared.records.lock();
            let open = records.naps.iter().filter(|(_, nap)| nap.asked.elapsed() < nap.waits());
            open.map(|(key, nap)| (key.clone(), *nap)).collect()
        };
        if recent.is_empty() {
            return None;
        }
        let (key, nap) = self.caller.rng.pick(&recent).clone();
        let answered = self.caller.insist(Repeat::All, |line| line.get(key.clone())).await;
        let passed = nap.asked.elapsed();
        let ending = answered.ending();
        match answered {
            Answer::Done(found) => {
                let ended = found.session.is_some_and(|session| session.end_time.is_some());
                if ended && passed + CLOCK_AHEAD_MAX < nap.waits() {
                    self.shared.wrong(format!("{key} waits {} ms and has ended after {passed:?}", nap.ms));
                }
            }
            Answer::Nothing | Answer::Unknown => {}
            Answer::Refused(status) => self.shared.wrong(format!("a read of {key} was refused: {status}")),
        }
        Some(ending)
    }
}

impl Nap {
    /// How long it waits.
    pub(crate) fn waits(&self) -> Duration {
        Duration::from_millis(self.ms)
    }
}

/// Asks whether a call may be made; `None` if there is no answer yet.
///
/// # Errors
/// The answer is of another kind.
pub(crate) async fn authorize(
    caller: &mut Caller,
    session: &str,
    name: &str,
) -> Result<Option<bool>, String> {
    let answered = caller.insist(Repeat::All, |line| line.authorize(session.to_owned(), name.to_owned()));
    match answered.await {
        Answer::Done(said) => match said.decision() {
            v1::ToolDecision::Allow => Ok(Some(true)),
            v1::ToolDecision::Deny if said.reason == "RATE_LIMITED" => Ok(Some(false)),
            other @ (v1::ToolDecision::Unspecified
            | v1::ToolDecision::Deny
            | v1::ToolDecision::Ask
            | v1::ToolDecision::Bypass) => {
                Err(format!("{name} of {session} was answered with {other:?} {}", said.reason))
            }
        },
        Answer::Nothing | Answer::Unknown => Ok(None),
        Answer::Refused(status) => Err(format!("{name} of {session} was refused: {status}")),
    }
}

/// Starts the sessions of a round, and notes what its registers hold.
pub(crate) async fn prepare(shared: &Shared, caller: &mut Caller) -> anyhow::Result<()> {
    for number in 0..COUNTERS {
        let (definition, key) = (counter_name(shared.seed), shared.counter(number));
        caller.need(|line| line.start(definition.clone(), key.clone())).await?;
    }
    for number in 0..REGISTERS {
        let key = shared.register(number);
        let started = caller.need(|line| line.start("register".to_owned(), key.clone())).await?;
        let made = register_of(started.session);
        let made = made.ok_or_else(|| anyhow::anyhow!("{key} is no register"))?;
        shared.records.lock().made.insert(key, made);
    }
    Ok(())
}
