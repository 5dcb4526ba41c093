//! One point of one round: the disk, the echo and the product, one after the other.

use anyhow::Context as _;
use serde::Serialize;
use std::path::Path;

use crate::builds::Builds;
use crate::load::{Load, Shape, Work, run};
use crate::probe::syncs;
use crate::process::{Server, used};

/// Below this many syncs a second the machine is too busy for a latency to mean anything.
pub(crate) const QUIET_SYNCS: f64 = 2_000.0;
/// Events of one step of the deploy gate: a start and an answer leave three each.
const EVENTS_OF_A_STEP: u64 = 3;

/// The result of one point of one round.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Round {
    pub(crate) round: usize,
    pub(crate) callers: usize,
    pub(crate) connections: usize,
    pub(crate) syncs_a_second: f64,
    pub(crate) sync_p50_ms: f64,
    pub(crate) echo: Figures,
    pub(crate) ours: Product,
    /// The other build, if there is one.
    pub(crate) beside: Option<Product>,
    /// Our steps a second divided by the echo's.
    pub(crate) ratio: f64,
    /// Our latency divided by that of one sync and one echo, all medians; meaningful for one caller only.
    pub(crate) latency_ratio: f64,
}

/// The figures of one build of the server at a point.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Product {
    pub(crate) gate: Cost,
    /// The same callers in conversations; measured at one point only.
    pub(crate) conversation: Option<Cost>,
}

/// The figures of one kind of work, with what it took of the log.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Cost {
    #[serde(flatten)]
    pub(crate) figures: Figures,
    pub(crate) syncs_a_step: f64,
    pub(crate) log_bytes_a_step: f64,
    pub(crate) steps_an_entry: f64,
}

/// The point at which conversations are also measured: callers and connections.
const CONVERSATIONS_AT: (usize, usize) = (64, 8);

/// The figures of one side of a point.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Figures {
    pub(crate) steps_a_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) server_cpu_us_a_step: f64,
    pub(crate) client_cpu_us_a_step: f64,
    pub(crate) server_memory_mib: f64,
}

impl Round {
    /// Measures one point.
    pub(crate) async fn measure(
        round: usize,
        shape: Shape,
        builds: &Builds<'_>,
        echo: &Server,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let (syncs_a_second, sync_p50_ms) = syncs(folder)?;
        let (echo, _) = side(echo, shape, Work::Gate).await.context("the echo failed")?;
        let (ours, beside) = builds.measure(round, shape).await?;
        let gate = ours.gate.figures;
        Ok(Self {
            round,
            callers: shape.callers,
            connections: shape.connections,
            syncs_a_second,
            sync_p50_ms,
            echo,
            ours,
            beside,
            ratio: gate.steps_a_second / echo.steps_a_second,
            latency_ratio: gate.p50_ms / (sync_p50_ms + echo.p50_ms),
        })
    }

    /// Server CPU of one command of a conversation divided by that of the deploy gate; `None` if it was not measured.
    pub(crate) fn conversation_cpu(&self) -> Option<f64> {
        let gate = self.ours.gate.figures.server_cpu_us_a_step;
        self.ours.conversation.map(|talk| talk.figures.server_cpu_us_a_step / gate)
    }
}

impl Product {
    /// Measures one block of a server, and at one point a second one, of conversations.
    pub(crate) async fn measure(server: &Server, shape: Shape) -> anyhow::Result<Self> {
        let gate = Cost::measure(server, shape, Work::Gate).await.context("the server failed")?;
        let conversation = if (shape.callers, shape.connections) == CONVERSATIONS_AT {
            let talk = Cost::measure(server, shape, Work::Conversation).await;
            Some(talk.context("the conversations failed")?)
        } else {
            None
        };
        Ok(Self { gate, conversation })
    }
}

impl Cost {
    async fn measure(server: &Server, shape: Shape, work: Work) -> anyhow::Result<Self> {
        let before = Counters::read(server).await?;
        let (figures, load) = side(server, shape, work).await?;
        let spent = Counters::read(server).await?.since(&before);
        let steps = load.acknowledged;
        anyhow::ensure!(
            work != Work::Gate || (spent.events == steps * EVENTS_OF_A_STEP && spent.commands == steps),
            "{steps} steps were acknowledged, and the log holds {} commands with {} events",
            spent.commands,
            spent.events
        );
        let each = |count: u64| count as f64 / steps.max(1) as f64;
        Ok(Self {
            figures,
            syncs_a_step: each(spent.syncs),
            log_bytes_a_step: each(spent.bytes),
            steps_an_entry: steps as f64 / spent.entries.max(1) as f64,
        })
    }
}

async fn side(server: &Server, shape: Shape, work: Work) -> anyhow::Result<(Figures, Load)> {
    let (server_before, client_before) = (server.used()?.0, used(std::process::id())?.0);
    let load = run(server, shape, work).await?;
    let ((server_after, memory), client_after) = (server.used()?, used(std::process::id())?.0);
    let each = |seconds: f64| seconds * 1e6 / load.acknowledged.max(1) as f64;
    let at = |quantile: f64| load.latency.value_at_quantile(quantile) as f64 / 1e3;
    let figures = Figures {
        steps_a_second: load.steps as f64 / load.time.as_secs_f64(),
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        server_cpu_us_a_step: each(server_after - server_before),
        client_cpu_us_a_step: each(client_after - client_before),
        server_memory_mib: memory as f64 / 1_048_576.0,
    };
    Ok((figures, load))
}

/// Counters of the server.
#[derive(Debug, Clone, Copy)]
struct Counters {
    entries: u64,
    commands: u64,
    events: u64,
    syncs: u64,
    bytes: u64,
}

impl Counters {
    async fn read(server: &Server) -> anyhow::Result<Self> {
        let [entries, commands, events, syncs, bytes] = server
            .counted([
                "switchward_shard_entries_total",
                "switchward_shard_commands_total",
                "switchward_shard_events_total",
                "switchward_log_syncs_total",
                "switchward_log_bytes_total",
            ])
            .await?;
        Ok(Self { entries, commands, events, syncs, bytes })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            entries: self.entries - before.entries,
            commands: self.commands - before.commands,
            events: self.events - before.events,
            syncs: self.syncs - before.syncs,
            bytes: self.bytes - before.bytes,
        }
    }
}

#[cfg(test)]
impl Round {
    /// A round on a quiet machine whose other figures are all 1, without another build.
    pub(crate) fn sample(callers: usize, connections: usize) -> Self {
        let figures = Figures {
            steps_a_second: 1.0,
            p50_ms: 1.0,
            p99_ms: 1.0,
            server_cpu_us_a_step: 1.0,
            client_cpu_us_a_step: 1.0,
            server_memory_mib: 1.0,
        };
        let gate = Cost { figures, syncs_a_step: 1.0, log_bytes_a_step: 1.0, steps_an_entry: 1.0 };
        Self {
            round: 1,
            callers,
            connections,
            syncs_a_second: QUIET_SYNCS,
            sync_p50_ms: 1.0,
            echo: figures,
            ours: Product { gate, conversation: Some(gate) },
            beside: None,
            ratio: 1.0,
            latency_ratio: 1.0,
        }
    }
}
