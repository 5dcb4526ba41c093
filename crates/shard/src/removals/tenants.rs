//! The rows of a deleted tenant are removed in bounded steps: in every shard, and in the catalogue when no shard has
//! any left.

use std::ops::ControlFlow;
use std::sync::Weak;
use switchward_machine::TenantId;
use switchward_state::session::{RemoveStep, SessionCommand};
use switchward_state::{Body, Command, Key, Kind, Row, Scope, View, ViewError};
use switchward_store::Record as _;

use super::unreadable;
use crate::deletions::under_way;
use crate::failure::Failure;
use crate::limits::{REMOVE_STEP_BYTES, REMOVE_STEP_ROWS, REMOVE_STEPS};
use crate::metrics::ShardMetrics;
use crate::record::Stored;
use crate::shard::Shard;
use crate::shards::{CATALOGUE, Shards};
use crate::view::StateView;

/// Continues all deletions of a shard, or of the catalogue.
pub(super) struct Round {
    /// True if something was removed.
    pub(super) moved: bool,
    /// Deletions that are still under way afterwards.
    pub(super) left: usize,
}

pub(super) async fn round(shard: &Shard, cluster: &Weak<Shards>) -> Result<Round, Failure> {
    let open = under_way(&shard.read_stale()).map_err(unreadable)?;
    let mut round = Round { moved: false, left: open.len() };
    for (tenant, _) in open {
        let (moved, whole) = steps(shard, tenant).await?;
        round.moved |= moved;
        if whole && others_are_done(shard, cluster, tenant).await? {
            shard.submit(command(shard, tenant, RemoveStep::TenantGone)).await?;
            round.left -= 1;
            // The catalogue waits for this.
            if let Some(cluster) = cluster.upgrade().filter(|_| !is_catalogue(shard)) {
                cluster.catalogue().group().shared.removals.notify_one();
            }
        }
    }
    Ok(round)
}

fn is_catalogue(shard: &Shard) -> bool {
    shard.number() == CATALOGUE
}

fn command(shard: &Shard, tenant: TenantId, step: RemoveStep) -> Command {
    let scope = if is_catalogue(shard) { Scope::Catalogue } else { Scope::Shard };
    Command::of_server(tenant, scope, Body::Session(SessionCommand::RemoveStep(step)))
}

/// Returns true if this is a shard, or if it is the catalogue and no shard has rows of the tenant any more.
async fn others_are_done(shard: &Shard, cluster: &Weak<Shards>, tenant: TenantId) -> Result<bool, Failure> {
    if !is_catalogue(shard) {
        return Ok(true);
    }
    let Some(cluster) = cluster.upgrade() else { return Ok(false) };
    // A shard that did not get the record when the deletion began gets it now.
    cluster.spread(tenant).await?;
    for other in cluster.owners() {
        let row = other.read().await?.row(&Key::tenancy(tenant)).map_err(unreadable)?;
        let Some(Row::Tenancy(tenancy)) = row.as_deref() else { return Ok(false) };
        if tenancy.deletion.as_ref().is_none_or(|deletion| deletion.done.is_none()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes rows until none is left or the limit of steps is reached. Returns whether something was removed, and
/// whether none is left.
async fn steps(shard: &Shard, tenant: TenantId) -> Result<(bool, bool), Failure> {
    let mut moved = false;
    for _ in 0..REMOVE_STEPS {
        let keys = next(&shard.read_stale(), tenant, is_catalogue(shard)).map_err(unreadable)?;
        if keys.is_empty() {
            return Ok((moved, true));
        }
        let rows = keys.len();
        shard.submit(command(shard, tenant, RemoveStep::OfTenant { keys })).await?;
        ShardMetrics::add(&shard.group().metrics().removed_rows, rows);
        moved = true;
    }
    Ok((moved, false))
}

/// The rows of the next step; none if none is left.
fn next(view: &StateView, tenant: TenantId, catalogue: bool) -> Result<Vec<Key>, ViewError> {
    let mut step = Step::default();
    for home in Key::homes_of_tenant(tenant) {
        if step.full() {
            break;
        }
        // The tenant's record says that it is deleted.
        view.scan(&home, None, &mut |key, row| step.take(key, Some(row), !key.is(Kind::Tenancy)))?;
    }
    if catalogue && !step.full() {
        let prefix = Key::prefix_of_catalogue(TenantId(0), Kind::ApiKey);
        view.scan(&prefix, None, &mut |key, row| {
            step.take(key, None, matches!(&**row, Row::ApiKey(one) if one.tenant == tenant))
        })?;
        // The tenant's name becomes free when nothing else is left.
        if step.keys.is_empty() {
            let prefix = Key::prefix_of_catalogue(TenantId(0), Kind::Tenant);
            view.scan(&prefix, None, &mut |key, row| {
                step.take(key, None, matches!(&**row, Row::Tenant(one) if one.id == tenant))
            })?;
        }
    }
    Ok(step.keys)
}

#[derive(Default)]
struct Step {
    keys: Vec<Key>,
    bytes: usize,
}

impl Step {
    fn full(&self) -> bool {
        self.keys.len() >= REMOVE_STEP_ROWS || self.bytes >= REMOVE_STEP_BYTES
    }

    fn take(&mut self, key: &Key, row: Option<&std::sync::Arc<Row>>, wanted: bool) -> ControlFlow<()> {
        if wanted {
            self.keys.push(key.clone());
            self.bytes += row.map_or(0, |row| Stored(row.clone()).weight());
        }
        if self.full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
