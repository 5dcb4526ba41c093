//! One point of one round: the disk, the echo and the product, one after the other.

use anyhow::Context as _;
use serde::Serialize;
use std::path::Path;

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
    pub(crate) ours: Figures,
    pub(crate) syncs_a_step: f64,
    pub(crate) log_bytes_a_step: f64,
    pub(crate) steps_an_entry: f64,
    /// Our steps a second divided by the echo's.
    pub(crate) ratio: f64,
    /// Our latency divided by that of one sync and one echo, all medians; meaningful for one caller only.
    pub(crate) latency_ratio: f64,
    /// The same callers in conversations; measured at one point only.
    pub(crate) conversation: Option<Figures>,
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
        ours: &Server,
        echo: &Server,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let (syncs_a_second, sync_p50_ms) = syncs(folder)?;
        let (echo, _) = side(echo, shape, Work::Gate).await.context("the echo failed")?;
        let before = Counters::read(ours).await?;
        let (figures, load) = side(ours, shape, Work::Gate).await.context("the server failed")?;
        let spent = Counters::read(ours).await?.since(&before);
        let steps = load.acknowledged;
        anyhow::ensure!(
            spent.events == steps * EVENTS_OF_A_STEP && spent.commands == steps,
            "{steps} steps were acknowledged, and the log holds {} commands with {} events",
            spent.commands,
            spent.events
        );
        let each = |count: u64| count as f64 / steps.max(1) as f64;
        let conversation = if (shape.callers, shape.connections) == CONVERSATIONS_AT {
            Some(side(ours, shape, Work::Conversation).await.context("the conversations failed")?.0)
        } else {
            None
        };
        Ok(Self {
            round,
            callers: shape.callers,
            connections: shape.connections,
            syncs_a_second,
            sync_p50_ms,
            echo,
            ours: figures,
            syncs_a_step: each(spent.syncs),
            log_bytes_a_step: each(spent.bytes),
            steps_an_entry: steps as f64 / spent.entries.max(1) as f64,
            ratio: figures.steps_a_second / echo.steps_a_second,
            latency_ratio: figures.p50_ms / (sync_p50_ms + echo.p50_ms),
            conversation,
        })
    }
}

impl Round {
    /// Server CPU of one command of a conversation divided by that of the deploy gate; `None` if it was not measured.
    pub(crate) fn conversation_cpu(&self) -> Option<f64> {
        self.conversation.map(|talk| talk.server_cpu_us_a_step / self.ours.server_cpu_us_a_step)
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
