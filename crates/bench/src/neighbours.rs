//! One tenant floods the server, and another one's reads and writes are measured meanwhile, on a server with the default
//! quotas. The flooding process takes half a core at most.

mod flood;
mod measured;
mod silent;

use anyhow::{Context as _, ensure};
use clap::ValueEnum as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_api::v1::session_service_client::SessionServiceClient;
use tonic::Request;

pub(crate) use flood::{Kind, run as flood};

use crate::load::{self, bearer};
use crate::process::{Server, line_of};
use flood::Flooded;
use measured::{Measured, Took};

/// The keys of the two tenants.
const FLOODING: (&str, &str) =
    ("acme", "swk_0123456789abcdef_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
const OTHER: (&str, &str) =
    ("globex", "swk_fedcba9876543210_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
/// How long the other tenant is alone, how long the flood is alone, and how long both run.
const QUIET: Duration = Duration::from_secs(10);
const ALONE: Duration = Duration::from_secs(5);
const BOTH: Duration = Duration::from_secs(10);
/// The pause between two floods, in which the quota of requests recovers.
const RESTS: Duration = Duration::from_secs(3);
/// How long a flood goes on before the other tenant is measured.
const BEGINS: Duration = Duration::from_secs(1);
/// Sessions of the flooding tenant that its lists scan, and how many are started at one time.
const LISTED: u64 = 5_000;
const STARTED_AT_ONCE: u64 = 32;
/// The other tenant's p99 beside the flood may be this many times its quiet p99, plus this many milliseconds.
const P99_TIMES: f64 = 2.0;
const P99_MORE_MS: f64 = 5.0;
/// The share of its rate alone that the flood must still get.
const RATE_PART_MIN: f64 = 0.25;
/// The longest health check, and the pause between checks.
const HEALTH_MAX: Duration = Duration::from_millis(100);
const HEALTH_EVERY: Duration = Duration::from_millis(20);
/// The server's resident memory, bytes.
const MEMORY_MAX: u64 = 1 << 30;

const TALK: &str = include_str!("conversation.json");
const RENDERS: &str = include_str!("neighbours/renders.json");
const GATE: &str = include_str!("../../../tests/gallery/deploy-gate/deploy-gate.json");

/// Measures, prints, and fails if the other tenant notices too much.
pub(crate) async fn run(binary: &Path, folder: &Path, only: Option<Kind>) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    println!(
        "{:<10} {:>23} {:>23} {:>21} {:>9} {:>8}",
        "flood", "reads p99, ms", "writes p99, ms", "flood, 1/s", "health", "memory"
    );
    for kind in Kind::value_variants().iter().copied().filter(|kind| only.is_none_or(|it| it == *kind)) {
        let name = name(kind);
        let server_folder = folder.join(&name);
        std::fs::create_dir_all(&server_folder)?;
        let seen = beside(binary, &server_folder, kind).await.with_context(|| format!("{name} failed"))?;
        seen.print(&name);
        wrong.extend(seen.judge().into_iter().map(|problem| format!("{name}: {problem}")));
        std::fs::remove_dir_all(&server_folder)?;
    }
    if only.is_none() {
        let server_folder = folder.join("silent");
        std::fs::create_dir_all(&server_folder)?;
        let server = server(binary, &server_folder)?;
        silent::run(&server, OTHER.1).await?;
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn name(kind: Kind) -> String {
    kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Starts a server of two tenants with the default quotas.
fn server(binary: &Path, folder: &Path) -> anyhow::Result<Server> {
    let mut text = format!(
        "data_dir = {:?}\nlisten = \"127.0.0.1:0\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n[log]\nlevel = \"error\"\n",
        folder.join("data")
    );
    for (tenant, key) in [FLOODING, OTHER] {
        let file = folder.join(tenant);
        std::fs::write(&file, key)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
        text += &format!("[[tenants]]\nname = {tenant:?}\nadmin_key_file = {file:?}\n");
    }
    let file = folder.join("server.toml");
    std::fs::write(&file, text)?;
    Server::configured(binary, &file)
        .with_context(|| format!("failed to start {}; build it with --release", binary.display()))
}

/// The figures of one kind of flood.
struct Seen {
    quiet: Took,
    both: Took,
    alone: Flooded,
    beside: Flooded,
    health: Duration,
    memory: u64,
}

async fn beside(binary: &Path, folder: &Path, kind: Kind) -> anyhow::Result<Seen> {
    let server = server(binary, folder)?;
    for (_, key) in [FLOODING, OTHER] {
        for (path, content) in [("deploy-gate.json", GATE), ("talk.json", TALK), ("renders.json", RENDERS)] {
            load::deploy_as(&server, key, path, content).await?;
        }
    }
    let other = Measured::new(&server.address, OTHER.1).await?;
    if matches!(kind, Kind::Lists | Kind::Abandoned | Kind::Unread) {
        furnish(&server).await?;
    }
    // The first calls warm up both sides.
    other.measure(Duration::from_secs(1)).await?;
    // Before any flood: after one, the server still writes what it left behind.
    let quiet = other.measure(QUIET).await?;
    let alone = Flooding::start(kind, &server)?;
    tokio::time::sleep(ALONE).await;
    let alone = alone.stop()?;
    tokio::time::sleep(RESTS).await;
    let flooding = Flooding::start(kind, &server)?;
    tokio::time::sleep(BEGINS).await;
    let watch = watch(&server, Instant::now() + BOTH);
    let (both, (health, memory)) = tokio::try_join!(other.measure(BOTH), watch)?;
    let beside = flooding.stop()?;
    Ok(Seen { quiet, both, alone, beside, health, memory })
}

/// Returns the longest health check, and the highest memory.
async fn watch(server: &Server, until: Instant) -> anyhow::Result<(Duration, u64)> {
    let (mut longest, mut memory) = (Duration::ZERO, 0);
    while Instant::now() < until {
        for path in ["/healthz", "/readyz"] {
            let asked = Instant::now();
            let page = server.page(path).await?;
            longest = longest.max(asked.elapsed());
            ensure!(page.starts_with("HTTP/1.1 200"), "{path} answered {page:?}");
        }
        memory = memory.max(server.used()?.1);
        tokio::time::sleep(HEALTH_EVERY).await;
    }
    Ok((longest, memory))
}

/// Starts the sessions that the lists scan.
async fn furnish(server: &Server) -> anyhow::Result<()> {
    let channel = load::channel(server).await?;
    let mut starters = tokio::task::JoinSet::new();
    for first in 0..STARTED_AT_ONCE {
        let (mut client, key) = (SessionServiceClient::new(channel.clone()), bearer(FLOODING.1)?);
        starters.spawn(async move {
            for _ in (first..LISTED).step_by(STARTED_AT_ONCE as usize) {
                let definition = "deploy-gate".to_owned();
                let mut request = Request::new(v1::StartSessionRequest { definition, ..Default::default() });
                request.metadata_mut().insert("authorization", key.clone());
                // The quota of requests refuses those that come too soon.
                while client.start_session(clone(&request)).await.is_err() {
                    tokio::time::sleep(HEALTH_EVERY).await;
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(starter) = starters.join_next().await {
        starter??;
    }
    Ok(())
}

fn clone(request: &Request<v1::StartSessionRequest>) -> Request<v1::StartSessionRequest> {
    let mut again = Request::new(request.get_ref().clone());
    *again.metadata_mut() = request.metadata().clone();
    again
}

/// The flood, as a process; it ends with this value.
struct Flooding(Child);

impl Flooding {
    fn start(kind: Kind, server: &Server) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--flood", &name(kind), "--address", &server.address, "--key", FLOODING.1]);
        Ok(Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?))
    }

    fn stop(mut self) -> anyhow::Result<Flooded> {
        drop(self.0.stdin.take());
        let line = line_of(&mut self.0)?;
        serde_json::from_str(&line).with_context(|| format!("the flood wrote {line:?}"))
    }
}

impl Drop for Flooding {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone then.
        let _killed = self.0.kill();
        let _waited = self.0.wait();
    }
}

fn p99(took: &hdrhistogram::Histogram<u64>) -> f64 {
    took.value_at_quantile(0.99) as f64 / 1e3
}

impl Seen {
    fn print(&self, name: &str) {
        let pair = |quiet, both| format!("{:.2} quiet, {:.2}", p99(quiet), p99(both));
        println!(
            "{name:<10} {:>23} {:>23} {:>21} {:>6} ms {:>4} MiB   {:.2} of a core, {} refused",
            pair(&self.quiet.reads, &self.both.reads),
            pair(&self.quiet.writes, &self.both.writes),
            format!("{:.0} alone, {:.0}", self.alone.rate(), self.beside.rate()),
            self.health.as_millis(),
            self.memory >> 20,
            self.beside.cores,
            self.beside.refused
        );
    }

    fn judge(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (what, quiet, both) in [
            ("reads", &self.quiet.reads, &self.both.reads),
            ("writes", &self.quiet.writes, &self.both.writes),
        ] {
            let most = p99(quiet).mul_add(P99_TIMES, P99_MORE_MS);
            if p99(both) > most {
                wrong.push(format!("the p99 of {what} is {:.2} ms, at most {most:.2} is allowed", p99(both)));
            }
        }
        if self.beside.rate() < self.alone.rate() * RATE_PART_MIN {
            wrong.push(format!("{:.0} of {:.0} a second are left", self.beside.rate(), self.alone.rate()));
        }
        if self.health > HEALTH_MAX {
            wrong.push(format!("health answered after {} ms", self.health.as_millis()));
        }
        if self.memory > MEMORY_MAX {
            wrong.push(format!("the server took {} MiB", self.memory >> 20));
        }
        wrong
    }
}
