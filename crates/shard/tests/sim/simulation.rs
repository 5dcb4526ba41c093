//! A run: servers, callers and faults of one seed.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use switchward_shard::{Cluster, GroupStart};
use switchward_testkit::Rng;
use tokio::runtime::{Builder, Runtime};

use crate::callers::Callers;
use crate::commands::{CALLS_MAX, Definitions};
use crate::disk::End;
use crate::members::{FOUNDER, Shape};
use crate::network::{GOOD, Network};
use crate::plan::{self, Step};
use crate::records::Records;
use crate::server::{GROUPS, Server, Setting};
use crate::timeline::{self, Timeline};
use crate::workload::{self, Caller};
use crate::{checks, faults, members};

/// Callers that work at one time.
const CALLERS: u64 = 6;
/// How long faults go on, milliseconds.
pub(crate) const LASTS: u64 = 14_000;
/// How long callers have something to do at most, milliseconds.
const WORKS: u64 = 60_000;
/// How much longer a fault lasts that has had no effect yet, milliseconds.
const FIRE_WAIT: u64 = 4_000;
/// How often the clocks move, milliseconds.
const CLOCK_STEP: u64 = 20;
/// How far they move at once while time passes faster, milliseconds: servers look at their clocks as often.
const LAPSE_STEP: u64 = 30_000;
/// Until all servers have compared their clocks after that, milliseconds.
const LAPSE_SETTLES: u64 = 2_500;
/// The longest wait for something that must come when no fault is left, milliseconds.
const PATIENCE: u64 = 40_000;
/// Longer than a reservation of a call holds, milliseconds.
const LAPSE: u64 = 11 * 60_000;
/// The part of the operations whose outcome must be known, percent.
const KNOWN_PERCENT: u64 = 80;

/// What a run has shown.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The hash of all that has happened.
    pub(crate) hash: u64,
    /// How often each fault was injected.
    pub(crate) faults: BTreeMap<String, u64>,
    /// How often each effect of a fault was seen.
    pub(crate) counts: BTreeMap<String, u64>,
    /// Operations of callers, and those whose outcome is known.
    pub(crate) begun: u64,
    pub(crate) known: u64,
    /// What must not have happened; a run without it is sound.
    pub(crate) wrong: Vec<String>,
    /// Why the run shows nothing, if it does not.
    pub(crate) empty: Option<String>,
}

impl Outcome {
    /// Why the run is not sound, or shows nothing.
    pub(crate) fn objection(&self) -> Option<String> {
        if !self.wrong.is_empty() {
            return Some(self.wrong.join("\n"));
        }
        self.empty.as_ref().map(|why| format!("the run shows nothing: {why}"))
    }
}

/// A run that is going on.
pub(crate) struct Simulation {
    pub(crate) timeline: Timeline,
    pub(crate) network: Network,
    pub(crate) servers: Vec<Server>,
    pub(crate) rng: Rng,
    pub(crate) callers: Callers,
    runtime: Runtime,
    /// When servers start again that have ended by themselves.
    again: BTreeMap<u64, u64>,
    /// The digests of groups at their positions.
    pub(crate) digests: BTreeMap<(u64, u64), [u8; 32]>,
    faults: BTreeMap<&'static str, u64>,
    wrong: Vec<String>,
    empty: Option<String>,
    pub(crate) setting: Setting,
    pub(crate) shape: Shape,
}

impl Simulation {
    /// Plays the run of a seed.
    pub(crate) fn run(seed: u64) -> Outcome {
        switchward_shard::simulation::begin();
        let mut simulation = Self::new(seed);
        simulation.play();
        let outcome = simulation.outcome();
        simulation.end();
        switchward_shard::simulation::end();
        outcome
    }

    /// Plays something with servers that have just been started. It is not the same each time: the process is not its own.
    pub(crate) fn with(seed: u64, shape: Shape, act: impl FnOnce(&mut Self)) {
        switchward_shard::simulation::begin();
        let mut simulation = Self::of(seed, Rng::new(seed), shape);
        simulation.servers.iter_mut().for_each(Server::start);
        act(&mut simulation);
        assert_eq!(simulation.wrong, Vec::<String>::new());
        simulation.end();
        switchward_shard::simulation::end();
    }

    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let shape = Shape::draw(&mut rng);
        Self::of(seed, rng, shape)
    }

    fn of(seed: u64, rng: Rng, shape: Shape) -> Self {
        let timeline = Timeline::new(seed);
        let network = Network::new(timeline.clone());
        let setting = Setting::new();
        let start = |node| {
            if node == FOUNDER { GroupStart::Initialize(vec![FOUNDER]) } else { GroupStart::Join }
        };
        let nodes = shape.founders().into_iter();
        let servers = nodes.map(|node| Server::new(node, &network, &setting, start(node))).collect();
        let callers = Callers {
            network: network.clone(),
            definitions: Arc::new(Definitions::new()),
            records: Arc::new(Mutex::new(Records::default())),
            members: Arc::new(Mutex::new(vec![FOUNDER])),
        };
        Self {
            timeline,
            network,
            servers,
            rng,
            callers,
            runtime: Builder::new_current_thread().enable_time().start_paused(true).build().unwrap(),
            again: BTreeMap::new(),
            digests: BTreeMap::new(),
            faults: BTreeMap::new(),
            wrong: Vec::new(),
            empty: None,
            setting,
            shape,
        }
    }

    fn play(&mut self) {
        self.servers.iter_mut().for_each(Server::start);
        if !members::found(self) {
            self.wrong.push("the cluster could not be founded".to_owned());
            return;
        }
        let prepared = self.task(|callers| workload::prepare(callers, WORKS));
        if !self.until("the servers serve", || prepared.load(Ordering::Relaxed)) || self.is_over() {
            return;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let working = self.begin_work(&stop);
        if !self.play_faults() {
            return;
        }
        self.heal();
        self.pass(1_000);
        stop.store(true, Ordering::Relaxed);
        let done = || working.iter().all(|done| done.load(Ordering::Relaxed));
        if !self.until("the callers are answered", done) {
            return;
        }
        self.finish();
    }

    /// Injects faults, and changes the members in between. Returns false if something is wrong.
    fn play_faults(&mut self) -> bool {
        let (mut kinds, changes) = (plan::kinds(&mut self.rng), self.shape.changes(&mut self.rng));
        if self.shape == Shape::Growing {
            // What a leader believes that was once alone shows when it stands still while others elect one.
            kinds.push("pause");
        }
        let lasts = LASTS / (changes.len() as u64 + 1);
        for change in std::iter::once(None).chain(changes.iter().map(Some)) {
            if let Some(change) = change {
                self.heal();
                if !members::change(self, change) {
                    self.wrong.push(format!("the members could not be changed: {change:?}"));
                    return false;
                }
            }
            let servers: Vec<u64> = self.servers.iter().map(|server| server.node).collect();
            for step in plan::draw(&mut self.rng, &mut kinds, lasts, &servers, GROUPS) {
                self.inject(step);
                if self.is_over() {
                    return false;
                }
            }
        }
        true
    }

    /// Starts the callers. Returns what becomes true when each of them is done.
    fn begin_work(&mut self, stop: &Arc<AtomicBool>) -> Vec<Arc<AtomicBool>> {
        let mut working = Vec::new();
        for number in 0..CALLERS {
            let caller = Caller::new(&self.callers, number, self.rng.bits());
            let stop = Arc::clone(stop);
            working.push(self.task(|_| workload::work(caller, stop)));
        }
        working
    }

    /// What must hold once nothing fails any longer.
    fn finish(&mut self) {
        self.lapse(LAPSE);
        if !self.wait("everything that is due is done", checks::pending) {
            return;
        }
        let last = self.task(|callers| async move {
            workload::exhaust(callers.clone(), CALLS_MAX + 1).await;
            workload::look_at_all(callers).await;
        });
        if !self.until("the last reads are answered", || last.load(Ordering::Relaxed)) {
            return;
        }
        if self.wait("all replicas have applied the same entries", checks::pending) {
            let wrong = checks::all(self);
            self.wrong.extend(wrong);
        }
    }

    /// Runs a task of callers. Returns what becomes true when it is done.
    pub(crate) fn task<F>(&self, task: impl FnOnce(Callers) -> F) -> Arc<AtomicBool>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let done = Arc::new(AtomicBool::new(false));
        let (work, end) = (task(self.callers.clone()), Arc::clone(&done));
        drop(self.runtime.spawn(async move {
            work.await;
            end.store(true, Ordering::Relaxed);
        }));
        done
    }

    fn inject(&mut self, step: Step) {
        self.pass(step.after);
        for node in std::mem::take(&mut self.again).into_keys() {
            if !self.server(node).runs() {
                self.server(node).start();
            }
        }
        self.timeline.note(format_args!("fault {:?} for {}", step.fault, step.lasts));
        *self.faults.entry(step.fault.name()).or_default() += 1;
        let before = faults::evidence(self, step.fault);
        faults::begin(self, step);
        self.pass(step.lasts);
        // Where callers are held up, it may take a while until a disk is written to.
        if faults::waits(step.fault) {
            let _ended_later = self.comes(FIRE_WAIT, |it| faults::evidence(it, step.fault) > before);
        }
        faults::end(self, step.fault);
        let fired = faults::evidence(self, step.fault) > before;
        if !fired && !self.is_over() {
            self.empty.get_or_insert_with(|| format!("{:?} did not fire", step.fault));
        }
    }

    /// Ends all faults.
    pub(crate) fn heal(&mut self) {
        self.timeline.note(format_args!("heal"));
        self.network.heal();
        self.network.set_quality(GOOD);
        self.again.clear();
        self.servers.iter_mut().for_each(|server| server.pause(0));
        for server in self.servers.iter_mut().filter(|server| !server.runs()) {
            server.start();
        }
    }

    /// Lets time pass, milliseconds.
    pub(crate) fn pass(&mut self, ms: u64) {
        for _ in 0..ms {
            self.tick();
            if self.is_over() {
                return;
            }
        }
    }

    /// Lets time pass on all machines, milliseconds, faster than their servers' timers know: they see it when they look at their
    /// clocks.
    pub(crate) fn lapse(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(LAPSE_STEP) {
            self.timeline.unsettle(LAPSE_SETTLES);
            self.timeline.move_clocks(LAPSE_STEP);
            for server in &self.servers {
                let _seen = server.clock_error();
            }
            self.pass(CLOCK_STEP);
        }
    }

    /// Waits until something holds, at most this long, milliseconds. Returns false if it does not come.
    pub(crate) fn comes(&mut self, within: u64, holds: impl Fn(&Self) -> bool) -> bool {
        let until = self.timeline.now() + within;
        while !holds(self) {
            if self.timeline.now() >= until || self.is_over() {
                return false;
            }
            self.pass(10);
        }
        true
    }

    /// Waits until something holds. Returns false, and records it, if it does not come.
    fn until(&mut self, what: &str, holds: impl Fn() -> bool) -> bool {
        self.wait(what, |_| (!holds()).then(String::new))
    }

    /// Waits until nothing is missing.
    fn wait(&mut self, what: &str, missing: impl Fn(&Self) -> Option<String>) -> bool {
        for _ in 0..PATIENCE {
            if missing(self).is_none() {
                return true;
            }
            self.pass(1);
            if self.is_over() {
                return false;
            }
        }
        let missing = missing(self).unwrap_or_default();
        self.wrong.push(format!("not so within {PATIENCE} ms: {what}; {missing}"));
        false
    }

    fn tick(&mut self) {
        self.timeline.step();
        let now = self.timeline.now();
        while let Some(event) = self.timeline.due() {
            event();
        }
        if now.is_multiple_of(CLOCK_STEP) {
            self.timeline.move_clocks(CLOCK_STEP);
            self.network.shake_hands();
            if self.timeline.is_unsettled() {
                self.servers.iter().for_each(Server::wake);
            }
        }
        for server in &mut self.servers {
            server.tick();
            if server.must_end() {
                server.end(End::Killed);
                self.again.insert(server.node, now + self.rng.between(100, 1_000));
            }
        }
        let due: Vec<u64> = self.again.iter().filter(|(_, at)| **at <= now).map(|(node, _)| *node).collect();
        for node in due {
            self.again.remove(&node);
            if !self.server(node).runs() {
                self.server(node).start();
            }
        }
        self.runtime.block_on(timeline::pass(1));
        if now.is_multiple_of(100) {
            self.wrong.extend(self.servers.iter().find_map(Server::complaint));
            self.wrong.append(&mut self.callers.records.lock().wrong);
        }
        if now.is_multiple_of(200) {
            let early = checks::early(self);
            self.wrong.extend(early);
        }
        if now.is_multiple_of(1_000) {
            let differ = checks::compare_digests(self);
            self.wrong.extend(differ);
        }
    }

    /// Removes a server that has ended for good.
    pub(crate) fn forget(&mut self, node: u64) {
        self.again.remove(&node);
        self.servers.retain(|server| server.node != node);
    }

    /// Records what must not have happened.
    pub(crate) fn object(&mut self, what: String) {
        self.wrong.push(what);
    }

    /// Returns true if something is wrong already.
    pub(crate) fn is_over(&self) -> bool {
        !self.wrong.is_empty()
    }

    pub(crate) fn server(&mut self, node: u64) -> &mut Server {
        self.servers.iter_mut().find(|server| server.node == node).unwrap()
    }

    /// The servers whose groups are open.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u64, Cluster)> {
        self.servers.iter().filter_map(|server| Some((server.node, server.cluster()?)))
    }

    /// The server that leads a group, as far as it knows.
    pub(crate) fn leader(&self, group: u64) -> Option<(u64, Cluster)> {
        self.open().find(|(_, cluster)| cluster.all().any(|shard| shard.number() == group && shard.leads()))
    }

    fn outcome(&mut self) -> Outcome {
        let records = self.callers.records.lock();
        let (begun, known) = (records.begun, records.known);
        let few = known * 100 < begun * KNOWN_PERCENT || begun < 50;
        let empty =
            self.empty.take().or_else(|| few.then(|| format!("{known} of {begun} outcomes are known")));
        Outcome {
            hash: self.timeline.hash(),
            faults: self.faults.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            counts: self.timeline.counts(),
            begun,
            known,
            wrong: std::mem::take(&mut self.wrong),
            empty,
        }
    }

    fn end(mut self) {
        self.servers.iter_mut().for_each(|server| server.end(End::Killed));
        drop(self.runtime);
        self.timeline.clear();
    }
}
