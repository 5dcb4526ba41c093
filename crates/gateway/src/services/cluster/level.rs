//! The feature level of the cluster.

use switchward_api::v1;
use switchward_state::catalogue::{CatalogueCommand, RaiseLevel};
use switchward_state::{Level, Reply};

use super::of_lone_server;
use crate::api::{Call, request_id};
use crate::error::Refusal;
use crate::refusals::odd;

/// Raises the level, if all servers know the new one.
pub(super) async fn raise(
    call: &Call<'_>,
    message: &v1::RaiseLevelRequest,
) -> Result<v1::RaiseLevelResponse, Refusal> {
    if message.level == 0 {
        return Err(Refusal::field("level", "is required"));
    }
    let request = request_id(&message.request_id, "RaiseLevel", message)?;
    let raise = CatalogueCommand::RaiseLevel(RaiseLevel { level: Level(message.level) });
    let reply = call.execute_in_own_scope(request, raise.into()).await;
    let reply = reply.map_err(of_lone_server)?;
    let Reply::Level { level, epoch } = reply else { return Err(odd(&reply)) };
    Ok(v1::RaiseLevelResponse { level: level.0, epoch })
}
