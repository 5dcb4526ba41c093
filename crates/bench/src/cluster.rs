//! A cluster: servers of the product on this machine, beside a bare log on three processes and beside etcd.

mod away;
pub(crate) mod bare;
mod crashes;
mod elections;
mod etcd;
mod growth;
mod hand_overs;
mod idle;
mod kills;
mod operations;
mod others;
mod rates;
mod servers;
mod stalls;
mod table;
mod waiting;
mod writers;

use clap::ValueEnum;
use std::path::Path;
use std::time::Instant;
use table::Table;
use tempfile::TempDir;

use crate::figures;
use crate::judge::Judging;

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// CPU and memory of servers that nobody calls.
    Idle,
    /// Steps a second at the leaders and at random servers, beside a bare log and etcd; 3 rounds.
    Rates,
    /// A voter that is away for a minute at full load.
    Away,
    /// Hand-overs of a leader under calls; 30 rounds.
    HandOvers,
    /// A leader that is killed under load, beside etcd; 30 rounds.
    Kills,
    /// All servers killed at once under load; 20 rounds.
    Crashes,
    /// A fourth server that joins, is drained and replaces a dead one, with parked sessions (--sessions) and a light load.
    Growth,
    /// Full load for an hour (--minutes), with snapshots, purges and a disk stall each second; only if it is named.
    Elections,
}

impl Part {
    /// Returns true if it is measured also if no part is named.
    fn is_default(self) -> bool {
        // It takes an hour.
        self != Self::Elections
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Idle => "idle servers",
            Self::Rates => "steps a second",
            Self::Away => "a voter that is away",
            Self::HandOvers => "planned hand-overs",
            Self::Kills => "killed leaders",
            Self::Crashes => "all servers killed at once",
            Self::Growth => "a server that joins, is drained, and replaces a dead one",
            Self::Elections => "elections without a reason",
        }
    }
}

/// What is measured.
pub(crate) struct Plan<'a> {
    /// The server's binary.
    pub(crate) binary: &'a Path,
    /// The folder for everything that is written.
    pub(crate) folder: &'a Path,
    /// Rounds of each part; `None` for its own number.
    pub(crate) rounds: Option<usize>,
    /// Shards of the servers; `None` for what each part says, or else the servers' own choice.
    pub(crate) shards: Option<u32>,
    /// Seconds of each block of rates.
    pub(crate) seconds: f64,
    /// Parked sessions of the part growth.
    pub(crate) sessions: u64,
    /// Minutes of the part elections.
    pub(crate) minutes: f64,
    /// The parts; none means all but those that are long.
    pub(crate) parts: &'a [Part],
    /// The file for the figures, as JSON.
    pub(crate) report: &'a Path,
    /// Which figures make the run fail.
    pub(crate) judging: Judging,
}

/// A folder of one part, which is removed with this value.
type Scratch = TempDir;

impl Plan<'_> {
    /// A new folder.
    fn scratch(&self) -> anyhow::Result<Scratch> {
        Ok(tempfile::Builder::new().prefix("cluster-").tempdir_in(self.folder)?)
    }

    async fn measure(&self, part: Part, table: &mut Table) -> anyhow::Result<()> {
        match part {
            Part::Idle => idle::run(self, table).await,
            Part::Rates => rates::run(self, table).await,
            Part::Away => away::run(self, table).await,
            Part::HandOvers => hand_overs::run(self, table).await,
            Part::Kills => kills::run(self, table).await,
            Part::Crashes => crashes::run(self, table).await,
            Part::Growth => growth::run(self, table).await,
            Part::Elections => elections::run(self, table).await,
        }
    }
}

/// Measures all parts, one after the other, and prints the figures.
///
/// # Errors
/// The report cannot be written, which is checked first; a part failed; or a figure that the plan judges is not as it
/// must be.
pub(crate) async fn run(plan: &Plan<'_>) -> anyhow::Result<()> {
    figures::ensure_writable(plan.report)?;
    let mut table = Table::default();
    let all = Part::value_variants().iter().filter(|part| part.is_default());
    let parts: Vec<&Part> = if plan.parts.is_empty() { all.collect() } else { plan.parts.iter().collect() };
    for part in parts {
        let begun = Instant::now();
        eprintln!("== {}", part.in_words());
        // The other parts are measured all the same.
        if let Err(error) = plan.measure(*part, &mut table).await {
            eprintln!("{}: {error:#}", part.in_words());
            table.fail(part.in_words(), format!("{error:#}"));
        }
        eprintln!("   {:.0} s", begun.elapsed().as_secs_f64());
    }
    table.print();
    figures::write(plan.report, &table)?;
    match plan.judging {
        Judging::Usual => table.judge(),
        Judging::Strict => table.judge_strictly(),
        Judging::Shown => table.judge_none(),
    }
}
