//! A disk that is filled to its last byte under load: the server lives, reads and decisions go on, no acknowledged write is
//! lost, and writes recover by themselves.

use anyhow::{Context as _, ensure};
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchward_api::v1;
use tokio::time::timeout;
use tonic::Status;

use crate::book::Book;
use crate::crew::{CALLERS, Crew};
use crate::front::{Front, Wire, is_disk_low};
use crate::plan::{DEFINITION, NAME, Notes, deploy};
use crate::rig::disk::Small;
use crate::rng::{Rng, setting};
use crate::server::{Host, Server};
use crate::tenants::Tenant;
use crate::verify::Look;
use crate::{scratch, verify};

/// The disk size, the free space below which growing writes are refused, and the reserve.
const DISK_BYTES: u64 = 384 * 1024 * 1024;
const MIN_FREE_MIB: &str = "64";
const RESERVE_MIB: &str = "48";
/// Steps of all callers between two fillings.
const STEPS: u64 = 400;
const NOTES: Notes = Notes { long_bytes: 8 * 1024, long_each: 4 };
/// Gates that are decided while the disk is full, and some that must wait for space.
const GATES: usize = 16;
const SPARE: usize = 8;
/// How long something may take to become so.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_what_grows_and_nothing_else() -> anyhow::Result<()> {
    let rng = Rng::of("a full disk");
    let scratch = scratch::folder()?;
    let disk = match Small::new(scratch.path(), DISK_BYTES) {
        Ok(disk) => disk,
        Err(error) => {
            eprintln!("no disk can be mounted here, so none is filled: {error:#}");
            return Ok(());
        }
    };
    let host = Host::new(scratch.path(), disk.path().join("data"))
        .env("SWITCHWARD_DISK__MIN_FREE_MIB", MIN_FREE_MIB)
        .env("SWITCHWARD_DISK__RESERVE_MIB", RESERVE_MIB);
    let server = host.start().await?;
    let front = Front::found(&server.ready).await?;
    let live = front.aside(&server.ready).await?;
    deploy(&live, DEFINITION).await?;
    front.show(live);
    let book = Book::new(rng.seed, NOTES);
    let mut crew = book.callers(&front, CALLERS);
    let times: usize = setting("CRASH_FULL", 10);
    for time in 0..times {
        let round = Round { disk: &disk, front: &front, server: &server, time };
        let outcome = round.play(&book, &mut crew).await;
        outcome.with_context(|| {
            format!("filling {time}: the server said:\n{}", host.said().unwrap_or_default())
        })?;
    }
    book.close();
    crew.finish().await?;
    verify::meanwhile(&book, &front.live().await?, Look::All).await?;
    front.close();
    server.kill().await.context("the server lived to the end")?;
    let again = host.start().await?;
    verify::meanwhile(&book, &front.aside(&again.ready).await?, Look::All).await?;
    eprintln!("a disk was filled {times} times under load; {} steps", book.steps.now());
    again.kill().await
}

/// One filling.
struct Round<'a> {
    disk: &'a Small,
    front: &'a Arc<Front>,
    server: &'a Server,
    time: usize,
}

impl Round<'_> {
    async fn play(&self, book: &Arc<Book>, crew: &mut Crew) -> anyhow::Result<()> {
        let live = self.front.live().await?;
        let (agent, person) = (live.agent(Tenant::First, 0), live.person(Tenant::First));
        let mut gates = Vec::new();
        for number in 0..GATES {
            gates.push(self.gate(&agent, number).await?);
        }
        crew.until(book.steps.now() + STEPS).await?;
        let ballast = self.disk.fill("ballast")?;

        let refused = until("a start is refused", async || self.start(&agent).await.err()).await?;
        ensure!(is_disk_low(&refused), "a start is refused with {refused:?}");
        self.reads(&agent).await?;
        let page = readyz(self.server).await?;
        ensure!(page.starts_with("HTTP/1.1 200") && page.contains("the disk runs low"), "health says {page}");
        for gate in gates.drain(..GATES - SPARE) {
            decide(&person, &gate).await.with_context(|| format!("{gate} is decided on a full disk"))?;
        }

        // What is left of the reserve goes, too, and what the server has given back meanwhile.
        let mut rests = Vec::new();
        let last = loop {
            let gate = gates.pop().context("every decision was taken on a disk without a free byte")?;
            rests.push(self.disk.fill(&format!("rest-{}", rests.len()))?);
            match decide(&person, &gate).await {
                Err(refused) if is_disk_low(&refused) => break gate,
                decided => decided?,
            }
        };
        self.reads(&agent).await?;
        drop(rests);
        drop(ballast);

        until("the last gate is decided", async || decide(&person, &last).await.ok()).await?;
        until("a start is taken", async || self.start(&agent).await.ok()).await?;
        crew.until(book.steps.now() + STEPS).await
    }

    async fn start(&self, agent: &Wire) -> Result<v1::Session, Status> {
        let request = v1::StartSessionRequest { definition: NAME.into(), ..Default::default() };
        let reply = agent.sessions().start_session(agent.request(request)).await?.into_inner();
        reply.session.ok_or_else(|| Status::internal("no session"))
    }

    /// A gate of a session of its own.
    async fn gate(&self, agent: &Wire, number: usize) -> anyhow::Result<String> {
        let session = until("a gate can be opened", async || self.start(agent).await.ok());
        let request = v1::AuthorizeToolCallRequest {
            session: session.await?.name,
            capability: "mcp:filesystem:write_file".into(),
            request_id: format!("call-{}-{number}", self.time),
            ..Default::default()
        };
        let asked = agent.policy().authorize_tool_call(agent.request(request)).await?.into_inner();
        ensure!(!asked.gate.is_empty(), "nobody was asked: {asked:?}");
        Ok(asked.gate)
    }

    async fn reads(&self, agent: &Wire) -> anyhow::Result<()> {
        let request = v1::ListSessionsRequest { page_size: 100, ..Default::default() };
        let listed = agent.sessions().list_sessions(agent.request(request)).await?.into_inner().sessions;
        let first = listed.first().context("there are sessions")?.name.clone();
        let request = v1::GetSessionRequest { name: first, ..Default::default() };
        agent.sessions().get_session(agent.request(request)).await?;
        Ok(())
    }
}

async fn decide(person: &Wire, gate: &str) -> Result<(), Status> {
    let request = v1::DecideGateRequest {
        name: gate.to_owned(),
        decision: v1::GateDecision::Approve.into(),
        comment: "it was looked at while the disk was full".into(),
        request_id: format!("decide-{gate}"),
        ..Default::default()
    };
    person.gates().decide_gate(person.request(request)).await.map(drop)
}

/// Asks until there is something.
async fn until<T>(what: &str, found: impl AsyncFn() -> Option<T>) -> anyhow::Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found().await {
            return Ok(found);
        }
        ensure!(Instant::now() < deadline, "not so for {PATIENCE:?}: {what}");
    }
}

/// What the server says of itself to load balancers.
async fn readyz(server: &Server) -> anyhow::Result<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let host = server.ready.address.strip_prefix("http://").context("plain HTTP")?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut stream = tokio::net::TcpStream::connect(host).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
        let mut page = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut page)).await.context("/readyz does not answer")??;
        // Health learns of it a little later.
        if page.contains("disk") || Instant::now() > deadline {
            return Ok(page);
        }
    }
}
