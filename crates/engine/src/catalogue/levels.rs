//! The feature level of the cluster.

use serde_json::json;
use switchward_state::catalogue::{CatalogueEvent, ClusterMap, RaiseLevel, ServerState};
use switchward_state::{Key, Level, ReadRows as _, Reason, Rejection, Reply};

use super::servers::{map, note, part};
use crate::turn::{Stop, Turn};

/// Raises the level. Repeated, it changes nothing.
pub(super) fn raise(turn: &mut Turn<'_, '_>, raise: &RaiseLevel) -> Result<Reply, Stop> {
    let before = map(turn)?;
    let level = raise.level;
    if level < before.level {
        let message =
            format!("the cluster writes feature level {} already, and its level never falls", before.level);
        return Err(mismatch(&before, message).into());
    }
    if level == before.level {
        return Ok(Reply::Level { level, epoch: before.epoch });
    }
    check_servers(turn, &before, level)?;
    let after = ClusterMap { epoch: before.epoch + 1, level, ..before.clone() };
    note(turn, vec![part("level".to_owned(), json!(before.level.0), json!(level.0))])?;
    let epoch = after.epoch;
    turn.emit(CatalogueEvent::LevelRaised(Box::new(after)))?;
    Ok(Reply::Level { level, epoch })
}

/// Refuses a level that a server of the cluster does not know.
fn check_servers(turn: &Turn<'_, '_>, map: &ClusterMap, level: Level) -> Result<(), Stop> {
    for number in map.replicas(0) {
        let known = turn.rows.server_at(&Key::server(*number))?;
        let known = known.filter(|server| server.state != ServerState::Removed);
        let highest = known.map_or(Level(0), |server| server.levels.highest);
        if highest < level {
            let message = format!(
                "server {number} knows feature levels up to {highest}, and not {level}: run a newer version there"
            );
            return Err(mismatch(map, message).fact("server", number).into());
        }
    }
    Ok(())
}

fn mismatch(map: &ClusterMap, message: String) -> Rejection {
    Rejection::new(Reason::StateMismatch, message).fact("level", map.level.0)
}
