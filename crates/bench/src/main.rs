//! The benchmark: a release server as its own process, driven by unary gRPC, interleaved in rounds with a bare tonic
//! echo of the same sizes and with a bare `fdatasync` loop. What counts are the ratios inside a round.
//!
//! One step is one durable call; a session is four of them: a start and three answers. At one point conversations of
//! five states are measured beside them, for what a command of theirs costs the server. A second build of the server can be
//! measured in turns with the first.

mod beside;
mod builds;
mod cluster;
mod delivery;
mod echo;
mod expiry;
mod figures;
mod judge;
mod load;
mod measure;
mod neighbours;
mod parking;
mod probe;
mod process;
mod report;
mod timers;

use clap::Parser;
use std::path::{Path, PathBuf};
use std::time::Duration;

use builds::Builds;
use judge::Judging;
use load::Shape;
use measure::Round;
use process::Server;

/// Measures durable steps a second.
#[derive(Debug, Parser)]
struct Args {
    /// The server's binary.
    #[arg(long, default_value = "target/release/switchward")]
    server: PathBuf,
    /// The server of another build, which is measured in turns with the first: no figure may be worse than its by more than 5 %.
    #[arg(
        long,
        value_name = "SERVER",
        conflicts_with_all = ["parking", "timers", "expiry", "delivery", "cluster", "neighbours"]
    )]
    beside: Option<PathBuf>,
    /// How often every point is measured, or each failure of a cluster is caused. The median is judged, and of three it is
    /// now and then a bad one [default: 5; of failures, what each part says].
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds of each block.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Callers at one time.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64, 256])]
    callers: Vec<usize>,
    /// Connections that they share.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    connections: Vec<usize>,
    /// Shards of the server; its own choice if nothing is said, but in two parts of a cluster: one for rates, eight for growth.
    #[arg(long)]
    shards: Option<u32>,
    /// Where the data goes; a new folder below it is used and removed.
    #[arg(long, default_value = "target")]
    dir: PathBuf,
    /// Where the figures go, as JSON.
    #[arg(long, default_value = "target/bench.json")]
    json: PathBuf,
    /// Park this many sessions instead, and measure what each of them costs.
    #[arg(long, value_name = "SESSIONS")]
    parking: Option<u64>,
    /// Let this many timers wait instead, and measure what each of them costs, and how late and how fast others are.
    #[arg(long, value_name = "PENDING")]
    timers: Option<u64>,
    /// Let this many ended sessions expire instead, and measure what callers notice and how much disk is freed.
    #[arg(long, value_name = "ENDED", num_args = 0..=1, default_missing_value = "200000")]
    expiry: Option<u64>,
    /// Measure effects instead: how many go through a Redis to a sink, and how long one takes from its decision.
    #[arg(long)]
    delivery: bool,
    /// Measure a cluster of three servers instead.
    #[arg(long)]
    cluster: bool,
    /// This part of it alone; can be repeated [default: all but elections, which takes an hour].
    #[arg(long, value_enum, value_delimiter = ',', requires = "cluster")]
    part: Vec<cluster::Part>,
    /// Sessions that a cluster has parked when a server joins it, in the part growth.
    #[arg(long, default_value_t = 200_000, requires = "cluster")]
    sessions: u64,
    /// Minutes of the part elections.
    #[arg(long, default_value_t = 60.0, requires = "cluster")]
    minutes: f64,
    /// Fail also if a figure could not be judged, for lack of a quiet round or, of a cluster, of etcd.
    #[arg(long, conflicts_with_all = ["parking", "timers", "expiry", "delivery", "neighbours"])]
    strict: bool,
    /// Judge no figure: fail only if something cannot be measured.
    #[arg(
        long,
        conflicts_with_all = ["strict", "beside", "parking", "timers", "expiry", "neighbours"]
    )]
    unjudged: bool,
    /// Flood the server as one tenant instead, and measure what another one notices.
    #[arg(long)]
    neighbours: bool,
    /// This kind of flood alone.
    #[arg(long, value_enum)]
    flood: Option<neighbours::Kind>,
    /// Be the flood instead: of the server at this address, with this key, until the standard input ends.
    #[arg(long, hide = true, requires_all = ["flood", "key"])]
    address: Option<String>,
    #[arg(long, hide = true)]
    key: Option<String>,
    /// Be the echo server instead, and print its address.
    #[arg(long, hide = true)]
    echo: bool,
    /// Be a process of the bare log instead, which writes to this file: a follower, or the leader if it has followers.
    #[arg(long, hide = true)]
    bare_log: Option<PathBuf>,
    #[arg(long = "follower", hide = true, requires = "bare_log")]
    followers: Vec<String>,
}

impl Args {
    fn judging(&self) -> Judging {
        match (self.strict, self.unjudged) {
            (false, false) => Judging::Usual,
            (true, _) => Judging::Strict,
            (false, true) => Judging::Shown,
        }
    }
}

/// How often every point is measured if nothing is said.
const ROUNDS: usize = 5;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let (Some(kind), Some(address), Some(key)) = (args.flood, &args.address, &args.key) {
        // One thread, so that what it takes of a core is known and can be held.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(neighbours::flood(kind, address, key));
    }
    let runtime = tokio::runtime::Runtime::new()?;
    if args.echo {
        return runtime.block_on(echo::serve(None));
    }
    if let Some(file) = &args.bare_log {
        return runtime.block_on(cluster::bare::serve(file, &args.followers));
    }
    runtime.block_on(run(&args))
}

async fn run(args: &Args) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.dir)?;
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(&args.dir)?;
    if let Some(sessions) = args.parking {
        return parking::run(&args.server, folder.path(), sessions).await;
    }
    if args.delivery {
        return delivery::run(&args.server, folder.path(), args.judging()).await;
    }
    if let Some(pending) = args.timers {
        return timers::run(&args.server, folder.path(), pending).await;
    }
    if let Some(ended) = args.expiry {
        return expiry::run(&args.server, folder.path(), ended).await;
    }
    if args.neighbours {
        return neighbours::run(&args.server, folder.path(), args.flood).await;
    }
    if args.cluster {
        let plan = cluster::Plan {
            binary: &args.server,
            folder: folder.path(),
            rounds: args.rounds,
            shards: args.shards,
            seconds: args.seconds,
            sessions: args.sessions,
            minutes: args.minutes,
            parts: &args.part,
            report: &args.dir.join("bench-cluster.json"),
            judging: args.judging(),
        };
        return cluster::run(&plan).await;
    }
    compare(args, folder.path()).await
}

/// Measures the server beside the echo and the disk, and beside another build if one is named.
async fn compare(args: &Args, folder: &Path) -> anyhow::Result<()> {
    figures::ensure_writable(&args.json)?;
    let builds = Builds::new(&args.server, args.beside.as_deref(), folder, args.shards).await?;
    let echo = Server::echo()?;
    let (shapes, mut rounds) = (shapes(args), Vec::new());
    let count = args.rounds.unwrap_or(ROUNDS);
    let (blocks, mut done) = (count * shapes.len(), 0);
    for round in 1..=count {
        for shape in &shapes {
            done += 1;
            eprint!(
                "\rblock {done} of {blocks}: round {round}, {} callers on {} connections   ",
                shape.callers, shape.connections
            );
            rounds.push(Round::measure(round, *shape, &builds, &echo, folder).await?);
        }
    }
    eprintln!();
    report::print(&rounds);
    figures::write(&args.json, &rounds)?;
    builds.end().await?;
    let floors = match args.judging() {
        Judging::Usual => judge::judge(&rounds),
        Judging::Strict => judge::judge_strictly(&rounds),
        Judging::Shown => Ok(()),
    };
    if args.beside.is_none() {
        return floors;
    }
    match (floors, beside::judge(&rounds)) {
        (Err(floors), Err(ratios)) => anyhow::bail!("{floors}; {ratios}"),
        (floors, ratios) => floors.and(ratios),
    }
}

/// Every number of callers on every number of connections, without connections that nobody uses.
fn shapes(args: &Args) -> Vec<Shape> {
    args.callers
        .iter()
        .flat_map(|callers| args.connections.iter().map(move |connections| (*callers, *connections)))
        .filter(|(callers, connections)| callers >= connections)
        .map(|(callers, connections)| Shape {
            callers,
            connections,
            time: Duration::from_secs_f64(args.seconds),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_comparison_whose_figures_cannot_be_written_does_not_begin() {
        let folder = tempfile::tempdir().unwrap();
        // No file can have the name of the folder.
        let json = folder.path().display().to_string();
        let args = Args::parse_from(["bench", "--server", "no-such-server", "--json", json.as_str()]);
        let error = format!("{:#}", compare(&args, folder.path()).await.unwrap_err());
        assert!(error.contains("cannot write figures to"), "{error}");
    }
}
