//! A round: callers work while faults are injected, then nothing fails any longer, and everything is compared.

use anyhow::Context as _;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_testkit::Counts;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::calls::Caller;
use super::definitions::{NAPS_MS, counter, nap, notify, register};
use super::endings::Endings;
use super::faults::{self, Fired};
use super::harness::Cluster;
use super::plan::{Plan, SERVERS};
use super::workload::{CALLERS, Shared, Worker, prepare, register_of};
use super::{checks, replicas};
use crate::receiver::Receiver;

/// All servers serve again this long after the last fault.
const RECOVERED_MAX: Duration = Duration::from_secs(10);
/// A server that takes longer ends the run.
const RECOVERED_AT_ALL: Duration = Duration::from_secs(120);
/// How long callers go on when nothing fails any longer.
const QUIET: Duration = Duration::from_secs(4);
/// The pause of a caller who waits for a server.
const AGAIN: Duration = Duration::from_millis(50);

/// The cluster with the definitions that all rounds use.
pub(crate) struct Site {
    pub(crate) cluster: Arc<Cluster>,
    /// By how much each change of a register raises the sequence of its session.
    pub(crate) step: u64,
}

impl Site {
    /// Deploys the definitions, and measures `step`.
    pub(crate) async fn prepare(cluster: Arc<Cluster>, receiver: Arc<Receiver>) -> anyhow::Result<Self> {
        let mut person = Caller::person(&cluster, 0)?;
        let naps = NAPS_MS.map(nap);
        for definition in [register(), notify(&receiver.url())].iter().chain(&naps) {
            deploy(&mut person, definition).await?;
        }
        let mut agent = Caller::agent(&cluster, 0)?;
        let key = "measured".to_owned();
        let started = agent.need(|line| line.start("register".to_owned(), key.clone())).await?;
        let mut sequences = vec![register_of(started.session).context("no register")?.0];
        for request in ["first", "second"] {
            let wanted = v1::AnswerCheckpointRequest {
                name: key.clone(),
                answer: "to1".to_owned(),
                request_id: request.to_owned(),
                ..Default::default()
            };
            let done = agent.need(|line| {
                let request = line.request(wanted.clone());
                async move { line.sessions().answer_checkpoint(request).await }
            });
            let session = done.await?.session.map(|session| *session);
            sequences.push(register_of(session).context("no register")?.0);
        }
        let step = sequences[1] - sequences[0];
        anyhow::ensure!(step > 0 && sequences[2] == sequences[1] + step, "{sequences:?} have no one step");
        Ok(Self { cluster, step })
    }
}

async fn deploy(person: &mut Caller, definition: &Value) -> anyhow::Result<()> {
    let file = v1::DefinitionFile { path: "definition.json".into(), content: definition.to_string().into() };
    let wanted = v1::DeployDefinitionRequest { files: vec![file], ..Default::default() };
    let deployed = person.need(|line| {
        let request = line.request(wanted.clone());
        async move { line.definitions().deploy_definition(request).await }
    });
    deployed.await.map(drop).with_context(|| format!("this was not deployed: {definition}"))
}

/// What a round has shown.
pub(crate) struct Outcome {
    /// The faults that were planned.
    pub(crate) planned: usize,
    /// The faults that were injected.
    pub(crate) faults: Vec<Fired>,
    /// Faults, operations and comparisons by their kinds.
    pub(crate) seen: Counts,
    /// How the operations of callers have ended.
    pub(crate) endings: Endings,
    /// Sessions whose messages must arrive.
    pub(crate) notified: Vec<String>,
    /// When the last server served again, after the last fault.
    recovered: Duration,
    /// What must not have happened.
    pub(crate) wrong: Vec<String>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.faults.iter().map(|fault| fault.name).collect();
        let Self { endings, recovered, .. } = self;
        write!(f, "{endings}, all serve {recovered:.1?} after the last fault; ")?;
        write!(f, "{} faults: {}", names.len(), names.join(", "))
    }
}

/// Plays the round of a seed.
///
/// # Errors
/// A fault could not be injected, or the cluster does not serve afterwards.
pub(crate) async fn play(site: &Site, seed: u64) -> anyhow::Result<Outcome> {
    let (cluster, plan) = (&site.cluster, Plan::draw(seed, site.cluster.power()));
    deploy(&mut Caller::person(cluster, seed)?, &counter(seed)).await?;
    let (shared, mut agent) = (Arc::new(Shared::new(seed)), Caller::agent(cluster, seed)?);
    prepare(&shared, &mut agent).await?;

    let (mut workers, mut watching) = (JoinSet::new(), JoinSet::new());
    for number in 0..CALLERS {
        let caller = Caller::agent(cluster, seed.wrapping_mul(1_000) + number)?;
        workers.spawn(Worker::new(&shared, caller, number).work());
    }
    let watched = Arc::clone(cluster);
    watching.spawn(async move { watched.watch().await });
    workers.spawn(replicas::watch(Arc::clone(&shared), Caller::person(cluster, seed)?));
    let (of_servers, of_links) =
        tokio::try_join!(faults::play(cluster, &plan.servers), faults::play(cluster, &plan.links))?;
    let ended = Instant::now();
    for server in SERVERS {
        serves(&agent, server, seed, ended).await?;
    }
    let recovered = ended.elapsed();
    sleep(QUIET).await;
    shared.stop.store(true, Ordering::Relaxed);
    while let Some(worker) = workers.join_next().await {
        worker?;
    }

    let mut wrong = checks::at_the_end(site, &shared, &mut agent).await?;
    if recovered > RECOVERED_MAX {
        wrong.push(format!("all servers serve again {recovered:?} after the last fault"));
    }
    let mut records = shared.records.lock();
    let faults: Vec<Fired> = of_servers.into_iter().chain(of_links).collect();
    let mut seen = std::mem::take(&mut records.seen);
    faults.iter().for_each(|fault| seen.add(&format!("fault: {}", fault.name)));
    plan.left_out.iter().for_each(|name| seen.add(&format!("left out: {name}")));
    records.operations.iter().for_each(|(kind, count)| seen.add_many(&format!("operations: {kind}"), *count));
    let endings = records.endings;
    seen.add_many("operations that succeeded", endings.succeeded);
    seen.add_many("operations that failed", endings.failed);
    seen.add_many("operations whose outcome is unknown", endings.unknown);
    Ok(Outcome {
        planned: plan.count(),
        faults,
        seen,
        endings,
        notified: std::mem::take(&mut records.notified),
        recovered,
        wrong,
    })
}

/// Waits until a server writes and reads.
async fn serves(agent: &Caller, server: u64, seed: u64, ended: Instant) -> anyhow::Result<()> {
    let key = format!("probe-{seed}-{server}");
    loop {
        let written = agent.line_to(server).start("register".to_owned(), key.clone()).await;
        let read = match written {
            Ok(_) => agent.line_to(server).get(key.clone()).await.map(drop),
            Err(status) => Err(status),
        };
        let Err(status) = read else { return Ok(()) };
        anyhow::ensure!(ended.elapsed() < RECOVERED_AT_ALL, "server {server} does not serve: {status}");
        sleep(AGAIN).await;
    }
}
