//! Clusters of groups that a test has opened itself, such as replicas over a network that it controls, and how it compares
//! their rows. Only builds with the feature `assembled` contain this; the product opens its groups with [`Cluster::open`],
//! and compares replicas by [`Cluster::verify`].

use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use switchward_store::SegmentLog;

use super::Cluster;
use crate::clock::Clock;
use crate::group::Group;
use crate::halt::{OnFatal, once};
use crate::members::MemberOptions;
use crate::shards::Opened;

impl Cluster {
    /// Creates a cluster of these groups; the catalogue's comes first.
    ///
    /// # Errors
    /// There is no shard besides the catalogue.
    pub fn of_groups(
        groups: Vec<Group>,
        clock: Arc<dyn Clock>,
        log: Arc<SegmentLog>,
        on_fatal: OnFatal,
    ) -> io::Result<Self> {
        check_groups(&groups)?;
        let cluster = Self::over(groups, clock, once(on_fatal), log, Opened::default());
        cluster.begin_leading();
        cluster.begin_leader_tasks();
        Ok(cluster)
    }

    /// The same for a member of a cluster: once the cluster is founded, the members of the groups follow the catalogue's map. To
    /// found it, or to have this server admitted, is left to the caller, whatever the options say of the start.
    ///
    /// # Errors
    /// There is no shard besides the catalogue.
    pub fn of_member(
        groups: Vec<Group>,
        clock: Arc<dyn Clock>,
        log: Arc<SegmentLog>,
        on_fatal: OnFatal,
        member: &MemberOptions,
    ) -> io::Result<Self> {
        check_groups(&groups)?;
        let opened = Opened { raft: Mutex::default(), member: Some(member.clone()) };
        let cluster = Self::over(groups, clock, once(on_fatal), log, opened);
        cluster.begin_leading();
        cluster.begin_answering(member);
        cluster.begin_leader_tasks();
        Ok(cluster)
    }
}

impl Group {
    /// A hash over all rows. Blocks.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn digest(&self) -> io::Result<[u8; 32]> {
        self.shared.state.digest().map_err(io::Error::other)
    }
}

fn check_groups(groups: &[Group]) -> io::Result<()> {
    if groups.len() > 1 {
        return Ok(());
    }
    let message = "a cluster needs a catalogue and at least one shard";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
