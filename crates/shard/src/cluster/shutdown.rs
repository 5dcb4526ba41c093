//! The end of a server.

use futures::future::join_all;
use std::collections::BTreeSet;
use std::io;

use super::Cluster;
use crate::blocking::blocking;
use crate::group::Group;
use crate::may_lead::LeadingChange;
use crate::members;
use crate::shard::Shard;

impl Cluster {
    /// Hands the groups that this server leads to others, and leads none from now on. Commands are forwarded to the new
    /// leaders. Takes at most [`HAND_OVER_NEAR_WAIT`](crate::limits::HAND_OVER_NEAR_WAIT),
    /// [`HAND_OVER_WAIT`](crate::limits::HAND_OVER_WAIT) and [`HAND_OVER_TAKEN_WAIT`](crate::limits::HAND_OVER_TAKEN_WAIT).
    pub async fn step_down(&self) {
        // Nobody hands them back meanwhile.
        self.all().for_each(|shard| shard.group().note(LeadingChange::Stopping));
        self.hand_over_all().await;
    }

    /// Steps down, takes no more commands, and writes what is in memory, so that the next start has little to replay.
    ///
    /// # Errors
    /// The disk refuses; nothing that was acknowledged is lost.
    pub async fn shutdown(&self) -> io::Result<()> {
        self.step_down().await;
        join_all(self.all().map(Shard::drain)).await;
        for shard in self.all() {
            let group = shard.group().clone();
            let written = blocking(move || group.checkpoint()).await;
            match written.map_err(io::Error::other)? {
                // The log has what is missing.
                Err(error) if shard.disk().caused(&error) => {
                    tracing::warn!("the disk is full: the next start replays the log");
                }
                written => written?,
            }
            shard.group().raft().shutdown().await.map_err(io::Error::other)?;
            if let Some(member) = self.0.member() {
                member.handler.raft().unregister(shard.group().shared.state.group());
            }
        }
        self.0.end_raft().await;
        Ok(())
    }

    /// Hands over what this server leads, as far as there are servers that may lead.
    async fn hand_over_all(&self) {
        let led = || self.all().filter(|shard| shard.group().remote.is_some() && shard.leads());
        if led().next().is_some() {
            let barred = members::barred(&self.0).await;
            join_all(led().map(|shard| hand_over(shard, &barred))).await;
        }
    }
}

async fn hand_over(shard: &Shard, barred: &BTreeSet<u64>) {
    let group = shard.number();
    match shard.hand_over_but(None, barred).await {
        Ok(server) => tracing::info!(group, server, "handed the leadership over"),
        // The others elect a leader when they miss this one.
        Err(error) => tracing::info!(group, %error, "the leadership was not handed over"),
    }
}

/// Stops the groups that a failed start has opened.
pub(super) async fn stop(groups: &[Group]) {
    for group in groups {
        if let Err(error) = group.raft().shutdown().await {
            tracing::warn!(%error, "failed to shut a Raft node down");
        }
    }
}
