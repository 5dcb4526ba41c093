//! Transfers of leaders from one server to others.

use std::time::Duration;
use switchward_api::v1;
use switchward_state::Scope;
use switchward_state::catalogue::{CatalogueCommand, LeaderTransfer, RecordTransfers};

use super::changes::decided;
use super::required;
use crate::api::{Call, request_id};
use crate::error::{Reason, Refusal};
use crate::limits::GROUPS_MAX;

/// How soon it is worth trying again after a leader was not moved.
const MOVE_RETRY: Duration = Duration::from_millis(500);

/// Moves the leaders one by one, and records it. A repeated request moves those that are left.
pub(super) async fn run(call: &Call<'_>, message: &v1::TransferLeadersRequest) -> Result<(), Refusal> {
    let request = request_id(&message.request_id, "TransferLeaders", message)?;
    let from = required("from_server", message.from_server)?;
    let to = Some(message.to_server).filter(|to| *to != 0);
    if to == Some(from) {
        return Err(Refusal::field("to_server", "must be another server than from_server"));
    }
    if message.groups.len() > GROUPS_MAX {
        return Err(Refusal::field("groups", format!("must be at most {GROUPS_MAX}")));
    }
    if let Some(request) = &request
        && call.answered(Scope::Catalogue, request.clone()).await?.is_some()
    {
        return Ok(());
    }
    let planned = decided(call, |status| status.plan_transfers(from, &message.groups, to)).await?;
    let mut transfers = Vec::new();
    let mut failed = None;
    for LeaderTransfer { group, to } in planned {
        match call.api.cluster.hand_over(group, Some(to)).await {
            Ok(to) => transfers.push(LeaderTransfer { group, to }),
            Err(error) => {
                let message = format!("group {group} was not handed over to server {to}: {error}");
                let refusal = Refusal::new(Reason::LeaderNotMoved, message).meta("group", group);
                failed = Some(refusal.retry_after(MOVE_RETRY));
                break;
            }
        }
    }
    // After a failure, the request is not answered: repeated, it goes on.
    let request = request.filter(|_| failed.is_none());
    let moved = transfers.len();
    if request.is_some() || moved > 0 {
        let record = CatalogueCommand::RecordTransfers(RecordTransfers { from, transfers });
        let recorded = call.execute_in_own_scope(request, record.into()).await;
        recorded.map_err(|refusal| refusal.after_parts(moved))?;
    }
    failed.map_or(Ok(()), Err)
}
